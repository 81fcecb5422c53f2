#include "api/net_formats.h"

#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>

#include "api/validate_common.h"

namespace berth::api {
namespace {

bool IsAlphanumeric(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsMultibyte(char c) { return static_cast<unsigned char>(c) >= 0x80; }
// The value of a hexadecimal digit; -1: it is none.
int HexOf(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// ---- URIs ---------------------------------------------------------------------------------------

// The byte that an escape at `at` stands for; -1: there is none.
int EscapedAt(std::string_view text, size_t at) {
  if (at + 2 >= text.size()) return -1;
  const int high = HexOf(text[at + 1]);
  const int low = HexOf(text[at + 2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

bool AreEscapesWhole(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && EscapedAt(text, i) < 0) return false;
  }
  return true;
}

bool IsHostCharacter(char c) {
  constexpr std::string_view kOthers = "-_.~!$&'()*+,;=:[]<>\"";
  return IsAlphanumeric(c) || IsMultibyte(c) || kOthers.contains(c);
}

enum class HostPart : bool { kName, kZone };

bool IsHostText(std::string_view text, HostPart part) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      if (!IsHostCharacter(text[i])) return false;
      continue;
    }
    const int byte = EscapedAt(text, i);
    if (byte < 0) return false;
    const bool fits = part == HostPart::kName
                          ? byte >= 0x80
                          : byte == ' ' || IsHostCharacter(static_cast<char>(byte));
    if (byte != '%' && !fits) return false;
    i += 2;
  }
  return true;
}

bool IsPort(std::string_view text) {
  return text.empty() || (text.starts_with(':') && std::ranges::all_of(text.substr(1), IsDigit));
}

// "[::1]:80"; a zone stands behind "%25".
bool IsBracketedHost(std::string_view host) {
  const size_t close = host.rfind(']');
  if (close == std::string_view::npos || !IsPort(host.substr(close + 1))) return false;
  std::string_view address = host.substr(1, close - 1);
  const size_t percent = address.find("%25");
  if (percent != std::string_view::npos) {
    const std::string_view zone = address.substr(percent);
    if (zone.size() == 3 || !IsHostText(zone, HostPart::kZone)) return false;
    address = address.substr(0, percent);
  }
  const rules::IpFamily family = rules::FamilyOf(address);
  return family == rules::IpFamily::kV6 || family == rules::IpFamily::kMapped;
}

bool IsHostAndPort(std::string_view scheme, std::string_view host) {
  const size_t bracket = host.rfind('[');
  if (bracket == 0) return IsBracketedHost(host);
  if (bracket != std::string_view::npos) return false;
  size_t colon = host.find(':');
  // Others have lists of hosts.
  if (scheme != "http" && scheme != "https") colon = host.rfind(':');
  if (colon != std::string_view::npos && !IsPort(host.substr(colon))) return false;
  return IsHostText(host, HostPart::kName);
}

bool IsAuthority(std::string_view scheme, std::string_view authority) {
  const size_t at = authority.rfind('@');
  if (at == std::string_view::npos) return IsHostAndPort(scheme, authority);
  const std::string_view user = authority.substr(0, at);
  const bool fits = std::ranges::all_of(user, [](char c) {
    constexpr std::string_view kOthers = "-._:~!$&'()*+,;=%@";
    return IsAlphanumeric(c) || kOthers.contains(c);
  });
  return fits && AreEscapesWhole(user) && IsHostAndPort(scheme, authority.substr(at + 1));
}

// How long the scheme at the start is, without its colon; 0: there is none. npos: it is missing.
size_t SchemeSize(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ':') return i == 0 ? std::string_view::npos : i;
    const bool letter = std::isalpha(static_cast<unsigned char>(text[i])) != 0;
    if (letter) continue;
    constexpr std::string_view kLater = "0123456789+-.";
    if (i == 0 || !kLater.contains(text[i])) return 0;
  }
  return 0;
}

// ---- Mail ---------------------------------------------------------------------------------------

// A parser of one address (RFC 5322, RFC 6532). Each step says whether it found what it is for.
class MailParser {
 public:
  explicit MailParser(std::string_view text) : rest_(text) {}

  bool ParseOne() {
    size_t count = 0;
    return ParseAddress(true, count) && SkipComments() && rest_.empty() && count == 1;
  }

 private:
  // With groups: "name: a@b, c@d;".
  bool ParseAddress(bool with_groups, size_t& count) {
    SkipBlanks();
    if (rest_.empty()) return false;
    const std::string_view start = rest_;
    if (ParseSpec()) {
      ++count;
      SkipBlanks();
      return !Take('(') || SkipComment();
    }
    rest_ = start;
    SkipBlanks();
    if (!rest_.starts_with('<') && !ParsePhrase()) return false;
    SkipBlanks();
    if (with_groups && Take(':')) return ParseGroup(count);
    ++count;
    return Take('<') && ParseSpec() && Take('>');
  }

  bool ParseGroup(size_t& count) {
    SkipBlanks();
    if (Take(';')) return SkipComments();
    do {
      if (!ParseAddress(false, count) || !SkipComments()) return false;
      if (Take(';')) return SkipComments();
    } while (Take(','));
    return false;
  }

  bool ParseSpec() {
    SkipBlanks();
    if (rest_.empty()) return false;
    const bool local = rest_.front() == '"' ? ParseQuoted(false) : ParseAtom(false);
    if (!local || !Take('@')) return false;
    SkipBlanks();
    return rest_.starts_with('[') ? ParseLiteral() : ParseAtom(false);
  }

