#include "api/cel_syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"

namespace berth::api {
namespace {

// ---- Tokens -------------------------------------------------------------------------------------

enum class Type : uint8_t {
  kEnd,
  kName,
  kQuotedName,  // In backquotes.
  kInteger,
  kUnsigned,
  kFloat,
  kString,
  kBytes,
  kWord,    // true, false, null, in.
  kSymbol,  // An operator or bracket.
};

struct Token {
  Type type = Type::kEnd;
  std::string_view text;
  size_t at = 0;  // Of its first byte.
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsNameStart(char c) { return IsLetter(c) || c == '_'; }
bool IsNamePart(char c) { return IsNameStart(c) || IsDigit(c); }

// How many bytes of `text` satisfy `wanted` from `at` on.
template <typename Wanted>
size_t Span(std::string_view text, size_t at, Wanted wanted) {
  size_t end = at;
  while (end < text.size() && wanted(text[end])) ++end;
  return end - at;
}

// The bytes of an escape at `at`, a backslash; 0: there is none.
size_t EscapeSize(std::string_view text, size_t at) {
  constexpr std::string_view kPlain = R"(abfnrtv"'\?`)";
  if (at + 1 >= text.size()) return 0;
  const char kind = text[at + 1];
  if (kPlain.contains(kind)) return 2;
  const auto hex = [&](size_t digits) {
    const std::string_view rest = text.substr(at + 2, digits);
    return rest.size() == digits && std::ranges::all_of(rest, IsHex) ? digits + 2 : 0;
  };
  if (kind == 'x' || kind == 'X') return hex(2);
  if (kind == 'u') return hex(4);
  if (kind == 'U') return hex(8);
  const std::string_view octal = text.substr(at + 1, 3);
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  return octal.size() == 3 && octal[0] <= '3' && std::ranges::all_of(octal, is_octal) ? 4 : 0;
}

// The bytes of a literal in quotes at `at`, its quotes included; 0: there is none.
size_t QuotedSize(std::string_view text, size_t at, bool raw) {
  if (at >= text.size() || (text[at] != '"' && text[at] != '\'')) return 0;
  const char quote = text[at];
  const std::string three(3, quote);
  if (text.substr(at).starts_with(three)) {
    for (size_t i = at + 3; i < text.size();) {
      if (text.substr(i).starts_with(three)) return i + 3 - at;
      const size_t step = !raw && text[i] == '\\' ? EscapeSize(text, i) : 1;
      if (step == 0) break;
      i += step;
    }
  }
  for (size_t i = at + 1; i < text.size();) {
    if (text[i] == quote) return i + 1 - at;
    const size_t step = !raw && text[i] == '\\' ? EscapeSize(text, i) : 1;
    if (step == 0 || text[i] == '\n' || text[i] == '\r') return 0;
    i += step;
  }
  return 0;
}

// A string or bytes with what may stand before them: r, b, br.
Token QuotedAt(std::string_view text, size_t at) {
  size_t quote = at;
  const auto take = [&](char lower, char upper) {
    const bool has = quote < text.size() && (text[quote] == lower || text[quote] == upper);
    if (has) ++quote;
    return has;
  };
  const bool bytes = take('b', 'B');
  const bool raw = take('r', 'R');
  const size_t size = QuotedSize(text, quote, raw);
  if (size == 0) return {};
  return {.type = bytes ? Type::kBytes : Type::kString,
          .text = text.substr(at, quote + size - at),
          .at = at};
}

Token NumberAt(std::string_view text, size_t at) {
  size_t size = Span(text, at, IsDigit);
  bool is_float = false;
  if (size == 1 && text[at] == '0' && at + 1 < text.size() && text[at + 1] == 'x') {
    if (const size_t digits = Span(text, at + 2, IsHex); digits > 0) {
      const size_t end = at + 2 + digits;
      const bool is_unsigned = end < text.size() && (text[end] == 'u' || text[end] == 'U');
      return {.type = is_unsigned ? Type::kUnsigned : Type::kInteger,
              .text = text.substr(at, 2 + digits + (is_unsigned ? 1 : 0)),
              .at = at};
    }
  }
  if (at + size < text.size() && text[at + size] == '.') {
    if (const size_t digits = Span(text, at + size + 1, IsDigit); digits > 0) {
      size += 1 + digits;
      is_float = true;
    }
  }
  if (size == 0) return {};
  const auto at_exponent = [&] {
    return at + size < text.size() && (text[at + size] == 'e' || text[at + size] == 'E');
  };
  if (at_exponent()) {
    size_t from = at + size + 1;
    if (from < text.size() && (text[from] == '+' || text[from] == '-')) ++from;
    if (const size_t digits = Span(text, from, IsDigit); digits > 0) {
      size = from + digits - at;
      is_float = true;
    }
  }
  Type type = is_float ? Type::kFloat : Type::kInteger;
  if (!is_float && at + size < text.size() && (text[at + size] == 'u' || text[at + size] == 'U')) {
    ++size;
    type = Type::kUnsigned;
  }
  return {.type = type, .text = text.substr(at, size), .at = at};
}

Token SymbolAt(std::string_view text, size_t at) {
  constexpr auto kSymbols = std::to_array<std::string_view>(
      {"==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}",
       "(",  ")",  ".",  ",",  "-",  "!",  "?", ":", "+", "*", "/", "%"});
  for (const std::string_view symbol : kSymbols) {
    if (text.substr(at).starts_with(symbol))
      return {.type = Type::kSymbol, .text = text.substr(at, symbol.size()), .at = at};
  }
  return {};
}

// The token at `at`, where no space is. Of type kEnd, with the text up to where one could have
// ended: there is none.
Token TokenAt(std::string_view text, size_t at) {
  if (const Token quoted = QuotedAt(text, at); quoted.type != Type::kEnd) return quoted;
  if (IsNameStart(text[at])) {
    constexpr auto kWords = std::to_array<std::string_view>({"true", "false", "null", "in"});
    const std::string_view name = text.substr(at, Span(text, at, IsNamePart));
    const bool word = std::ranges::find(kWords, name) != kWords.end();
    return {.type = word ? Type::kWord : Type::kName, .text = name, .at = at};
  }
  if (const Token number = NumberAt(text, at); number.type != Type::kEnd) return number;
  if (text[at] == '`') {
    const size_t size = Span(text, at + 1, [](char c) {
      return IsNamePart(c) || c == '.' || c == '-' || c == '/' || c == ' ';
    });
    if (size > 0 && text.substr(at + 1 + size).starts_with('`'))
      return {.type = Type::kQuotedName, .text = text.substr(at, size + 2), .at = at};
  }
  return SymbolAt(text, at);
}

// ---- The grammar --------------------------------------------------------------------------------

// What has been read: enough of it for macros.
struct Expression {
  enum class Kind : uint8_t { kName, kMember, kOther };
  Kind kind = Kind::kOther;
  std::string_view name;
  size_t at = 0;
};

// A recursive descent that stops at the first problem. Each step says whether it went on.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  CelSyntax Run() {
    const auto size = std::ranges::count_if(
        text_, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    if (static_cast<size_t>(size) > kCelSizeMax) {
      return {.problem = fmt::format("ERROR: <input>:-1:0: expression code point size exceeds "
                                     "limit: size: {}, limit {}",
                                     size, kCelSizeMax)};
    }
    if (ReadTokens()) {
      Expression whole;
      if (ParseWhole(whole) && Now().type != Type::kEnd) RefuseRest();
    }
    return {.problem = problem_, .names_old_self = names_old_self_};
  }

