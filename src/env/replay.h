#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "env/actor.h"
#include "env/recording.h"

namespace berth::env {

// Where what an actor did again is not what was recorded.
struct Difference {
  uint64_t number = 0;  // Of the step.
  Instant now;
  std::string input;  // As of Describe.
  size_t output = 0;  // Of the step's, from 1.
  // Nothing: there was no such output.
  std::optional<std::string> recorded = {};
  std::optional<std::string> replayed = {};
  bool operator==(const Difference&) const = default;
};

// Of up to a few lines, for people: both texts from shortly before where they part.
[[nodiscard]] std::string ToString(const Difference& difference);

// Gives a fresh actor the inputs of a recording, each at its time, and compares all that comes out
// of it byte for byte. Both outlive this.
class Replay {
 public:
  Replay(Actor& actor, RecordingReader& reader) : actor_(actor), reader_(reader) {}

  // The step that is next; null at the end. Errors: of the reader, and a time that goes back.
  Result<const StepRead*> Next();
  // Takes it: what came out now. REQUIRES: Next() gave one.
  Outbox Step();

  // The first.
  [[nodiscard]] const std::optional<Difference>& difference() const { return difference_; }
  [[nodiscard]] uint64_t steps() const { return steps_; }
  // Why the recording ended, at its end; nothing: nobody said.
  [[nodiscard]] const std::optional<std::string>& end() const { return end_; }

 private:
  Actor& actor_;
  RecordingReader& reader_;
  std::optional<StepRead> next_;
  Instant now_{INT64_MIN};
  uint64_t steps_ = 0;
  std::optional<Difference> difference_;
  std::optional<std::string> end_;
};

}  // namespace berth::env
