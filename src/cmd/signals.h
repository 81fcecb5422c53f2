#pragma once

#include <functional>

#include "base/time.h"

namespace berth::cmd {

// SIGPIPE and SIGXFSZ end nothing: the write that raised them fails with EPIPE or EFBIG.
void FailBrokenWrites();

// SIGINT, SIGTERM and SIGUSR2 are taken by WaitForSignal alone: for who calls that; all others end
// by them. Call before any thread is made.
void BlockSignals();

// True when SIGINT or SIGTERM came within `timeout`; Duration::Max() waits for ever. On SIGUSR2, by
// which kube-scheduler tells what it knows, `on_dump` is called, if there is one.
bool WaitForSignal(Duration timeout, const std::function<void()>& on_dump = {});

}  // namespace berth::cmd