 private:
  bool ReadTokens() {
    for (size_t at = 0; at < text_.size();) {
      const char c = text_[at];
      if (std::string_view(" \t\r\n\f").contains(c)) {
        ++at;
        continue;
      }
      if (text_.substr(at).starts_with("//")) {
        at = std::min(text_.find('\n', at), text_.size());
        continue;
      }
      const Token token = TokenAt(text_, at);
      if (token.type == Type::kEnd)
        return Refuse(at, fmt::format("Syntax error: token recognition error at: '{}'", BadAt(at)));
      tokens_.push_back(token);
      at += token.text.size();
    }
    tokens_.push_back({.type = Type::kEnd, .text = "<EOF>", .at = text_.size()});
    return true;
  }

  // What of the text can't be a token: a quote as far as it might have gone on, else one character.
  [[nodiscard]] std::string_view BadAt(size_t at) const {
    size_t end = at + 1;
    if (text_[at] == '"' || text_[at] == '\'') {
      while (end < text_.size() && text_[end] != '\n' && text_[end] != '\r') {
        const size_t step = text_[end] == '\\' ? EscapeSize(text_, end) : 1;
        if (step == 0) {
          end = std::min(end + 2, text_.size());
          break;
        }
        end += step;
      }
    }
    while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80) ++end;
    return text_.substr(at, end - at);
  }

