#include "cmd/demo_shell.h"

#include <fmt/format.h>
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
  const std::lock_guard lock(mutex_);
  progress_ = std::move(progress);
}

cli::DemoProgress DemoBoard::Get() const {
  const std::lock_guard lock(mutex_);
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

bool ShowDemo(const DemoBoard& board, bool once) {
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  const Duration interval = terminal ? Duration::Milliseconds(250) : Duration::Seconds(2);
  ptrdiff_t lines_drawn = 0;
  bool told = false;
  for (;;) {
    const bool signal = WaitForSignal(interval);
    const cli::DemoProgress progress = board.Get();
    if (terminal) {
      const std::string block = cli::DemoBlock(progress);
      if (lines_drawn > 0) fmt::print("\x1b[{}A\x1b[J", lines_drawn);
      fmt::print("{}", block);
      lines_drawn = std::count(block.begin(), block.end(), '\n');
    } else if (!told) {
      fmt::print("{}", cli::DemoLine(progress));
    }
    if (progress.finished && !told) {
      told = true;
      fmt::print("{}", cli::DemoSummary(progress));
      lines_drawn = 0;
      if (!once) fmt::print("the cluster stays up; end it with Ctrl-C\n");
    }
    std::fflush(stdout);
    if (signal || (once && progress.finished)) return progress.complete;
    // The cluster's own users change it from here on; the display has done its work.
    if (told) {
      WaitForSignal(Duration::Max());
      return progress.complete;
    }
  }
}

}  // namespace berth::cmd
