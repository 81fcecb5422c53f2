#include "api/selector.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "api/field_error.h"
#include "api/names.h"

namespace berth::api {
namespace {

enum class Token : uint8_t {
  kError,
  kEnd,
  kClose,
  kComma,
  kNot,
  kDoubleEquals,
  kEquals,
  kGreater,
  kIdentifier,
  kIn,
  kLess,
  kNotEquals,
  kNotIn,
  kOpen,
};

struct Item {
  Token token = Token::kEnd;
  std::string text;
};

std::optional<Token> SymbolOf(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, Token>, 9> kSymbols = {
      {{")", Token::kClose},
       {",", Token::kComma},
       {"!", Token::kNot},
       {"==", Token::kDoubleEquals},
       {"=", Token::kEquals},
       {">", Token::kGreater},
       {"<", Token::kLess},
       {"!=", Token::kNotEquals},
       {"(", Token::kOpen}}};
  for (const auto& [symbol, token] : kSymbols) {
    if (symbol == text) return token;
  }
  return std::nullopt;
}

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool IsSymbol(char c) { return std::string_view("=!(),><").find(c) != std::string_view::npos; }

// Takes the longest known symbol that the run of special characters at `at` begins with, as long as
// every shorter prefix of it is known too (so "!!" is two of them).
Item ScanSymbol(std::string_view text, size_t& at) {
  Item item{Token::kError, ""};
  size_t length = 1;
  for (; at + length <= text.size() && IsSymbol(text[at + length - 1]); ++length) {
    const std::optional<Token> token = SymbolOf(text.substr(at, length));
    if (!token) break;
    item = {*token, std::string(text.substr(at, length))};
  }
  at += item.text.size();
  return item;
}

std::vector<Item> Scan(std::string_view text) {
  std::vector<Item> items;
  // A NUL ends the text, as it does for upstream's lexer.
  text = text.substr(0, text.find('\0'));
  size_t at = 0;
  while (true) {
    while (at < text.size() && IsBlank(text[at])) ++at;
    if (at == text.size()) break;
    if (IsSymbol(text[at])) {
      items.push_back(ScanSymbol(text, at));
      continue;
    }
    const size_t start = at;
    while (at < text.size() && !IsBlank(text[at]) && !IsSymbol(text[at])) ++at;
    std::string word(text.substr(start, at - start));
    const Token token = word == "in"      ? Token::kIn
                        : word == "notin" ? Token::kNotIn
                                          : Token::kIdentifier;
    items.push_back({token, std::move(word)});
  }
  items.push_back({Token::kEnd, ""});
  return items;
}

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalid, std::move(message));
}

