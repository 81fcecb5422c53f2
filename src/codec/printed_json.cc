#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <utility>

#include "codec/json.h"

namespace berth::codec {
namespace {

using boost::json::error_code;
using boost::json::string_view;

// Builds the document bottom up, so that every object and array is allocated at its size. Stops at
// a double, whose text Boost's parser does not read to the last bit.
struct Builder {
  // NOLINTBEGIN(readability-identifier-naming): the parser asks for these names.
  static constexpr size_t max_object_size = boost::json::object::max_size();
  static constexpr size_t max_array_size = boost::json::array::max_size();
  static constexpr size_t max_key_size = boost::json::string::max_size();
  static constexpr size_t max_string_size = boost::json::string::max_size();
  // NOLINTEND(readability-identifier-naming)

  boost::json::value_stack stack;

  Builder(unsigned char* buffer, size_t size) : stack({}, buffer, size) {}

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return true; }
  bool on_object_end(size_t count, error_code&) {
    stack.push_object(count);
    return true;
  }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(size_t count, error_code&) {
    stack.push_array(count);
    return true;
  }
  bool on_key_part(string_view part, size_t, error_code&) { return AddPart(part); }
  bool on_key(string_view rest, size_t, error_code&) {
    stack.push_key(rest);
    return true;
  }
  bool on_string_part(string_view part, size_t, error_code&) { return AddPart(part); }
  bool on_string(string_view rest, size_t, error_code&) {
    stack.push_string(rest);
    return true;
  }
  bool on_number_part(string_view, error_code&) { return true; }
  bool on_int64(int64_t number, string_view, error_code&) {
    stack.push_int64(number);
    return true;
  }
  bool on_uint64(uint64_t number, string_view, error_code&) {
    stack.push_uint64(number);
    return true;
  }
  bool on_double(double, string_view, error_code& error) {
    error = boost::json::error::syntax;
    return false;
  }
  bool on_bool(bool value, error_code&) {
    stack.push_bool(value);
    return true;
  }
  bool on_null(error_code&) {
    stack.push_null();
    return true;
  }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }

  bool AddPart(string_view part) {
    stack.push_chars(part);
    return true;
  }
};

constexpr size_t kStackBytes = 8 * 1024;

}  // namespace

Result<api::Json> ParsePrintedJson(std::string_view text, api::JsonMemory memory) {
  std::array<unsigned char, kStackBytes> buffer;
  boost::json::parse_options options;
  options.max_depth = static_cast<size_t>(limits::kNestingMax);
  boost::json::basic_parser<Builder> parser(options, buffer.data(), buffer.size());
  parser.handler().stack.reset(memory);
  error_code error;
  const size_t read = parser.write_some(false, text.data(), text.size(), error);
  if (!error && read == text.size()) return parser.handler().stack.release();
  return ParseJson(text, {}, std::move(memory));
}

}  // namespace berth::codec
