#include "cmd/signals.h"

#include <csignal>
#include <ctime>

namespace berth::cmd {
namespace {

sigset_t Ending() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

void BlockSignals() {
  const sigset_t set = Ending();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  // Past a limit of file size a write then fails as on a full disk, and is told as that.
  std::signal(SIGXFSZ, SIG_IGN);
}

bool WaitForSignal(Duration timeout) {
  const sigset_t set = Ending();
  if (timeout == Duration::Max()) {
    while (sigwaitinfo(&set, nullptr) < 0) {
    }
    return true;
  }
  const timespec time{.tv_sec = timeout.seconds(), .tv_nsec = timeout.ns % 1'000'000'000};
  return sigtimedwait(&set, nullptr, &time) > 0;
}

}  // namespace berth::cmd
