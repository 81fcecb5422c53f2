// Goal: what is compressed is what comes out, for whoever asks. Method: zlib's own reader.
#include "net/gzip.h"

#include <gtest/gtest.h>
#include <zlib.h>

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

TEST(Gzip, ReadsBackWhatWasWritten) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "{\"name\":\"pod-" + std::to_string(i) + "\"},";
  const std::string compressed = Gzip(text);
  EXPECT_LT(compressed.size(), text.size() / 4);
  EXPECT_EQ(Inflate(compressed, text.size() + 1), text);
  EXPECT_EQ(Inflate(Gzip(""), 1), "");
  std::string noise;
  for (uint32_t i = 1; noise.size() < 300'000; i = i * 1664525 + 1013904223) {
    noise += static_cast<char>(i >> 24);
  }
  EXPECT_EQ(Inflate(Gzip(noise), noise.size() + 1), noise);
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