  [[nodiscard]] const Token& Now() const { return tokens_[next_]; }
  [[nodiscard]] const Token& After() const {
    return tokens_[std::min(next_ + 1, tokens_.size() - 1)];
  }
  [[nodiscard]] bool Is(std::string_view symbol) const {
    return Now().type == Type::kSymbol && Now().text == symbol;
  }
  bool Take(std::string_view symbol) {
    if (!Is(symbol)) return false;
    ++next_;
    return true;
  }
  template <size_t N>
  bool TakeOneOf(const std::array<std::string_view, N>& symbols) {
    const bool has = (Now().type == Type::kSymbol || Now().text == "in") &&
                     std::ranges::find(symbols, Now().text) != symbols.end();
    if (has) ++next_;
    return has;
  }

  // Says what is wrong at a byte, in cel-go's words, with the line and a mark.
  bool Refuse(size_t at, std::string_view why) {
    if (!problem_.empty()) return false;
    const size_t before = at == 0 ? std::string_view::npos : text_.rfind('\n', at - 1);
    const size_t start = before == std::string_view::npos ? 0 : before + 1;
    const size_t end = std::min(text_.find('\n', start), text_.size());
    const auto line = std::ranges::count(text_.substr(0, start), '\n') + 1;
    size_t column = 0;
    std::string mark;
    const auto is_wide = [&](size_t i) {
      return i < text_.size() && static_cast<unsigned char>(text_[i]) >= 0x80;
    };
    for (size_t i = start; i < at;) {
      mark += is_wide(i) ? "．" : ".";
      ++column;
      for (++i; i < at && (static_cast<unsigned char>(text_[i]) & 0xC0) == 0x80;) ++i;
    }
    mark += is_wide(at) ? "＾" : "^";
    std::string shown(text_.substr(start, end - start));
    std::ranges::replace(shown, '\t', ' ');
    problem_ =
        fmt::format("ERROR: <input>:{}:{}: {}\n | {}\n | {}", line, column + 1, why, shown, mark);
    return false;
  }

  // An operand was to come.
  bool RefuseOperand() {
    constexpr std::string_view kOperands =
        "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, "
        "STRING, BYTES, IDENTIFIER}";
    const bool goes_on = Now().type != Type::kEnd && StartsOperand(After());
    return Refuse(Now().at,
                  fmt::format("Syntax error: {} input '{}' expecting {}",
                              goes_on ? "extraneous" : "mismatched", Now().text, kOperands));
  }

  bool RefuseRest() {
    const bool alone = After().type == Type::kEnd;
    return Refuse(Now().at, fmt::format("Syntax error: {} input '{}' expecting <EOF>",
                                        alone ? "extraneous" : "mismatched", Now().text));
  }

