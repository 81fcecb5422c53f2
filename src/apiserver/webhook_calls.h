#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "apiserver/admission_review.h"
#include "apiserver/render.h"
#include "apiserver/webhooks.h"
#include "apiserver/writes.h"
#include "base/bytes.h"

// Webhooks within the handling of a write (docs/design/0022-webhooks.md).
namespace berth::apiserver {

// What a webhook has said, and to what.
struct HeardVerdict {
  std::string key;  // Webhook::key.
  Bytes about;      // The ReviewText, or what it follows from beside the request.
  Verdict verdict;
};

// A call that a write can't go on without.
struct WantedCall {
  WebhookRef webhook;
  Bytes about;
  Bytes text;  // ReviewText.
};

// How far the deletion of a collection is, which goes on in parts: each is deleted when webhooks
// have said to all of it what they think, and no try takes long.
struct CollectionProgress {
  bool begun = false;
  std::vector<store::ObjectRef> targets;  // As they were when it began: the answer.
  size_t next = 0;                        // Of these the first that is there still.
  std::string metadata;                   // The members of the answer's ListMeta.
  bool paused = false;                    // There is more, for another try.
  bool unpaused = false;                  // All is to be done in this one.
  // Of all that was deleted: an answer that takes its time, and takes the place of the one given.
  std::optional<ListRenderer> answer = {};
};

// What one try of a write knows of its webhooks, and wants to know.
class WebhookCalls {
 public:
  // All outlive it.
  WebhookCalls(const Webhooks& webhooks, const std::vector<HeardVerdict>& heard)
      : webhooks_(webhooks), heard_(heard), used_(heard.size(), false) {}

  // The verdict, or null: it is wanted, unless so many are that it must wait. Cost: constant where
  // a try asks as the one before it did.
  [[nodiscard]] const Verdict* Ask(const WebhookRef& webhook, const Bytes& text);
  // The same of a text that follows from `about`, and is made when it is needed.
  [[nodiscard]] const Verdict* Ask(const WebhookRef& webhook, const Bytes& about,
                                   const std::function<std::string()>& make_text);

  [[nodiscard]] const Webhooks& webhooks() const { return webhooks_; }
  [[nodiscard]] const std::vector<WantedCall>& wanted() const { return wanted_; }
  // Whether nothing more can be wanted in this try.
  [[nodiscard]] bool full() const;
  // Leaves those of the verdicts that counted. REQUIRES: it was made with them.
  void Prune(std::vector<HeardVerdict>& heard) const;

 private:
  const Webhooks& webhooks_;
  const std::vector<HeardVerdict>& heard_;
  std::vector<bool> used_;
  size_t next_ = 0;  // Of heard_: what is probably asked next.
  std::vector<WantedCall> wanted_;
};

// Stops a try: its webhooks are asked, and then it is made again. Nobody is told.
[[nodiscard]] std::unexpected<Problem> Waits();

// What webhooks are told of a write.
struct Reviewed {
  Operation operation = Operation::kCreate;
  const api::Kind& kind;  // Of the object: the request's, or a subresource's own.
  std::string_view name;
  const api::Json* old = nullptr;  // Of that kind, without its managedFields.
  std::string_view old_managed = {};
  std::string_view managed = {};  // The object's managedFields.
  const DeleteOptions* deletion = nullptr;
  const store::StoredObject* ending = nullptr;  // What is deleted.
};

struct MutateSteps {
  // What an object goes through before webhooks see it, and again after they have changed it.
  std::function<Outcome<void>(api::Json& object)> admit = {};
  // What makes of a patched object, which is conformed, one that goes on.
  std::function<Outcome<void>(api::Json& object)> settle = {};
  // The text of its managedFields, and then of what webhooks leave of them; null: it has none. What
  // is none stays as it was, with a warning.
  std::string* managed = nullptr;
};

// Has the mutating webhooks change an object. Problems: Waits, a refusal, 500 for a webhook that
// fails. REQUIRES: context.webhooks.
[[nodiscard]] Outcome<void> Mutate(WriteContext& context, const Reviewed& reviewed,
                                   api::Json& object, const MutateSteps& steps);
// Asks the validating webhooks, all at once. The same.
[[nodiscard]] Outcome<void> Validate(WriteContext& context, const Reviewed& reviewed,
                                     const api::Json& object);

// Each for the body of a subresource that has a kind of its own, or of a question. They do nothing
// without webhooks. `settle` is MutateSteps'.
[[nodiscard]] Outcome<void> MutatePart(WriteContext& context, const api::Kind& kind,
                                       std::string_view name, api::Json& object,
                                       const std::function<void(api::Json& changed)>& settle = {});
[[nodiscard]] Outcome<void> ValidatePart(WriteContext& context, const api::Kind& kind,
                                         std::string_view name, const api::Json& object);
// Both.
[[nodiscard]] Outcome<void> ReviewPart(WriteContext& context, const api::Kind& kind,
                                       std::string_view name, api::Json& object);
// Both for a deletion. The same. Cost: without parsing the object, where it was asked about before.
[[nodiscard]] Outcome<void> ReviewDeletion(WriteContext& context, const store::StoredObject& target,
                                           const DeleteOptions& options);

}  // namespace berth::apiserver
