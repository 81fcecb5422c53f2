#include "api/patch.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/object.h"
#include "base/limits.h"

namespace berth::api {
namespace {

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalid, std::move(message));
}
std::unexpected<Error> Refused(std::string message) {
  return Fail(ErrorCode::kRefused, std::move(message));
}

std::string_view KindName(const Json& value) {
  if (value.is_object()) return "object";
  if (value.is_array()) return "array";
  if (value.is_string()) return "string";
  if (value.is_bool()) return "bool";
  return value.is_null() ? "null" : "number";
}

Error NotOfType(const Json& patch, std::string_view go_type) {
  return {ErrorCode::kInvalid, fmt::format("json: cannot unmarshal {} into Go value of type {}",
                                           KindName(patch), go_type)};
}

constexpr std::string_view kGoMap = "map[string]interface {}";

// The steps of a JSON pointer (RFC 6901), or nothing when it does not begin with a slash.
std::optional<std::vector<std::string>> SplitPointer(std::string_view pointer) {
  if (!pointer.starts_with('/')) return std::nullopt;
  std::vector<std::string> steps;
  for (const char c : pointer) {
    if (c == '/') {
      steps.emplace_back();
    } else if (steps.back().ends_with('~') && (c == '0' || c == '1')) {
      // "~0" is a tilde and "~1" a slash; a tilde that was an escape is marked by not ending the
      // step any more.
      steps.back().back() = c == '0' ? '\1' : '/';
    } else {
      steps.back() += c;
    }
  }
  for (std::string& step : steps) std::ranges::replace(step, '\1', '~');
  return steps;
}

// An index into an array of `size` items; negative ones count from the end, and a plus may stand
// before others, as upstream's library has it.
std::optional<size_t> IndexOf(std::string_view step, size_t size) {
  int64_t index = 0;
  if (step.starts_with('+') && !step.starts_with("+-")) step.remove_prefix(1);
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
  if (error != std::errc() || end != step.data() + step.size()) return std::nullopt;
  if (index < 0) index += static_cast<int64_t>(size);
  if (index < 0 || index >= static_cast<int64_t>(size)) return std::nullopt;
  return static_cast<size_t>(index);
}

class JsonPatcher {
 public:
  explicit JsonPatcher(const Json& document) : document_(document, document.storage()) {}

  Status Apply(const Json& operation) {
    const JsonObject* members = operation.if_object();
    if (members == nullptr) return std::unexpected(NotOfType(operation, "handlers.jsonPatchOp"));
    const std::string_view op = TextAt(operation, "op");
    const Json* path = members->if_contains("path");
    if (path == nullptr || !path->is_string()) return Missing("operation missing path field");
    const std::string at(path->get_string());
    if (op == "remove") return Remove(at, "remove");
    if (op == "move" || op == "copy") return Transfer(*members, at, op == "move");
    // Without a value it is null, unlike in RFC 6902, as upstream's library has it.
    const Json* member = members->if_contains("value");
    const Json null;
    const Json& value = member == nullptr ? null : *member;
    if (op == "test") return Test(at, value);
    if (op == "add") return Add(at, value);
    if (op == "replace") return Replace(at, value);
    return Refused(fmt::format("Unexpected kind: {}", op));
  }

  [[nodiscard]] Json Take() { return std::move(document_); }

 private:
  // A member is looked up anew besides.
  static constexpr size_t kShiftsOfMember = 4;

  // Where a pointer's last step applies.
  struct Place {
    Json* container = nullptr;
    std::string step;
  };

  static std::unexpected<Error> Missing(std::string message) {
    return Refused(std::move(message) + ": missing value");
  }
  static std::unexpected<Error> BadIndex(std::string_view step) {
    return Refused(fmt::format("Unable to access invalid index: {}", step));
  }

  static Json* Step(Json& container, std::string_view step) {
    if (JsonObject* object = container.if_object()) return object->if_contains(step);
    JsonArray* array = container.if_array();
    if (array == nullptr) return nullptr;
    const std::optional<size_t> index = IndexOf(step, array->size());
    return index ? &(*array)[*index] : nullptr;
  }

  std::optional<Place> Find(std::string_view pointer) {
    std::optional<std::vector<std::string>> steps = SplitPointer(pointer);
    if (!steps) return std::nullopt;
    Json* container = &document_;
    for (size_t i = 0; i + 1 < steps->size(); ++i) {
      container = Step(*container, (*steps)[i]);
      if (container == nullptr) return std::nullopt;
    }
    if (!container->is_object() && !container->is_array()) return std::nullopt;
    return Place{container, std::move(steps->back())};
  }

