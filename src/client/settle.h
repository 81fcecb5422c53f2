#pragma once

#include <deque>
#include <utility>

#include "env/actor.h"

// For tests and benchmarks of actors that embed a client.
namespace berth::client {

// Steps the actor until it has no input and nothing due at `now`, or `steps` are over: inputs
// first, in their order. `take` gets each output and may add inputs. False when the actor did not
// come to rest.
template <typename Take>
bool Settle(env::Actor& actor, Instant now, std::deque<env::Input>& inputs, Take take,
            int64_t steps) {
  for (; steps > 0; --steps) {
    env::Outbox out;
    if (!inputs.empty()) {
      env::Input input = std::move(inputs.front());
      inputs.pop_front();
      actor.Step(now, std::move(input), out);
    } else if (actor.wake_at() <= now) {
      actor.Step(now, env::Tick{}, out);
    } else {
      return true;
    }
    for (env::Output& output : out) take(output);
  }
  return false;
}

}  // namespace berth::client