std::optional<int64_t> ToInteger(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string JoinMessages(const Messages& messages) {
  return fmt::format("{}", fmt::join(messages, "; "));
}

// The checks that every requirement passes, whichever way it was written.
Result<LabelRequirement> MakeRequirement(std::string key, SelectorOperator op,
                                         std::vector<std::string> values) {
  FieldErrors errors;
  if (const Messages messages = CheckQualifiedName(key); !messages.empty()) {
    errors.push_back(InvalidField("key", key, JoinMessages(messages)));
  }
  const auto values_error = [&](std::string_view detail) {
    std::string list = "[";
    for (const std::string& value : values) list += (list.size() > 1 ? "," : "") + QuoteGo(value);
    errors.push_back({FieldErrorType::kInvalid, "values", list + "]", std::string(detail)});
  };
  switch (op) {
    case SelectorOperator::kIn:
    case SelectorOperator::kNotIn:
      if (values.empty()) values_error("for 'in', 'notin' operators, values set can't be empty");
      break;
    case SelectorOperator::kEquals:
    case SelectorOperator::kDoubleEquals:
    case SelectorOperator::kNotEquals:
      if (values.size() != 1) values_error("exact-match compatibility requires one single value");
      break;
    case SelectorOperator::kExists:
    case SelectorOperator::kDoesNotExist:
      if (!values.empty()) values_error("values set must be empty for exists and does not exist");
      break;
    case SelectorOperator::kGreaterThan:
    case SelectorOperator::kLessThan:
      if (values.size() != 1) {
        values_error("for 'Gt', 'Lt' operators, exactly one value is required");
      }
      for (size_t i = 0; i < values.size(); ++i) {
        if (ToInteger(values[i])) continue;
        errors.push_back(InvalidField(fmt::format("values[{}]", i), values[i],
                                      "for 'Gt', 'Lt' operators, the value must be an integer"));
      }
      break;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const Messages messages = CheckLabelValue(values[i]);
    if (messages.empty()) continue;
    errors.push_back(
        InvalidField(fmt::format("values[{}][{}]", i, key), values[i], JoinMessages(messages)));
  }
  if (errors.size() == 1) return Invalid(ToString(errors[0]));
  if (!errors.empty()) {
    std::vector<std::string> texts;
    for (const FieldError& error : errors) texts.push_back(ToString(error));
    return Invalid(fmt::format("[{}]", fmt::join(texts, ", ")));
  }
  std::ranges::sort(values);
  values.erase(std::ranges::unique(values).begin(), values.end());
  return LabelRequirement{std::move(key), op, std::move(values)};
}

class Parser {
 public:
  explicit Parser(std::string_view text) : items_(Scan(text)) {}

  Result<LabelQuery> Run() {
    LabelQuery query;
    while (true) {
      const Item& next = Peek();
      if (TokenOf(next) == Token::kEnd) return query;
      if (TokenOf(next) != Token::kIdentifier && next.token != Token::kNot) {
        return Invalid(
            fmt::format("found '{}', expected: !, identifier, or 'end of string'", Show(next)));
      }
      Result<LabelRequirement> requirement = ParseRequirement();
      if (!requirement) {
        return Invalid("unable to parse requirement: " + requirement.error().message);
      }
      query.requirements.push_back(std::move(*requirement));
      const Item& after = Take();
      if (after.token == Token::kEnd) return query;
      if (after.token != Token::kComma) {
        return Invalid(fmt::format("found '{}', expected: ',' or 'end of string'", Show(after)));
      }
      const Item& following = Peek();
      if (TokenOf(following) != Token::kIdentifier && following.token != Token::kNot) {
        return Invalid(fmt::format("found '{}', expected: identifier after ','", Show(following)));
      }
    }
  }

 private:
  // `in` and `notin` are words like any other except right after a key.
  static Token TokenOf(const Item& item) {
    return item.token == Token::kIn || item.token == Token::kNotIn ? Token::kIdentifier
                                                                   : item.token;
  }
  static std::string Show(const Item& item) { return item.text; }

  const Item& Peek() { return items_[std::min(at_, items_.size() - 1)]; }
  const Item& Take() {
    const Item& item = Peek();
    ++at_;
    return item;
  }

  Result<LabelRequirement> ParseRequirement() {
    Item key = Take();
    const bool absent = key.token == Token::kNot;
    if (absent) key = Take();
    if (TokenOf(key) != Token::kIdentifier) {
      return Invalid(fmt::format("found '{}', expected: identifier", Show(key)));
    }
    if (const Messages messages = CheckQualifiedName(key.text); !messages.empty()) {
      return Invalid(ToString(InvalidField("<nil>", key.text, JoinMessages(messages))));
    }
    const Token next = Peek().token;
    if (absent) return MakeRequirement(std::move(key.text), SelectorOperator::kDoesNotExist, {});
    if (next == Token::kEnd || next == Token::kComma) {
      return MakeRequirement(std::move(key.text), SelectorOperator::kExists, {});
    }
    const Result<SelectorOperator> op = ParseOperator();
    if (!op) return std::unexpected(op.error());
    const bool set = *op == SelectorOperator::kIn || *op == SelectorOperator::kNotIn;
    Result<std::vector<std::string>> values = set ? ParseValues() : ParseExactValue();
    if (!values) return std::unexpected(values.error());
    std::ranges::sort(*values);
    values->erase(std::ranges::unique(*values).begin(), values->end());
    return MakeRequirement(std::move(key.text), *op, std::move(*values));
  }

  Result<SelectorOperator> ParseOperator() {
    const Item& item = Take();
    switch (item.token) {
      case Token::kIn:
        return SelectorOperator::kIn;
      case Token::kNotIn:
        return SelectorOperator::kNotIn;
      case Token::kEquals:
        return SelectorOperator::kEquals;
      case Token::kDoubleEquals:
        return SelectorOperator::kDoubleEquals;
      case Token::kNotEquals:
        return SelectorOperator::kNotEquals;
      case Token::kGreater:
        return SelectorOperator::kGreaterThan;
      case Token::kLess:
        return SelectorOperator::kLessThan;
      default:
        return Invalid(
            fmt::format("found '{}', expected: in, notin, =, ==, !=, gt, lt", Show(item)));
    }
  }

  Result<std::vector<std::string>> ParseValues() {
    const Item& open = Take();
    if (open.token != Token::kOpen) {
      return Invalid(fmt::format("found '{}' expected: '('", Show(open)));
    }
    const Item first = Peek();
    if (first.token == Token::kClose) {
      Take();
      return std::vector<std::string>{""};
    }
    if (TokenOf(first) != Token::kIdentifier && first.token != Token::kComma) {
      return Invalid(fmt::format("found '{}', expected: ',', ')' or identifier", Show(first)));
    }
    std::vector<std::string> values;
    // A comma without a word before or after it stands for an empty value.
    bool word_before = false;
    while (true) {
      const Item& item = Take();
      if (TokenOf(item) == Token::kIdentifier) {
        values.push_back(item.text);
        word_before = true;
        const Item& next = Peek();
        if (next.token == Token::kClose) break;
        if (next.token != Token::kComma) {
          return Invalid(fmt::format("found '{}', expected: ',' or ')'", Show(next)));
        }
      } else if (item.token == Token::kComma) {
        if (!word_before && values.empty()) values.emplace_back();
        const Token next = Peek().token;
        if (next == Token::kComma || next == Token::kClose) values.emplace_back();
        if (next == Token::kClose) break;
      } else {
        return Invalid(fmt::format("found '{}', expected: ',', or identifier", Show(item)));
      }
    }
    Take();
    return values;
  }

  Result<std::vector<std::string>> ParseExactValue() {
    const Token next = Peek().token;
    if (next == Token::kEnd || next == Token::kComma) return std::vector<std::string>{""};
    const Item& item = Take();
    if (TokenOf(item) != Token::kIdentifier) {
      return Invalid(fmt::format("found '{}', expected: identifier", Show(item)));
    }
    return std::vector<std::string>{item.text};
  }

  std::vector<Item> items_;
  size_t at_ = 0;
};

std::string_view SymbolOf(SelectorOperator op) {
  switch (op) {
    case SelectorOperator::kIn:
      return " in ";
    case SelectorOperator::kNotIn:
      return " notin ";
    case SelectorOperator::kEquals:
      return "=";
    case SelectorOperator::kDoubleEquals:
      return "==";
    case SelectorOperator::kNotEquals:
      return "!=";
    case SelectorOperator::kGreaterThan:
      return ">";
    case SelectorOperator::kLessThan:
      return "<";
    case SelectorOperator::kExists:
    case SelectorOperator::kDoesNotExist:
      return "";
  }
  return "";
}

void SortByKey(LabelQuery& query) {
  std::ranges::stable_sort(query.requirements, {}, &LabelRequirement::key);
}

Result<std::string> Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ',' || c == '=') {
      return Invalid(fmt::format("invalid field selector: unescaped character in value: {}",
                                 static_cast<int>(c)));
    }
    if (c != '\\') {
      out += c;
      continue;
    }
    const std::string_view next = text.substr(++i, 1);
    if (next != "\\" && next != "," && next != "=") {
      return Invalid(fmt::format("invalid field selector: invalid escape sequence: \\{}", next));
    }
    out += next;
  }
  return out;
}

