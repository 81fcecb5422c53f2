#include "cmd/demo_shell.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <variant>

#include "cmd/signals.h"

namespace berth::cmd {
namespace {

constexpr Duration kPutEvery = Duration::Milliseconds(200);

}  // namespace

void DemoBoard::Put(cli::DemoProgress progress) {
  const MutexLock lock(mutex_);
  progress_ = std::move(progress);
}

cli::DemoProgress DemoBoard::Get() const {
  const MutexLock lock(mutex_);
  return progress_;
}

DemoShell::DemoShell(cli::DemoOptions options, std::shared_ptr<DemoBoard> board)
    : demo_(std::move(options)), board_(std::move(board)) {}

void DemoShell::Step(Instant now, env::Input input, env::Outbox& out) {
  const bool tick = std::holds_alternative<env::Tick>(input);
  demo_.Step(now, std::move(input), out);
  if (!tick || now < next_put_) return;
  next_put_ = now + kPutEvery;
  board_->Put(demo_.progress());
}

namespace {

constexpr size_t kColumnsWithoutTerminal = 80;

size_t TerminalColumns() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return kColumnsWithoutTerminal;
  return size.ws_col;
}

// Draws over what it drew before.
class Screen {
 public:
  void Draw(const std::string& block) {
    if (lines_drawn_ > 0) fmt::print("\x1b[{}A\x1b[J", lines_drawn_);
    fmt::print("{}", block);
    std::fflush(stdout);
    lines_drawn_ = std::count(block.begin(), block.end(), '\n');
  }

 private:
  ptrdiff_t lines_drawn_ = 0;
};

}  // namespace

bool ShowDemo(const DemoBoard& board, bool once) {
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  const Duration interval = terminal ? Duration::Milliseconds(250) : Duration::Seconds(2);
  Screen screen;
  for (;;) {
    const bool signal = WaitForSignal(interval);
    const cli::DemoProgress progress = board.Get();
    if (terminal) {
      screen.Draw(cli::DemoBlock(progress, TerminalColumns()));
    } else if (!progress.finished) {
      fmt::print("{}", cli::DemoLine(progress));
      std::fflush(stdout);
    }
    if (signal) {
      fmt::print("{}stopped before the load had run\n", terminal ? "\n" : "");
      return progress.complete;
    }
    if (!progress.finished) continue;
    fmt::print("{}", cli::DemoSummary(progress));
    if (!once) fmt::print("the cluster stays up; end it with Ctrl-C\n");
    std::fflush(stdout);
    // The cluster's own users change it from here on; the display has done its work.
    if (!once) WaitForSignal(Duration::Max());
    return progress.complete;
  }
}

}  // namespace berth::cmd
