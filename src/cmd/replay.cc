#include <fmt/format.h>

#include <cstdio>

#include "cmd/commands.h"

namespace berth::cmd {

int Replay(const cli::ReplayOptions&) {
  fmt::print(stderr, "berth replay: not built yet\n");
  return cli::kFailed;
}

}  // namespace berth::cmd