std::vector<std::string_view> SplitTerms(std::string_view text) {
  std::vector<std::string_view> terms;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '\\') {
      ++i;
      continue;
    }
    if (i >= text.size() || text[i] == ',') {
      terms.push_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  if (start < text.size()) terms.push_back(text.substr(start));
  return terms;
}

}  // namespace

bool LabelRequirement::Matches(const StringMap& labels) const {
  const std::optional<std::string_view> value = Find(labels, key);
  const auto listed = [&] { return std::ranges::binary_search(values, *value); };
  switch (op) {
    case SelectorOperator::kIn:
    case SelectorOperator::kEquals:
    case SelectorOperator::kDoubleEquals:
      return value && listed();
    case SelectorOperator::kNotIn:
    case SelectorOperator::kNotEquals:
      return !value || !listed();
    case SelectorOperator::kExists:
      return value.has_value();
    case SelectorOperator::kDoesNotExist:
      return !value.has_value();
    case SelectorOperator::kGreaterThan:
    case SelectorOperator::kLessThan: {
      if (!value || values.size() != 1) return false;
      const std::optional<int64_t> left = ToInteger(*value);
      const std::optional<int64_t> right = ToInteger(values[0]);
      if (!left || !right) return false;
      return op == SelectorOperator::kGreaterThan ? *left > *right : *left < *right;
    }
  }
  return false;
}

