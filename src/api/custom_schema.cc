#include "api/custom_schema.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "api/applied_defaults.h"
#include "api/custom_definition.h"
#include "api/defaults.h"
#include "api/formats.h"
#include "api/object.h"
#include "api/ratchet.h"
#include "api/schema_errors.h"
#include "api/text.h"
#include "api/unknown_fields.h"
#include "api/validate_common.h"
#include "base/limits.h"

namespace berth::api {
namespace {

using rules::Path;
using Type = CustomSchema::Type;

constexpr std::array<std::string_view, 3> kEnvelope = {"apiVersion", "kind", "metadata"};

bool IsEnvelope(std::string_view name) {
  return std::ranges::find(kEnvelope, name) != kEnvelope.end();
}

const CustomSchema& Anything() {
  static const CustomSchema kAnything = {.preserves_unknown = true};
  return kAnything;
}

// The schema of a member; null when it is unknown.
const CustomSchema* MemberSchema(const CustomSchema& schema, std::string_view name) {
  if (const CustomSchema* property = schema.Property(name)) return property;
  if (!schema.additional.empty()) return &schema.additional.front();
  if (schema.additional_any || schema.preserves_unknown) return &Anything();
  return nullptr;
}

class Pruner {
 public:
  void Object(const CustomSchema& schema, JsonObject& object, bool enveloped) {
    std::vector<std::string> unknown;
    for (auto& [key, value] : object) {
      if (enveloped && IsEnvelope(key)) continue;
      const CustomSchema* member = MemberSchema(schema, key);
      if (member == nullptr) {
        unknown_.Add(key);
        unknown.emplace_back(key);
        continue;
      }
      const size_t size = unknown_.Descend(key);
      Value(*member, value);
      unknown_.Return(size);
    }
    for (const std::string& key : unknown) RemoveMember(object, key);
    SortMembers(object);
  }

  [[nodiscard]] std::vector<std::string> TakeProblems() { return unknown_.Take(); }

 private:
  void Value(const CustomSchema& schema, Json& value) {
    if (value.is_object()) {
      Object(schema, value.get_object(), schema.embeds_resource);
    } else if (value.is_array()) {
      const CustomSchema& items = schema.items.empty() ? Anything() : schema.items.front();
      JsonArray& list = value.get_array();
      for (size_t i = 0; i < list.size(); ++i) {
        const size_t size = unknown_.Descend(i);
        Value(items, list[i]);
        unknown_.Return(size);
      }
    } else if (schema.type == Type::kInteger || schema.int_or_string) {
      SettleNumber(value);
    }
  }

  UnknownFields unknown_;
};

// Of the value's text, no more than there are.
int64_t TextBytes(const Json& value) {
  int64_t bytes = 2;
  if (value.is_string()) return bytes + static_cast<int64_t>(value.get_string().size());
  if (value.is_array()) {
    for (const Json& item : value.get_array()) bytes += TextBytes(item);
  } else if (value.is_object()) {
    for (const auto& [key, member] : value.get_object())
      bytes += static_cast<int64_t>(key.size()) + 3 + TextBytes(member);
  } else {
    return 1;
  }
  return bytes;
}

// A short schema can make a short document endless: lists of what has lists by default, and a large
// default in each of many items. So no more is set than an object may have: what has been is too
// large to be stored then.
class Defaulter {
 public:
  explicit Defaulter(bool keeps_nulls) : keeps_nulls_(keeps_nulls) {}

  void Object(const CustomSchema& schema, JsonObject& object, bool enveloped) {
    bool tidy = true;
    for (size_t i = 0; i < schema.properties.size(); ++i) {
      const CustomSchema& property = schema.properties[i];
      const std::string& name = schema.names[i];
      if (enveloped && IsEnvelope(name)) continue;
      Json* value = object.if_contains(name);
      const bool missing = value == nullptr || (value->is_null() && !property.nullable);
      if (missing && HasRoomFor(property.default_value)) {
        tidy = tidy && value != nullptr;
        value = &Member(object, name);
        *value = Json(*property.default_value, object.storage());
      } else if (missing) {
        if (value != nullptr && !keeps_nulls_) RemoveMember(object, name);
        continue;
      }
      Value(property, *value);
    }
    if (!schema.additional.empty()) Additional(schema, object);
    if (!tidy) SortMembers(object);
  }

