#include "codec/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "codec/json.h"

namespace berth::codec {
namespace {

using api::Json;
using api::JsonArray;
using api::JsonObject;

// Thrown through yaml-cpp's parser to end it; never leaves this file.
struct Stop {
  std::string message;
};

std::string At(const YAML::Mark& mark) {
  return fmt::format("line {}, column {}", mark.line + 1, mark.column + 1);
}

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (text == word) return true;
  }
  return false;
}

std::optional<Json> ParseInteger(std::string_view text) {
  std::string digits;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || text.front() == '_') return std::nullopt;
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.starts_with("0b") || text.starts_with("0B")) {
    base = 2;
    text.remove_prefix(2);
  } else if (text.starts_with("0o") || text.starts_with("0O")) {
    base = 8;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text.front() == '0') {
    base = 8;
    text.remove_prefix(1);
  }
  for (const char c : text) {
    if (c != '_') digits += c;
  }
  uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, value, base);
  if (error != std::errc() || rest != end) return std::nullopt;
  constexpr uint64_t kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (negative) {
    if (value > kMax + 1) return std::nullopt;
    return Json(static_cast<int64_t>(~value + 1));
  }
  if (value <= kMax) return Json(static_cast<int64_t>(value));
  return Json(value);
}

std::optional<Json> ParseFloat(std::string_view text) {
  // Digits must be somewhere, and nothing but what a decimal number is made of.
  std::string number(text);
  if (number.starts_with('+')) number.erase(0, 1);
  if (number.find_first_of("0123456789") == std::string::npos) return std::nullopt;
  if (number.find_first_not_of("0123456789+-.eE") != std::string::npos) return std::nullopt;
  double value = 0;
  const char* end = number.data() + number.size();
  const auto [rest, error] = std::from_chars(number.data(), end, value);
  if (error != std::errc() || rest != end || !std::isfinite(value)) return std::nullopt;
  return Json(value);
}

// The text of a number that is a key, as Go prints a float32 with %g: so sigs.k8s.io/yaml has it.
std::string KeyOfNumber(double value) {
  const auto number = static_cast<float>(value);
  if (!std::isfinite(number)) return number < 0 ? "-.inf" : ".inf";
  std::array<char, 64> text{};
  const auto print = [&](std::chars_format format) {
    const auto end = std::to_chars(text.data(), text.data() + text.size(), number, format).ptr;
    return std::string(text.data(), end);
  };
  const std::string scientific = print(std::chars_format::scientific);
  const std::string_view digits = std::string_view(scientific).substr(scientific.find('e') + 2);
  int exponent = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  if (scientific[scientific.find('e') + 1] == '-') exponent = -exponent;
  return exponent < -4 || exponent >= 6 ? scientific : print(std::chars_format::fixed);
}

