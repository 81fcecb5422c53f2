#include "env/os/wal_check.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <vector>

namespace berth::env::os {
namespace {

constexpr size_t kHeaderBytes = 32;
constexpr size_t kFrameHeaderBytes = 24;
constexpr uint32_t kMagic = 0x377f0682;  // The last bit says that checksums are big-endian.
constexpr uint32_t kPageBytesMax = 65'536;

uint32_t BigEndian(const unsigned char* bytes) {
  return (uint32_t{bytes[0]} << 24) | (uint32_t{bytes[1]} << 16) | (uint32_t{bytes[2]} << 8) |
         uint32_t{bytes[3]};
}

uint32_t LittleEndian(const unsigned char* bytes) {
  return (uint32_t{bytes[3]} << 24) | (uint32_t{bytes[2]} << 16) | (uint32_t{bytes[1]} << 8) |
         uint32_t{bytes[0]};
}

// The running checksum of a log, of two words at a time.
struct Chain {
  uint32_t a = 0;
  uint32_t b = 0;
  bool operator==(const Chain&) const = default;

  void Add(const unsigned char* bytes, size_t count, bool big_endian) {
    const auto read = big_endian ? BigEndian : LittleEndian;
    for (size_t i = 0; i + 8 <= count; i += 8) {
      a += read(bytes + i) + b;
      b += read(bytes + i + 4) + a;
    }
  }
};

Chain Stored(const unsigned char* bytes) { return {BigEndian(bytes), BigEndian(bytes + 4)}; }

}  // namespace

Status CheckWal(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return {};
  std::array<unsigned char, kHeaderBytes> header{};
  file.read(reinterpret_cast<char*>(header.data()), kHeaderBytes);
  if (file.gcount() < static_cast<std::streamsize>(kHeaderBytes)) return {};
  const uint32_t magic = BigEndian(header.data());
  const uint32_t page_bytes = BigEndian(header.data() + 8);
  const bool big_endian = (magic & 1) != 0;
  Chain chain;
  chain.Add(header.data(), kFrameHeaderBytes, big_endian);
  if ((magic & ~1u) != kMagic || chain != Stored(header.data() + 24) || page_bytes < 512 ||
      page_bytes > kPageBytesMax || (page_bytes & (page_bytes - 1)) != 0) {
    return Fail(ErrorCode::kDamaged, "the head of its write-ahead log is broken");
  }
  std::vector<unsigned char> frame(kFrameHeaderBytes + page_bytes);
  bool broken = false;
  bool group_ended = false;
  uint64_t broken_at = 0;
  for (uint64_t index = 0;; ++index) {
    file.read(reinterpret_cast<char*>(frame.data()), static_cast<std::streamsize>(frame.size()));
    if (file.gcount() < static_cast<std::streamsize>(frame.size())) return {};
    const bool same_log = std::memcmp(frame.data() + 8, header.data() + 16, 8) == 0;
    if (!broken && same_log) {
      chain.Add(frame.data(), 8, big_endian);
      chain.Add(frame.data() + kFrameHeaderBytes, page_bytes, big_endian);
      if (chain == Stored(frame.data() + 16)) continue;
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
    group_ended = BigEndian(frame.data() + 4) != 0;
  }
}

}  // namespace berth::env::os