  bool Expect(std::string_view symbol) {
    if (Take(symbol)) return true;
    if (Now().type == Type::kEnd)
      return Refuse(Now().at, fmt::format("Syntax error: missing '{}' at '<EOF>'", symbol));
    return Refuse(Now().at, fmt::format("Syntax error: mismatched input '{}' expecting '{}'",
                                        Now().text, symbol));
  }

  static bool StartsOperand(const Token& token) {
    constexpr auto kSymbols = std::to_array<std::string_view>({"[", "{", "(", ".", "-", "!"});
    switch (token.type) {
      case Type::kEnd:
      case Type::kQuotedName:
        return false;
      case Type::kSymbol:
        return std::ranges::find(kSymbols, token.text) != kSymbols.end();
      case Type::kWord:
        return token.text != "in";
      default:
        return true;
    }
  }

  // a ? b : c
  bool ParseWhole(Expression& made) {
    if (++depth_ > kCelDepthMax)
      return Refuse(Now().at, fmt::format("expression recursion limit exceeded: {}", kCelDepthMax));
    const bool fine = ParseChoice(made);
    --depth_;
    return fine;
  }

  // The last part of one may be one: a loop, for such chains are long.
  bool ParseChoice(Expression& made) {
    if (!ParseOperators(made)) return false;
    while (Is("?")) {
      made = {.at = Now().at};
      ++next_;
      Expression part;
      if (!ParseOperators(part) || !Expect(":") || !ParseOperators(part)) return false;
    }
    return true;
  }

  // Operands with operators between them. What binds how doesn't matter to whether they may stand.
  bool ParseOperators(Expression& made) {
    constexpr auto kOperators = std::to_array<std::string_view>(
        {"||", "&&", "<", "<=", ">=", ">", "==", "!=", "in", "*", "/", "%", "+", "-"});
    if (!ParseUnary(made)) return false;
    while (true) {
      const size_t at = Now().at;
      if (!TakeOneOf(kOperators)) return true;
      made = {.at = at};
      Expression operand;
      if (!ParseUnary(operand)) return false;
    }
  }

  bool ParseUnary(Expression& made) {
    const size_t at = Now().at;
    // The sign of a number is a part of it.
    const auto is_sign = [&] {
      return Is("-") && After().type != Type::kInteger && After().type != Type::kFloat;
    };
    const bool negates = is_sign();
    if (!negates && !Is("!")) return ParseMember(made);
    while (negates ? is_sign() : Is("!")) ++next_;
    const bool fine = ParseMember(made);
    made = {.at = at};
    return fine;
  }

  bool ParseMember(Expression& made) {
    if (!ParsePrimary(made)) return false;
    while (true) {
      const size_t at = Now().at;
      if (Take("[")) {
        Take("?");
        Expression index;
        if (!ParseWhole(index) || !Expect("]")) return false;
        made = {.at = at};
      } else if (Take(".")) {
        if (!ParseSelection(at, made)) return false;
      } else {
        return true;
      }
    }
  }

  // Behind the dot at `dot`.
  bool ParseSelection(size_t dot, Expression& made) {
    const bool optional = Take("?");
    const Token name = Now();
    if (name.type == Type::kQuotedName) return Refuse(dot, "unsupported syntax: '`'");
    if (name.type != Type::kName)
      return Refuse(name.at, "Syntax error: no viable alternative at input '.'");
    ++next_;
    const size_t open = Now().at;
    if (optional || !Take("(")) {
      made = {.kind = optional ? Expression::Kind::kOther : Expression::Kind::kMember, .at = dot};
      return true;
    }
    std::vector<Expression> arguments;
    if (!ParseArguments(arguments)) return false;
    made = {.at = open};
    return CheckMethod(name.text, arguments);
  }

  // Up to the closing bracket.
  bool ParseArguments(std::vector<Expression>& arguments) {
    if (Take(")")) return true;
    do {
      if (!ParseWhole(arguments.emplace_back())) return false;
    } while (Take(","));
    return Expect(")");
  }

