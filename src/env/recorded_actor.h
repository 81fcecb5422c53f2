#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/hash.h"
#include "base/time.h"
#include "env/actor.h"
#include "env/recording.h"

namespace berth::env {

// Takes steps of one actor, and never makes it wait. `Take` and `BeginAnew` are the actor's
// thread's.
class StepSink {
 public:
  enum class State : uint8_t {
    kOpen,
    kFull,   // Ended for want of room: it can begin anew.
    kEnded,  // Takes nothing any more.
  };
  virtual ~StepSink() = default;

  // Any thread may ask.
  [[nodiscard]] virtual State state() const = 0;
  // Of one that is not open nothing is kept.
  virtual void Take(RecordedStep step) = 0;
  // From here on steps of a fresh actor come, that was made of what `header` says. REQUIRES: full.
  virtual void BeginAnew(std::string header) = 0;
  // What /metrics says of the recording.
  [[nodiscard]] virtual std::string MetricsText() const = 0;

 protected:
  StepSink() = default;
  StepSink(const StepSink&) = default;
  StepSink& operator=(const StepSink&) = default;
};

// An actor names its calls below this. With the number of its life before it, as it is named
// outside, a name is below kExchangeNumberMax.
inline constexpr uint64_t kCallsOfALife = uint64_t{1} << 50;

// An actor whose steps are recorded while the sink is open; to the outside it is that actor, but
// that its answer to GET /metrics tells of the recording, too.
//
// If it may, it makes the actor anew in its place when the sink is full, as a restart of the
// process would: it asks it to stop, waits until it has or for as long as patience lasts, cancels
// all of its calls and lets a fresh one begin. Names of calls are those of one life, so the outside
// sees them with the life's number in front; what comes for an earlier life is dropped.
class RecordedActor final : public Actor {
 public:
  // A fresh actor, and what the recording says that it was made of.
  struct Life {
    std::unique_ptr<Actor> actor;
    std::string header;
  };
  struct Restarts {
    std::function<Life()> make = {};  // None: it is never made anew.
    // Asks the actor to stop as a request, which it answers when it has.
    ExchangeId stop = {};
    Duration patience = Duration::Seconds(10);
    // From one life to the next: where a file is full sooner, nothing is recorded until then.
    Duration apart_min = Duration::Minutes(10);
  };

  // The sink began with the actor, and outlives this.
  RecordedActor(std::unique_ptr<Actor> actor, StepSink& sink, Restarts restarts);

  void Step(Instant now, Input input, Outbox& out) override;
  [[nodiscard]] Instant wake_at() const override;
  void AddTo(Hasher& hasher) const override { actor_->AddTo(hasher); }

 private:
  [[nodiscard]] bool IsOfThisLife(Input& input) const;
  void StepActor(Instant now, Input input, Outbox& out);
  void NoteEnd(const Input& input);
  void Note(Outbox& out, size_t first);
  void RestartWhenDue(Instant now, Outbox& out);

  std::unique_ptr<Actor> actor_;
  StepSink& sink_;
  const Restarts restarts_;
  uint64_t life_ = 0;
  std::map<uint64_t, bool> calls_;        // Under way, and whether a stream; with restarts only.
  bool asked_from_outside_ = false;       // To stop: there is no other life then.
  std::optional<Instant> asked_to_stop_;  // To make room for the next life.
  bool stopped_ = false;
  std::optional<Instant> restarted_;  // Last.
};

}  // namespace berth::env
