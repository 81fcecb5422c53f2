#include "apiserver/webhook_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "api/custom_definition.h"
#include "api/defaults.h"
#include "api/fields.h"
#include "api/managed_fields.h"
#include "api/object.h"
#include "api/patch.h"
#include "apiserver/managed.h"
#include "apiserver/objects.h"
#include "base/check.h"
#include "base/limits.h"
#include "codec/json.h"

namespace berth::apiserver {

namespace {

using api::Json;
using api::JsonArray;
using api::JsonObject;
using api::KindId;

const Identity& UserOf(const WriteContext& context) {
  static const Identity kServer{.user = "system:apiserver", .groups = {"system:masters"}};
  return context.request.requester == nullptr ? kServer : context.request.requester->identity;
}

// A Namespace is of itself.
std::string_view SpaceOf(const WriteContext& context, const Reviewed& reviewed) {
  return context.request.kind->id == KindId::kNamespace
             ? reviewed.name
             : std::string_view(context.request.namespace_name);
}

void AppendOption(std::string& out, std::string_view key, std::string_view value) {
  if (value.empty()) return;
  out += fmt::format(",\"{}\":", key);
  codec::AppendJsonString(value, out);
}

std::string OptionsText(const WriteContext& context, const Reviewed& reviewed) {
  constexpr std::string_view kNames[] = {"CreateOptions", "UpdateOptions", "DeleteOptions"};
  std::string out = fmt::format(R"({{"kind":"{}","apiVersion":"meta.k8s.io/v1")",
                                kNames[static_cast<size_t>(reviewed.operation)]);
  if (const DeleteOptions* deletion = reviewed.deletion; deletion != nullptr) {
    if (deletion->grace_seconds)
      out += fmt::format(R"(,"gracePeriodSeconds":{})", *deletion->grace_seconds);
    if (!deletion->uid.empty() || !deletion->resource_version.empty()) {
      JsonObject preconditions;
      if (!deletion->uid.empty()) preconditions["uid"] = deletion->uid;
      if (!deletion->resource_version.empty())
        preconditions["resourceVersion"] = deletion->resource_version;
      out += fmt::format(R"(,"preconditions":{})", codec::PrintJson(Json(preconditions)));
    }
    AppendOption(out, "propagationPolicy", deletion->propagation);
  }
  if (context.options.dry_run) out += R"(,"dryRun":["All"])";
  if (reviewed.deletion == nullptr) {
    AppendOption(out, "fieldManager", context.options.manager);
    AppendOption(out, "fieldValidation", context.request.query.Text("fieldValidation"));
  }
  return out + "}";
}

// ---- Versions ----------------------------------------------------------------------------------

// Objects of users' kinds are the same in all versions but for what they say they are: what one
// doesn't know must come back.
void TurnInto(const api::Kind& from, const api::Kind& to, Json& document) {
  if (&from == &to) return;
  if (to.defined != nullptr) {
    api::Member(document.get_object(), "apiVersion") = to.api_version();
    return;
  }
  if (from.is_view()) document = ToStorage(from, std::move(document), nullptr);
  if (to.is_view()) ConvertTo(to, document);
}

// A document as a webhook sees it that is asked in `matched`, a version of the request's kind.
std::string Shown(const WriteContext& context, const Reviewed& reviewed, const api::Kind& matched,
                  const Json& document, std::string_view managed) {
  // Parts of their own kind have no versions.
  if (&reviewed.kind != context.request.kind) return codec::PrintJson(document);
  Json copy = document;
  TurnInto(reviewed.kind, matched, copy);
  return PrintCanonical(matched, copy, 0, {.managed = managed}).text;
}

// ---- Whom to ask -------------------------------------------------------------------------------

Outcome<bool> SelectsNamespace(const WriteContext& context, const Webhook& webhook,
                               const Reviewed& reviewed, const Json* object) {
  const std::string_view space = SpaceOf(context, reviewed);
  const bool of_namespace = context.request.kind->id == KindId::kNamespace;
  if (webhook.namespaces.empty() || (space.empty() && !of_namespace)) return true;
  if (of_namespace && context.request.subpart == Subpart::kNone && object != nullptr)
    return webhook.namespaces.Matches(api::StringMapAt(*object, "metadata.labels"));
  const store::ObjectRef found = context.store.FindHead(
      static_cast<store::Table>(KindId::kNamespace), {.namespace_name = "", .name = space});
  if (found == nullptr) return NotFound({.kind = api::KindOf(KindId::kNamespace), .name = space});
  return webhook.namespaces.Matches(found->labels);
}

bool SelectsObject(const Webhook& webhook, const Reviewed& reviewed, const Json* object) {
  if (webhook.objects.empty()) return true;
  const auto matches = [&](const Json* document) {
    return document != nullptr &&
           webhook.objects.Matches(api::StringMapAt(*document, "metadata.labels"));
  };
  if (reviewed.ending != nullptr) return webhook.objects.Matches(reviewed.ending->labels);
  return matches(object) || matches(reviewed.old);
}

// The resource's version that a webhook is to be asked in; null: it isn't.
Outcome<const api::Kind*> WhetherToAsk(const WriteContext& context, const Webhook& webhook,
                                       const Reviewed& reviewed, const Json* object) {
  const Hooked hooked{.kind = *context.request.kind,
                      .subresource = SubresourceName(context.request.subpart),
                      .namespace_name = SpaceOf(context, reviewed),
                      .operation = reviewed.operation};
  const api::Kind* const matched = MatchRules(webhook, hooked);
  if (matched == nullptr) return nullptr;
  if (!webhook.selects) {
    return InternalError(
        fmt::format("the selectors of webhook {} can't be read", api::QuoteGo(webhook.name)));
  }
  Outcome<bool> selected = SelectsNamespace(context, webhook, reviewed, object);
  if (!selected) return std::unexpected(std::move(selected.error()));
  if (!*selected || !SelectsObject(webhook, reviewed, object)) return nullptr;
  if (webhook.has_conditions) {
    if (webhook.ignores_failures) return nullptr;
    return Forbidden({.kind = *context.request.kind, .name = reviewed.name},
                     fmt::format("webhook {} has matchConditions, which are not evaluated here",
                                 api::QuoteGo(webhook.name)));
  }
  if (context.options.dry_run && !webhook.fit_for_dry_run) {
    return BadRequest(
        fmt::format("admission webhook {} does not support dry run", api::QuoteGo(webhook.name)));
  }
  return matched;
}

std::string TextFor(const WriteContext& context, const Reviewed& reviewed, const api::Kind& matched,
                    const Json* object) {
  const bool own = &reviewed.kind == context.request.kind;
  const std::string shown =
      object == nullptr ? "" : Shown(context, reviewed, matched, *object, reviewed.managed);
  const std::string old = reviewed.old == nullptr ? ""
                                                  : Shown(context, reviewed, matched, *reviewed.old,
                                                          reviewed.old_managed);
  const std::string options = OptionsText(context, reviewed);
  return ReviewText({.resource = *context.request.kind,
                     .kind = reviewed.kind,
                     .matched_resource = matched,
                     .matched_kind = own ? matched : reviewed.kind,
                     .subresource = SubresourceName(context.request.subpart),
                     .name = reviewed.name,
                     .namespace_name = SpaceOf(context, reviewed),
                     .operation = ToString(reviewed.operation),
                     .user = UserOf(context),
                     .object = shown,
                     .old_object = old,
                     .options = options,
                     .dry_run = context.options.dry_run});
}

// ---- What they say -----------------------------------------------------------------------------

void TakeWarnings(WriteContext& context, const Verdict& verdict) {
  std::ranges::copy(verdict.warnings, std::back_inserter(context.warnings));
}

// Whether a write may go on after a verdict.
Outcome<void> Heed(WriteContext& context, const Webhook& webhook, const Verdict& verdict) {
  if (verdict.failed()) {
    if (webhook.ignores_failures) return {};
    return InternalError(
        fmt::format("failed calling webhook {}: {}", api::QuoteGo(webhook.name), verdict.failure));
  }
  TakeWarnings(context, verdict);
  if (verdict.allowed) return {};
  return std::unexpected(verdict.refusal);
}

// A patch may leave out what an object is, but not make another kind of it.
Outcome<void> CheckKind(const api::Kind& kind, const Json& patched) {
  const std::string_view name = api::TextAt(patched, "kind");
  const std::string_view version = api::TextAt(patched, "apiVersion");
  const bool same =
      (name.empty() || name == kind.name) && (version.empty() || version == kind.api_version());
  if (same) return {};
  const std::string own_version = kind.api_version();
  const std::string_view as_name = name.empty() ? kind.name : name;
  const std::string_view as_version = version.empty() ? std::string_view(own_version) : version;
  const bool known = std::ranges::any_of(api::Kinds(), [&](const api::Kind& other) {
    return other.name == as_name && other.api_version() == as_version;
  });
  if (known) {
    return InternalError(fmt::format("what a webhook left is a {} of {}, not a {} of {}", as_name,
                                     as_version, kind.name, own_version));
  }
  return InternalError(fmt::format(
      R"(no kind "{}" is registered for version "{}" in scheme "pkg/runtime/scheme.go:111")",
      as_name, as_version));
}

// The webhooks that mutate, over one or two rounds.
class Mutation {
 public:
  Mutation(WriteContext& context, const Reviewed& reviewed, Json& object, const MutateSteps& steps)
      : context_(context),
        reviewed_(reviewed),
        managed_(reviewed.managed),
        object_(object),
        steps_(steps),
        webhooks_(context.webhooks->webhooks().mutating()),
        before_(webhooks_.size(), false),
        again_(webhooks_.size(), false) {}

