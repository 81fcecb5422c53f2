#pragma once

#include <memory>
#include <utility>

namespace berth {

// A value whose copies share its memory until one of them is changed. Copying costs a counter, a
// default made one no memory. Copies may be read in several threads, but then none is edited.
template <typename T>
class Shared {
 public:
  Shared() = default;
  explicit Shared(T value) : value_(std::make_shared<T>(std::move(value))) {}

  const T& operator*() const { return value_ == nullptr ? Empty() : *value_; }
  const T* operator->() const { return &**this; }

  // To change this copy alone. The reference is good until this copy is copied.
  T& Edit() {
    if (value_ == nullptr) {
      value_ = std::make_shared<T>();
    } else if (value_.use_count() != 1) {
      value_ = std::make_shared<T>(*value_);
    }
    return *value_;
  }

  // Equal without looking: copies of one another, unchanged since.
  [[nodiscard]] bool Is(const Shared& other) const { return value_ == other.value_; }
  bool operator==(const Shared& other) const { return Is(other) || **this == *other; }

 private:
  static const T& Empty() {
    static const T kEmpty{};
    return kEmpty;
  }

  std::shared_ptr<T> value_;
};

}  // namespace berth
