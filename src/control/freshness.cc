#include "control/freshness.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "client/known_set.h"
#include "codec/scan.h"
#include "control/say.h"

namespace berth::control {

void FreshnessBarrier::Begin(Instant now, client::Client& client, env::Outbox& out) {
  behind_.clear();
  told_.clear();
  for (uint32_t i = 0; i < client.watches_count(); ++i) {
    if (client.watch({i}).stopped()) continue;
    Ask(now, behind_.emplace_back(Behind{.watch = {i}, .version = {}}), client, out);
  }
}

// Without a version in the question, the server answers with the newest.
void FreshnessBarrier::Ask(Instant now, Behind& behind, client::Client& client, env::Outbox& out) {
  const client::WatchOptions& options = client.watch(behind.watch).options();
  client::Request request =
      client::Get(options.resource, {.namespace_name = options.namespace_name});
  request.target += "?limit=1";
  request.priority = client::Priority::kHigh;
  behind.at = Instant::Never();
  behind.call = client.Call(now, std::move(request), out).value;
}

bool FreshnessBarrier::OnCallDone(Instant now, const client::CallDone& done,
                                  const client::Client& client, env::Outbox& out) {
  const auto at = std::ranges::find(behind_, done.call.value, &Behind::call);
  if (done.call.value == 0 || at == behind_.end()) return false;
  at->call = 0;
  at->at = now + kPatience;
  if (done.outcome == client::Outcome::kGone ||
      client.watch(at->watch).MeansAbsent(done.response.status))
    at->absent = true;
  if (done.outcome != client::Outcome::kDone) {
    std::string text =
        fmt::format("decisions wait: the version of {} can't be had: {}",
                    client.watch(at->watch).options().resource.plural, client::WhyOf(done));
    if (!at->absent && text != told_) Say(out, env::LogLevel::kWarning, told_ = std::move(text));
    return true;
  }
  at->version =
      codec::StringMember(codec::Member(done.response.body.view(), "metadata"), "resourceVersion");
  return true;
}

bool FreshnessBarrier::IsFresh(const Behind& behind, const client::Client& client) {
  const client::WatchState& watch = client.watch(behind.watch);
  if (behind.lists) return !watch.relisting();
  if (behind.absent) return watch.absent();
  if (behind.version.empty()) return false;
  const client::Version told = client::Version::Parse(watch.version());
  const client::Version wanted = client::Version::Parse(behind.version);
  if (!told.numeric || !wanted.numeric) return watch.version() == behind.version;
  return told.value >= wanted.value;
}

void FreshnessBarrier::Pump(Instant now, client::Client& client, env::Outbox& out) {
  std::erase_if(behind_, [&](const Behind& behind) { return IsFresh(behind, client); });
  for (Behind& behind : behind_) {
    if (behind.lists || behind.at > now) continue;
    if (behind.version.empty() && !behind.absent) {
      Ask(now, behind, client, out);
      continue;
    }
    behind.at = Instant::Never();
    behind.lists = true;
    client.Relist(now, behind.watch, out);
  }
}

Instant FreshnessBarrier::wake_at() const {
  Instant at = Instant::Never();
  for (const Behind& behind : behind_) at = std::min(at, behind.at);
  return at;
}

void FreshnessBarrier::AddTo(Hasher& hasher) const {
  hasher.Add(behind_.size());
  for (const Behind& behind : behind_) {
    hasher.Add(behind.watch.value).AddCall(behind.call).AddVersion(behind.version);
    hasher.Add(behind.at.ns).Add(behind.absent).Add(behind.lists);
  }
}

}  // namespace berth::control
