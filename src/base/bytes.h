#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace berth {

// Immutable bytes that actors, threads and forks share without copying. Empty when default made.
class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(std::string text)
      : data_(text.empty() ? nullptr : std::make_shared<const std::string>(std::move(text))) {}

  [[nodiscard]] std::string_view view() const {
    return data_ == nullptr ? std::string_view() : std::string_view(*data_);
  }
  [[nodiscard]] size_t size() const { return data_ == nullptr ? 0 : data_->size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  bool operator==(const Bytes& other) const {
    return data_ == other.data_ || view() == other.view();
  }

 private:
  std::shared_ptr<const std::string> data_;
};

}  // namespace berth
