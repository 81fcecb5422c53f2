#pragma once

#include <string>
#include <string_view>
#include <vector>

// The shapes that names, labels and keys must have (k8s.io/apimachinery util/validation). Each
// check returns upstream's messages; none means the text is fine. Cost: linear in the text.
namespace berth::api {

using Messages = std::vector<std::string>;

[[nodiscard]] Messages CheckDns1123Label(std::string_view text);
[[nodiscard]] Messages CheckDns1123Subdomain(std::string_view text);
// The same of the few kinds whose rules upstream generates: their bound is told in bytes.
[[nodiscard]] Messages CheckLongName(std::string_view text);
[[nodiscard]] Messages CheckDns1035Label(std::string_view text);
// A label or annotation key, a resource name, a condition type: `name` or `prefix/name`.
[[nodiscard]] Messages CheckQualifiedName(std::string_view text);
[[nodiscard]] Messages CheckLabelValue(std::string_view text);
// A key of a ConfigMap's or Secret's data.
[[nodiscard]] Messages CheckConfigMapKey(std::string_view text);
[[nodiscard]] Messages CheckEnvVarName(std::string_view text);
[[nodiscard]] Messages CheckPortName(std::string_view text);
// An object's name as a part of a URL's path.
[[nodiscard]] Messages CheckPathSegment(std::string_view text);

[[nodiscard]] bool IsDns1123Label(std::string_view text);
[[nodiscard]] bool IsDns1123Subdomain(std::string_view text);
[[nodiscard]] bool IsQualifiedName(std::string_view text);
[[nodiscard]] bool IsLabelValue(std::string_view text);

// "must be between 1 and 65535, inclusive".
[[nodiscard]] std::string RangeMessage(int64_t low, int64_t high);

// The base of a generated name, cut so that `kGeneratedSuffixLength` more characters fit a name
// of 63.
inline constexpr size_t kGeneratedSuffixLength = 5;
[[nodiscard]] std::string_view GeneratedNameBase(std::string_view generate_name);
// A generated suffix from 64 random bits: characters without vowels, 0, 1 and 3, so that no words
// come out.
[[nodiscard]] std::string GeneratedSuffix(uint64_t random);

}  // namespace berth::api