  bool ParsePrimary(Expression& made) {
    const Token token = Now();
    made = {.at = token.at};
    if (Take("(")) {
      return ParseWhole(made) && Expect(")");
    }
    if (Take("[")) return ParseItems("]", false);
    if (Take("{")) return ParseItems("}", true);
    if (Is(".") || token.type == Type::kName) return ParseName(made);
    if (Take("-")) {
      if (Now().type != Type::kInteger && Now().type != Type::kFloat) return RefuseOperand();
      return TakeLiteral(true);
    }
    if (!StartsOperand(token) || token.type == Type::kSymbol) return RefuseOperand();
    return TakeLiteral(false);
  }

  // Up to `close`; of a map with values. A comma may be the last.
  bool ParseItems(std::string_view close, bool values) {
    if (Take(close)) return true;
    if (Take(",")) return Expect(close);
    do {
      if (Is(close)) break;
      Take("?");
      Expression part;
      if (!ParseWhole(part)) return false;
      if (values && (!Expect(":") || !ParseWhole(part))) return false;
    } while (Take(","));
    return Expect(close);
  }

  // A name, a call of a function, or a message: a.b.C{f: 1}.
  bool ParseName(Expression& made) {
    const size_t at = Now().at;
    const bool rooted = Take(".");
    const Token name = Now();
    if (name.type != Type::kName)
      return Refuse(name.at, "Syntax error: no viable alternative at input '.'");
    ++next_;
    if (IsMessage()) return ParseMessage();
    if (IsReserved(name.text)) return Refuse(at, fmt::format("reserved identifier: {}", name.text));
    const size_t open = Now().at;
    if (Take("(")) {
      std::vector<Expression> arguments;
      if (!ParseArguments(arguments)) return false;
      made = {.at = open};
      return rooted || CheckFunction(name.text, arguments);
    }
    names_old_self_ |= name.text == "oldSelf";
    made = {.kind = Expression::Kind::kName, .name = name.text, .at = at};
    return true;
  }

  // Whether the names from here on end in a brace.
  [[nodiscard]] bool IsMessage() const {
    size_t at = next_;
    const auto is = [&](std::string_view symbol) {
      return tokens_[at].type == Type::kSymbol && tokens_[at].text == symbol;
    };
    while (is(".") && tokens_[at + 1].type == Type::kName) at += 2;
    return is("{");
  }

  bool ParseMessage() {
    while (!Take("{")) ++next_;
    if (Take("}")) return true;
    if (Take(",")) return Expect("}");
    do {
      if (Is("}")) break;
      Take("?");
      if (Now().type == Type::kQuotedName) return Refuse(Now().at, "unsupported syntax: '`'");
      if (Now().type != Type::kName) {
        return Refuse(Now().at, fmt::format("Syntax error: mismatched input '{}' expecting {{'?', "
                                            "IDENTIFIER, ESC_IDENTIFIER}}",
                                            Now().text));
      }
      ++next_;
      Expression value;
      if (!Expect(":") || !ParseWhole(value)) return false;
    } while (Take(","));
    return Expect("}");
  }

  static bool IsReserved(std::string_view name) {
    constexpr auto kReserved = std::to_array<std::string_view>(
        {"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
         "loop", "package", "namespace", "return", "var", "void", "while"});
    return std::ranges::find(kReserved, name) != kReserved.end();
  }

  bool TakeLiteral(bool negative) {
    const Token token = Now();
    ++next_;
    switch (token.type) {
      case Type::kInteger:
        return CheckInteger(token, negative) || Refuse(token.at, "invalid int literal");
      case Type::kUnsigned:
        return CheckUnsigned(token.text.substr(0, token.text.size() - 1)) ||
               Refuse(token.at, "invalid uint literal");
      case Type::kString:
      case Type::kBytes:
        return CheckEscapes(token);
      default:
        return true;
    }
  }

  static bool CheckUnsigned(std::string_view text) {
    uint64_t value = 0;
    return Read(text, value);
  }