  Status Add(std::string_view pointer, Json value) {
    const std::optional<Place> place = Find(pointer);
    if (!place) {
      return Missing(
          fmt::format("add operation does not apply: doc is missing path: \"{}\"", pointer));
    }
    if (JsonObject* object = place->container->if_object()) {
      (*object)[place->step] = std::move(value);
      return {};
    }
    JsonArray& array = place->container->get_array();
    const std::optional<size_t> index =
        place->step == "-" ? std::optional(array.size()) : IndexOf(place->step, array.size() + 1);
    if (!index) return BadIndex(place->step);
    array.insert(array.begin() + static_cast<std::ptrdiff_t>(*index), std::move(value));
    return Shift(array.size() - *index);
  }

  Status Remove(std::string_view pointer, std::string_view op) {
    const std::optional<Place> place = Find(pointer);
    if (!place) {
      return Missing(
          fmt::format("{} operation does not apply: doc is missing path: \"{}\"", op, pointer));
    }
    if (JsonObject* object = place->container->if_object()) {
      if (RemoveMember(*object, place->step)) return Shift(object->size() * kShiftsOfMember);
      return Missing(fmt::format("error in {} for path: '{}': Unable to remove nonexistent key: {}",
                                 op, pointer, place->step));
    }
    JsonArray& array = place->container->get_array();
    const std::optional<size_t> index = IndexOf(place->step, array.size());
    if (!index) return BadIndex(place->step);
    array.erase(array.begin() + static_cast<std::ptrdiff_t>(*index));
    return Shift(array.size() - *index);
  }

  Status Replace(std::string_view pointer, const Json& value) {
    if (pointer.empty()) {
      if (!value.is_object() && !value.is_array()) {
        return Refused("replace operation value must be object or array");
      }
      document_ = value;
      return {};
    }
    const std::optional<Place> place = Find(pointer);
    if (!place) {
      return Missing(
          fmt::format("replace operation does not apply: doc is missing path: {}", pointer));
    }
    Json* target = Step(*place->container, place->step);
    if (target == nullptr) {
      // Unlike RFC 6902, kube-apiserver takes it as an addition to an object: what is absent may be
      // a field at its zero value.
      if (JsonObject* object = place->container->if_object()) {
        object->insert_or_assign(place->step, value);
        return {};
      }
      return Missing(
          fmt::format("replace operation does not apply: doc is missing key: {}", pointer));
    }
    *target = value;
    return {};
  }

  Status Transfer(const JsonObject& members, const std::string& to, bool move) {
    const std::string_view op = move ? "move" : "copy";
    const Json* from_member = members.if_contains("from");
    if (from_member == nullptr || !from_member->is_string()) {
      return Missing("operation, missing from field");
    }
    const std::string from(from_member->get_string());
    const std::optional<Place> place = Find(from);
    Json* source = place ? Step(*place->container, place->step) : nullptr;
    if (source == nullptr) {
      return Missing(
          fmt::format("{} operation does not apply: doc is missing from path: {}", op, from));
    }
    // What is moved stays where it is in memory, however large.
    Json value = move ? std::move(*source) : Json(*source, source->storage());
    if (move) {
      if (Status removed = Remove(from, op); !removed) return removed;
    } else {
      copied_bytes_ += static_cast<int64_t>(boost::json::serialize(value).size());
      if (copied_bytes_ > kJsonPatchCopyBytesMax) {
        return Fail(ErrorCode::kTooLarge,
                    fmt::format("Unable to complete the copy, the accumulated size increase of "
                                "copy is {}, exceeding the limit {}",
                                copied_bytes_, kJsonPatchCopyBytesMax));
      }
    }
    return Add(to, std::move(value));
  }

  // That many items or members made room, or closed a gap.
  Status Shift(size_t count) {
    shifted_ += static_cast<int64_t>(count);
    if (shifted_ <= kJsonPatchShiftsMax) return {};
    return Fail(ErrorCode::kTooLarge,
                fmt::format("the patch shifts more than {} items of lists and members of objects: "
                            "replace them as a whole",
                            kJsonPatchShiftsMax));
  }

  Status Test(std::string_view pointer, const Json& value) {
    const auto failed = [&] {
      return Refused(fmt::format("testing value {} failed: test failed", pointer));
    };
    if (pointer.empty()) {
      if (SameJson(document_, value)) return {};
      return failed();
    }
    const std::optional<Place> place = Find(pointer);
    if (!place) {
      return Missing(fmt::format("test operation does not apply: is missing path: {}", pointer));
    }
    const Json* target = Step(*place->container, place->step);
    // A missing member equals null.
    if (SameJson(target == nullptr ? Json() : *target, value)) return {};
    return failed();
  }

