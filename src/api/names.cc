#include "api/names.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::api {
namespace {

constexpr size_t kLabelMax = 63;
constexpr size_t kSubdomainMax = 253;

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAlphanumeric(char c) { return IsLower(c) || IsDigit(c) || (c >= 'A' && c <= 'Z'); }
bool IsLowerOrDigit(char c) { return IsLower(c) || IsDigit(c); }

// The shape of a DNS label whatever its length.
bool IsLabelShape(std::string_view text) {
  return !text.empty() && IsLowerOrDigit(text.front()) && IsLowerOrDigit(text.back()) &&
         std::ranges::all_of(text, [](char c) { return IsLowerOrDigit(c) || c == '-'; });
}

bool IsSubdomainShape(std::string_view text) {
  while (true) {
    const size_t dot = text.find('.');
    if (!IsLabelShape(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

// [A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?
bool IsQualifiedPart(std::string_view text) {
  return !text.empty() && IsAlphanumeric(text.front()) && IsAlphanumeric(text.back()) &&
         std::ranges::all_of(
             text, [](char c) { return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

// Upstream counts bytes in both, and says so in one of two ways.
std::string MaxLength(size_t length) {
  return fmt::format("must be no more than {} characters", length);
}
std::string MaxBytes(size_t length) { return fmt::format("must be no more than {} bytes", length); }

constexpr std::string_view kLabelMessage =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an "
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
constexpr std::string_view kSubdomainMessage =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end "
    "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
constexpr std::string_view kDns1035Message =
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end "
    "with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')";
constexpr std::string_view kQualifiedMessage =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
constexpr std::string_view kLabelValueMessage =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with "
    "an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    "validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
constexpr std::string_view kConfigKeyMessage =
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name', "
    " or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
constexpr std::string_view kEnvMessage =
    "a valid environment variable name must consist only of printable ASCII characters other than "
    "'='";

void AddDirectoryMessages(std::string_view text, Messages& messages) {
  if (text == ".") {
    messages.emplace_back("must not be '.'");
  } else if (text == "..") {
    messages.emplace_back("must not be '..'");
  } else if (text.starts_with("..")) {
    messages.emplace_back("must not start with '..'");
  }
}

}  // namespace

Messages CheckDns1123Label(std::string_view text) {
  Messages messages;
  if (text.size() > kLabelMax) messages.push_back(MaxLength(kLabelMax));
  if (!IsLabelShape(text)) {
    messages.emplace_back(IsSubdomainShape(text) ? "must not contain dots" : kLabelMessage);
  }
  return messages;
}

Messages CheckDns1123Subdomain(std::string_view text) {
  Messages messages;
  if (text.size() > kSubdomainMax) messages.push_back(MaxLength(kSubdomainMax));
  if (!IsSubdomainShape(text)) messages.emplace_back(kSubdomainMessage);
  return messages;
}

Messages CheckLongName(std::string_view text) {
  Messages messages = CheckDns1123Subdomain(text);
  if (text.size() > kSubdomainMax) messages.front() = MaxBytes(kSubdomainMax);
  return messages;
}

Messages CheckDns1035Label(std::string_view text) {
  Messages messages;
  if (text.size() > kLabelMax) messages.push_back(MaxLength(kLabelMax));
  if (!IsLabelShape(text) || !IsLower(text.front())) messages.emplace_back(kDns1035Message);
  return messages;
}

Messages CheckQualifiedName(std::string_view text) {
  Messages messages;
  const size_t slash = text.find('/');
  std::string_view name = text;
  if (slash != std::string_view::npos) {
    const std::string_view prefix = text.substr(0, slash);
    name = text.substr(slash + 1);
    if (name.find('/') != std::string_view::npos) {
      messages.emplace_back(
          "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must "
          "start and end with an "
          "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
          "validation is "
          "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and "
          "'/' (e.g. "
          "'example.com/MyName')");
      return messages;
    }
    if (prefix.empty()) {
      messages.emplace_back("prefix part must be non-empty");
    } else {
      if (prefix.size() > kSubdomainMax) {
        messages.push_back("prefix part " + MaxBytes(kSubdomainMax));
      }
      if (!IsSubdomainShape(prefix))
        messages.push_back(fmt::format("prefix part {}", kSubdomainMessage));
    }
  }
  if (name.empty()) {
    messages.emplace_back("name part must be non-empty");
  } else if (name.size() > kLabelMax) {
    messages.push_back("name part " + MaxBytes(kLabelMax));
  }
  if (!IsQualifiedPart(name)) messages.push_back(fmt::format("name part {}", kQualifiedMessage));
  return messages;
}

Messages CheckLabelValue(std::string_view text) {
  Messages messages;
  if (text.size() > kLabelMax) messages.push_back(MaxBytes(kLabelMax));
  if (!text.empty() && !IsQualifiedPart(text)) messages.emplace_back(kLabelValueMessage);
  return messages;
}

Messages CheckConfigMapKey(std::string_view text) {
  Messages messages;
  if (text.size() > kSubdomainMax) messages.push_back(MaxLength(kSubdomainMax));
  const bool shape = !text.empty() && std::ranges::all_of(text, [](char c) {
    return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.';
  });
  if (!shape) messages.emplace_back(kConfigKeyMessage);
  AddDirectoryMessages(text, messages);
  return messages;
}

Messages CheckEnvVarName(std::string_view text) {
  Messages messages;
  if (text.empty()) messages.emplace_back("environment variable name must be non-empty");
  const bool shape =
      std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f && c != '='; });
  if (!shape) messages.emplace_back(kEnvMessage);
  return messages;
}

Messages CheckPortName(std::string_view text) {
  Messages messages;
  if (text.size() > 15) messages.push_back(MaxLength(15));
  const bool characters = !text.empty() && std::ranges::all_of(text, [](char c) {
    return IsLowerOrDigit(c) || c == '-';
  });
  if (!characters) {
    messages.emplace_back("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (!std::ranges::any_of(text, IsLower)) {
    messages.emplace_back("must contain at least one letter (a-z)");
  }
  if (text.find("--") != std::string_view::npos) {
    messages.emplace_back("must not contain consecutive hyphens");
  }
  if (!text.empty() && (text.front() == '-' || text.back() == '-')) {
    messages.emplace_back("must not begin or end with a hyphen");
  }
  return messages;
}

Messages CheckPathSegment(std::string_view text) {
  if (text == ".") return {"may not be '.'"};
  if (text == "..") return {"may not be '..'"};
  Messages messages;
  if (text.find('/') != std::string_view::npos) messages.emplace_back("may not contain '/'");
  if (text.find('%') != std::string_view::npos) messages.emplace_back("may not contain '%'");
  return messages;
}

bool IsDns1123Label(std::string_view text) {
  return text.size() <= kLabelMax && IsLabelShape(text);
}
bool IsDns1123Subdomain(std::string_view text) {
  return text.size() <= kSubdomainMax && IsSubdomainShape(text);
}
bool IsQualifiedName(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    if (!IsDns1123Subdomain(text.substr(0, slash))) return false;
    text.remove_prefix(slash + 1);
  }
  return text.size() <= kLabelMax && IsQualifiedPart(text);
}
bool IsLabelValue(std::string_view text) {
  return text.empty() || (text.size() <= kLabelMax && IsQualifiedPart(text));
}

std::string RangeMessage(int64_t low, int64_t high) {
  return fmt::format("must be between {} and {}, inclusive", low, high);
}

std::string_view GeneratedNameBase(std::string_view generate_name) {
  return generate_name.substr(0, kLabelMax - kGeneratedSuffixLength);
}

std::string GeneratedSuffix(uint64_t random) {
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix;
  for (size_t i = 0; i < kGeneratedSuffixLength; ++i) {
    suffix += kAlphabet[random % kAlphabet.size()];
    random /= kAlphabet.size();
  }
  return suffix;
}

}  // namespace berth::api
