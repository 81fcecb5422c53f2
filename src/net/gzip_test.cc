// Goal: what is compressed is what comes out, for whoever asks. Method: zlib's own reader.
#include "net/gzip.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <memory>
#include <string>
#include <string_view>

namespace berth::net {
namespace {

std::string Inflate(std::string text, size_t size) {
  std::string out(size, '\0');
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

// In parts of that many bytes.
std::string Gzip(std::string_view text, size_t part_bytes) {
  const std::unique_ptr<Gzipper> gzipper = Gzipper::Make();
  std::string out;
  for (;; text.remove_prefix(part_bytes)) {
    const bool last = text.size() <= part_bytes;
    gzipper->Add(text.substr(0, part_bytes), last, out);
    if (last) return out;
  }
}

TEST(Gzip, ReadsBackWhatWasWritten) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "{\"name\":\"pod-" + std::to_string(i) + "\"},";
  for (const size_t part_bytes : {size_t{1'000}, size_t{65'536}, text.size()}) {
    const std::string compressed = Gzip(text, part_bytes);
    EXPECT_LT(compressed.size(), text.size() / 4);
    EXPECT_EQ(Inflate(compressed, text.size() + 1), text);
  }
  EXPECT_EQ(Inflate(Gzip("", 1), 1), "");
  std::string noise;
  for (uint32_t i = 1; noise.size() < 300'000; i = i * 1664525 + 1013904223) {
    noise += static_cast<char>(i >> 24);
  }
  EXPECT_EQ(Inflate(Gzip(noise, 65'536), noise.size() + 1), noise);
}

TEST(Gzip, IsAskedForByName) {
  EXPECT_TRUE(AcceptsGzip("gzip"));
  EXPECT_TRUE(AcceptsGzip("deflate, gzip , br"));
  EXPECT_FALSE(AcceptsGzip(""));
  EXPECT_FALSE(AcceptsGzip("deflate"));
  // Upstream too takes a quality for another encoding.
  EXPECT_FALSE(AcceptsGzip("gzip;q=1"));
}

}  // namespace
}  // namespace berth::net
