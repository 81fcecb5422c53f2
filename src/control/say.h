#pragma once

#include <string>
#include <utility>

#include "env/actor.h"

namespace berth::control {

// A line of the log.
inline void Say(env::Outbox& out, env::LogLevel level, std::string text) {
  out.emplace_back(env::Log{.level = level, .text = std::move(text)});
}

}  // namespace berth::control
