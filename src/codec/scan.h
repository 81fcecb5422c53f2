#pragma once

#include <optional>
#include <string>
#include <string_view>

// Slices of JSON text without building a document: what list-watch needs to cut pages and frames
// into objects and to read their identity, and the decoder to find a pod's spec. It follows nesting
// and strings and nothing more; what is inside a slice is checked by whoever decodes it. Pure.
// Cost: one pass over the bytes that are skipped. A document nested without bound is no danger:
// depth is a counter.
namespace berth::codec {

// The members of one JSON object, in the document's order.
//
//   ObjectScanner scanner(text);
//   while (scanner.Next()) use(scanner.key(), scanner.value());
//   if (scanner.failed()) ...
class ObjectScanner {
 public:
  explicit ObjectScanner(std::string_view text);

  // Moves to the next member. False at the end, and when the text is no object; a broken value is
  // found out when it is asked for, or passed by.
  bool Next();
  // Without quotes, escapes as they stand.
  [[nodiscard]] std::string_view key() const { return key_; }
  // The value's text; empty when it is broken.
  [[nodiscard]] std::string_view value();
  // All from the value on: an object in it is scanned without looking for its end first.
  [[nodiscard]] std::string_view rest() const { return text_.substr(value_at_); }
  [[nodiscard]] bool failed() const { return failed_; }
  // What is behind the object. REQUIRES: Next() has said false and nothing failed.
  [[nodiscard]] std::string_view behind() const { return text_.substr(at_ + 1); }

 private:
  bool Fail();

  std::string_view text_;
  size_t at_ = 0;
  size_t value_at_ = 0;
  bool first_ = true;
  bool failed_ = false;
  bool pending_ = false;  // The value's end is not looked for yet.
  std::string_view key_;
  std::string_view value_;
};

// The elements of one JSON array.
class ArrayScanner {
 public:
  explicit ArrayScanner(std::string_view text);
  bool Next();
  [[nodiscard]] std::string_view value() const { return value_; }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  bool Fail();

  std::string_view text_;
  size_t at_ = 0;
  bool first_ = true;
  bool failed_ = false;
  std::string_view value_;
};

// The text of a JSON string literal, escapes resolved; nothing when it is none.
[[nodiscard]] std::optional<std::string> Unquote(std::string_view literal);

// The value's text of an object's member, of members in members; empty when there is none.
[[nodiscard]] std::string_view Member(std::string_view object, std::string_view key);
[[nodiscard]] std::string_view Member(std::string_view object, std::string_view key,
                                      std::string_view inner);

// A member that is a string, unquoted; empty when there is none or it is no string.
[[nodiscard]] std::string StringMember(std::string_view object, std::string_view key);

}  // namespace berth::codec