  Outcome<void> Run() {
    Outcome<void> fine = Rounds();
    if (fine && steps_.managed != nullptr) SettleManaged(*steps_.managed);
    return fine;
  }

 private:
  Outcome<void> Rounds() {
    if (Outcome<void> fine = Round(false); !fine || !changed_) return fine;
    // Once more for those that asked to see what others changed since.
    if (steps_.admit) {
      const Json before = object_;
      if (Outcome<void> fine = steps_.admit(object_); !fine) return fine;
      if (!api::SameJson(before, object_)) RequireAgain();
    }
    return Round(true);
  }

  // Of the object's managedFields what the webhooks left, as they left it, where it is any.
  void SettleManaged(std::string& managed) {
    if (managed_ == managed) return;
    const Status left = CheckLeft();
    if (left) {
      managed = managed_;
      // They are not the server's alone any more.
      context_.managed_sent.emplace(JsonArray());
      return;
    }
    context_.warnings.push_back(
        fmt::format(".metadata.managedFields was in an invalid state after admission; this could "
                    "be caused by an outdated mutating admission controller; please fix your "
                    "requests: {}",
                    left.error().message));
  }

  [[nodiscard]] Status CheckLeft() const {
    if (managed_.empty()) return {};
    const Json left = ParseStored(managed_);
    if (std::cmp_greater(left.get_array().size(), limits::kManagersSentMax)) {
      return Fail(ErrorCode::kTooLarge,
                  fmt::format("more than {} managed fields entries", limits::kManagersSentMax));
    }
    const Result<api::ManagedFields> read = api::ParseManagedFields(left);
    if (!read) return std::unexpected(read.error());
    return {};
  }

