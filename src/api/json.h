#pragma once

#include <boost/json/array.hpp>
#include <boost/json/memory_resource.hpp>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/object.hpp>
#include <boost/json/storage_ptr.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>

// The one JSON document type of the platform: Boost.JSON's, whose objects keep insertion order.
// Parsing and printing are codec/'s; this header lets layers below and beside it speak of
// documents.
namespace berth::api {

using Json = boost::json::value;
using JsonObject = boost::json::object;
using JsonArray = boost::json::array;

// Where a document's nodes live. By default each is allocated on its own; documents that live as
// long as one request share a JsonArena, which frees them at once. Everything put into a document
// moves to the document's memory.
using JsonMemory = boost::json::storage_ptr;

// Takes from a buffer for as long as it lasts, then from the heap. Boost's own monotonic resource
// needs three times the instructions for each of a document's many small nodes.
class JsonArena final : public boost::json::memory_resource {
 public:
  // The buffer outlives the arena.
  JsonArena(unsigned char* buffer, size_t size) : next_(buffer), end_(buffer + size) {}

 private:
  // NOLINTBEGIN(readability-identifier-naming): Boost's names.
  void* do_allocate(size_t bytes, size_t alignment) override {
    const auto left = static_cast<size_t>(end_ - next_);
    const size_t padding = -reinterpret_cast<uintptr_t>(next_) & (alignment - 1);
    if (padding > left || bytes > left - padding) return more_.allocate(bytes, alignment);
    unsigned char* const at = next_ + padding;
    next_ = at + bytes;
    return at;
  }
  void do_deallocate(void* /*block*/, size_t /*bytes*/, size_t /*alignment*/) override {}
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }
  // NOLINTEND(readability-identifier-naming)

  unsigned char* next_;
  unsigned char* end_;
  boost::json::monotonic_resource more_;
};

}  // namespace berth::api

// To free a node is to do nothing.
template <>
struct boost::json::is_deallocate_trivial<berth::api::JsonArena> : std::true_type {};