 private:
  void Additional(const CustomSchema& schema, JsonObject& object) {
    const CustomSchema& additional = schema.additional.front();
    std::vector<std::string> nulls;
    for (auto& [key, value] : object) {
      if (schema.Property(key) != nullptr) continue;
      if (value.is_null() && !additional.nullable) {
        if (!HasRoomFor(additional.default_value)) {
          if (!keeps_nulls_) nulls.emplace_back(key);
          continue;
        }
        value = Json(*additional.default_value, object.storage());
      }
      Value(additional, value);
    }
    for (const std::string& key : nulls) RemoveMember(object, key);
  }
  void Value(const CustomSchema& schema, Json& value) {
    if (value.is_object()) {
      Object(schema, value.get_object(), false);
    } else if (value.is_array() && !schema.items.empty()) {
      for (Json& item : value.get_array()) Value(schema.items.front(), item);
    }
  }
  // Whether there is a default, and may be; it counts from here on.
  bool HasRoomFor(const std::optional<Json>& value) {
    if (!value || room_ < 0) return false;
    room_ -= TextBytes(*value);
    return true;
  }

  bool keeps_nulls_;
  int64_t room_ = limits::kObjectBytesMax;
};

std::string_view WantedType(const CustomSchema& schema) {
  if (schema.int_or_string) return "integer,string";
  switch (schema.type) {
    case Type::kObject:
      return "object";
    case Type::kArray:
      return "array";
    case Type::kString:
      return "string";
    case Type::kInteger:
      return "integer";
    case Type::kNumber:
      return "number";
    case Type::kBoolean:
      return "boolean";
    case Type::kAny:
      break;
  }
  return "";
}

// One that is known; others count for nothing.
bool HasFormat(const CustomSchema& schema) {
  return !schema.format.empty() && IsKnownFormat(WantedType(schema), schema.format);
}

bool HasType(const CustomSchema& schema, const Json& value) {
  const std::string_view wanted = WantedType(schema);
  if (wanted.empty()) return true;
  // Upstream takes a list for a text of a format, which none of its formats then looks at.
  if (value.is_array() && schema.type == Type::kString && HasFormat(schema)) return true;
  if (schema.type == Type::kNumber) return value.is_number();
  return wanted.contains(rules::FoundType(value));
}

// Who asks only whether a value fits learns nothing more than that: kBriefly.
enum class Telling : uint8_t { kAll, kBriefly };

// Of a double, which may be beyond all integers.
int64_t WholePart(double number) {
  constexpr double kBeyond = 9223372036854775808.0;
  if (number >= kBeyond) return std::numeric_limits<int64_t>::max();
  if (number < -kBeyond) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(number);
}

// Whether a bound can be a value of the schema.
bool IsOfType(const CustomSchema& schema, double bound) {
  if (schema.type != CustomSchema::Type::kInteger) return true;
  const int64_t whole = WholePart(bound);
  return static_cast<double>(whole) == bound && whole != std::numeric_limits<int64_t>::max() &&
         (schema.format != "int32" || std::in_range<int32_t>(whole));
}

// Whether a quotient is whole, but for what it lost in its last digits (go-openapi's tolerance).
bool IsWholeNearly(double quotient) {
  constexpr double kLargest = 9007199254740991.0;
  constexpr double kTolerance = 1e-9;
  if (!(std::fabs(quotient) <= kLargest)) return false;
  const double whole = std::trunc(quotient);
  const double rest = std::fabs(quotient - whole);
  return rest == 0 || (whole != 0 && rest / std::fabs(quotient + whole) < kTolerance);
}

bool IsMultiple(double number, double factor) {
  return IsWholeNearly(factor < 1 ? 1 / factor * number : number / factor);
}
bool IsMultiple(int64_t number, int64_t factor) { return factor != 0 && number % factor == 0; }

class Checker {
 public:
  Checker(int64_t& steps, Telling telling) : steps_(steps), brief_(telling == Telling::kBriefly) {}

