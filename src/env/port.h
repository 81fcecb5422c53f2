#pragma once

#include <vector>

#include "env/actor.h"

// What joins an actor's executor to a transport of another folder: net/ knows no executor, env/os
// no socket.
namespace berth::env {

// Takes inputs for one actor. Any thread may call; nothing blocks longer than a lock is held.
class InputSink {
 public:
  virtual ~InputSink() = default;

  // Hands over inputs in order. Never refuses: a request for which there is no room is answered
  // with 429 by whoever owns the sink; every other input is the answer to something the actor did,
  // and so bounded by it.
  virtual void Post(std::vector<Input> batch) = 0;

 protected:
  InputSink() = default;
  InputSink(const InputSink&) = default;
  InputSink& operator=(const InputSink&) = default;
};

// Carries outputs of actors out of the process. A server transport gets Respond, Frame and
// EndStream, a client transport SendRequest and CancelCall. Any thread may call; nothing blocks
// longer than a lock is held.
class OutputSink {
 public:
  virtual ~OutputSink() = default;

  virtual void Take(std::vector<Output> batch) = 0;

 protected:
  OutputSink() = default;
  OutputSink(const OutputSink&) = default;
  OutputSink& operator=(const OutputSink&) = default;
};

// The top byte of an ExchangeId says which client it came from: 0 is the network, others are
// in-process clients.
inline constexpr int kExchangeOriginShift = 56;
inline constexpr uint64_t kExchangeNumberMax = (uint64_t{1} << kExchangeOriginShift) - 1;

}  // namespace berth::env
