#include <algorithm>
#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <span>
#include <vector>

#include "codec/json_parsers.h"

namespace berth::codec {
namespace {

using boost::json::error_code;
using boost::json::string_view;

// More keys are sorted to find two alike.
constexpr size_t kComparedKeysMax = 16;

bool AllDiffer(std::span<string_view> keys) {
  if (keys.size() > kComparedKeysMax) {
    std::ranges::sort(keys);
    return std::ranges::adjacent_find(keys) == keys.end();
  }
  for (size_t i = 1; i < keys.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (keys[i].size() == keys[j].size() && keys[i] == keys[j]) return false;
    }
  }
  return true;
}

// Builds the document bottom up, so that every object and array is allocated at its size. Stops at
// what is not plain: a double, whose text Boost's parser does not read to the last bit, a key with
// escapes, an object with two keys alike.
struct Builder {
  // NOLINTBEGIN(readability-identifier-naming): the parser asks for these names.
  static constexpr size_t max_object_size = boost::json::object::max_size();
  static constexpr size_t max_array_size = boost::json::array::max_size();
  static constexpr size_t max_key_size = boost::json::string::max_size();
  static constexpr size_t max_string_size = boost::json::string::max_size();
  // NOLINTEND(readability-identifier-naming)

  boost::json::value_stack stack;
  std::string_view text;
  std::vector<string_view> keys;  // Of the objects that are open; views of the text.
  std::vector<size_t> first_keys;

  Builder(unsigned char* buffer, size_t size) : stack({}, buffer, size) {}

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) {
    first_keys.push_back(keys.size());
    return true;
  }
  bool on_object_end(size_t count, error_code& error) {
    const size_t first = first_keys.back();
    if (!AllDiffer(std::span(keys).subspan(first))) return Stop(error);
    keys.resize(first);
    first_keys.pop_back();
    stack.push_object(count);
    return true;
  }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(size_t count, error_code&) {
    stack.push_array(count);
    return true;
  }
  bool on_key_part(string_view, size_t, error_code& error) { return Stop(error); }
  bool on_key(string_view key, size_t, error_code& error) {
    const char* const begin = text.data();
    if (key.data() < begin || key.data() + key.size() > begin + text.size()) return Stop(error);
    keys.push_back(key);
    stack.push_key(key);
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
  bool on_double(double, string_view, error_code& error) { return Stop(error); }
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

  static bool Stop(error_code& error) {
    error = boost::json::error::syntax;
    return false;
  }
  bool AddPart(string_view part) {
    stack.push_chars(part);
    return true;
  }
};

constexpr size_t kStackBytes = 8 * 1024;

}  // namespace

std::optional<api::Json> ParsePlainJson(std::string_view text, int64_t nesting_max,
                                        const api::JsonMemory& memory) {
  std::array<unsigned char, kStackBytes> buffer;
  boost::json::parse_options options;
  options.max_depth = static_cast<size_t>(nesting_max);
  boost::json::basic_parser<Builder> parser(options, buffer.data(), buffer.size());
  parser.handler().text = text;
  parser.handler().stack.reset(memory);
  error_code error;
  const size_t read = parser.write_some(false, text.data(), text.size(), error);
  if (error || read != text.size()) return std::nullopt;
  return parser.handler().stack.release();
}

}  // namespace berth::codec
