#include "env/os/log.h"

#include <fmt/chrono.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "env/log_keys.h"

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

std::string_view ToString(LogLevel level) {
  constexpr std::array<std::string_view, 4> kNames = {"debug", "info", "warning", "error"};
  return kNames.at(static_cast<size_t>(level));
}

// The length of the UTF-8 sequence at the beginning; 0: it is none.
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t length = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, beyond U+10FFFF.
  if (length >= 3) {
    const unsigned char second = byte(1);
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
      return 0;
  }
  return length;
}

// As within a JSON string. `quotes`: whether quotes and backslashes are escaped, too.
void AppendEscaped(std::string_view text, bool quotes, std::string& out) {
  while (!text.empty()) {
    const char c = text.front();
    const size_t length = SequenceLength(text);
    if (length == 0) {
      out += "\xef\xbf\xbd";  // U+FFFD.
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else if (quotes && (c == '"' || c == '\\')) {
      out += '\\';
      out += c;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
}

// What an API server says may be as long as its answers.
constexpr size_t kTextBytesMax = 4'096;
std::string Cut(std::string_view text) {
  if (text.size() <= kTextBytesMax) return std::string(text);
  size_t size = kTextBytesMax;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  return fmt::format("{}... ({} bytes)", text.substr(0, size), text.size());
}

void AppendMember(std::string_view key, std::string_view value, std::string& out) {
  out += ",\"";
  AppendEscaped(key, true, out);
  out += "\":\"";
  AppendEscaped(Cut(value), true, out);
  out += '"';
}

std::string JsonLine(Instant time, LogLevel level, std::string_view who, const KeyedText& line) {
  constexpr int kDebugLevel = 4;
  constexpr std::array<std::string_view, 7> kOwn = {"ts",  "severity", "logger", "v",
                                                    "msg", "err",      "caller"};
  const int64_t us = time.ns / 1'000;
  std::string out = fmt::format("{{\"ts\":{}.{:03}", us / 1'000, us % 1'000);
  AppendMember("severity", ToString(level), out);
  AppendMember("logger", who, out);
  if (level != LogLevel::kError)
    out += fmt::format(",\"v\":{}", level == LogLevel::kDebug ? kDebugLevel : 0);
  AppendMember("msg", line.text, out);
  if (level == LogLevel::kError) AppendMember("err", line.text, out);
  for (const auto& [key, value] : line.keys) {
    const bool own = std::ranges::find(kOwn, key) != kOwn.end();
    AppendMember(own ? fmt::format("{}_", key) : std::string(key), value, out);
  }
  out += '}';
  return out;
}

std::string TextLine(Instant time, LogLevel level, std::string_view who, const KeyedText& line) {
  const int64_t ms = time.ns / 1'000'000;
  std::string out = fmt::format(
      "{:%Y-%m-%dT%H:%M:%S}.{:03}+00:00 {} {}: ", fmt::gmtime(static_cast<std::time_t>(ms / 1'000)),
      ms % 1'000, ToString(level), who);
  AppendEscaped(Cut(line.text), false, out);
  for (const auto& [key, value] : line.keys) {
    out += ' ';
    AppendEscaped(key, true, out);
    out += "=\"";
    AppendEscaped(Cut(value), true, out);
    out += '"';
  }
  return out;
}

}  // namespace

std::string LogLine(LogFormat format, Instant time, LogLevel level, std::string_view who,
                    std::string_view text) {
  const KeyedText line = SplitKeys(text);
  return format == LogFormat::kJson ? JsonLine(time, level, who, line)
                                    : TextLine(time, level, who, line);
}

struct Logger::Impl {
  Impl(LogLevel least, LogFormat of)
      : format(of), logger("berth", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger.set_pattern("%v");
    logger.set_level(ToSpdlog(least));
    logger.flush_on(spdlog::level::debug);
  }
  const LogFormat format;
  spdlog::logger logger;
};

Logger::Logger(LogLevel least, LogFormat format) : impl_(std::make_unique<Impl>(least, format)) {}
Logger::~Logger() = default;

void Logger::Write(LogLevel level, std::string_view who, std::string_view text) {
  if (!impl_->logger.should_log(ToSpdlog(level))) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const Instant time{std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()};
  impl_->logger.log(ToSpdlog(level), "{}", LogLine(impl_->format, time, level, who, text));
}

}  // namespace berth::env::os