  Outcome<void> Round(bool again) {
    for (size_t i = 0; i < webhooks_.size(); ++i) {
      const Outcome<const api::Kind*> matched =
          WhetherToAsk(context_, *webhooks_[i], reviewed_, &object_);
      if (!matched) return std::unexpected(matched.error());
      if (*matched == nullptr || (again && !again_[i])) continue;
      if (Outcome<void> fine = AskOne(i, **matched); !fine) return fine;
    }
    return {};
  }

  Outcome<void> AskOne(size_t index, const api::Kind& matched) {
    const WebhookRef& webhook = webhooks_[index];
    const Bytes text(TextFor(context_, reviewed_, matched, &object_));
    const Verdict* const verdict = context_.webhooks->Ask(webhook, text);
    if (verdict == nullptr) return Waits();
    if (Outcome<void> fine = Heed(context_, *webhook, *verdict); !fine) return fine;
    if (!verdict->failed() && !verdict->patch.empty()) {
      const Outcome<bool> changed = Apply(matched, *verdict);
      if (!changed) return std::unexpected(changed.error());
      if (*changed) {
        if (Outcome<void> fine = steps_.settle(object_); !fine) return fine;
        changed_ = true;
        RequireAgain();
      }
    }
    if (webhook->reinvoked) before_[index] = true;
    return {};
  }

