#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"
#include "env/os/log.h"
#include "env/recorded_actor.h"

namespace berth::env::os {

struct RecorderOptions {
  std::filesystem::path path;
  // Of the file and its predecessor together, a half each.
  int64_t bytes_max = int64_t{256} << 20;
  // What may wait to be written; half of it before blocks are no longer deflated.
  int64_t waiting_bytes_max = int64_t{256} << 20;
};

// Records the steps of one actor into a file (env/recording.h), on a thread of its own. The actor's
// thread copies what it stepped with, takes a lock and goes on: where the thread or the disk is too
// slow, or there is no room, the recording ends, with a line in the log, and nobody waits.
//
// A file that is there from an earlier life becomes PATH.1, as does this one when it begins anew.
// What kill -9 leaves is what was taken up to a fifth of a second before, and some more.
class Recorder final : public StepSink {
 public:
  static constexpr int64_t kBytesMaxLeast = int64_t{1} << 20;

  // Errors name the path: it can't be written, is no recording (nor is its predecessor), another
  // process records there, or the header alone is too large. Only a full disk is none: the
  // recording has ended then. REQUIRES: bytes_max of at least kBytesMaxLeast.
  static Result<std::unique_ptr<Recorder>> Open(RecorderOptions options, const std::string& header,
                                                Logger& logger);
  // Stops.
  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Writes what waits, and an end. Nothing is taken after it. Safe to call twice.
  void Stop();

  [[nodiscard]] State state() const override;
  void Take(RecordedStep step) override;
  void BeginAnew(std::string header) override;
  [[nodiscard]] std::string MetricsText() const override;

 private:
  struct Impl;
  explicit Recorder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::env::os