  // A whole document. `old` is what it replaces, or null.
  void Document(const CustomSchema& schema, const JsonObject& document, const Json* old) {
    const Path root("");
    root_ = &root;
    if (IsCombined(schema)) Combined(schema, Json(document), root);
    if (!schema.supported.empty()) CheckSupported(schema, Json(document), Path("<nil>"));
    CheckCount(schema, document.size(), root, "properties");
    Object(schema, document, root, {.enveloped = true, .old = old});
    root_ = nullptr;
  }

  // One member of it.
  void Member(const CustomSchema& schema, std::string_view name, const Json& value,
              const Json* old) {
    Value(schema, value, Path(name), old);
  }

  [[nodiscard]] bool has_duplicates() const { return !duplicates_.empty(); }
  void ForgetDuplicates() { duplicates_.clear(); }

  [[nodiscard]] FieldErrors TakeErrors() {
    // What two parts of a schema say is told once.
    std::set<std::string> told;
    if (says_of_parts_) {
      std::erase_if(errors_, [&](const FieldError& error) {
        return !told.insert(fmt::format("{}\n{}\n{}\n{}", static_cast<int>(error.type), error.field,
                                        error.value, error.detail))
                    .second;
      });
    }
    std::ranges::move(duplicates_, std::back_inserter(errors_));
    if (steps_ <= 0) {
      rules::AddNoField(errors_, fmt::format("it takes more than {} steps to validate by its "
                                             "schema: not all of it was",
                                             kCheckStepsMax));
    }
    return std::move(errors_);
  }

 private:
  struct Held {
    bool enveloped = false;     // It has apiVersion, kind and metadata.
    const Json* old = nullptr;  // What the object replaces.
  };

  void Object(const CustomSchema& schema, const JsonObject& object, const Path& parent,
              const Held& held) {
    Members(schema, object, parent, held);
    Take(static_cast<int64_t>(schema.required.size()) / 4);
    for (const std::string& name : schema.required) {
      if (!object.contains(name) && Tells()) rules::AddRequired(errors_, Below(parent, name));
    }
  }

  Path Below(const Path& parent, std::string_view name) const {
    return &parent == root_ ? Path(name) : parent.At(name);
  }

  void Members(const CustomSchema& schema, const JsonObject& object, const Path& parent,
               const Held& held) {
    if (schema.names.empty() && schema.additional.empty()) return;
    Take(static_cast<int64_t>(object.size()) / 4);
    for (const auto& [key, value] : object) {
      if (IsDone()) return;
      const CustomSchema* member = schema.Property(key);
      // What names the object is of its schema only where that says so.
      if (held.enveloped && member == nullptr && IsEnvelope(key)) continue;
      if (member == nullptr && !schema.additional.empty()) member = &schema.additional.front();
      if (member == nullptr) continue;
      const Json* old = OldMember(schema, held.old, key);
      Value(*member, value, Below(parent, key), old);
    }
  }

  // `old` is what the value goes on from: unchanged it is let through, whatever the schema says of
  // it by now. Parts of combined schemas know of no old value, as upstream's.
  void Value(const CustomSchema& schema, const Json& value, const Path& path,
             const Json* old = nullptr) {
    Take(1);
    if (IsDone() || (value.is_null() && schema.nullable)) return;
    if (old != nullptr && IsUnchanged(SchemaNode(schema), value, *old, steps_)) return;
    if (IsDone()) return;
    // What is of another type is asked all that may be asked of what it is.
    if (!HasType(schema, value) && Tells()) WrongType(schema, value, path);
    if (IsCombined(schema)) Combined(schema, value, path);
    if (value.is_array()) {
      List(schema, value.get_array(), path, old);
    } else if (value.is_string()) {
      CheckText(schema, value.get_string(), path);
    } else if (value.is_number()) {
      CheckNumber(schema, value, path);
    }
    if (!schema.supported.empty()) CheckSupported(schema, value, path);
    if (!value.is_object()) return;
    CheckCount(schema, value.get_object().size(), path, "properties");
    Object(schema, value.get_object(), path, {.enveloped = schema.embeds_resource, .old = old});
  }

