#include "cmd/version.h"

namespace berth::cmd {
namespace {

// Defines kCommit. Made by each build (cmake/commit.cmake).
#include "commit.inc"

}  // namespace

std::string Version() { return BERTH_VERSION; }

std::string Commit() { return kCommit; }

}  // namespace berth::cmd
