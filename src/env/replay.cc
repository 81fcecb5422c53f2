#include "env/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"

namespace berth::env {
namespace {

constexpr size_t kShownBefore = 200;
constexpr size_t kShownMax = 1'000;

std::string_view ViewOf(const std::optional<std::string>& text) {
  return text ? std::string_view(*text) : std::string_view();
}

std::string Shown(const std::optional<std::string>& text, size_t parts_at) {
  if (!text) return "nothing";
  const size_t begin = parts_at > kShownBefore ? parts_at - kShownBefore : 0;
  std::string shown = text->substr(std::min(begin, text->size()), kShownMax);
  return fmt::format("{}{}{}", begin > 0 ? "..." : "", shown,
                     begin + kShownMax < text->size() ? "..." : "");
}

std::optional<Difference> Compare(const StepRead& step, const Outbox& outputs) {
  const size_t count = std::max(step.outputs.size(), outputs.size());
  for (size_t i = 0; i < count; ++i) {
    std::optional<std::string> recorded;
    std::optional<std::string> replayed;
    if (i < step.outputs.size()) recorded = step.outputs[i];
    if (i < outputs.size()) replayed = TextOf(outputs[i]);
    if (recorded == replayed) continue;
    return Difference{.number = step.number,
                      .now = step.now,
                      .input = Describe(step.input),
                      .output = i + 1,
                      .recorded = std::move(recorded),
                      .replayed = std::move(replayed)};
  }
  return std::nullopt;
}

}  // namespace

std::string ToString(const Difference& difference) {
  const std::string_view recorded = ViewOf(difference.recorded);
  const std::string_view replayed = ViewOf(difference.replayed);
  const auto parts = std::ranges::mismatch(recorded, replayed);
  const auto at = static_cast<size_t>(parts.in1 - recorded.begin());
  return fmt::format(
      "input {}: {}\noutput {} of it differs from byte {} on\nrecorded: {}\nreplayed: {}\n",
      difference.number, difference.input, difference.output, at, Shown(difference.recorded, at),
      Shown(difference.replayed, at));
}

Result<const StepRead*> Replay::Next() {
  if (next_) return &*next_;
  if (end_) return nullptr;
  Result<std::optional<ItemRead>> item = reader_.Next();
  if (!item) return std::unexpected(item.error());
  if (!*item) return nullptr;
  if (auto* end = std::get_if<EndRead>(&**item)) {
    end_ = std::move(end->why);
    return nullptr;
  }
  next_ = std::get<StepRead>(std::move(**item));
  if (next_->now < now_)
    return Fail(ErrorCode::kInvalid, fmt::format("the time of input {} goes back", next_->number));
  return &*next_;
}

Outbox Replay::Step() {
  CHECK(next_.has_value());
  const StepRead step = *std::exchange(next_, std::nullopt);
  now_ = step.now;
  ++steps_;
  Outbox outputs;
  actor_.Step(step.now, step.input, outputs);
  if (!difference_) difference_ = Compare(step, outputs);
  return outputs;
}

}  // namespace berth::env
