#include "control/access_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>
#include <vector>

#include "api/json.h"
#include "codec/json.h"
#include "control/say.h"

namespace berth::control {
namespace {

constexpr std::string_view kAuthenticated = "system:authenticated";
constexpr std::string_view kMasters = "system:masters";

client::Options From(client::Options options, uint64_t first_call) {
  options.first_call = first_call;
  return options;
}

void Answer(env::ExchangeId exchange, int status, std::string_view type, std::string body,
            env::Outbox& out) {
  env::HttpResponse response{.status = status,
                             .headers = {{"content-type", std::string(type)},
                                         {"x-content-type-options", "nosniff"},
                                         {"cache-control", "no-cache, private"}},
                             .body = Bytes(std::move(body))};
  if (status == 429) response.headers.push_back({"retry-after", "1"});
  out.emplace_back(env::Respond{.exchange = exchange, .response = std::move(response)});
}

void AnswerStatus(env::ExchangeId exchange, int status, std::string_view reason,
                  std::string_view message, env::Outbox& out) {
  api::JsonObject object{
      {"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", api::JsonObject()},
      {"status", "Failure"}, {"message", message}, {"reason", reason}};
  if (status == 403) object["details"] = api::JsonObject();
  object["code"] = status;
  Answer(exchange, status, "application/json", codec::PrintJson(object), out);
}

void Unauthorized(env::ExchangeId exchange, env::Outbox& out) {
  AnswerStatus(exchange, 401, "Unauthorized", "Unauthorized", out);
}

void TooMany(env::ExchangeId exchange, env::Outbox& out) {
  AnswerStatus(exchange, 429, "TooManyRequests",
               "too many requests wait for reviews, please try again later", out);
}

// A browser must not take a message for HTML.
std::string Harmless(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// The token behind "Bearer", whatever its case; nothing: there is none.
std::optional<std::string_view> TokenIn(const env::HttpRequest& request) {
  constexpr std::string_view kScheme = "bearer ";
  std::string_view text = env::FindHeader(request.headers, "authorization").value_or("");
  if (text.size() <= kScheme.size()) return std::nullopt;
  const bool bearer =
      std::ranges::equal(text.substr(0, kScheme.size()), kScheme, {},
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (!bearer) return std::nullopt;
  text.remove_prefix(kScheme.size());
  while (text.starts_with(' ')) text.remove_prefix(1);
  text = text.substr(0, text.find(' '));
  return text.empty() ? std::nullopt : std::optional(text);
}

std::string VerbOf(env::Method method) {
  std::string verb(env::ToString(method));
  std::ranges::transform(verb, verb.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return verb;
}

// Who has proved to be somebody is in a group for that.
Requester Authenticated(Requester who) {
  if (std::ranges::find(who.groups, kAuthenticated) == who.groups.end())
    who.groups.emplace_back(kAuthenticated);
  return who;
}

struct Asked {
  const Requester& who;
  std::string_view verb;
  std::string_view path;
};

void Forbid(env::ExchangeId exchange, const Asked& asked, std::string_view reason,
            env::Outbox& out) {
  const std::string what =
      Harmless(fmt::format("User {} cannot {} path {}", client::JsonString(asked.who.name),
                           asked.verb, client::JsonString(asked.path)));
  AnswerStatus(exchange, 403, "Forbidden",
               fmt::format("forbidden: {}{}{}", what, reason.empty() ? "" : ": ", reason), out);
}

}  // namespace

AccessGate::AccessGate(const AccessGateOptions& options)
    : tokens_({.kind = Reviews::Kind::kToken,
               .client = From(options.authentication, 1),
               .yes_holds = options.token_holds,
               .no_holds = options.token_holds}),
      access_({.kind = Reviews::Kind::kAccess,
               .client = From(options.authorization, kAuthorizationFirstCall),
               .yes_holds = options.allowed_holds,
               .no_holds = options.refused_holds}) {}

void AccessGate::Step(Instant now, env::Input input, env::Outbox& out) {
  if (const auto* arrived = std::get_if<env::RequestArrived>(&input))
    return Take(now, *arrived, out);
  if (const auto* abandoned = std::get_if<env::ExchangeAbandoned>(&input)) {
    waiting_.erase(abandoned->exchange.value);
    return;
  }
  std::vector<Reviews::Ended> ended;
  tokens_.Handle(now, input, out, ended);
  for (const Reviews::Ended& each : ended) OnToken(now, each, out);
  ended.clear();
  access_.Handle(now, input, out, ended);
  for (const Reviews::Ended& each : ended) OnAccess(each, out);
}

void AccessGate::Take(Instant now, const env::RequestArrived& arrived, env::Outbox& out) {
  const env::HttpRequest& request = arrived.request;
  const env::ExchangeId exchange = arrived.exchange;
  const std::string_view target = request.target;
  const std::string_view path = target.substr(0, target.find('?'));
  if (path.size() > kPathBytesMax)
    return AnswerStatus(exchange, 414, "", "the path is longer than any that is served", out);
  if (request.method == env::Method::kOther)
    return AnswerStatus(exchange, 405, "MethodNotAllowed", "the method is not served", out);
  if (std::ranges::any_of(request.headers, [](const env::Header& header) {
        return header.name.starts_with("impersonate-");
      }))
    return AnswerStatus(exchange, 403, "Forbidden", "forbidden: nobody acts as another here", out);
  Waiting waiting{
      .verb = VerbOf(request.method), .path = std::string(path), .token = {}, .requester = {}};
  if (!arrived.peer.user.empty()) {
    waiting.requester = Authenticated({.name = arrived.peer.user, .groups = arrived.peer.groups});
    return Authorize(now, exchange, std::move(waiting), out);
  }
  if (const std::optional<std::string_view> token = TokenIn(request)) {
    waiting.token = *token;
    return Authenticate(now, exchange, std::move(waiting), out);
  }
  waiting.anonymous = true;
  waiting.requester = {.name = "system:anonymous", .groups = {"system:unauthenticated"}};
  Authorize(now, exchange, std::move(waiting), out);
}

void AccessGate::Authenticate(Instant now, env::ExchangeId exchange, Waiting waiting,
                              env::Outbox& out) {
  if (waiting.token.size() > kTokenBytesMax) return Unauthorized(exchange, out);
  const Verdict* known = tokens_.Known(now, waiting.token);
  if (known == nullptr) {
    const bool put = waiting_.size() < PlacesOf(waiting) &&
                     tokens_.Put(now, waiting.token, TokenReviewOf(waiting.token), out);
    if (!put) return TooMany(exchange, out);
    waiting_.insert_or_assign(exchange.value, std::move(waiting));
    return;
  }
  if (!known->yes) return Unauthorized(exchange, out);
  waiting.token.clear();
  waiting.requester = Authenticated(known->requester);
  Authorize(now, exchange, std::move(waiting), out);
}

void AccessGate::Authorize(Instant now, env::ExchangeId exchange, Waiting waiting,
                           env::Outbox& out) {
  const Requester& who = waiting.requester;
  if (std::ranges::find(who.groups, kMasters) != who.groups.end())
    return Answer(exchange, kLetIn, "", "", out);
  waiting.access = AccessReviewOf(who, waiting.verb, waiting.path);
  if (const Verdict* known = access_.Known(now, waiting.access)) {
    if (known->yes) return Answer(exchange, kLetIn, "", "", out);
    return Forbid(exchange, {.who = who, .verb = waiting.verb, .path = waiting.path}, known->reason,
                  out);
  }
  // Reviews outlive those who asked for them and left: they are bounded, too.
  const size_t places = PlacesOf(waiting);
  const bool room =
      waiting_.size() < places && (!waiting.anonymous || access_.under_way() < places);
  if (!room || !access_.Put(now, waiting.access, waiting.access, out))
    return TooMany(exchange, out);
  waiting_.insert_or_assign(exchange.value, std::move(waiting));
}

void AccessGate::OnToken(Instant now, const Reviews::Ended& ended, env::Outbox& out) {
  if (!ended.verdict) Tell("TokenReview", ended.trouble, out);
  std::vector<std::pair<uint64_t, Waiting>> of_it;
  for (const auto& [exchange, waiting] : waiting_) {
    if (waiting.access.empty() && waiting.token == ended.key) of_it.emplace_back(exchange, waiting);
  }
  for (auto& [exchange, waiting] : of_it) {
    waiting_.erase(exchange);
    if (!ended.verdict || !ended.verdict->yes) {
      Unauthorized({exchange}, out);
      continue;
    }
    waiting.token.clear();
    waiting.requester = Authenticated(ended.verdict->requester);
    Authorize(now, {exchange}, std::move(waiting), out);
  }
  if (ended.verdict) told_.clear();
}

void AccessGate::OnAccess(const Reviews::Ended& ended, env::Outbox& out) {
  if (!ended.verdict) Tell("SubjectAccessReview", ended.trouble, out);
  std::erase_if(waiting_, [&](const auto& entry) {
    const Waiting& waiting = entry.second;
    const env::ExchangeId exchange{entry.first};
    if (waiting.access != ended.key) return false;
    if (!ended.verdict) {
      Answer(exchange, 500, "text/plain; charset=utf-8",
             Harmless(fmt::format("Internal Server Error: {}: {}\n",
                                  client::JsonString(waiting.path), ended.trouble)),
             out);
    } else if (ended.verdict->yes) {
      Answer(exchange, kLetIn, "", "", out);
    } else {
      Forbid(exchange, {.who = waiting.requester, .verb = waiting.verb, .path = waiting.path},
             ended.verdict->reason, out);
    }
    return true;
  });
  if (ended.verdict) told_.clear();
}

void AccessGate::Tell(std::string_view kind, const std::string& trouble, env::Outbox& out) {
  std::string text = fmt::format("{} can't be had: {}", kind, trouble);
  if (told_ == text) return;
  told_ = text;
  Say(out, env::LogLevel::kWarning, std::move(text));
}

Instant AccessGate::wake_at() const { return std::min(tokens_.wake_at(), access_.wake_at()); }

void AccessGate::AddTo(Hasher& hasher) const {
  tokens_.AddTo(hasher);
  access_.AddTo(hasher);
  hasher.Add(waiting_.size());
  for (const auto& [exchange, waiting] : waiting_) {
    hasher.Add(exchange).Add(waiting.verb).Add(waiting.path).Add(waiting.token);
    hasher.Add(waiting.access).Add(waiting.requester.name);
  }
  hasher.Add(told_);
}

}  // namespace berth::control
