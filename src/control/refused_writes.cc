#include "control/refused_writes.h"

#include <fmt/format.h>

namespace berth::control {

std::optional<std::string> RefusedWrites::Note(Instant now, const client::CallDone& done) {
  constexpr int kTooManyRequests = 429;
  const int status = done.response.status;
  if (done.method == env::Method::kGet || status == kTooManyRequests) return std::nullopt;
  const bool unknown = done.outcome == client::Outcome::kUnknown;
  if (!unknown && (done.outcome != client::Outcome::kRefused || status == 0)) return std::nullopt;
  const client::Access access = client::AccessOf(done.method, done.target);
  const Kind kind(access.verb, access.resource);
  Counts& counts = counts_[kind];
  ++(unknown ? counts.unknown : counts.refused);
  // That a connection was lost is told of the server as a whole.
  if (unknown && status == 0 && done.failure != env::CallFailure::kTimeout) return std::nullopt;
  const auto [told, first] = told_.try_emplace(kind, now);
  if (!first && now < told->second + kTellEvery) return std::nullopt;
  told->second = now;
  return fmt::format("{} {}: {} ({}): {}", kind.first, kind.second, unknown ? "failed" : "refused",
                     status, client::WhyOf(done));
}

}  // namespace berth::control
