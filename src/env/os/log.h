#pragma once

#include <memory>
#include <string_view>

#include "env/actor.h"

namespace berth::env::os {

// Lines for the operator on stderr: time, level, who, text. Any thread may write; lines are never
// mixed.
class Logger {
 public:
  // Lines below `least` are dropped.
  explicit Logger(LogLevel least);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  void Write(LogLevel level, std::string_view who, std::string_view text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::env::os