  // A number or an object is told by the format, where there is one.
  void WrongType(const CustomSchema& schema, const Json& value, const Path& path) {
    if (!HasFormat(schema) || value.is_null() || value.is_string() || value.is_array())
      return rules::AddType(errors_, path, value, WantedType(schema));
    const std::string found =
        QuoteGo(value.is_double() ? "float64" : (value.is_int64() ? "int64" : ""));
    rules::AddInvalidType(errors_, path, found,
                          fmt::format("must be of type {}: {}", schema.format, found));
  }

  static bool IsCombined(const CustomSchema& schema) {
    return !schema.any_of.empty() || !schema.one_of.empty() || !schema.all_of.empty() ||
           !schema.none_of.empty();
  }

  void Combined(const CustomSchema& schema, const Json& value, const Path& path) {
    const auto fits = [&](const CustomSchema& part) { return Fits(part, value, path); };
    if (!schema.any_of.empty() && std::ranges::none_of(schema.any_of, fits) && Tells()) {
      Say(fmt::format("\"{}\" must validate at least one schema (anyOf)", path.text()));
      SayOfBest(schema.any_of, value, path);
    }
    if (!schema.one_of.empty()) {
      const auto count = std::ranges::count_if(schema.one_of, fits);
      if (count != 1 && Tells()) {
        Say(fmt::format("\"{}\" must validate one and only one schema (oneOf). {}", path.text(),
                        count == 0 ? std::string("Found none valid")
                                   : fmt::format("Found {} valid alternatives", count)));
        if (count == 0) SayOfBest(schema.one_of, value, path);
      }
    }
    const auto failed = std::ranges::count_if(schema.all_of, std::not_fn(fits));
    if (failed > 0 && Tells()) {
      for (const CustomSchema& part : schema.all_of) SayOf(part, value, path);
      const bool all = std::cmp_equal(failed, schema.all_of.size());
      Say(fmt::format("\"{}\" must validate all the schemas (allOf){}", path.text(),
                      all ? ". None validated" : ""));
    }
    if (std::ranges::any_of(schema.none_of, fits) && Tells())
      Say(fmt::format("\"{}\" must not validate the schema (not)", path.text()));
  }

  void Say(std::string words) { rules::AddNoField(errors_, std::move(words)); }

  // What is wrong by a part.
  void SayOf(const CustomSchema& part, const Json& value, const Path& path) {
    if (steps_ <= 0) return;
    Checker checker(steps_, Telling::kAll);
    checker.root_ = root_;
    checker.Value(part, value, path);
    says_of_parts_ = true;
    for (FieldError& error : checker.errors_) {
      if (Tells()) errors_.push_back(std::move(error));
    }
  }

  // The same of the part that fits best, of some of which none does.
  void SayOfBest(const std::vector<CustomSchema>& parts, const Json& value, const Path& path) {
    if (const CustomSchema* best = Best(parts, value, path).part) SayOf(*best, value, path);
  }

  struct Rated {
    const CustomSchema* part = nullptr;
    int64_t matches = 0;
  };

  // The part that most of what there is to check was found for, whatever came of it; the first of
  // those. None: there are no steps left, or no parts.
  Rated Best(const std::vector<CustomSchema>& parts, const Json& value, const Path& path) {
    Rated best;
    for (const CustomSchema& part : parts) {
      const int64_t matches = MatchesOf(part, value, path);
      if (steps_ <= 0) return {};
      if (best.part == nullptr || matches > best.matches)
        best = {.part = &part, .matches = matches};
    }
    return best;
  }

