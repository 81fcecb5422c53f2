#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/kinds.h"
#include "apiserver/problem.h"
#include "apiserver/request.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "env/actor.h"
#include "env/http.h"

// What webhooks are asked and what they say: AdmissionReviews of admission.k8s.io, as text. Source:
// k8s.io/apiserver pkg/admission/plugin/webhook (request, errors), k8s.io/client-go rest.
namespace berth::apiserver {

// What a review is about.
struct ReviewSubject {
  const api::Kind& resource;          // Of the path.
  const api::Kind& kind;              // Of the object: the resource's own, a Scale, a Binding.
  const api::Kind& matched_resource;  // The same in the version that the webhook is asked in.
  const api::Kind& matched_kind;
  std::string_view subresource;
  std::string_view name;
  std::string_view namespace_name;
  std::string_view operation;
  const Identity& user;
  std::string_view object;      // JSON; empty for none.
  std::string_view old_object;  // The same.
  std::string_view options;
  bool dry_run = false;
};

// All members of a review's request but its uid, as an object. Equal texts ask the same.
[[nodiscard]] std::string ReviewText(const ReviewSubject& subject);
// The AdmissionReview to send. REQUIRES: `text` is a ReviewText.
[[nodiscard]] std::string ReviewBody(std::string_view version, std::string_view uid,
                                     std::string_view text);

// What came of a call.
struct Verdict {
  // Why there is none: what follows "failed calling webhook "a": ".
  std::string failure = {};
  bool allowed = false;
  Problem refusal = {};  // When not allowed, as it is told to who wrote.
  std::vector<std::string> warnings = {};
  std::string patch = {};  // A JSON patch's text; empty for none.

  [[nodiscard]] bool failed() const { return !failure.empty(); }
  [[nodiscard]] size_t bytes() const;
  void AddTo(Hasher& hasher) const;
};

// Whose answer it is.
struct Asked {
  std::string_view webhook;  // Its name.
  std::string_view version;  // Of the review.
  std::string_view uid;
  bool mutates = false;
};

// Reads an answer: any bytes are one, or a failure.
[[nodiscard]] Verdict ReadAnswer(const Asked& asked, const env::HttpResponse& response);
// The verdict of a call that failed. `url` is what was called.
[[nodiscard]] Verdict LostCall(std::string_view url, std::string_view why);

}  // namespace berth::apiserver
