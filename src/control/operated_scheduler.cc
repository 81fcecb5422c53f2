#include "control/operated_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "control/dump.h"

namespace berth::control {
namespace {

// Calls of the scheduler's own clients begin below.
constexpr uint64_t kFirstCall = kElectionCallsEnd;

client::Options ClientOptions(client::Options options) {
  options.user_agent += "/comparison";
  options.first_call = kFirstCall;
  return options;
}

}  // namespace

OperatedScheduler::OperatedScheduler(SchedulerOptions options, std::string configz)
    : configz_(std::move(configz)),
      scheduler_(options),
      client_(ClientOptions(std::move(options.client))) {}

void OperatedScheduler::Step(Instant now, env::Input input, env::Outbox& out) {
  if (const auto* arrived = std::get_if<env::RequestArrived>(&input)) {
    if (Answer(now, *arrived, out)) return;
  } else {
    // Calls of others are left alone, here and there.
    std::vector<client::Event> events;
    client_.Handle(now, input, out, events);
    for (const client::Event& event : events) {
      if (const auto* done = std::get_if<client::CallDone>(&event))
        comparison_.OnCallDone(now, *done, scheduler_, out);
    }
    comparison_.Pump(now, client_, out);
  }
  scheduler_.Step(now, std::move(input), out);
}

bool OperatedScheduler::Answer(Instant now, const env::RequestArrived& arrived, env::Outbox& out) {
  if (arrived.exchange == kDumpExchange) {
    Dump(scheduler_, out);
    if (scheduler_.synced()) comparison_.Begin(now, client_, out);
    return true;
  }
  const std::string_view target = arrived.request.target;
  if (target.substr(0, target.find('?')) != "/configz") return false;
  if (arrived.request.method != env::Method::kGet && arrived.request.method != env::Method::kHead)
    return false;
  out.emplace_back(env::Respond{
      .exchange = arrived.exchange,
      .response = {
          .status = 200,
          .headers = {{"content-type", "application/json"}, {"x-content-type-options", "nosniff"}},
          .body = Bytes(fmt::format(R"({{"componentconfig":{}}})", configz_))}});
  return true;
}

Instant OperatedScheduler::wake_at() const {
  return std::min({scheduler_.wake_at(), client_.wake_at(), comparison_.wake_at()});
}

void OperatedScheduler::AddTo(Hasher& hasher) const {
  scheduler_.AddTo(hasher);
  client_.AddTo(hasher);
  comparison_.AddTo(hasher);
}

}  // namespace berth::control
