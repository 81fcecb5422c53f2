#include "net/gzip.h"

#include <zlib.h>

#include <array>
#include <limits>
#include <utility>

#include "base/check.h"

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

struct Gzipper::Stream {
  z_stream zlib{};
};

std::unique_ptr<Gzipper> Gzipper::Make() {
  constexpr int kWindowBits = 15 + 16;  // With a gzip header.
  constexpr int kMemoryLevel = 8;
  auto stream = std::make_unique<Stream>();
  if (deflateInit2(&stream->zlib, Z_BEST_SPEED, Z_DEFLATED, kWindowBits, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return nullptr;
  }
  return std::unique_ptr<Gzipper>(new Gzipper(std::move(stream)));
}

Gzipper::Gzipper(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}

Gzipper::~Gzipper() { deflateEnd(&stream_->zlib); }

void Gzipper::Add(std::string_view part, bool last, std::string& out) {
  z_stream& zlib = stream_->zlib;
  CHECK_LE(part.size(), size_t{std::numeric_limits<uInt>::max()});
  // zlib doesn't write to what it reads.
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part.data()));
  zlib.avail_in = static_cast<uInt>(part.size());
  std::array<char, size_t{16} * 1024> room;
  int result = Z_OK;
  do {
    zlib.next_out = reinterpret_cast<Bytef*>(room.data());
    zlib.avail_out = static_cast<uInt>(room.size());
    result = deflate(&zlib, last ? Z_FINISH : Z_NO_FLUSH);
    CHECK_NE(result, Z_STREAM_ERROR);
    out.append(room.data(), room.size() - zlib.avail_out);
  } while (zlib.avail_out == 0);
  CHECK_EQ(zlib.avail_in, uInt{0});
  CHECK_EQ(result == Z_STREAM_END, last);
}

}  // namespace berth::net
