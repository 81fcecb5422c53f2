#include "env/os/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace berth::env::os {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

struct Logger::Impl {
  explicit Impl(LogLevel least)
      : logger("berth", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger.set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
    logger.set_level(ToSpdlog(least));
    logger.flush_on(spdlog::level::debug);
  }
  spdlog::logger logger;
};

Logger::Logger(LogLevel least) : impl_(std::make_unique<Impl>(least)) {}
Logger::~Logger() = default;

void Logger::Write(LogLevel level, std::string_view who, std::string_view text) {
  impl_->logger.log(ToSpdlog(level), "{}: {}", who, text);
}

}  // namespace berth::env::os