  Json document_;
  int64_t copied_bytes_ = 0;
  int64_t shifted_ = 0;
};

// Whether a value nests deeper than `levels` arrays and objects.
bool IsDeeperThan(const Json& value, int64_t levels) {
  if (!value.is_structured()) return false;
  if (levels == 0) return true;
  const auto deeper = [&](const Json& item) { return IsDeeperThan(item, levels - 1); };
  if (const JsonArray* array = value.if_array()) return std::ranges::any_of(*array, deeper);
  return std::ranges::any_of(value.get_object(),
                             [&](const auto& member) { return deeper(member.value()); });
}

// Drops the null members of a value that had nothing to merge with, those of objects in lists too;
// what is null in a list itself stays.
Json WithoutNulls(const Json& value) {
  if (const JsonArray* items = value.if_array()) {
    JsonArray kept;
    kept.reserve(items->size());
    for (const Json& item : *items) kept.push_back(WithoutNulls(item));
    return kept;
  }
  const JsonObject* members = value.if_object();
  if (members == nullptr) return value;
  JsonObject kept;
  for (const auto& [key, member] : *members) {
    if (!member.is_null()) kept.emplace(key, WithoutNulls(member));
  }
  return kept;
}

void MergeInto(JsonObject& target, const JsonObject& changes) {
  for (const auto& [key, value] : changes) {
    if (value.is_null()) {
      RemoveMember(target, key);
      continue;
    }
    Json* member = target.if_contains(key);
    if (member != nullptr && member->is_object() && value.is_object()) {
      MergeInto(member->get_object(), value.get_object());
    } else {
      target[key] = WithoutNulls(value);
    }
  }
}

}  // namespace

Result<Json> ApplyPatch(PatchType type, KindId kind, const Json& document, Json patch) {
  switch (type) {
    case PatchType::kJson:
      return ApplyJsonPatch(document, patch);
    case PatchType::kMerge:
      if (!patch.is_object()) return std::unexpected(NotOfType(patch, kGoMap));
      return ApplyMergePatch(document, patch);
    case PatchType::kStrategic:
      if (!patch.is_object() && !patch.is_null()) {
        return std::unexpected(NotOfType(patch, kGoMap));
      }
      return ApplyStrategicPatch(kind, document, std::move(patch));
  }
  return Invalid("unknown patch type");
}

Result<Json> ApplyJsonPatch(const Json& document, const Json& patch) {
  const JsonArray* operations = patch.if_array();
  if (operations == nullptr) {
    return std::unexpected(NotOfType(patch, "[]handlers.jsonPatchOp"));
  }
  if (operations->size() > kJsonPatchOperationsMax) {
    return Fail(ErrorCode::kTooLarge,
                fmt::format("The allowed maximum operations in a JSON patch is {}, got {}",
                            kJsonPatchOperationsMax, operations->size()));
  }
  JsonPatcher patcher(document);
  for (const Json& operation : *operations) {
    if (Status applied = patcher.Apply(operation); !applied) {
      return std::unexpected(applied.error());
    }
  }
  Json patched = patcher.Take();
  // Small patches could otherwise pile up values that no parser would have let in.
  if (IsDeeperThan(patched, limits::kNestingMax)) {
    return Fail(ErrorCode::kTooLarge,
                fmt::format("the patched object nests deeper than {} levels", limits::kNestingMax));
  }
  return patched;
}

Json ApplyMergePatch(const Json& document, const Json& patch) {
  const JsonObject* changes = patch.if_object();
  if (changes == nullptr) return patch;
  Json result(document, document.storage());
  if (!result.is_object()) result.emplace_object();
  MergeInto(result.get_object(), *changes);
  return result;
}

Json MergePatchBetween(const Json& from, const Json& to) {
  const JsonObject* before = from.if_object();
  const JsonObject* after = to.if_object();
  if (before == nullptr || after == nullptr) return to;
  JsonObject patch;
  for (const auto& [key, value] : *before) {
    if (!after->contains(key)) patch.emplace(key, nullptr);
  }
  for (const auto& [key, value] : *after) {
    const Json* old = before->if_contains(key);
    if (old != nullptr && SameJson(*old, value)) continue;
    patch[key] = old == nullptr ? value : MergePatchBetween(*old, value);
  }
  return patch;
}

}  // namespace berth::api
