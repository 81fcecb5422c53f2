#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace berth::internal {

void CheckFailed(const char* file, int line, const char* what, const std::string& values) {
  std::fprintf(stderr, "%s:%d: %s failed%s%s\n", file, line, what, values.empty() ? "" : ": ",
               values.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace berth::internal
