#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "cli/demo.h"
#include "env/actor.h"

namespace berth::cmd {

// Where the demo's thread leaves its progress for the thread that shows it.
class DemoBoard {
 public:
  void Put(cli::DemoProgress progress);
  [[nodiscard]] cli::DemoProgress Get() const;

 private:
  mutable Mutex mutex_;
  cli::DemoProgress progress_ GUARDED_BY(mutex_);
};

// The demo actor, whose progress is put on a board a few times a second.
class DemoShell final : public env::Actor {
 public:
  DemoShell(cli::DemoOptions options, std::shared_ptr<DemoBoard> board);

  void Step(Instant now, env::Input input, env::Outbox& out) override;
  [[nodiscard]] Instant wake_at() const override { return demo_.wake_at(); }
  void AddTo(Hasher& hasher) const override { demo_.AddTo(hasher); }

 private:
  cli::Demo demo_;
  std::shared_ptr<DemoBoard> board_;
  Instant next_put_;
};

// Shows the board until the load has run (with `once`) or SIGINT or SIGTERM comes: a block that is
// drawn over on a terminal, plain lines otherwise. True when the load ran to its end.
bool ShowDemo(const DemoBoard& board, bool once);

}  // namespace berth::cmd
