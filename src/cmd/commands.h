#pragma once

#include "cli/command_line.h"

// The commands of the program: each wires what it runs, runs it, and gives the exit status. Errors
// go to stderr.
namespace berth::cmd {

int Up(const cli::UpOptions& options);
int Run(const cli::RunOptions& options);
int Controllers(const cli::ControllersOptions& options);
int Nodes(const cli::NodesOptions& options);
int Why(const cli::WhyOptions& options);
int Queue(const cli::QueueOptions& options);
int Replay(const cli::ReplayOptions& options);
int ReplayRecord(const cli::ReplayRecordOptions& options);

}  // namespace berth::cmd
