#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/field_error.h"
#include "api/json.h"
#include "api/names.h"

// Private to api/: the rules that kinds share.
namespace berth::api::rules {

inline constexpr std::string_view kImmutable = "field is immutable";

// Where in an object a check is. A chain on the stack: only a failed check makes text of it. A path
// must not outlive the one it was made from, which the deleted overloads guard against.
class Path {
 public:
  explicit Path(std::string_view name) : name_(name) {}

  [[nodiscard]] Path At(std::string_view name) const& { return {this, name, -1}; }
  [[nodiscard]] Path At(std::string_view name, size_t index) const& {
    return {this, name, static_cast<int64_t>(index)};
  }
  [[nodiscard]] Path Item(size_t index) const& { return {this, {}, static_cast<int64_t>(index)}; }
  // `path[key]`.
  [[nodiscard]] Path Key(std::string_view key) const& {
    Path path(this, key, -1);
    path.is_key_ = true;
    return path;
  }
  Path At(std::string_view name) && = delete;
  Path At(std::string_view name, size_t index) && = delete;
  Path Item(size_t index) && = delete;
  Path Key(std::string_view key) && = delete;

  [[nodiscard]] std::string text() const;

 private:
  Path(const Path* parent, std::string_view name, int64_t index)
      : parent_(parent), name_(name), index_(index) {}

  const Path* parent_ = nullptr;
  std::string_view name_;
  int64_t index_ = -1;
  bool is_key_ = false;
};

void AddInvalid(FieldErrors& errors, const Path& path, std::string_view value,
                const Messages& messages);
void AddInvalid(FieldErrors& errors, const Path& path, const Json& value, std::string detail);
void AddRequired(FieldErrors& errors, const Path& path, std::string detail = "");
void AddForbidden(FieldErrors& errors, const Path& path, std::string detail);

// What is empty is required; else `messages` say what is wrong with it.
void CheckRequired(FieldErrors& errors, const Path& path, std::string_view value,
                   const Messages& messages);
// The member must be one of `supported`; missing counts as "".
void CheckEnum(FieldErrors& errors, const Path& path, std::string_view value,
               std::span<const std::string_view> supported);
// As CheckEnum, with a missing value reported as required.
void CheckRequiredEnum(FieldErrors& errors, const Path& path, std::string_view value,
                       std::span<const std::string_view> supported);
// Integer members that must not be negative where they stand.
void CheckNonnegative(FieldErrors& errors, const Path& path, const Json& object,
                      std::span<const std::string_view> members);
// The member must not have changed.
void CheckImmutable(FieldErrors& errors, const Path& path, const Json& old, const Json& object,
                    std::string_view member);

// Those of Kubernetes itself, whose names have no domain.
[[nodiscard]] bool IsStandardFinalizer(std::string_view name);
void CheckLabelName(FieldErrors& errors, const Path& path, std::string_view name);
// Labels, or any map from label keys to label values.
void CheckLabels(FieldErrors& errors, const Path& path, const JsonObject& labels);
void CheckAnnotations(FieldErrors& errors, const Path& path, const JsonObject& annotations);
void CheckLabelSelector(FieldErrors& errors, const Path& path, const Json& selector);
// A list of {key, operator, values}, as label selectors have it.
void CheckLabelExpression(FieldErrors& errors, const Path& path, const Json& expression);
// Whether a spec's selector selects these labels; an invalid selector selects nothing.
[[nodiscard]] bool Selects(const Json* selector, const JsonObject& labels);

using NameCheck = Messages (*)(std::string_view);
// metadata of a new object.
void CheckMeta(FieldErrors& errors, const Json& object, bool namespaced, NameCheck name);
// metadata of an object that replaces `old`.
void CheckMetaUpdate(FieldErrors& errors, const Json& old, const Json& object);
// The same of custom kinds, whose finalizers may have any name.
void CheckCustomMeta(FieldErrors& errors, const Json& object, bool namespaced,
                     NameCheck name = CheckDns1123Subdomain);
void CheckCustomMetaUpdate(FieldErrors& errors, const Json& old, const Json& object);

// Node taints.
void CheckTaints(FieldErrors& errors, const Path& path, const JsonArray& taints);
// A port's number, or also its name.
void CheckPort(FieldErrors& errors, const Path& path, int64_t port);
void CheckPortOrName(FieldErrors& errors, const Path& path, const Json* port);

// What an IP address is of; kMapped: IPv4 written as IPv6.
enum class IpFamily : uint8_t { kNone, kV4, kV6, kMapped };
[[nodiscard]] IpFamily FamilyOf(std::string_view ip);

void CheckIp(FieldErrors& errors, const Path& path, std::string_view ip);

// A range of addresses: 10.0.0.0/8.
struct CidrRange {
  bool six = false;
  int bits = 0;  // Of the prefix.
  std::array<uint8_t, 16> bytes{};

  [[nodiscard]] bool HasBitsBehind() const;
  // Whether `other` is a part of it, and not all.
  [[nodiscard]] bool ContainsStrictly(const CidrRange& other) const;
};
[[nodiscard]] std::optional<CidrRange> ParseCidr(std::string_view range);
void CheckCidr(FieldErrors& errors, const Path& path, std::string_view range);

// One amount of a resource list.
void CheckAmount(FieldErrors& errors, const Path& path, std::string_view resource,
                 const Json& amount);

[[nodiscard]] bool IsHugePages(std::string_view resource);
// Resources of Kubernetes itself: without a domain, or of kubernetes.io/.
[[nodiscard]] bool IsNativeResource(std::string_view resource);
[[nodiscard]] bool IsExtendedResource(std::string_view resource);

}  // namespace berth::api::rules
