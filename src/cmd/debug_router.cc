#include "cmd/debug_router.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <variant>

#include "cmd/process_metrics.h"
#include "control/access_gate.h"
#include "control/debug.h"

namespace berth::cmd {
namespace {

constexpr std::string_view kBearer = "Bearer ";
// Exchanges are remembered until they are abandoned, which finished ones never are: old ones are
// forgotten.
constexpr size_t kExchangesMax = 4096;

// In time that does not tell how much of a guess was right.
bool SameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |=
        static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  }
  return difference == 0;
}

env::HttpResponse StatusResponse(int code) {
  const char* reason = code == 401   ? "Unauthorized"
                       : code == 403 ? "Forbidden"
                       : code == 429 ? "TooManyRequests"
                                     : "NotFound";
  const char* message = code == 401   ? "Unauthorized"
                        : code == 403 ? "forbidden: only operators may ask"
                        : code == 429 ? "too many requests, please try again later"
                                      : "the server could not find the requested resource";
  return {.status = code,
          .headers = {{"content-type", "application/json"}},
          .body = Bytes(fmt::format(
              R"({{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure",)"
              R"("message":"{}","reason":"{}","code":{}}})",
              message, reason, code))};
}

// What RBAC lets others than operators read.
bool IsReadable(std::string_view target) {
  const std::string_view path = target.substr(0, target.find('?'));
  return path == "/metrics" || path == "/metrics/resources" || path == "/configz";
}

bool IsOfScheduler(std::string_view target) {
  return target.starts_with("/debug/") || IsReadable(target);
}

}  // namespace

int DebugRouter::Refusal(const env::RequestArrived& request) const {
  const bool acts_as_another = std::ranges::any_of(
      request.request.headers,
      [](const env::Header& header) { return header.name.starts_with("impersonate-"); });
  if (acts_as_another) return 403;
  const std::string_view header =
      env::FindHeader(request.request.headers, "authorization").value_or("");
  if (header.starts_with(kBearer)) {
    const bool known = token_ && SameSecret(token_->Current(), header.substr(kBearer.size()));
    return known ? 0 : 401;
  }
  if (request.peer.user.empty()) return 401;
  return std::ranges::find(request.peer.groups, "system:masters") == request.peer.groups.end() ? 403
                                                                                               : 0;
}

void DebugRouter::AddOwnMetrics(env::Output& output) const {
  auto* respond = std::get_if<env::Respond>(&output);
  if (respond == nullptr || respond->response.status != 200) return;
  env::HttpResponse& response = respond->response;
  if (env::FindHeader(response.headers, "content-type") != control::kMetricsType) return;
  response.body = Bytes(fmt::format("{}{}{}", response.body.view(),
                                    targets_.times != nullptr ? targets_.times->MetricsText() : "",
                                    ProcessMetrics()));
}

bool DebugRouter::IsOpen(std::string_view target) const {
  const std::string_view path = target.substr(0, target.find('?'));
  return std::ranges::any_of(open_paths_, [&](std::string_view open) {
    if (!open.ends_with('*')) return path == open;
    open.remove_suffix(1);
    return path.starts_with(open);
  });
}

void DebugRouter::Remember(env::ExchangeId exchange) {
  if (exchanges_.size() >= kExchangesMax) exchanges_.clear();
  exchanges_.insert(exchange.value);
}

void DebugRouter::Ask(env::RequestArrived request, Sorted& sorted) {
  const bool full = asked_.size() >= kExchangesMax;
  // Who is let in must be remembered until then; an API server answers others by itself.
  if (full && targets_.gate != nullptr) {
    sorted.refused.emplace_back(env::Respond{
        .exchange = request.exchange, .response = StatusResponse(429), .stream = false});
    return;
  }
  if (full) asked_.clear();
  // The scheduler reads no bodies, nor does the gate: none waits here.
  env::RequestArrived kept{.exchange = request.exchange,
                           .peer = request.peer,
                           .request = {.method = request.request.method,
                                       .target = request.request.target,
                                       .headers = request.request.headers,
                                       .body = {}}};
  if (targets_.gate != nullptr) request.request.body = {};
  asked_.insert_or_assign(request.exchange.value, std::move(kept));
  sorted.api.emplace_back(std::move(request));
}