  // The object with a webhook's patch; whether that changed anything.
  Outcome<bool> Apply(const api::Kind& matched, const Verdict& verdict) {
    const Json shown = ParseStored(Shown(context_, reviewed_, matched, object_, reviewed_.managed));
    const Result<Json> patch = codec::ParseJson(verdict.patch);
    CHECK(patch.has_value());
    Result<Json> patched = api::ApplyJsonPatch(shown, *patch);
    if (!patched) return InternalError(patched.error().message);
    if (!patched->is_object()) return InternalError("what a webhook left is no object");
    const api::Kind& kind = reviewed_.kind;
    const bool own = &kind == context_.request.kind;
    if (Outcome<void> same = CheckKind(own ? matched : kind, *patched); !same)
      return std::unexpected(std::move(same.error()));
    if (own) TurnInto(matched, kind, *patched);
    api::Member(patched->get_object(), "kind") = kind.name;
    api::Member(patched->get_object(), "apiVersion") = kind.api_version();
    const Result<ConformedApart> conformed = ConformApart(kind, *patched);
    if (!conformed) return InternalError(conformed.error().message);
    const bool managed_changed = KeepManaged(shown, conformed->managed.value_or(Json(JsonArray())));
    if (api::SameJson(object_, *patched)) return managed_changed;
    object_ = Json(std::move(*patched), object_.storage());
    return true;
  }

  // Takes what a patch left of them; whether they are others than before.
  bool KeepManaged(const Json& shown, const Json& left) {
    const Json* const before = api::FindPath(shown, "metadata.managedFields");
    if (api::SameJson(left, before == nullptr ? Json(JsonArray()) : *before)) return false;
    managed_ = api::PrintManagedFields(left.get_array());
    reviewed_.managed = managed_;
    return true;
  }

  // Of those that were asked before.
  void RequireAgain() {
    for (size_t i = 0; i < before_.size(); ++i) {
      if (!before_[i]) continue;
      again_[i] = true;
      before_[i] = false;
    }
  }