  static bool CheckInteger(const Token& token, bool negative) {
    uint64_t value = 0;
    constexpr uint64_t kMost = uint64_t{1} << 63;
    return Read(token.text, value) && value <= (negative ? kMost : kMost - 1);
  }

  static bool Read(std::string_view text, uint64_t& value) {
    const bool hex = text.starts_with("0x");
    if (hex) text.remove_prefix(2);
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
    return error == std::errc() && end == text.data() + text.size();
  }

  // Escapes that are none of a character; in bytes there are none of more than one.
  bool CheckEscapes(const Token& token) {
    const std::string_view text = token.text;
    const size_t quote = text.find_first_of("'\"");
    const std::string_view before = text.substr(0, quote);
    if (before.contains('r') || before.contains('R')) return true;
    for (size_t i = quote; i < text.size();) {
      if (text[i] != '\\') {
        ++i;
        continue;
      }
      const size_t size = EscapeSize(text, i);
      CHECK(size > 0);
      const char kind = text[i + 1];
      if (kind == 'u' || kind == 'U') {
        uint32_t point = 0;
        std::from_chars(text.data() + i + 2, text.data() + i + size, point, 16);
        const bool surrogate = point >= 0xD800 && point < 0xE000;
        if (token.type == Type::kBytes || surrogate || point > 0x10FFFF)
          return Refuse(token.at, "unable to unescape string");
      }
      i += size;
    }
    return true;
  }

  // ---- Macros ----

  bool CheckFunction(std::string_view name, const std::vector<Expression>& arguments) {
    if (name != "has" || arguments.size() != 1) return true;
    if (arguments[0].kind == Expression::Kind::kMember) return true;
    return Refuse(arguments[0].at, "invalid argument to has() macro");
  }

  bool CheckMethod(std::string_view name, const std::vector<Expression>& arguments) {
    struct Macro {
      std::string_view name;
      size_t arguments;
      size_t names;  // The first of them are to be names.
      std::string_view why;
    };
    constexpr std::string_view kSimple = "argument must be a simple name";
    constexpr std::string_view kNone = "argument is not an identifier";
    constexpr auto kMacros = std::to_array<Macro>(
        {{"all", 2, 1, kSimple},
         {"exists", 2, 1, kSimple},
         {"exists_one", 2, 1, kSimple},
         {"existsOne", 2, 1, kSimple},
         {"map", 2, 1, kNone},
         {"map", 3, 1, kNone},
         {"filter", 2, 1, kNone},
         {"all", 3, 2, kSimple},
         {"exists", 3, 2, kSimple},
         {"exists_one", 3, 2, kSimple},
         {"existsOne", 3, 2, kSimple},
         {"transformList", 3, 2, kSimple},
         {"transformList", 4, 2, kSimple},
         {"transformMap", 3, 2, kSimple},
         {"transformMap", 4, 2, kSimple},
         {"transformMapEntry", 3, 2, kSimple},
         {"transformMapEntry", 4, 2, kSimple},
         {"optMap", 2, 1, "optMap() variable name must be a simple identifier"},
         {"optFlatMap", 2, 1, "optFlatMap() variable name must be a simple identifier"}});
    for (const Macro& macro : kMacros) {
      if (macro.name != name || macro.arguments != arguments.size()) continue;
      for (size_t i = 0; i < macro.names; ++i) {
        if (arguments[i].kind != Expression::Kind::kName) return Refuse(arguments[i].at, macro.why);
      }
      if (macro.names == 2 && arguments[0].name == arguments[1].name) {
        return Refuse(arguments[1].at,
                      fmt::format("duplicate variable name: {}", arguments[1].name));
      }
    }
    return true;
  }

  std::string_view text_;
  std::vector<Token> tokens_;
  size_t next_ = 0;
  int depth_ = 0;
  std::string problem_;
  bool names_old_self_ = false;
};

}  // namespace

CelSyntax ParseCel(std::string_view text) { return Parser(text).Run(); }

}  // namespace berth::api
