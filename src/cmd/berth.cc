// The program: parses the command line and hands over.
#include <cstdio>
#include <string>
#include <variant>
#include <vector>

#include "cli/command_line.h"
#include "cmd/commands.h"
#include "cmd/signals.h"
#include "cmd/version.h"

namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};

// All others end by SIGINT and SIGTERM, as any program.
bool WaitsForSignal(const berth::cli::Command& command) {
  using namespace berth::cli;
  return std::holds_alternative<UpOptions>(command) ||
         std::holds_alternative<RunOptions>(command) ||
         std::holds_alternative<ControllersOptions>(command) ||
         std::holds_alternative<NodesOptions>(command);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace berth;
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const auto command = cli::Parse(arguments, cmd::Version());
  if (!command) {
    std::fputs(command.error().text.c_str(), command.error().status == cli::kOk ? stdout : stderr);
    return command.error().status;
  }
  cmd::FailBrokenWrites();
  // Before any thread is made: they all inherit it.
  if (WaitsForSignal(*command)) cmd::BlockSignals();
  return std::visit(
      Overloaded{
          [](const cli::UpOptions& up) { return cmd::Up(up); },
          [](const cli::RunOptions& run) { return cmd::Run(run); },
          [](const cli::ControllersOptions& controllers) { return cmd::Controllers(controllers); },
          [](const cli::NodesOptions& nodes) { return cmd::Nodes(nodes); },
          [](const cli::WhyOptions& why) { return cmd::Why(why); },
          [](const cli::QueueOptions& queue) { return cmd::Queue(queue); },
          [](const cli::ReplayOptions& replay) { return cmd::Replay(replay); },
          [](const cli::ReplayRecordOptions& replay) { return cmd::ReplayRecord(replay); }},
      *command);
}