bool LabelQuery::Matches(const StringMap& labels) const {
  if (nothing) return false;
  return std::ranges::all_of(requirements,
                             [&](const LabelRequirement& item) { return item.Matches(labels); });
}

Result<LabelQuery> ParseLabelQuery(std::string_view text) {
  Result<LabelQuery> query = Parser(text).Run();
  if (query) SortByKey(*query);
  return query;
}

std::string ToString(const LabelQuery& query) {
  std::string out;
  for (const LabelRequirement& item : query.requirements) {
    if (!out.empty()) out += ',';
    if (item.op == SelectorOperator::kDoesNotExist) out += '!';
    out += item.key;
    out += SymbolOf(item.op);
    const bool set = item.op == SelectorOperator::kIn || item.op == SelectorOperator::kNotIn;
    const std::string values = fmt::format("{}", fmt::join(item.values, ","));
    out += set ? "(" + values + ")" : values;
  }
  return out;
}

Result<LabelQuery> QueryOf(const LabelSelector& selector) {
  LabelQuery query = QueryOf(selector.match_labels);
  for (const Requirement& item : selector.match_expressions) {
    SelectorOperator op = SelectorOperator::kIn;
    if (item.op == "NotIn") {
      op = SelectorOperator::kNotIn;
    } else if (item.op == "Exists") {
      op = SelectorOperator::kExists;
    } else if (item.op == "DoesNotExist") {
      op = SelectorOperator::kDoesNotExist;
    } else if (item.op != "In") {
      return Invalid(fmt::format("{} is not a valid label selector operator", QuoteGo(item.op)));
    }
    Result<LabelRequirement> requirement = MakeRequirement(item.key, op, item.values);
    if (!requirement) return std::unexpected(requirement.error());
    query.requirements.push_back(std::move(*requirement));
  }
  SortByKey(query);
  return query;
}

LabelQuery QueryOf(const StringMap& labels) {
  LabelQuery query;
  for (const auto& [key, value] : labels) {
    query.requirements.push_back({key, SelectorOperator::kEquals, {value}});
  }
  return query;
}

bool FieldQuery::Matches(const StringMap& fields) const {
  return std::ranges::all_of(requirements, [&](const FieldRequirement& item) {
    const std::string_view value = Find(fields, item.field).value_or("");
    return (value == item.value) == item.equals;
  });
}

Result<FieldQuery> ParseFieldQuery(std::string_view text) {
  std::vector<std::string_view> terms = SplitTerms(text);
  std::ranges::sort(terms);
  FieldQuery query;
  for (const std::string_view term : terms) {
    if (term.empty()) continue;
    const size_t equals = term.find('=');
    const size_t at = equals != std::string_view::npos && equals > 0 && term[equals - 1] == '!'
                          ? equals - 1
                          : equals;
    if (at == std::string_view::npos) {
      return Invalid(fmt::format("invalid selector: '{}'; can't understand '{}'", text, term));
    }
    const size_t length = term[at] == '!' || term.substr(at, 2) == "==" ? 2 : 1;
    Result<std::string> value = Unescape(term.substr(at + length));
    if (!value) return std::unexpected(value.error());
    query.requirements.push_back(
        {std::string(term.substr(0, at)), std::move(*value), term[at] != '!'});
  }
  return query;
}

std::string ToString(const FieldQuery& query) {
  std::string out;
  for (const FieldRequirement& item : query.requirements) {
    if (!out.empty()) out += ',';
    out += item.field;
    out += item.equals ? "=" : "!=";
    for (const char c : item.value) {
      if (c == '\\' || c == ',' || c == '=') out += '\\';
      out += c;
    }
  }
  return out;
}

}  // namespace berth::api
