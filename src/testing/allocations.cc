#include "testing/allocations.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

// Operators have no place for state but the program's.
int64_t count = 0;

// Nothing: there is no such memory.
void* AllocateIfAny(std::size_t bytes, std::size_t alignment) {
  ++count;
  bytes = bytes == 0 ? 1 : bytes;
  return alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__
             ? std::malloc(bytes)
             : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* Allocate(std::size_t bytes, std::size_t alignment) {
  void* memory = AllocateIfAny(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// The forms for arrays are made of these by the library. So are those that do not throw, but not
// under a sanitizer, which has its own of each form that a program does not replace.
void* operator new(std::size_t bytes) { return Allocate(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t& /*unused*/) noexcept {
  return AllocateIfAny(bytes, 0);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace berth::testing {

int64_t AllocationsCount() { return count; }

}  // namespace berth::testing