  WriteContext& context_;
  Reviewed reviewed_;
  std::string managed_;  // What is told of in reviewed_.
  Json& object_;
  const MutateSteps& steps_;
  const std::vector<WebhookRef>& webhooks_;
  bool changed_ = false;
  // By webhook: asked since the object last changed, and to be asked again.
  std::vector<bool> before_, again_;
};

// What a webhook says of a deletion, heeded; null when it isn't asked. What it is told follows from
// the object's version.
Outcome<const Verdict*> AskAboutEnd(WriteContext& context, const WebhookRef& webhook,
                                    const store::StoredObject& target,
                                    const DeleteOptions& options) {
  const api::Kind& kind = *context.request.kind;
  Reviewed reviewed{.operation = Operation::kDelete,
                    .kind = kind,
                    .name = context.request.name,
                    .old_managed = ManagedText(target),
                    .deletion = &options,
                    .ending = &target};
  const Outcome<const api::Kind*> matched = WhetherToAsk(context, *webhook, reviewed, nullptr);
  if (!matched) return std::unexpected(matched.error());
  if (*matched == nullptr) return nullptr;
  const auto make_text = [&] {
    const Json old = LoadUnmanaged(kind, target, context.memory);
    reviewed.old = &old;
    return TextFor(context, reviewed, **matched, nullptr);
  };
  const Bytes about(
      fmt::format("{} {} {}", (*matched)->api_version(), target.uid, target.revision));
  const Verdict* const verdict = context.webhooks->Ask(webhook, about, make_text);
  if (verdict == nullptr) return Waits();
  if (Outcome<void> fine = Heed(context, *webhook, *verdict); !fine)
    return std::unexpected(std::move(fine.error()));
  return verdict;
}

}  // namespace

std::unexpected<Problem> Waits() { return std::unexpected(Problem{.code = 0}); }

bool WebhookCalls::full() const {
  return static_cast<int64_t>(wanted_.size()) >= limits::kReviewsAtOnceMax;
}

const Verdict* WebhookCalls::Ask(const WebhookRef& webhook, const Bytes& text) {
  return Ask(webhook, text, nullptr);
}

const Verdict* WebhookCalls::Ask(const WebhookRef& webhook, const Bytes& about,
                                 const std::function<std::string()>& make_text) {
  for (size_t tried = 0; tried < heard_.size(); ++tried) {
    const size_t index = (next_ + tried) % heard_.size();
    if (heard_[index].key != webhook->key || heard_[index].about != about) continue;
    used_[index] = true;
    next_ = index + 1;
    return &heard_[index].verdict;
  }
  if (!full()) {
    wanted_.push_back({.webhook = webhook,
                       .about = about,
                       .text = make_text == nullptr ? about : Bytes(make_text())});
  }
  return nullptr;
}

void WebhookCalls::Prune(std::vector<HeardVerdict>& heard) const {
  CHECK_EQ(heard.size(), used_.size());
  size_t kept = 0;
  for (size_t i = 0; i < heard.size(); ++i) {
    if (used_[i] && kept++ != i) heard[kept - 1] = std::move(heard[i]);
  }
  heard.resize(kept);
}

Outcome<void> Mutate(WriteContext& context, const Reviewed& reviewed, Json& object,
                     const MutateSteps& steps) {
  CHECK(context.webhooks != nullptr);
  return Mutation(context, reviewed, object, steps).Run();
}

Outcome<void> Validate(WriteContext& context, const Reviewed& reviewed, const Json& object) {
  CHECK(context.webhooks != nullptr);
  std::vector<std::pair<const api::Kind*, Bytes>> texts;
  Outcome<void> first;
  bool waits = false;
  for (const WebhookRef& webhook : context.webhooks->webhooks().validating()) {
    const Outcome<const api::Kind*> matched = WhetherToAsk(context, *webhook, reviewed, &object);
    if (!matched) return std::unexpected(matched.error());
    if (*matched == nullptr) continue;
    auto text = std::ranges::find(texts, *matched, &std::pair<const api::Kind*, Bytes>::first);
    if (text == texts.end()) {
      texts.emplace_back(*matched, Bytes(TextFor(context, reviewed, **matched, &object)));
      text = texts.end() - 1;
    }
    const Verdict* const verdict = context.webhooks->Ask(webhook, text->second);
    waits |= verdict == nullptr;
    if (verdict == nullptr) continue;
    if (Outcome<void> fine = Heed(context, *webhook, *verdict); !fine && first) first = fine;
  }
  if (waits) return Waits();
  return first;
}

Outcome<void> MutatePart(WriteContext& context, const api::Kind& kind, std::string_view name,
                         Json& object, const std::function<void(Json& changed)>& settle) {
  if (context.webhooks == nullptr) return {};
  const MutateSteps steps{.settle = [&](Json& changed) {
    if (settle) settle(changed);
    return Outcome<void>();
  }};
  return Mutate(context, {.operation = Operation::kCreate, .kind = kind, .name = name}, object,
                steps);
}

Outcome<void> ValidatePart(WriteContext& context, const api::Kind& kind, std::string_view name,
                           const Json& object) {
  if (context.webhooks == nullptr) return {};
  return Validate(context, {.operation = Operation::kCreate, .kind = kind, .name = name}, object);
}

Outcome<void> ReviewPart(WriteContext& context, const api::Kind& kind, std::string_view name,
                         Json& object) {
  if (Outcome<void> fine = MutatePart(context, kind, name, object); !fine) return fine;
  return ValidatePart(context, kind, name, object);
}

Outcome<void> ReviewDeletion(WriteContext& context, const store::StoredObject& target,
                             const DeleteOptions& options) {
  if (context.webhooks == nullptr || context.webhooks->full()) return {};
  const Webhooks& webhooks = context.webhooks->webhooks();
  for (const WebhookRef& webhook : webhooks.mutating()) {
    const Outcome<const Verdict*> verdict = AskAboutEnd(context, webhook, target, options);
    if (!verdict) return std::unexpected(verdict.error());
    if (*verdict == nullptr || (*verdict)->failed() || (*verdict)->patch.empty()) continue;
    return InternalError(
        fmt::format("admission webhook {} attempted to modify the object, which is not supported "
                    "for this operation",
                    api::QuoteGo(webhook->name)));
  }
  Outcome<void> first;
  bool waits = false;
  for (const WebhookRef& webhook : webhooks.validating()) {
    const Outcome<const Verdict*> verdict = AskAboutEnd(context, webhook, target, options);
    const bool waiting = !verdict && verdict.error().code == Waits().error().code;
    waits |= waiting;
    if (!verdict && !waiting && first) first = std::unexpected(verdict.error());
  }
  if (waits) return Waits();
  return first;
}

}  // namespace berth::apiserver
