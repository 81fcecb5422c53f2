#include "cmd/signals.h"

#include <csignal>
#include <ctime>

namespace berth::cmd {
namespace {

sigset_t Taken() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR2);
  return set;
}

}  // namespace

void BlockSignals() {
  const sigset_t set = Taken();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void FailBrokenWrites() {
  std::signal(SIGPIPE, SIG_IGN);
  // Past a limit of file size a write then fails as on a full disk, and is told as that.
  std::signal(SIGXFSZ, SIG_IGN);
}

bool WaitForSignal(Duration timeout, const std::function<void()>& on_dump) {
  const sigset_t set = Taken();
  const timespec time{.tv_sec = timeout.seconds(), .tv_nsec = timeout.ns % 1'000'000'000};
  for (;;) {
    const int came = timeout == Duration::Max() ? sigwaitinfo(&set, nullptr)
                                                : sigtimedwait(&set, nullptr, &time);
    if (came == SIGUSR2 && on_dump) on_dump();
    if (came == SIGINT || came == SIGTERM) return true;
    if (timeout != Duration::Max()) return false;
  }
}

}  // namespace berth::cmd