  // What upstream's validators count of a value: each that applies, and once more those that say
  // so themselves (kube-openapi pkg/validation/validate, Result.MatchCount).
  int64_t MatchesOf(const CustomSchema& schema, const Json& value, const Path& path) {
    Take(1);
    if (steps_ <= 0) return 0;
    const bool has_type = !WantedType(schema).empty() || HasFormat(schema);
    const int64_t type = HasType(schema, value) ? 1 : 0;
    if (value.is_null()) return has_type ? type : 0;
    // The value itself, its enum, what is combined.
    int64_t count = 1 + 1 + 2 + MatchesOfCombined(schema, value, path);
    if (has_type) count += 1 + type;
    if (value.is_string()) count += HasFormat(schema) ? 2 : 1;
    if (value.is_number()) count += 2;
    if (value.is_array()) {
      count += 2;
      if (schema.items.empty()) return count;
      for (const Json& item : value.get_array())
        count += MatchesOf(schema.items.front(), item, path);
    }
    if (!value.is_object()) return count;
    ++count;
    for (const auto& [key, member] : value.get_object()) {
      const CustomSchema* property = schema.Property(key);
      if (property == nullptr && !schema.additional.empty()) property = &schema.additional.front();
      if (property != nullptr) count += MatchesOf(*property, member, path);
    }
    return count;
  }

  int64_t MatchesOfCombined(const CustomSchema& schema, const Json& value, const Path& path) {
    const auto fits = [&](const CustomSchema& part) { return Fits(part, value, path); };
    const auto of_first_or_best = [&](const std::vector<CustomSchema>& parts) {
      const auto first = std::ranges::find_if(parts, fits);
      return first != parts.end() ? MatchesOf(*first, value, path)
                                  : Best(parts, value, path).matches;
    };
    int64_t count = of_first_or_best(schema.any_of);
    if (std::ranges::count_if(schema.one_of, fits) <= 1) count += of_first_or_best(schema.one_of);
    for (const CustomSchema& part : schema.all_of) count += MatchesOf(part, value, path);
    return count;
  }

  bool Fits(const CustomSchema& schema, const Json& value, const Path& path) {
    if (steps_ <= 0) return false;
    Checker checker(steps_, Telling::kBriefly);
    checker.root_ = root_;
    checker.Value(schema, value, path);
    return !checker.failed_;
  }

  void Take(int64_t steps) { steps_ -= steps; }

  // Whether nothing that may follow would be told.
  [[nodiscard]] bool IsDone() const { return steps_ <= 0 || full_ || (brief_ && failed_); }

  // Something is wrong. Whether that is to be told.
  bool Tells() {
    failed_ = true;
    if (brief_ || IsDone()) return false;
    for (; errors_counted_ < errors_.size(); ++errors_counted_)
      bytes_ += BytesOf(errors_[errors_counted_]);
    for (; duplicates_counted_ < duplicates_.size(); ++duplicates_counted_)
      bytes_ += BytesOf(duplicates_[duplicates_counted_]);
    // One more than is listed, so that it is seen that there are more.
    full_ = errors_.size() + duplicates_.size() > kFieldErrorsListedMax ||
            bytes_ > kFieldErrorsBytesMax;
    return !full_;
  }

  void List(const CustomSchema& schema, const JsonArray& items, const Path& path, const Json* old) {
    if (!schema.items.empty()) {
      const OldItems old_items(SchemaNode(schema), old, steps_);
      for (size_t i = 0; i < items.size() && !IsDone(); ++i)
        Value(schema.items.front(), items[i], path.Item(i), old_items.Of(items[i], steps_));
    }
    CheckCount(schema, items.size(), path, "items");
    if (schema.list_type != CustomSchema::ListType::kAsWhole) CheckUnique(schema, items, path);
  }

