#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "cycle/engine.h"
#include "cycle/test_cluster.h"

// Test code: an engine that is told of nodes and pods, and what it decides.
namespace berth::cycle {

class Examples : public ::testing::Test {
 protected:
  void Node(const TestNode& node) { engine.Apply(FactsOf(engine.vocabulary(), node)); }
  void Pod(const TestPod& pod) { engine.Apply(FactsOf(engine.vocabulary(), pod)); }
  model::Plan Cycle(int64_t at_ms = 0) { return engine.Cycle(Instant{at_ms * 1'000'000}); }
  std::string Printed(int64_t at_ms = 0) { return Print(Cycle(at_ms), engine.state()); }
  Engine engine;
};

}  // namespace berth::cycle
