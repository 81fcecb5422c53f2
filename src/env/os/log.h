#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/time.h"
#include "env/actor.h"

namespace berth::env::os {

enum class LogFormat : uint8_t { kText, kJson };

// One line, without its end; `text` may have keys (env/log_keys.h). Control characters are escaped,
// so that nothing that a line quotes begins another. Text, and each key's, ends after 4 KiB.
//
//   text  2026-11-28T21:00:00.123+00:00 warning WHO: TEXT key="value"
//   json  {"ts":1796000000123.456,"severity":"warning","logger":"WHO","v":0,"msg":"TEXT",
//          "key":"value"}
//
// JSON is as kube-scheduler's (--logging-format=json): ts in milliseconds, v 0, or 4 of what is
// told when more is logged; of errors there is no v but "err", which is the text again. A key of
// the user's own that has the name of one of these gets a "_" behind it.
[[nodiscard]] std::string LogLine(LogFormat format, Instant time, LogLevel level,
                                  std::string_view who, std::string_view text);

// Lines for the operator on stderr: time, level, who, text. Any thread may write; lines are never
// mixed.
class Logger {
 public:
  // Lines below `least` are dropped.
  explicit Logger(LogLevel least, LogFormat format = LogFormat::kText);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  void Write(LogLevel level, std::string_view who, std::string_view text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::env::os
