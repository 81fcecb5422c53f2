#include "control/reviews.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/json.h"
#include "base/check.h"
#include "codec/json.h"

namespace berth::control {
namespace {

using api::Json;
using api::JsonArray;
using api::JsonObject;

const client::Resource kTokenReviews{
    .group = "authentication.k8s.io", .version = "v1", .plural = "tokenreviews"};
const client::Resource kAccessReviews{
    .group = "authorization.k8s.io", .version = "v1", .plural = "subjectaccessreviews"};

// What is kept of one answer at most: 512 of them are 32 MiB.
constexpr size_t kVerdictBytesMax = 64 * 1024;
constexpr uint32_t kAttemptsMax = 5;
constexpr Duration kFirstPause = Duration::Milliseconds(500);
// A server that is back is found out within this.
constexpr Duration kBackoffMax = Duration::Seconds(1);

client::Options ClientOptions(client::Options options) {
  options.backoff_max = std::min(options.backoff_max, kBackoffMax);
  options.backoff_initial = std::min(options.backoff_initial, options.backoff_max);
  return options;
}

std::unexpected<Error> Unreadable(std::string_view what) {
  return Fail(ErrorCode::kInvalid, fmt::format("{} is not as a review has it", what));
}

// A member of a type, or absent or null: then nothing is put.
Status Put(const JsonObject& of, std::string_view name, bool& to) {
  const Json* member = of.if_contains(name);
  if (member == nullptr || member->is_null()) return {};
  if (!member->is_bool()) return Unreadable(name);
  to = member->as_bool();
  return {};
}

Status Put(const JsonObject& of, std::string_view name, std::string& to) {
  const Json* member = of.if_contains(name);
  if (member == nullptr || member->is_null()) return {};
  if (!member->is_string()) return Unreadable(name);
  to = std::string(member->as_string());
  return {};
}

Status Put(const JsonObject& of, std::string_view name, std::vector<std::string>& to) {
  const Json* member = of.if_contains(name);
  if (member == nullptr || member->is_null()) return {};
  if (!member->is_array()) return Unreadable(name);
  for (const Json& item : member->as_array()) {
    if (!item.is_string()) return Unreadable(name);
    to.emplace_back(item.as_string());
  }
  return {};
}

// The members of an object's object; null: it has none.
Result<const JsonObject*> MembersOf(const JsonObject& of, std::string_view name) {
  const Json* member = of.if_contains(name);
  if (member == nullptr || member->is_null()) return nullptr;
  if (!member->is_object()) return Unreadable(name);
  return &member->as_object();
}

Status PutUser(const JsonObject& user, Requester& to) {
  if (const Status status = Put(user, "username", to.name); !status) return status;
  if (const Status status = Put(user, "uid", to.uid); !status) return status;
  if (const Status status = Put(user, "groups", to.groups); !status) return status;
  const Result<const JsonObject*> extra = MembersOf(user, "extra");
  if (!extra) return std::unexpected(extra.error());
  if (*extra != nullptr && !(*extra)->empty()) to.extra = codec::PrintJson(**extra);
  return {};
}

size_t SizeOf(const Verdict& verdict) {
  const Requester& who = verdict.requester;
  size_t bytes = verdict.reason.size() + who.name.size() + who.uid.size() + who.extra.size();
  for (const std::string& group : who.groups) bytes += group.size() + sizeof(std::string);
  return bytes;
}

Result<Verdict> Bounded(Verdict verdict) {
  if (const size_t size = SizeOf(verdict); size > kVerdictBytesMax) {
    return Fail(ErrorCode::kInvalid, fmt::format("status has {} bytes, and {} are read at most",
                                                 size, kVerdictBytesMax));
  }
  return verdict;
}

// The status of a review.
Result<JsonObject> StatusIn(std::string_view document) {
  Result<Json> json = codec::ParseJson(document);
  if (!json) return std::unexpected(json.error());
  if (!json->is_object()) return Unreadable("the document");
  const Result<const JsonObject*> status = MembersOf(json->as_object(), "status");
  if (!status) return std::unexpected(status.error());
  return *status == nullptr ? JsonObject() : **status;
}

void Mix(Hasher& hasher, const Verdict& verdict) {
  hasher.Add(verdict.yes).Add(verdict.reason);
  const Requester& who = verdict.requester;
  hasher.Add(who.name).Add(who.uid).Add(who.extra).Add(who.groups.size());
  for (const std::string& group : who.groups) hasher.Add(group);
}

}  // namespace

Result<Verdict> ReadTokenReview(std::string_view document) {
  const Result<JsonObject> status = StatusIn(document);
  if (!status) return std::unexpected(status.error());
  Verdict verdict;
  if (const Status read = Put(*status, "authenticated", verdict.yes); !read)
    return std::unexpected(read.error());
  if (const Status read = Put(*status, "error", verdict.reason); !read)
    return std::unexpected(read.error());
  if (!verdict.yes) return Bounded(std::move(verdict));
  const Result<const JsonObject*> user = MembersOf(*status, "user");
  if (!user) return std::unexpected(user.error());
  if (*user == nullptr) return Unreadable("user");
  if (const Status read = PutUser(**user, verdict.requester); !read)
    return std::unexpected(read.error());
  if (verdict.requester.name.empty()) return Unreadable("username");
  return Bounded(std::move(verdict));
}

Result<Verdict> ReadAccessReview(std::string_view document) {
  const Result<JsonObject> status = StatusIn(document);
  if (!status) return std::unexpected(status.error());
  Verdict verdict;
  bool denied = false;
  if (const Status read = Put(*status, "allowed", verdict.yes); !read)
    return std::unexpected(read.error());
  if (const Status read = Put(*status, "denied", denied); !read)
    return std::unexpected(read.error());
  if (const Status read = Put(*status, "reason", verdict.reason); !read)
    return std::unexpected(read.error());
  if (denied && verdict.yes) return Fail(ErrorCode::kInvalid, "it is both allowed and denied");
  return Bounded(std::move(verdict));
}

std::string TokenReviewOf(std::string_view token) {
  return codec::PrintJson(JsonObject{{"apiVersion", "authentication.k8s.io/v1"},
                                     {"kind", "TokenReview"},
                                     {"spec", JsonObject{{"token", token}}}});
}

std::string AccessReviewOf(const Requester& requester, std::string_view verb,
                           std::string_view path) {
  JsonObject spec{{"user", requester.name},
                  {"nonResourceAttributes", JsonObject{{"path", path}, {"verb", verb}}}};
  if (!requester.uid.empty()) spec["uid"] = requester.uid;
  JsonArray groups;
  for (const std::string& group : requester.groups) groups.emplace_back(group);
  if (!groups.empty()) spec["groups"] = std::move(groups);
  if (!requester.extra.empty()) {
    const Result<Json> extra = codec::ParseJson(requester.extra);
    CHECK(extra.has_value());  // It was printed here.
    spec["extra"] = *extra;
  }
  return codec::PrintJson(JsonObject{{"apiVersion", "authorization.k8s.io/v1"},
                                     {"kind", "SubjectAccessReview"},
                                     {"spec", std::move(spec)}});
}

// ---- Reviews ---------------------------------------------------------------------------------

Reviews::Reviews(Options options)
    : options_(std::move(options)), client_(ClientOptions(options_.client)) {}

const Verdict* Reviews::Known(Instant now, std::string_view key) const {
  const auto found = kept_.find(key);
  return found == kept_.end() || found->second.until <= now ? nullptr : &found->second.verdict;
}

bool Reviews::Put(Instant now, const std::string& key, std::string document, env::Outbox& out) {
  if (under_way_.contains(key)) return true;
  if (under_way_.size() >= kUnderWayMax) return false;
  UnderWay& review = under_way_[key];
  review.document = std::move(document);
  review.give_up = now + kPatience;
  Send(now, review, out);
  return true;
}

void Reviews::Send(Instant now, UnderWay& review, env::Outbox& out) {
  client::Request request = client::Create(
      options_.kind == Kind::kToken ? kTokenReviews : kAccessReviews, "", review.document);
  request.timeout = review.give_up - now;
  request.patience = Duration{};  // It is put again here.
  request.retry_throttled = false;
  ++review.attempts;
  review.call = client_.Call(now, std::move(request), out).value;
}

void Reviews::Handle(Instant now, const env::Input& input, env::Outbox& out,
                     std::vector<Ended>& ended) {
  std::vector<client::Event> events;
  client_.Handle(now, input, out, events);
  for (const client::Event& event : events) {
    if (const auto* done = std::get_if<client::CallDone>(&event)) OnCallDone(now, *done, ended);
  }
  if (!std::holds_alternative<env::Tick>(input)) return;
  std::erase_if(kept_, [&](const auto& entry) { return entry.second.until <= now; });
  for (auto it = under_way_.begin(); it != under_way_.end();) {
    UnderWay& review = it->second;
    if (review.give_up <= now) {
      if (review.call != 0) client_.CancelQueued({review.call});
      ended.push_back({.key = it->first,
                       .verdict = std::nullopt,
                       .trouble = review.trouble.empty() ? "no answer in time" : review.trouble});
      it = under_way_.erase(it);
      continue;
    }
    if (review.call == 0 && review.again_at <= now) Send(now, review, out);
    ++it;
  }
}

void Reviews::OnCallDone(Instant now, const client::CallDone& done, std::vector<Ended>& ended) {
  const auto found = std::ranges::find_if(
      under_way_, [&](const auto& entry) { return entry.second.call == done.call.value; });
  if (found == under_way_.end()) return;  // It was given up.
  UnderWay& review = found->second;
  review.call = 0;
  if (done.outcome == client::Outcome::kDone) {
    const std::string_view body = done.response.body.view();
    Result<Verdict> verdict =
        options_.kind == Kind::kToken ? ReadTokenReview(body) : ReadAccessReview(body);
    Ended end{.key = found->first, .verdict = std::nullopt, .trouble = {}};
    if (verdict) {
      Keep(now, found->first, *verdict);
      end.verdict = *std::move(verdict);
    } else {
      end.trouble = verdict.error().message;
    }
    ended.push_back(std::move(end));
    under_way_.erase(found);
    return;
  }
  const int status = done.response.status;
  review.trouble = client::WhyOf(done);
  const bool for_now = status == 0 || status == 429 || status >= 500;
  Duration pause = kFirstPause;
  for (uint32_t i = 1; i < review.attempts; ++i) pause = Duration{pause.ns / 2 * 3};
  if (for_now && review.attempts < kAttemptsMax && now + pause < review.give_up) {
    review.again_at = now + pause;
    return;
  }
  ended.push_back({.key = found->first, .verdict = std::nullopt, .trouble = review.trouble});
  under_way_.erase(found);
}

void Reviews::Keep(Instant now, const std::string& key, const Verdict& verdict) {
  const Duration holds = verdict.yes ? options_.yes_holds : options_.no_holds;
  if (holds <= Duration{}) return;
  if (kept_.size() >= kKeptMax) {
    kept_.erase(
        std::ranges::min_element(kept_, {}, [](const auto& entry) { return entry.second.until; }));
  }
  kept_[key] = {.verdict = verdict, .until = now + holds};
}

Instant Reviews::wake_at() const {
  Instant at = client_.wake_at();
  for (const auto& [key, review] : under_way_) {
    at = std::min(at, review.give_up);
    if (review.call == 0) at = std::min(at, review.again_at);
  }
  for (const auto& [key, kept] : kept_) at = std::min(at, kept.until);
  return at;
}

void Reviews::AddTo(Hasher& hasher) const {
  client_.AddTo(hasher);
  hasher.Add(under_way_.size());
  for (const auto& [key, review] : under_way_) {
    hasher.Add(key).Add(review.document).Add(review.give_up.ns).AddCall(review.call);
    hasher.Add(review.attempts).Add(review.again_at.ns).Add(review.trouble);
  }
  hasher.Add(kept_.size());
  for (const auto& [key, kept] : kept_) {
    hasher.Add(key).Add(kept.until.ns);
    Mix(hasher, kept.verdict);
  }
}

}  // namespace berth::control