void DebugRouter::SortRequest(env::RequestArrived request, Sorted& sorted) {
  const std::string_view target = request.request.target;
  // The API server says to others what they are: unknown, or without the right.
  const bool beside_api = targets_.api != nullptr;
  if (beside_api && (!IsOfScheduler(target) || Refusal(request) != 0)) {
    if (IsReadable(target) && targets_.debug != nullptr) return Ask(std::move(request), sorted);
    sorted.api.emplace_back(std::move(request));
    return;
  }
  // Without an API server, probes are open as those of kube-scheduler are.
  const bool open = beside_api || IsOpen(target);
  const int code = targets_.debug == nullptr ? 404 : open ? 0 : Refusal(request);
  if (code != 0 && targets_.debug != nullptr && targets_.gate != nullptr)
    return Ask(std::move(request), sorted);
  if (code != 0) {
    sorted.refused.emplace_back(env::Respond{
        .exchange = request.exchange, .response = StatusResponse(code), .stream = false});
    return;
  }
  Remember(request.exchange);
  sorted.debug.emplace_back(std::move(request));
}

void DebugRouter::Sort(env::Input input, Sorted& sorted) {
  const MutexLock lock(mutex_);
  if (auto* request = std::get_if<env::RequestArrived>(&input))
    return SortRequest(std::move(*request), sorted);
  uint64_t exchange = 0;
  if (const auto* abandoned = std::get_if<env::ExchangeAbandoned>(&input)) {
    exchange = abandoned->exchange.value;
    // The scheduler has not heard of it.
    if (asked_.erase(exchange) > 0) return sorted.api.push_back(std::move(input));
  }
  if (const auto* drained = std::get_if<env::StreamDrained>(&input))
    exchange = drained->exchange.value;
  const bool ours = targets_.api == nullptr || exchanges_.contains(exchange);
  (ours ? sorted.debug : sorted.api).push_back(std::move(input));
}

void DebugRouter::Post(std::vector<env::Input> batch) {
  Sorted sorted;
  for (env::Input& input : batch) Sort(std::move(input), sorted);
  env::InputSink* const asked = targets_.api != nullptr ? targets_.api : targets_.gate;
  if (!sorted.api.empty()) asked->Post(std::move(sorted.api));
  if (!sorted.debug.empty() && targets_.debug != nullptr)
    targets_.debug->Post(std::move(sorted.debug));
  if (!sorted.refused.empty()) targets_.network->Take(std::move(sorted.refused));
}

bool DebugRouter::TakeOver(const env::Output& output, std::vector<env::Input>& debug) {
  const auto* respond = std::get_if<env::Respond>(&output);
  if (asked_.empty() || respond == nullptr) return false;
  auto asked = asked_.extract(respond->exchange.value);
  const int passes = targets_.api != nullptr ? 404 : control::kLetIn;
  if (asked.empty() || respond->response.status != passes) return false;
  Remember(respond->exchange);
  debug.emplace_back(std::move(asked.mapped()));
  return true;
}

void DebugRouter::Take(std::vector<env::Output> batch) {
  for (env::Output& output : batch) AddOwnMetrics(output);
  std::vector<env::Input> debug;
  std::vector<env::Output> network;
  network.reserve(batch.size());
  {
    const MutexLock lock(mutex_);
    for (env::Output& output : batch) {
      if (!TakeOver(output, debug)) network.push_back(std::move(output));
    }
  }
  if (!debug.empty()) targets_.debug->Post(std::move(debug));
  if (!network.empty()) targets_.network->Take(std::move(network));
}

}  // namespace berth::cmd