  void CheckCount(const CustomSchema& schema, size_t size, const Path& path,
                  std::string_view what) {
    const auto count = static_cast<int64_t>(size);
    const std::string field = &path == root_ ? "<nil>" : path.text();
    if (schema.count_min && count < *schema.count_min && Tells()) {
      errors_.push_back(InvalidField(field, count,
                                     fmt::format("{} in body should have at least {} {}",
                                                 path.text(), *schema.count_min, what)));
    }
    if (schema.count_max && count > *schema.count_max && Tells())
      errors_.push_back(TooManyField(field, count, *schema.count_max));
  }

  void CheckUnique(const CustomSchema& schema, const JsonArray& items, const Path& path) {
    const bool by_keys = schema.list_type == CustomSchema::ListType::kMap;
    const auto* const no_object = std::ranges::find_if(
        items, [](const Json& item) { return !item.is_object() && !item.is_null(); });
    if (by_keys && no_object != items.end()) {
      // The first such is all that is told of the list.
      if (!Tells()) return;
      const Path item = path.Item(static_cast<size_t>(no_object - items.begin()));
      duplicates_.push_back(InvalidJsonField(item.text(), *no_object,
                                             "must be an object for an array of list-type map"));
      return;
    }
    std::map<std::string, bool> told;
    for (size_t i = 0; i < items.size() && !IsDone(); ++i) {
      Json key = items[i];
      if (by_keys) {
        JsonObject keys;
        for (const std::string& name : schema.list_keys) {
          if (const Json* member = FindMember(items[i], name)) keys.emplace(name, *member);
        }
        key = std::move(keys);
      }
      std::string text = boost::json::serialize(key);
      Take(1 + static_cast<int64_t>(text.size()) / kBytesPerStep);
      const auto [at, is_first] = told.try_emplace(std::move(text), false);
      if (is_first || at->second || !Tells()) continue;
      at->second = true;
      duplicates_.push_back(DuplicateJsonField(path.Item(i).text(), key));
    }
  }

  // The first of its troubles.
  void CheckText(const CustomSchema& schema, std::string_view text, const Path& path) {
    const bool counts = schema.length_min || schema.length_max;
    const auto bytes = static_cast<int64_t>(text.size());
    if (counts) Take(bytes / kBytesPerStep);
    if (schema.matcher != nullptr) {
      Take(1 + bytes * schema.matcher->ProgramSize() / kInstructionsPerStep);
      if (IsDone()) return;
    }
    const int64_t length = counts ? CharactersOf(text) : 0;
    if (schema.length_max && length > *schema.length_max) {
      if (Tells()) errors_.push_back(TooLongField(path.text(), *schema.length_max));
    } else if (schema.length_min && length < *schema.length_min) {
      if (!Tells()) return;
      rules::AddSaid(errors_, path, QuoteGo(text),
                     fmt::format("should be at least {} chars long", *schema.length_min));
    } else if (schema.matcher != nullptr && !re2::RE2::PartialMatch(text, *schema.matcher)) {
      if (!Tells()) return;
      rules::AddSaid(errors_, path, QuoteGo(text),
                     fmt::format("should match '{}'", schema.pattern));
    } else if (!schema.format.empty() && !FitsFormat(schema.format, text)) {
      if (!Tells()) return;
      rules::AddInvalidType(errors_, path, QuoteGo(text),
                            fmt::format("must be of type {}: {}", schema.format, QuoteGo(text)));
    }
  }

