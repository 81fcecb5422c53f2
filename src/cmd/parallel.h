#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace berth::cmd {

// Calls work(i) once for each i below `count`, on `threads` threads, the caller's among them: each
// takes the next i when it is done with one. Returns when all are done. `work` must not throw.
template <typename Work>
void ForEachInParallel(uint64_t count, unsigned threads, const Work& work) {
  std::atomic<uint64_t> next = 0;
  const auto take = [&] {
    for (uint64_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> others;  // Joined when they go.
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(take);
  take();
}

}  // namespace berth::cmd