  // Words; what follows the first needn't be one.
  bool ParsePhrase() {
    size_t words = 0;
    while (true) {
      if (words > 0 && !SkipComments()) return false;
      SkipBlanks();
      if (rest_.empty()) return true;
      const bool word = rest_.front() == '"' ? ParseQuoted(true) : ParseAtom(true);
      if (!word) return words > 0;
      ++words;
    }
  }

  bool ParseQuoted(bool may_be_empty) {
    bool empty = true;
    for (size_t i = 1; i < rest_.size(); ++i) {
      const char c = rest_[i];
      if (c == '"') {
        if (empty && !may_be_empty) return false;
        rest_.remove_prefix(i + 1);
        return true;
      }
      if (c == '\\') {
        ++i;
        if (i >= rest_.size()) return false;
      }
      if (!IsVisible(rest_[i]) && rest_[i] != ' ' && rest_[i] != '\t') return false;
      empty = false;
    }
    return false;
  }

  // With dots: in `loose` ones anywhere, else between other characters alone.
  bool ParseAtom(bool loose) {
    constexpr std::string_view kSpecials = "()<>[]:;@\\,\"";
    const auto* const end =
        std::ranges::find_if(rest_, [&](char c) { return !IsVisible(c) || kSpecials.contains(c); });
    const std::string_view atom = rest_.substr(0, static_cast<size_t>(end - rest_.begin()));
    if (atom.empty()) return false;
    rest_.remove_prefix(atom.size());
    return loose || (!atom.starts_with('.') && !atom.ends_with('.') &&
                     atom.find("..") == std::string_view::npos);
  }

  // An address in brackets.
  bool ParseLiteral() {
    const size_t close = rest_.find(']');
    if (close == std::string_view::npos) return false;
    const std::string_view address = rest_.substr(1, close - 1);
    rest_.remove_prefix(close + 1);
    return rules::FamilyOf(address) != rules::IpFamily::kNone;
  }

  // Behind its '('. They nest.
  bool SkipComment() {
    size_t depth = 1;
    while (!rest_.empty() && depth > 0) {
      if (rest_.front() == '\\' && rest_.size() > 1) {
        rest_.remove_prefix(1);
      } else if (rest_.front() == '(') {
        ++depth;
      } else if (rest_.front() == ')') {
        --depth;
      }
      rest_.remove_prefix(1);
    }
    return depth == 0;
  }

  bool SkipComments() {
    SkipBlanks();
    while (Take('(')) {
      if (!SkipComment()) return false;
      SkipBlanks();
    }
    return true;
  }

  void SkipBlanks() {
    while (rest_.starts_with(' ') || rest_.starts_with('\t')) rest_.remove_prefix(1);
  }

  bool Take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  static bool IsVisible(char c) { return (c >= '!' && c <= '~') || IsMultibyte(c); }

  std::string_view rest_;
};

// ---- Names of hosts -----------------------------------------------------------------------------

constexpr size_t kLabelMax = 63;

bool IsLabelCharacter(char c) { return c == 'a' || c == '+' || IsDigit(c); }

// Of a name with dots, in its shape: the last label is of letters alone.
bool IsLabel(std::string_view label, bool last) {
  if (last) {
    return label.size() >= 2 && label.size() <= kLabelMax &&
           std::ranges::all_of(label, [](char c) { return c == 'a'; });
  }
  return !label.empty() && label.size() <= kLabelMax && IsLabelCharacter(label.front()) &&
         IsLabelCharacter(label.back()) &&
         std::ranges::all_of(label, [](char c) { return IsLabelCharacter(c) || c == '-'; });
}

// Of a name without: a dash may stand behind the first character alone.
bool IsLoneLabel(std::string_view label) {
  if (label.empty() || !IsLabelCharacter(label.front())) return false;
  label.remove_prefix(label.size() > 1 && label[1] == '-' ? 2 : 1);
  return std::ranges::all_of(label, IsLabelCharacter);
}

}  // namespace

bool IsRequestUri(std::string_view text) {
  const bool control = std::ranges::any_of(
      text, [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; });
  if (control || text.empty()) return false;
  if (text == "*") return true;
  const size_t size = SchemeSize(text);
  if (size == std::string_view::npos) return false;
  std::string scheme(text.substr(0, size));
  std::ranges::transform(scheme, scheme.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  if (size > 0) text.remove_prefix(size + 1);
  text = text.substr(0, text.find('?'));
  if (!text.starts_with('/')) return size > 0;
  if (size > 0 && text.starts_with("//")) {
    const size_t slash = std::min(text.find('/', 2), text.size());
    if (!IsAuthority(scheme, text.substr(2, slash - 2))) return false;
    text.remove_prefix(slash);
  }
  return AreEscapesWhole(text);
}

bool IsMailAddress(std::string_view text) { return MailParser(text).ParseOne(); }

bool IsHostName(std::string_view text) {
  constexpr size_t kSizeMax = 255;
  if (text.empty() || text.size() > kSizeMax) return false;
  static const RE2 kLetters(R"(\p{L})");
  static const RE2 kSymbols(R"(\p{S})");
  // A letter, whatever its script, becomes 'a', a symbol '+': a byte each.
  std::string shape(text);
  RE2::GlobalReplace(&shape, kLetters, "a");
  RE2::GlobalReplace(&shape, kSymbols, "+");
  const bool alone = !text.contains('.');
  while (true) {
    const size_t size = std::min(text.find('.'), text.size());
    const size_t shape_size = std::min(shape.find('.'), shape.size());
    const std::string_view label = std::string_view(shape).substr(0, shape_size);
    const bool last = size == text.size();
    if (size > kLabelMax || !(alone ? IsLoneLabel(label) : IsLabel(label, last))) return false;
    if (last) return true;
    text.remove_prefix(size + 1);
    shape.erase(0, shape_size + 1);
  }
}

}  // namespace berth::api