// A plain scalar: YAML 1.1's core types, as sigs.k8s.io/yaml resolves them.
Json ResolvePlain(const std::string& text, const YAML::Mark& mark) {
  if (IsOneOf(text, {"", "~", "null", "Null", "NULL"})) return nullptr;
  if (IsOneOf(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"}))
    return true;
  if (IsOneOf(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"}))
    return false;
  if (IsOneOf(text, {".inf", ".Inf", ".INF", "+.inf", "-.inf", "-.Inf", "-.INF", ".nan", ".NaN",
                     ".NAN"})) {
    throw Stop{fmt::format("{}: {} has no form in JSON", At(mark), text)};
  }
  const char first = text.front();
  if ((first < '0' || first > '9') && first != '-' && first != '+' && first != '.')
    return Json(text);
  if (std::optional<Json> integer = ParseInteger(text)) return *std::move(integer);
  if (std::optional<Json> number = ParseFloat(text)) return *std::move(number);
  return Json(text);
}

Json ResolveTagged(const std::string& tag, const std::string& text, const YAML::Mark& mark) {
  if (tag == "!" || tag == "tag:yaml.org,2002:str") return Json(text);
  if (tag == "?" || tag.empty()) return ResolvePlain(text, mark);
  Json value = ResolvePlain(text, mark);
  const bool fits = (tag == "tag:yaml.org,2002:int" && (value.is_int64() || value.is_uint64())) ||
                    (tag == "tag:yaml.org,2002:bool" && value.is_bool()) ||
                    (tag == "tag:yaml.org,2002:null" && value.is_null()) ||
                    (tag == "tag:yaml.org,2002:float" && value.is_number());
  if (!fits) throw Stop{fmt::format("{}: {} is not of type {}", At(mark), text, tag)};
  return value;
}

// Builds documents from the parser's events.
class Builder final : public YAML::EventHandler {
 public:
  Builder(YamlLimits limits, bool reports) : limits_(limits), reports_(reports) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    // yaml-cpp leaves what can start no document unread, and would give empty documents for ever.
    if (mark.pos == document_start_) throw Stop{At(mark) + ": no document can start here"};
    document_start_ = mark.pos;
    stack_.clear();
    anchors_.clear();
    root_.reset();
    document_lines_.clear();
  }
  void OnDocumentEnd() override {
    if (!root_ || root_->is_null()) return;
    if (static_cast<int64_t>(documents.size()) >= limits_.documents_max) {
      throw Stop{fmt::format("more than {} documents", limits_.documents_max)};
    }
    documents.push_back(std::move(*root_));
    if (limits_.lines) lines.push_back(std::exchange(document_lines_, {}));
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Add(mark, anchor, nullptr);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (ValidUtf8Prefix(value) != value.size()) throw Stop{At(mark) + ": not UTF-8"};
    if (!stack_.empty()) stack_.back().plain = tag == "?" || tag.empty();
    const bool key = !stack_.empty() && stack_.back().value.is_object() && !stack_.back().key;
    Json resolved = ResolveTagged(tag, value, mark);
    // Go prints a number without a fraction as an integer, and then it is one.
    if (const double* number = resolved.if_double(); !key && number != nullptr &&
                                                     std::trunc(*number) == *number &&
                                                     std::fabs(*number) < 0x1p63) {
      resolved = static_cast<int64_t>(*number);
    }
    Add(mark, anchor, std::move(resolved));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Stop{At(mark) + ": an alias inside of what it stands for"};
    Count(mark, found->second.second);
    Json copy = found->second.first;
    Add(mark, 0, std::move(copy));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    if (!IsOneOf(tag, {"", "?", "!", "tag:yaml.org,2002:seq"}))
      throw Stop{At(mark) + ": unknown tag " + tag};
    Open(mark, anchor, JsonArray());
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    if (!IsOneOf(tag, {"", "?", "!", "tag:yaml.org,2002:map"}))
      throw Stop{At(mark) + ": unknown tag " + tag};
    Open(mark, anchor, JsonObject());
  }
  void OnMapEnd() override { Close(); }

  std::vector<Json> documents;
  std::vector<std::string> duplicates;  // Only when it reports them.
  std::vector<YamlLines> lines;

 private:
  struct Level {
    Json value;
    std::optional<std::string> key;  // Of an object: read, and its value is still to come.
    bool plain = false;              // The scalar that is read has neither quotes nor a tag.
    bool merges = false;             // The key is the one that merges.
    YAML::anchor_t anchor = 0;
    YAML::Mark mark;
    std::string path;  // Only when lines are wanted.
    int64_t nodes_before = 0;
    std::set<std::string> merged;  // Keys that came by a merge and may be overridden.
  };

  void Count(const YAML::Mark& mark, int64_t more) {
    nodes_ += more;
    if (nodes_ > limits_.nodes_max)
      throw Stop{fmt::format("{}: more than {} nodes", At(mark), limits_.nodes_max)};
  }
  void Open(const YAML::Mark& mark, YAML::anchor_t anchor, Json value) {
    if (static_cast<int64_t>(stack_.size()) >= limits_.nesting_max) {
      throw Stop{fmt::format("{}: nested deeper than {}", At(mark), limits_.nesting_max)};
    }
    Level level;
    level.value = std::move(value);
    level.anchor = anchor;
    level.mark = mark;
    level.nodes_before = nodes_;
    level.path = PathOfNext();
    stack_.push_back(std::move(level));
  }
  // Where the value that comes next stands.
  [[nodiscard]] std::string PathOfNext() const {
    if (!limits_.lines || stack_.empty()) return "";
    const Level& level = stack_.back();
    if (level.value.is_array())
      return fmt::format("{}[{}]", level.path, level.value.get_array().size());
    const std::string key = level.key.value_or("");
    return level.path.empty() ? key : fmt::format("{}.{}", level.path, key);
  }
  void NoteLine(const YAML::Mark& mark) {
    if (limits_.lines) document_lines_.try_emplace(PathOfNext(), mark.line + 1);
  }
  void Close() {
    Level level = std::move(stack_.back());
    stack_.pop_back();
    Count(level.mark, 1);
    if (level.anchor != 0) anchors_[level.anchor] = {level.value, nodes_ - level.nodes_before};
    Place(level.mark, std::move(level.value));
  }
  void Add(const YAML::Mark& mark, YAML::anchor_t anchor, Json value) {
    Count(mark, 1);
    if (anchor != 0) anchors_[anchor] = {value, 1};
    Place(mark, std::move(value));
  }
  void Place(const YAML::Mark& mark, Json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return;
    }
    Level& level = stack_.back();
    if (level.value.is_array()) {
      NoteLine(mark);
      level.value.get_array().push_back(std::move(value));
      return;
    }
    if (!level.key) {
      if (!value.is_string()) {
        if (value.is_object() || value.is_array() || value.is_null())
          throw Stop{At(mark) + ": a key that is no scalar, or null"};
        value = Json(value.is_double() ? KeyOfNumber(value.get_double()) : PrintJson(value));
      }
      level.key = std::string(value.get_string());
      level.merges = level.plain && *level.key == "<<";
      NoteLine(mark);
      return;
    }
    const std::string key = *std::exchange(level.key, std::nullopt);
    if (level.merges) return Merge(mark, level, value);
    JsonObject& object = level.value.get_object();
    if (object.contains(key) && level.merged.erase(key) == 0) SetTwice(mark, key);
    object[key] = std::move(value);
  }
  // Told of where the value is.
  void SetTwice(const YAML::Mark& mark, std::string_view key) {
    if (!reports_) throw Stop{fmt::format("{}: key \"{}\" already set in map", At(mark), key)};
    duplicates.push_back(fmt::format("line {}: key \"{}\" already set in map", mark.line + 1, key));
  }
  void Merge(const YAML::Mark& mark, Level& level, const Json& value) {
    if (value.is_array()) {
      for (const Json& each : value.get_array()) Merge(mark, level, each);
      return;
    }
    if (!value.is_object())
      throw Stop{At(mark) + ": map merge requires map or sequence of maps as the value"};
    for (const auto& member : value.get_object()) {
      const std::string key(member.key());
      if (level.merged.contains(key)) continue;
      if (level.value.get_object().contains(key)) {
        // YAML says that it stays, Kubernetes takes the other one and warns.
        SetTwice(mark, key);
      }
      level.value.get_object()[key] = member.value();
      level.merged.insert(key);
    }
  }

  YamlLimits limits_;
  bool reports_ = false;
  std::vector<Level> stack_;
  std::map<YAML::anchor_t, std::pair<Json, int64_t>> anchors_;  // With how many nodes they hold.
  std::optional<Json> root_;
  YamlLines document_lines_;
  int64_t nodes_ = 0;
  int document_start_ = -1;  // Where the one that is read began.
};

// ---- Printing ----------------------------------------------------------------------------------

// Whether the text, written bare, reads back as this very string.
bool IsPlain(const std::string& text) {
  if (text.empty() || text.back() == ' ' || text.back() == ':') return false;
  const bool letter =
      (text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z') || text[0] == '/';
  if (!letter) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c < ' ' || c > '~') return false;
    if (c == '#' && i > 0 && text[i - 1] == ' ') return false;
    if (c == ':' && text[i + 1] == ' ') return false;
  }
  return ResolvePlain(text, YAML::Mark()).is_string();
}

void PrintText(const std::string& text, std::string& out) {
  if (IsPlain(text)) {
    out += text;
  } else {
    AppendJsonString(text, out);
  }
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Beyond ASCII all counts as letters.
bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}

// The order of keys in upstream's documents: letters come after all else, digits count as the
// numbers that they are together (go-yaml's sorter). It is none where zeros begin a number: 1a
// stands before 01, that before 10, and that before 1a.
bool IsKeyBefore(std::string_view one, std::string_view other) {
  const auto [left, right] = std::ranges::mismatch(one, other);
  if (left == one.end() || right == other.end()) return one.size() < other.size();
  const auto at = static_cast<size_t>(left - one.begin());
  if (IsLetter(*left) && IsLetter(*right))
    return static_cast<unsigned char>(*left) < static_cast<unsigned char>(*right);
  if (IsLetter(*left) || IsLetter(*right)) return IsLetter(*right);
  // Zeros at the beginning of a number count for nothing.
  size_t begin = at;
  while (begin > 0 && IsDigit(one[begin - 1])) --begin;
  const bool within =
      one.substr(begin, at - begin).find_first_not_of('0') != std::string_view::npos;
  const auto digits_of = [&](std::string_view key) {
    size_t end = at;
    while (end < key.size() && IsDigit(key[end])) ++end;
    return key.substr(at, end - at);
  };
  const std::string_view left_all = digits_of(one);
  const std::string_view right_all = digits_of(other);
  const auto number_of = [&](std::string_view digits) {
    if (!within) digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
    return std::pair(digits.size(), digits);
  };
  const auto left_number = number_of(left_all);
  const auto right_number = number_of(right_all);
  if (left_number != right_number) return left_number < right_number;
  if (left_all.size() != right_all.size()) return left_all.size() < right_all.size();
  return *left < *right;
}

std::vector<std::pair<std::string_view, const Json*>> MembersInOrder(const JsonObject& object) {
  std::vector<std::pair<std::string_view, const Json*>> members;
  members.reserve(object.size());
  for (const auto& member : object) members.emplace_back(member.key(), &member.value());
  std::ranges::stable_sort(members, IsKeyBefore, [](const auto& member) { return member.first; });
  return members;
}

void Print(const Json& value, size_t indent, std::string& out);

// What follows "key:" or "-": on the same line when it is one, else indented below.
void PrintBelow(const Json& value, size_t indent, std::string& out) {
  const bool block = (value.is_object() && !value.get_object().empty()) ||
                     (value.is_array() && !value.get_array().empty());
  if (!block) {
    out += ' ';
    Print(value, indent, out);
    return;
  }
  out += '\n';
  Print(value, indent, out);
}

void Print(const Json& value, size_t indent, std::string& out) {
  if (value.is_object() && !value.get_object().empty()) {
    for (const auto& [key, member] : MembersInOrder(value.get_object())) {
      out.append(indent, ' ');
      PrintText(std::string(key), out);
      out += ':';
      PrintBelow(*member, member->is_array() ? indent : indent + 2, out);
    }
    return;
  }
  if (value.is_array() && !value.get_array().empty()) {
    for (const Json& each : value.get_array()) {
      out.append(indent, ' ');
      out += '-';
      const bool map = each.is_object() && !each.get_object().empty();
      if (!map) {
        PrintBelow(each, indent + 2, out);
        continue;
      }
      // The first member stands on the dash's own line.
      std::string below;
      Print(each, indent + 2, below);
      out += ' ';
      out += std::string_view(below).substr(indent + 2);
    }
    return;
  }
  if (value.is_string()) {
    PrintText(std::string(value.get_string()), out);
  } else {
    AppendJson(value, out);
  }
  out += '\n';
}

}  // namespace

