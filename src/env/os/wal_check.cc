#include "env/os/wal_check.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include "env/os/big_endian.h"

namespace berth::env::os {
namespace {

constexpr size_t kHeaderBytes = 32;
constexpr size_t kFrameHeaderBytes = 24;
constexpr uint32_t kMagic = 0x377f0682;  // The last bit says that checksums are big-endian.
constexpr uint32_t kPageBytesMax = 65'536;

uint32_t LittleEndian(std::string_view bytes, size_t at) {
  return std::byteswap(BigEndian(bytes, at));
}

// The running checksum of a log, of two words at a time.
struct Chain {
  uint32_t a = 0;
  uint32_t b = 0;
  bool operator==(const Chain&) const = default;

  void Add(std::string_view bytes, bool big_endian) {
    const auto read = big_endian ? BigEndian : LittleEndian;
    for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
      a += read(bytes, i) + b;
      b += read(bytes, i + 4) + a;
    }
  }
};

Chain Stored(std::string_view bytes, size_t at) {
  return {BigEndian(bytes, at), BigEndian(bytes, at + 4)};
}

}  // namespace

Status CheckWal(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return {};
  std::array<char, kHeaderBytes> header_bytes{};
  file.read(header_bytes.data(), kHeaderBytes);
  if (file.gcount() < static_cast<std::streamsize>(kHeaderBytes)) return {};
  const std::string_view header(header_bytes.data(), header_bytes.size());
  const uint32_t magic = BigEndian(header, 0);
  const uint32_t page_bytes = BigEndian(header, 8);
  const bool big_endian = (magic & 1) != 0;
  Chain chain;
  chain.Add(header.substr(0, kFrameHeaderBytes), big_endian);
  if ((magic & ~1u) != kMagic || chain != Stored(header, 24) || page_bytes < 512 ||
      page_bytes > kPageBytesMax || (page_bytes & (page_bytes - 1)) != 0) {
    return Fail(ErrorCode::kDamaged, "the head of its write-ahead log is broken");
  }
  std::string frame_bytes(kFrameHeaderBytes + page_bytes, '\0');
  const std::string_view frame = frame_bytes;
  bool broken = false;
  bool group_ended = false;
  uint64_t broken_at = 0;
  for (uint64_t index = 0;; ++index) {
    file.read(frame_bytes.data(), static_cast<std::streamsize>(frame.size()));
    if (file.gcount() < static_cast<std::streamsize>(frame.size())) return {};
    const bool same_log = frame.substr(8, 8) == header.substr(16, 8);
    if (!broken && same_log) {
      chain.Add(frame.substr(0, 8), big_endian);
      chain.Add(frame.substr(kFrameHeaderBytes), big_endian);
      if (chain == Stored(frame, 16)) continue;
    }
    if (!broken) {
      broken = true;
      broken_at = index;
    }
    // What an older generation of the log left behind has other salts.
    if (!same_log) continue;
    if (group_ended) {
      return Fail(ErrorCode::kDamaged,
                  fmt::format("its write-ahead log is broken at frame {}, before its last group",
                              broken_at));
    }
    group_ended = BigEndian(frame, 4) != 0;
  }
}

}  // namespace berth::env::os
