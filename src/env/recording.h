#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "env/actor.h"

// The form of a recording: what an actor was made of, its inputs with their times, and its outputs
// (docs/design/0029-recording.md). Pure functions on bytes.
//
//   file   "berthrec", version, blocks; numbers are little-endian
//   block  u32 bytes of items, u32 bytes that follow the block's head, u32 method (0 as they are,
//          1 deflated), u32 CRC-32 of what follows, u32 CRC-32 of these four
//   items  of the first block: the header's text. Of the others: steps, and at last an end
//
// Credentials are never in it: of headers only those that actors here look at are written, of a
// request that arrived its method and target alone.
namespace berth::env {

inline constexpr uint32_t kRecordingVersion = 1;
inline constexpr std::string_view kRecordingMagic = "berthrec";

// One input, and all that came of it.
struct RecordedStep {
  Instant now;
  Input input;
  Outbox outputs;
};

// An input for people, in one line.
[[nodiscard]] std::string Describe(const Input& input);

// An output as it is recorded and compared: all that it says, of bodies of answers, frames and
// records of a journal their length and hash.
[[nodiscard]] std::string TextOf(const Output& output);

// ---- Writing ---------------------------------------------------------------------------------

// The input without what is not recorded of it.
[[nodiscard]] Input RecordedPart(const Input& input);

// What a file begins with. `header` is the caller's.
[[nodiscard]] std::string RecordingStart(std::string_view header);
// Append an item.
void AppendStep(const RecordedStep& step, std::string& items);
void AppendEnd(std::string_view why, std::string& items);
// A block of items; those are fewer than kBlockBytesMax. Deflating takes some 10 ns a byte.
enum class BlockMethod : uint32_t { kStored = 0, kDeflated = 1 };
[[nodiscard]] std::string SealBlock(std::string_view items, BlockMethod method);

inline constexpr size_t kBlockBytesMax = size_t{3} << 30;

// ---- Reading ---------------------------------------------------------------------------------

// A step as it was written.
struct StepRead {
  uint64_t number = 0;  // From 1.
  Instant now;
  Input input;
  std::vector<std::string> outputs;  // As of TextOf.
};
struct EndRead {
  std::string why;
};
using ItemRead = std::variant<StepRead, EndRead>;

// The same item again.
void AppendRead(const StepRead& step, std::string& items);

// Reads items of a block that begins at `items`, from what is left of it. An error: it is none.
// Safe on any bytes.
[[nodiscard]] Result<ItemRead> TakeItem(std::string_view& items);

// Reads a file in memory, block by block. Safe on any bytes: takes at most 1,032 times its size.
class RecordingReader {
 public:
  // Errors: no recording, of a newer form, or without a whole header. `file` outlives the reader.
  static Result<RecordingReader> Open(std::string_view file);

  [[nodiscard]] const std::string& header() const { return header_; }
  // The next item; nothing at the end. An error names the place of what is damaged, and nothing
  // follows it.
  Result<std::optional<ItemRead>> Next();

  [[nodiscard]] bool at_end() const { return at_end_; }
  // At the end: bytes of a block that is not whole, which are left out.
  [[nodiscard]] size_t torn_bytes() const { return torn_bytes_; }

 private:
  explicit RecordingReader(std::string_view file) : file_(file) {}
  // The next block's items, into items_. False: the end.
  Result<bool> TakeBlock();

  std::string_view file_;
  size_t at_ = 0;
  std::string header_;
  std::string block_;
  size_t taken_ = 0;  // Of block_.
  bool at_end_ = false;
  size_t torn_bytes_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace berth::env
