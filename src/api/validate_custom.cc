#include "api/validate_custom.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "api/custom_rules.h"
#include "api/schema.h"
#include "api/structural.h"
#include "api/validate_queues.h"
#include "api/versions.h"

namespace berth::api::rules {
namespace {

// Rules are expressions over values of the right types; upstream doesn't ask them where these
// errors stand.
bool KeepsFromRules(const FieldError& error) {
  switch (error.type) {
    case FieldErrorType::kRequired:
    case FieldErrorType::kNotSupported:
    case FieldErrorType::kTooLong:
    case FieldErrorType::kTooMany:
    case FieldErrorType::kTypeInvalid:
      return true;
    default:
      return false;
  }
}

FieldError RulesUnasked() {
  return {FieldErrorType::kInvalid, "<nil>", "null",
          "some validation rules were not checked because the object was invalid; correct the "
          "existing errors to complete validation"};
}

void AskWebhooks(FieldErrors& errors, KindId kind, const Json* old, const Json& object) {
  const KindId storage = KindOf(kind).storage;
  if (storage == kind) return CheckQueues(errors, kind, old, object);
  Json now = object;
  Convert(kind, storage, now);
  Json before = old == nullptr ? Json() : *old;
  Convert(kind, storage, before);
  CheckQueues(errors, storage, old == nullptr ? nullptr : &before, now);
}

}  // namespace

void CheckCustom(FieldErrors& errors, KindId kind, const Json* old, const Json& object,
                 std::vector<std::string>& warnings) {
  if (!object.is_object()) return;
  const Schema& schema = BuiltinSchema();
  const auto type = static_cast<TypeId>(kind);
  FieldErrors found = old == nullptr ? CheckSchema(schema, type, object.get_object())
                                     : CheckSchemaUpdate(schema, type, object.get_object(), *old);
  if (!std::ranges::any_of(found, KeepsFromRules)) {
    std::ranges::move(CheckRules(schema, type, object, old, warnings), std::back_inserter(found));
  } else if (HasRules(schema, type)) {
    found.push_back(RulesUnasked());
  }
  // As webhooks, which see what the definition has no fault with, in the version that is stored.
  if (found.empty() && KindOf(kind).is_old()) CheckOldVersion(found, kind, object);
  if (found.empty() && errors.empty()) AskWebhooks(found, kind, old, object);
  std::ranges::move(found, std::back_inserter(errors));
}

}  // namespace berth::api::rules