namespace {

Result<ParsedYaml> Parse(std::string_view text, YamlLimits limits, bool reports) {
  const auto control = [](char c) {
    return static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\n' && c != '\r';
  };
  if (const auto bad = std::ranges::find_if(text, control); bad != text.end()) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("yaml: line {}: control characters are not allowed",
                            std::ranges::count(text.begin(), bad, '\n') + 1));
  }
  Builder builder(limits, reports);
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Stop& stop) {
    return Fail(ErrorCode::kInvalid, "yaml: " + stop.message);
  } catch (const YAML::Exception& error) {
    return Fail(ErrorCode::kInvalid, fmt::format("yaml: {}: {}", At(error.mark), error.msg));
  }
  return ParsedYaml{.documents = std::move(builder.documents),
                    .duplicates = std::move(builder.duplicates),
                    .lines = std::move(builder.lines)};
}

}  // namespace

Result<std::vector<Json>> ParseYaml(std::string_view text, YamlLimits limits) {
  Result<ParsedYaml> parsed = Parse(text, limits, false);
  if (!parsed) return std::unexpected(std::move(parsed.error()));
  return std::move(parsed->documents);
}

Result<ParsedYaml> ParseYamlReporting(std::string_view text, YamlLimits limits) {
  return Parse(text, limits, true);
}

std::string PrintYaml(const Json& value) {
  std::string out;
  Print(value, 0, out);
  return out;
}

}  // namespace berth::codec