  void CheckNumber(const CustomSchema& schema, const Json& value, const Path& path) {
    const bool no_integer = schema.type == Type::kInteger && value.is_double();
    const bool too_large =
        schema.format == "int32" && value.is_int64() && !std::in_range<int32_t>(value.get_int64());
    if (no_integer || too_large) SayNoInteger(schema, "Checked", path);
    if (schema.multiple_of && *schema.multiple_of > 0) {
      CheckBound(schema, value, path,
                 {.limit = *schema.multiple_of, .name = "MultipleOf", .words = "a multiple of"},
                 [](auto number, auto factor) { return IsMultiple(number, factor); });
    }
    if (schema.minimum) {
      const bool strict = schema.exclusive_minimum;
      CheckBound(
          schema, value, path,
          {.limit = *schema.minimum,
           .name = "Minimum boundary",
           .words = strict ? "greater than" : "greater than or equal to"},
          [&](auto number, auto limit) { return strict ? number > limit : number >= limit; });
    }
    if (schema.maximum) {
      const bool strict = schema.exclusive_maximum;
      CheckBound(
          schema, value, path,
          {.limit = *schema.maximum,
           .name = "Maximum boundary",
           .words = strict ? "less than" : "less than or equal to"},
          [&](auto number, auto limit) { return strict ? number < limit : number <= limit; });
    }
  }

  struct Bound {
    double limit;
    std::string_view name, words;
  };
  // Integers are compared with the whole part of a bound, as upstream does, where the bound is of
  // the schema's type; else both as doubles.
  template <typename Fits>
  void CheckBound(const CustomSchema& schema, const Json& value, const Path& path,
                  const Bound& bound, Fits fits) {
    const bool of_type = IsOfType(schema, bound.limit);
    if (!of_type) SayNoInteger(schema, bound.name, path);
    if (of_type && value.is_int64()) {
      const int64_t limit = WholePart(bound.limit);
      if (!fits(value.get_int64(), limit))
        SayOutOfBounds(value, path, bound.words, std::to_string(limit));
    } else if (!fits(value.to_number<double>(), bound.limit)) {
      SayOutOfBounds(value, path, bound.words, PrintGo(Json(bound.limit)));
    }
  }

  void SayNoInteger(const CustomSchema& schema, std::string_view name, const Path& path) {
    if (!Tells()) return;
    const bool formatted = schema.format == "int32" || schema.format == "int64";
    Say(fmt::format("{} value must be of type integer {} in {}", name,
                    formatted ? fmt::format("with format {}", schema.format) : "(default format)",
                    path.text()));
  }

  void SayOutOfBounds(const Json& value, const Path& path, std::string_view words,
                      std::string_view limit) {
    if (Tells())
      rules::AddSaid(errors_, path, PrintGo(value), fmt::format("should be {} {}", words, limit));
  }

  void CheckSupported(const CustomSchema& schema, const Json& value, const Path& path) {
    if (IsSupported(schema, value) || !Tells()) return;
    std::vector<std::string> texts;
    size_t bytes = 0;
    for (const Json& one : schema.supported) {
      texts.push_back(one.is_structured() ? boost::json::serialize(one) : PrintGo(one));
      bytes += texts.back().size();
      if (bytes > kSupportedBytesMax) break;
    }
    const std::vector<std::string_view> words(texts.begin(), texts.end());
    FieldError error = NotSupportedField(path.text(), "", words);
    error.value = value.is_double() ? PrintGo(value) : boost::json::serialize(value);
    if (const size_t more = schema.supported.size() - texts.size(); more > 0)
      error.detail += fmt::format(" and {} others", more);
    errors_.push_back(std::move(error));
  }

  bool IsSupported(const CustomSchema& schema, const Json& value) {
    if (!value.is_structured()) {
      // A number is also compared as the kinds of number that the enum's are.
      const auto has = [&](const Json& scalar) {
        return schema.supported_scalars->contains(ScalarText(scalar));
      };
      return schema.supported_scalars != nullptr &&
             (has(value) || (value.is_int64() && has(value.to_number<double>())) ||
              (value.is_double() && has(WholePart(value.get_double()))));
    }
    Take(static_cast<int64_t>(schema.supported.size()) * kStepsOfComparison);
    return !IsDone() && std::ranges::any_of(schema.supported,
                                            [&](const Json& one) { return SameJson(one, value); });
  }

