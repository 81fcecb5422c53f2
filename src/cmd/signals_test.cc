// Goal: a signal that a write can raise does not end the program; the write fails. Method: a child
// process with a limit of file size, and with a pipe nobody reads. Signals that ask for something
// are taken in their order, by one that sends them to itself.
#include "cmd/signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

namespace berth::cmd {
namespace {

[[noreturn]] void WriteOverTheLimit() {
  FailBrokenWrites();
  const rlimit limit{.rlim_cur = 1, .rlim_max = 1};
  std::FILE* file = std::tmpfile();
  if (file == nullptr || setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(1);
  const int descriptor = fileno(file);
  const bool first_fits = write(descriptor, "a", 1) == 1;
  const bool second_fails = write(descriptor, "b", 1) == -1 && errno == EFBIG;
  _exit(first_fits && second_fails ? 0 : 2);
}

[[noreturn]] void WriteToNobody() {
  FailBrokenWrites();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) _exit(1);
  close(ends[0]);
  _exit(write(ends[1], "a", 1) == -1 && errno == EPIPE ? 0 : 2);
}

[[noreturn]] void DumpAndEnd() {
  BlockSignals();
  int dumps = 0;
  const auto dump = [&] { raise(++dumps < 3 ? SIGUSR2 : SIGTERM); };
  raise(SIGUSR2);
  const bool ends = WaitForSignal(Duration::Max(), dump);
  raise(SIGUSR2);
  const bool goes_on = !WaitForSignal(Duration::Milliseconds(1));
  _exit(ends && dumps == 3 && goes_on ? 0 : 2);
}

TEST(SignalsDeathTest, ASignalForADumpEndsNothing) {
  EXPECT_EXIT(DumpAndEnd(), ::testing::ExitedWithCode(0), "");
}

// A command that only asks or computes ends by Ctrl-C.
TEST(SignalsDeathTest, WhoWaitsForNoSignalEndsByIt) {
  const auto interrupted = [] {
    FailBrokenWrites();
    raise(SIGINT);
    _exit(0);
  };
  EXPECT_EXIT(interrupted(), ::testing::KilledBySignal(SIGINT), "");
}

TEST(SignalsDeathTest, AFileOverItsSizeLimitFailsTheWriteAlone) {
  EXPECT_EXIT(WriteOverTheLimit(), ::testing::ExitedWithCode(0), "");
}

TEST(SignalsDeathTest, APipeThatNobodyReadsFailsTheWriteAlone) {
  EXPECT_EXIT(WriteToNobody(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace berth::cmd
