#include "testing/allocations.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

// Operators have no place for state but the program's.
int64_t count = 0;

void* Allocate(std::size_t bytes, std::size_t alignment) {
  ++count;
  bytes = bytes == 0 ? 1 : bytes;
  void* memory =
      alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__
          ? std::malloc(bytes)
          : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// What else there is of both is made of these by the library.
void* operator new(std::size_t bytes) { return Allocate(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace berth::testing {

int64_t AllocationsCount() { return count; }

}  // namespace berth::testing