  // Of a text, what is counted or copied in the time of a step.
  static constexpr int64_t kBytesPerStep = 16;
  // Of a pattern's program, what may run in the time of some steps when each byte of a text meets
  // all of it, as it does where alternatives multiply. Most patterns run in a hundredth of that.
  static constexpr int64_t kInstructionsPerStep = 64;
  static constexpr int64_t kStepsOfComparison = 4;
  // Of an enum's values, in one error.
  static constexpr size_t kSupportedBytesMax = 16 * 1024;

  int64_t& steps_;
  const bool brief_;
  bool failed_ = false;
  bool full_ = false;  // Of errors, in number or in bytes.
  size_t errors_counted_ = 0, duplicates_counted_ = 0, bytes_ = 0;
  bool says_of_parts_ = false;
  FieldErrors errors_;
  FieldErrors duplicates_;
  const Path* root_ = nullptr;  // Of a whole document, whose members have no path before them.
};

}  // namespace

const CustomSchema* CustomSchema::Property(std::string_view name) const {
  const auto at = std::ranges::lower_bound(names, name, std::less<std::string_view>());
  if (at == names.end() || *at != name) return nullptr;
  return &properties[static_cast<size_t>(at - names.begin())];
}

std::vector<std::string> PruneCustom(const CustomSchema& schema, JsonObject& document) {
  Pruner pruner;
  pruner.Object(schema, document, true);
  return pruner.TakeProblems();
}

void ApplyCustomDefaults(const CustomSchema& schema, JsonObject& document) {
  Defaulter(false).Object(schema, document, true);
}

void ApplyDefaultsToApplied(const Kind& kind, Json& object) {
  if (kind.defined == nullptr) return ApplyDefaults(kind, object);
  if (object.is_object()) Defaulter(true).Object(kind.defined->schema, object.get_object(), true);
}

FieldErrors CheckCustomSchema(const CustomSchema& schema, const JsonObject& document,
                              int64_t& steps) {
  Checker checker(steps, Telling::kAll);
  checker.Document(schema, document, nullptr);
  return checker.TakeErrors();
}

FieldErrors CheckCustomSchema(const CustomSchema& schema, const JsonObject& document) {
  int64_t steps = kCheckStepsMax;
  return CheckCustomSchema(schema, document, steps);
}

FieldErrors CheckCustomUpdate(const CustomSchema& schema, const JsonObject& document,
                              const Json& old) {
  int64_t steps = kCheckStepsMax;
  Checker checker(steps, Telling::kAll);
  checker.Document(schema, document, &old);
  // Of items that are equal it says nothing where the old document has such, be they others.
  if (checker.has_duplicates() && old.is_object()) {
    Checker before(steps, Telling::kAll);
    before.Document(schema, old.get_object(), nullptr);
    if (before.has_duplicates()) checker.ForgetDuplicates();
  }
  return checker.TakeErrors();
}

FieldErrors CheckCustomStatus(const CustomSchema& schema, const JsonObject& document,
                              const Json& old) {
  constexpr std::string_view kStatus = "status";
  const CustomSchema* status_schema = schema.Property(kStatus);
  const Json* status = document.if_contains(kStatus);
  if (status_schema == nullptr || status == nullptr) return {};
  CustomSchema alone;
  alone.names = {std::string(kStatus)};
  alone.properties = {*status_schema};
  FieldErrors errors = CheckCustomUpdate(alone, document, old);
  // Upstream looks at the status as a whole document: what it says of a place begins there.
  for (FieldError& error : errors) {
    std::string& detail = error.detail;
    const size_t at = detail.starts_with('"') ? 1 : 0;
    if (!std::string_view(detail).substr(at).starts_with(kStatus)) continue;
    const size_t end = at + kStatus.size();
    const bool below = end < detail.size() && detail[end] == '.';
    if (below || detail.find_first_of(" \"", at) == end) detail.erase(at, kStatus.size() + below);
  }
  return errors;
}

std::string ScalarText(const Json& value) {
  // Of the two zeros, which are equal, one.
  if (value.is_double() && value.get_double() == 0) return "0E0";
  return boost::json::serialize(value);
}

}  // namespace berth::api
