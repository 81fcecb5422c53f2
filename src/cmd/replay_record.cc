// `berth replay record`: does again what a recorded scheduler did, and compares.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "api/timestamp.h"
#include "cli/why_text.h"
#include "client/request.h"
#include "cmd/commands.h"
#include "cmd/recording.h"
#include "cmd/version.h"
#include "env/recording.h"
#include "env/replay.h"
#include "net/certificates.h"

namespace berth::cmd {
namespace {

constexpr int kDiffers = cli::kFailed;
constexpr int kUnusable = cli::kUsage;

// What was sent, by what it means.
struct Sent {
  enum Kind : uint8_t { kBinding, kEviction, kEvent, kPatch, kOther, kKinds };
  std::array<uint64_t, kKinds> counts{};
  uint64_t reads = 0;
  uint64_t outputs = 0;

  void Count(const env::Outbox& outbox) {
    outputs += outbox.size();
    for (const env::Output& output : outbox) {
      const auto* send = std::get_if<env::SendRequest>(&output);
      if (send == nullptr) continue;
      if (send->request.method == env::Method::kGet) {
        ++reads;
      } else {
        ++counts[KindOf(send->request)];
      }
    }
  }

 private:
  static Kind KindOf(const env::HttpRequest& request) {
    const std::string_view path =
        std::string_view(request.target).substr(0, request.target.find('?'));
    if (path.ends_with("/binding")) return kBinding;
    if (path.ends_with("/eviction") || request.method == env::Method::kDelete) return kEviction;
    if (path.ends_with("/events")) return kEvent;
    return request.method == env::Method::kPatch ? kPatch : kOther;
  }
};

void PrintWrites(uint64_t number, Instant now, const env::Outbox& outbox) {
  for (const env::Output& output : outbox) {
    const auto* send = std::get_if<env::SendRequest>(&output);
    if (send == nullptr || send->request.method == env::Method::kGet) continue;
    fmt::print("{} {} {} {} {}\n", number, api::PrintMicroTime(now),
               env::ToString(send->request.method), send->request.target,
               send->request.body.view());
  }
}

int Unusable(const std::string& text) {
  fmt::print(stderr, "berth replay record: {}\n", text);
  return kUnusable;
}

bool IsBefore(const env::StepRead& step, const cli::ReplayRecordOptions& options) {
  if (options.until_number && step.number > *options.until_number) return false;
  return !options.until_time || step.now <= *options.until_time;
}

// What /debug/why says of the pod at that moment.
int PrintWhy(env::Actor& scheduler, Instant now, const std::string& pod) {
  env::Outbox out;
  scheduler.Step(now,
                 env::RequestArrived{.exchange = {1},
                                     .peer = {},
                                     .request = {.method = env::Method::kGet,
                                                 .target = fmt::format("/debug/why?pod={}",
                                                                       client::PercentEncode(pod)),
                                                 .headers = {},
                                                 .body = {}}},
                 out);
  for (const env::Output& output : out) {
    const auto* respond = std::get_if<env::Respond>(&output);
    if (respond == nullptr) continue;
    const Result<std::string> text =
        cli::WhyText(respond->response.status, respond->response.body.view());
    if (!text) return Unusable(text.error().message);
    fmt::print("{}", *text);
  }
  return cli::kOk;
}

void PrintSummary(const env::Replay& replay, const Sent& sent, Instant first, Instant last) {
  if (replay.steps() == 0) {
    fmt::print("equal: no inputs\n");
    return;
  }
  fmt::print("equal: {} inputs from {} to {}, {} outputs\n", replay.steps(),
             api::PrintMicroTime(first), api::PrintMicroTime(last), sent.outputs);
  fmt::print("{} bindings, {} evictions, {} events, {} patches, {} other writes, {} reads\n",
             sent.counts[Sent::kBinding], sent.counts[Sent::kEviction], sent.counts[Sent::kEvent],
             sent.counts[Sent::kPatch], sent.counts[Sent::kOther], sent.reads);
}

// The same scheduler, and what it was recorded by.
Result<std::unique_ptr<env::Actor>> MakeRecorded(const env::RecordingReader& reader) {
  Result<RecordingHeader> header = ReadHeader(reader.header());
  if (!header) return std::unexpected(header.error());
  fmt::print("recorded from {} by berth {}, commit {}\n", api::PrintMicroTime(header->started_at),
             header->version, header->commit);
  if (header->commit != Commit() || header->version != Version()) {
    fmt::print("this is berth {}, commit {}: what differs may be what changed between them\n",
               Version(), Commit());
  }
  return MakeScheduler(header->setup);
}

}  // namespace

int ReplayRecord(const cli::ReplayRecordOptions& options) {
  const auto unusable = [&](const std::string& text) {
    return Unusable(fmt::format("{} {}", options.file, text));
  };
  const Result<std::string> file = net::ReadFile(options.file, SIZE_MAX);
  if (!file) return Unusable(file.error().message);
  Result<env::RecordingReader> reader = env::RecordingReader::Open(*file);
  if (!reader) return unusable(reader.error().message);
  Result<std::unique_ptr<env::Actor>> scheduler = MakeRecorded(*reader);
  if (!scheduler) return unusable(fmt::format("can't be replayed: {}", scheduler.error().message));
  env::Replay replay(**scheduler, *reader);
  Sent sent;
  Instant first;
  Instant last;
  for (;;) {
    const Result<const env::StepRead*> step = replay.Next();
    if (!step)
      return unusable(
          fmt::format("{} ({} inputs before it are equal)", step.error().message, replay.steps()));
    if (*step == nullptr || !IsBefore(**step, options)) break;
    last = (*step)->now;
    if (replay.steps() == 0) first = last;
    const env::Outbox outbox = replay.Step();
    sent.Count(outbox);
    if (options.print) PrintWrites(replay.steps(), last, outbox);
    if (!replay.difference()) continue;
    fmt::print("{}at {}\n", ToString(*replay.difference()), api::PrintMicroTime(last));
    return kDiffers;
  }
  PrintSummary(replay, sent, first, last);
  if (replay.end()) fmt::print("the recording ended: {}\n", *replay.end());
  if (reader->at_end() && !replay.end()) {
    fmt::print(
        "the recording has no end: the scheduler was killed, or runs still; {} bytes of what "
        "is not whole are left out\n",
        reader->torn_bytes());
  }
  return options.why.empty() ? cli::kOk : PrintWhy(**scheduler, last, options.why);
}

}  // namespace berth::cmd
