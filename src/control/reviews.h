#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "base/time.h"
#include "client/client.h"
#include "env/actor.h"

namespace berth::control {

// Who asks, as TokenReview tells and SubjectAccessReview is told.
struct Requester {
  std::string name = {};
  std::string uid = {};
  std::vector<std::string> groups = {};
  std::string extra = {};  // The text of a JSON object; empty: none.
  bool operator==(const Requester&) const = default;
};

// What a review has come to.
struct Verdict {
  bool yes = false;          // The token is somebody's; the access is allowed.
  std::string reason = {};   // Why it is not allowed, if the API server says so.
  Requester requester = {};  // Whose the token is.
  bool operator==(const Verdict&) const = default;
};

// The API server's answer. Errors: it is not as the kind has it, or larger than what is kept of it,
// with the field.
[[nodiscard]] Result<Verdict> ReadTokenReview(std::string_view document);
[[nodiscard]] Result<Verdict> ReadAccessReview(std::string_view document);

// The documents that are posted: authentication.k8s.io/v1 and authorization.k8s.io/v1.
[[nodiscard]] std::string TokenReviewOf(std::string_view token);
[[nodiscard]] std::string AccessReviewOf(const Requester& requester, std::string_view verb,
                                         std::string_view path);

// Reviews of one kind that the API server is asked for. Answers hold for a while, as in
// kube-scheduler, and are forgotten then, tokens with them; that there was none is never kept. What
// is asked for again while it is under way is put once.
//
// A review that was not answered, or with 429 or 5xx, is put again in 500 ms, 750 ms, ..., at most
// five times in ten seconds (it changes nothing, so it may be repeated); then it has failed. So the
// API server's absence costs those who ask, and nobody else. Bounded: 256 under way, 512 kept.
// A copyable value. Cost: O(log kept) a question, O(kept) a step.
class Reviews {
 public:
  static constexpr Duration kPatience = Duration::Seconds(10);
  static constexpr size_t kUnderWayMax = 256;
  static constexpr size_t kKeptMax = 512;

  enum class Kind : uint8_t { kToken, kAccess };
  struct Options {
    Kind kind = Kind::kToken;
    client::Options client = {};
    Duration yes_holds = Duration::Seconds(10);
    Duration no_holds = Duration::Seconds(10);
  };
  // A review has an answer, or has failed: `trouble` then says why.
  struct Ended {
    std::string key;
    std::optional<Verdict> verdict;
    std::string trouble;
  };

  explicit Reviews(Options options);

  // What is known and still holds; null: nothing.
  [[nodiscard]] const Verdict* Known(Instant now, std::string_view key) const;
  // Puts the review that `document` is, unless that of the key is under way. False: too many are.
  bool Put(Instant now, const std::string& key, std::string document, env::Outbox& out);
  void Handle(Instant now, const env::Input& input, env::Outbox& out, std::vector<Ended>& ended);
  [[nodiscard]] Instant wake_at() const;
  [[nodiscard]] size_t under_way() const { return under_way_.size(); }
  [[nodiscard]] size_t kept() const { return kept_.size(); }
  void AddTo(Hasher& hasher) const;

 private:
  struct UnderWay {
    std::string document;
    Instant give_up;
    uint64_t call = 0;  // 0: it waits to be put again.
    uint32_t attempts = 0;
    Instant again_at;
    std::string trouble;  // Of the last attempt.
  };
  struct Kept {
    Verdict verdict;
    Instant until;
  };

  void Send(Instant now, UnderWay& review, env::Outbox& out);
  void OnCallDone(Instant now, const client::CallDone& done, std::vector<Ended>& ended);
  void Keep(Instant now, const std::string& key, const Verdict& verdict);

  Options options_;  // Immutable after construction.
  client::Client client_;
  std::map<std::string, UnderWay, std::less<>> under_way_;
  std::map<std::string, Kept, std::less<>> kept_;
};

}  // namespace berth::control
