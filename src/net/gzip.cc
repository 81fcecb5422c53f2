#include "net/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace berth::net {

bool AcceptsGzip(std::string_view header) {
  while (!header.empty()) {
    const size_t comma = header.find(',');
    std::string_view token = header.substr(0, comma);
    header = comma == std::string_view::npos ? "" : header.substr(comma + 1);
    while (token.starts_with(' ')) token.remove_prefix(1);
    while (token.ends_with(' ')) token.remove_suffix(1);
    if (token == "gzip") return true;
  }
  return false;
}

std::string Gzip(std::string_view text) {
  constexpr int kWindowBits = 15 + 16;  // With a gzip header.
  constexpr int kMemoryLevel = 8;
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kWindowBits, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return "";
  }
  std::string out(deflateBound(&stream, text.size()), '\0');
  // zlib doesn't write to what it reads, and counts in 32 bits.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  size_t unread = text.size();
  size_t room = out.size();
  int result = Z_OK;
  while (result == Z_OK) {
    constexpr size_t kStep = std::numeric_limits<uInt>::max();
    const auto in = static_cast<uInt>(std::min(unread, kStep));
    const auto space = static_cast<uInt>(std::min(room, kStep));
    stream.avail_in = in;
    stream.avail_out = space;
    result = deflate(&stream, unread == in ? Z_FINISH : Z_NO_FLUSH);
    unread -= in - stream.avail_in;
    room -= space - stream.avail_out;
  }
  out.resize(out.size() - room);
  deflateEnd(&stream);
  return result == Z_STREAM_END ? out : "";
}

}  // namespace berth::net
