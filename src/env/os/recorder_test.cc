// Goal: a recording is on the disk as it was taken, within its bounds, and whatever stands in its
// way ends it, named once, and nothing else; nobody's file is lost. Method: files in a folder of the
// test's own; limits of the process in place of a full disk.
#include "env/os/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "base/prng.h"
#include "env/recording.h"
#include "testing/files.h"

namespace berth::env::os {
namespace {

using ::testing::HasSubstr;
using State = StepSink::State;

RecordedStep StepOf(std::string data, int64_t second = 0) {
  return {.now = Instant::FromSeconds(1'000 + second),
          .input = StreamData{.call = {1}, .data = Bytes(std::move(data))},
          .outputs = {}};
}

// That deflating makes nothing of.
std::string Noise(size_t bytes, uint64_t seed) {
  Prng prng(seed);
  std::string out(bytes, '\0');
  for (char& c : out) c = static_cast<char>(prng.Below(256));
  return out;
}

class RecorderTest : public ::testing::Test {
 protected:
  std::unique_ptr<Recorder> Open(RecorderOptions options = {}) {
    options.path = path_;
    auto opened = Recorder::Open(std::move(options), "header", logger_);
    EXPECT_TRUE(opened.has_value()) << (opened ? "" : opened.error().message);
    return opened ? *std::move(opened) : nullptr;
  }
  std::string Refusal(RecorderOptions options = {}, const std::string& header = "header") {
    options.path = path_;
    const auto opened = Recorder::Open(std::move(options), header, logger_);
    return opened ? "opened" : opened.error().message;
  }
  struct Content {
    std::string header;
    size_t steps = 0;
    std::string end;
  };
  static Content Read(const std::filesystem::path& path) {
    const std::string file = berth::testing::ReadTestFile(path);
    auto reader = RecordingReader::Open(file);
    if (!reader) return {.header = reader.error().message, .steps = 0, .end = {}};
    Content out{.header = reader->header(), .steps = 0, .end = {}};
    for (;;) {
      auto item = reader->Next();
      EXPECT_TRUE(item.has_value());
      if (!item || !*item) return out;
      if (const auto* end = std::get_if<EndRead>(&**item)) {
        out.end = end->why;
      } else {
        ++out.steps;
      }
    }
  }
  static void WaitWhileOpen(const Recorder& recorder) {
    while (recorder.state() == State::kOpen) std::this_thread::yield();
  }

  const berth::testing::TempFolder folder_{"recorder"};
  const std::filesystem::path path_ = folder_.path() / "rec";
  const std::filesystem::path old_ = folder_.path() / "rec.1";
  Logger logger_{LogLevel::kError};
};

TEST_F(RecorderTest, WhatWasTakenIsThereInOrderWithItsEnd) {
  const auto recorder = Open();
  for (int64_t i = 0; i < 1'000; ++i) recorder->Take(StepOf(std::string(1'000, 'a'), i));
  EXPECT_THAT(recorder->MetricsText(), HasSubstr("berth_recording_stopped 0\n"));
  recorder->Stop();
  recorder->Take(StepOf("too late"));
  recorder->Stop();
  const Content content = Read(path_);
  EXPECT_EQ(content.header, "header");
  EXPECT_EQ(content.steps, 1'000u);
  EXPECT_EQ(content.end, "the process ended");
  EXPECT_LT(std::filesystem::file_size(path_), 100'000u);  // Of a million bytes that are alike.
  struct stat status{};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_THAT(recorder->MetricsText(), HasSubstr("berth_recording_stopped 1\n"));
}

TEST_F(RecorderTest, WhatAnEarlierLifeRecordedBecomesThePredecessor) {
  Open()->Take(StepOf("first"));
  Open()->Take(StepOf("second"));
  EXPECT_EQ(Read(old_).steps, 1u);
  const auto third = Open();
  third->Take(StepOf("third"));
  third->Take(StepOf("third"));
  third->Stop();
  EXPECT_EQ(Read(path_).steps, 2u);
  EXPECT_EQ(Read(old_).steps, 1u);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "rec.1.1"));
}

TEST_F(RecorderTest, EndsWhereTheFileIsFullAndCanBeginAnew) {
  const auto recorder = Open({.path = {}, .bytes_max = Recorder::kBytesMaxLeast});
  for (uint64_t i = 0; recorder->state() == State::kOpen; ++i)
    recorder->Take(StepOf(Noise(50'000, i)));
  EXPECT_EQ(recorder->state(), State::kFull);
  EXPECT_THAT(recorder->MetricsText(), HasSubstr("berth_recording_stopped 1\n"));
  const auto half = static_cast<uintmax_t>(Recorder::kBytesMaxLeast / 2);
  EXPECT_LE(std::filesystem::file_size(path_), half);
  const Content full = Read(path_);
  EXPECT_GT(full.steps, 2u);
  EXPECT_THAT(full.end, HasSubstr("is full"));
  for (int life = 2; life < 4; ++life) {
    recorder->BeginAnew("life " + std::to_string(life));
    EXPECT_EQ(recorder->state(), State::kOpen);
    for (uint64_t i = 0; recorder->state() == State::kOpen; ++i)
      recorder->Take(StepOf(Noise(50'000, i)));
    EXPECT_EQ(recorder->state(), State::kFull);
    EXPECT_EQ(Read(path_).header, "life " + std::to_string(life));
    EXPECT_THAT(Read(old_).end, HasSubstr("is full"));
    EXPECT_LE(std::filesystem::file_size(path_) + std::filesystem::file_size(old_), 2 * half);
  }
  recorder->BeginAnew("last");
  recorder->Take(StepOf("one"));
  recorder->Stop();
  EXPECT_EQ(Read(path_).header, "last");
  EXPECT_EQ(Read(path_).steps, 1u);
}

// The limit on the size of files stands in for a disk that is full; its signal ends nothing.
TEST_F(RecorderTest, EndsWhereTheDiskIsFullAndWhatIsThereIsWhole) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto recorder = Open();
  recorder->Take(StepOf("fits"));
  rlimit limit = before;
  limit.rlim_cur = 700'000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  for (uint64_t i = 0; i < 20; ++i) recorder->Take(StepOf(Noise(50'000, i)));
  WaitWhileOpen(*recorder);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(recorder->state(), State::kEnded);
  recorder->Take(StepOf("not taken"));
  recorder->Stop();
  EXPECT_GE(Read(path_).steps, 1u);
  EXPECT_LT(Read(path_).steps, 21u);
  EXPECT_THAT(Read(path_).end, HasSubstr("File too large"));  // Behind what is whole.
}

TEST_F(RecorderTest, EndsWhereMoreWaitsThanMayAndNobodyWaitsForIt) {
  const auto recorder = Open({.path = {}, .waiting_bytes_max = 10'000});
  recorder->Take(StepOf("taken"));
  recorder->Take(StepOf(std::string(20'000, 'a')));
  EXPECT_EQ(recorder->state(), State::kEnded);
  recorder->Take(StepOf("not taken"));
  recorder->Stop();
  EXPECT_EQ(Read(path_).steps, 1u);
  EXPECT_THAT(Read(path_).end, HasSubstr("too slow"));
}

TEST_F(RecorderTest, NobodysFileIsTouched) {
  std::ofstream(path_) << "notes\n";
  EXPECT_EQ(Refusal(),
            path_.string() + ": is no recording of berth: move it away, or name another file");
  EXPECT_EQ(berth::testing::ReadTestFile(path_), "notes\n");
  std::filesystem::remove(path_);
  Open();
  std::ofstream(old_) << "notes\n";
  EXPECT_THAT(Refusal(), HasSubstr("rec.1: is no recording of berth"));
  EXPECT_EQ(Read(path_).header, "header");
  EXPECT_EQ(berth::testing::ReadTestFile(old_), "notes\n");
}

TEST_F(RecorderTest, SaysWhyItCannotBegin) {
  std::filesystem::create_directory(path_);
  EXPECT_EQ(Refusal(), path_.string() + ": is no regular file");
  std::filesystem::remove(path_);
  EXPECT_THAT(Refusal({.path = {}, .bytes_max = Recorder::kBytesMaxLeast}, Noise(600'000, 1)),
              HasSubstr("rec: a half of 1048576 bytes is too little"));
  EXPECT_FALSE(std::filesystem::exists(path_));
  const auto recorder = Open();
  EXPECT_EQ(Refusal(), path_.string() + ": another process records there");
  recorder->Take(StepOf("goes on"));
  recorder->Stop();
  EXPECT_EQ(Read(path_).steps, 1u);
  auto nowhere = Recorder::Open({.path = folder_.path() / "none" / "rec"}, "header", logger_);
  ASSERT_FALSE(nowhere.has_value());
  EXPECT_THAT(nowhere.error().message, HasSubstr("can't be written: No such file or directory"));
}

}  // namespace
}  // namespace berth::env::os
