// Any bytes: the parser ends with a document or an error, as a message of any kind that the first
// byte picks, and the document prints.

#include <cstdint>
#include <string>
#include <string_view>

#include "api/kinds.h"
#include "codec/json.h"
#include "codec/protobuf.h"

namespace {

// A field that has a length, of fewer than 16 numbers.
std::string Field(int number, std::string_view bytes) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  size_t size = bytes.size();
  for (; size >= 0x80; size >>= 7) out += static_cast<char>((size & 0x7f) | 0x80);
  return out + static_cast<char>(size) + std::string(bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static_cast<void>(codec::ParseProtobuf(bytes));
  if (bytes.empty()) return 0;
  const auto kinds = api::Kinds();
  const api::Kind& kind = kinds[static_cast<unsigned char>(bytes.front()) % kinds.size()];
  const std::string envelope = std::string("k8s\0", 4) +
                               Field(1, Field(1, kind.api_version()) + Field(2, kind.name)) +
                               Field(2, bytes.substr(1));
  if (const Result<api::Json> document = codec::ParseProtobuf(envelope))
    static_cast<void>(codec::PrintJson(*document));
  return 0;
}
