#pragma once

#include "base/time.h"

namespace berth::cmd {

// SIGINT and SIGTERM are taken by WaitForSignal alone, SIGPIPE and SIGXFSZ by nobody: the write
// that raised them fails with EPIPE or EFBIG. Call before any thread is made.
void BlockSignals();

// True when SIGINT or SIGTERM came within `timeout`; Duration::Max() waits for ever.
bool WaitForSignal(Duration timeout);

}  // namespace berth::cmd
