#include "env/recording.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace berth::env {
namespace {

constexpr size_t kHeadBytes = 20;
// zlib's manual: more than this no deflated byte becomes.
constexpr uint64_t kDeflateRatioMax = 1032;
constexpr int kDeflateLevel = 1;  // Level 6 takes three times as long for a tenth less.

// What actors here look at of an answer, and what they say of a request. Nothing else is written.
constexpr std::array<std::string_view, 1> kAnswerHeaders = {"retry-after"};
constexpr std::array<std::string_view, 3> kRequestHeaders = {"accept", "content-type",
                                                             "user-agent"};

enum class ItemTag : uint8_t { kStep = 1, kEnd = 2 };
enum class InputTag : uint8_t {
  kTick = 1,
  kResponse = 2,
  kStreamData = 3,
  kStreamEnded = 4,
  kCallFailed = 5,
  kRequestArrived = 6,
  kExchangeAbandoned = 7,
  kStreamDrained = 8,
  kJournalAppended = 9,
  kJournalRefused = 10,
};
constexpr auto kLastFailure = static_cast<uint8_t>(CallFailure::kTimeout);
constexpr auto kLastMethod = static_cast<uint8_t>(Method::kHead);

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};

// ---- Numbers and texts -------------------------------------------------------------------------

template <typename T>
void Put(T value, std::string& out) {
  for (size_t i = 0; i < sizeof(T); ++i)
    out += static_cast<char>((static_cast<uint64_t>(value) >> (8 * i)) & 0xff);
}

void PutText(std::string_view text, std::string& out) {
  CHECK_LT(text.size(), kBlockBytesMax);
  Put(static_cast<uint32_t>(text.size()), out);
  out += text;
}

// Takes from the front of what is left. Once something is missing all that follows is empty.
class Taker {
 public:
  explicit Taker(std::string_view& rest) : rest_(rest) {}

  template <typename T>
  T Number() {
    uint64_t value = 0;
    const std::string_view bytes = Take(sizeof(T));
    for (size_t i = 0; i < bytes.size(); ++i)
      value |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    return static_cast<T>(value);
  }
  std::string_view Text() { return Take(Number<uint32_t>()); }
  [[nodiscard]] bool good() const { return good_; }
  void Refuse() { good_ = false; }

 private:
  std::string_view Take(size_t bytes) {
    good_ = good_ && bytes <= rest_.size();
    if (!good_) return {};
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  std::string_view& rest_;
  bool good_ = true;
};

uint32_t Crc(std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// ---- Inputs ------------------------------------------------------------------------------------

void PutInput(const Input& input, std::string& out) {
  const auto tag = [&out](InputTag value) { Put(static_cast<uint8_t>(value), out); };
  std::visit(Overloaded{[&](const Tick&) { tag(InputTag::kTick); },
                        [&](const Response& in) {
                          tag(InputTag::kResponse);
                          Put(in.call.value, out);
                          Put(static_cast<int32_t>(in.response.status), out);
                          for (const std::string_view name : kAnswerHeaders)
                            PutText(FindHeader(in.response.headers, name).value_or(""), out);
                          PutText(in.response.body.view(), out);
                        },
                        [&](const StreamData& in) {
                          tag(InputTag::kStreamData);
                          Put(in.call.value, out);
                          PutText(in.data.view(), out);
                        },
                        [&](const StreamEnded& in) {
                          tag(InputTag::kStreamEnded);
                          Put(in.call.value, out);
                        },
                        [&](const CallFailed& in) {
                          tag(InputTag::kCallFailed);
                          Put(in.call.value, out);
                          Put(static_cast<uint8_t>(in.failure), out);
                          PutText(in.why, out);
                        },
                        [&](const RequestArrived& in) {
                          tag(InputTag::kRequestArrived);
                          Put(in.exchange.value, out);
                          Put(static_cast<uint8_t>(in.request.method), out);
                          PutText(in.request.target, out);
                        },
                        [&](const ExchangeAbandoned& in) {
                          tag(InputTag::kExchangeAbandoned);
                          Put(in.exchange.value, out);
                        },
                        [&](const StreamDrained& in) {
                          tag(InputTag::kStreamDrained);
                          Put(in.exchange.value, out);
                          Put(in.bytes, out);
                        },
                        [&](const JournalAppended& in) {
                          tag(InputTag::kJournalAppended);
                          Put(in.sequence, out);
                        },
                        [&](const JournalRefused& in) {
                          tag(InputTag::kJournalRefused);
                          Put(in.sequence, out);
                        }},
             input);
}

void PutStepHead(Instant now, const Input& input, size_t outputs_count, std::string& out) {
  Put(static_cast<uint8_t>(ItemTag::kStep), out);
  Put(now.ns, out);
  PutInput(input, out);
  Put(static_cast<uint32_t>(outputs_count), out);
}

Input TakeResponse(Taker& taker) {
  Response in{.call = {taker.Number<uint64_t>()}, .response = {}};
  in.response.status = taker.Number<int32_t>();
  for (const std::string_view name : kAnswerHeaders) {
    const std::string_view value = taker.Text();
    if (!value.empty())
      in.response.headers.push_back({.name = std::string(name), .value = std::string(value)});
  }
  in.response.body = Bytes(std::string(taker.Text()));
  return in;
}

Input TakeCallFailed(Taker& taker) {
  CallFailed in{.call = {taker.Number<uint64_t>()}};
  const auto failure = taker.Number<uint8_t>();
  if (failure > kLastFailure) taker.Refuse();
  in.failure = static_cast<CallFailure>(failure);
  in.why = taker.Text();
  return in;
}

Input TakeRequestArrived(Taker& taker) {
  RequestArrived in{.exchange = {taker.Number<uint64_t>()}, .peer = {}, .request = {}};
  const auto method = taker.Number<uint8_t>();
  if (method > kLastMethod) taker.Refuse();
  in.request.method = static_cast<Method>(method);
  in.request.target = taker.Text();
  return in;
}

Input TakeStreamData(Taker& taker) {
  StreamData in{.call = {taker.Number<uint64_t>()}, .data = {}};
  in.data = Bytes(std::string(taker.Text()));
  return in;
}

Input TakeStreamDrained(Taker& taker) {
  StreamDrained in{.exchange = {taker.Number<uint64_t>()}, .bytes = 0};
  in.bytes = taker.Number<uint64_t>();
  return in;
}

Input TakeInput(Taker& taker) {
  switch (static_cast<InputTag>(taker.Number<uint8_t>())) {
    case InputTag::kTick:
      return Tick{};
    case InputTag::kResponse:
      return TakeResponse(taker);
    case InputTag::kStreamData:
      return TakeStreamData(taker);
    case InputTag::kStreamEnded:
      return StreamEnded{{taker.Number<uint64_t>()}};
    case InputTag::kCallFailed:
      return TakeCallFailed(taker);
    case InputTag::kRequestArrived:
      return TakeRequestArrived(taker);
    case InputTag::kExchangeAbandoned:
      return ExchangeAbandoned{{taker.Number<uint64_t>()}};
    case InputTag::kStreamDrained:
      return TakeStreamDrained(taker);
    case InputTag::kJournalAppended:
      return JournalAppended{taker.Number<uint64_t>()};
    case InputTag::kJournalRefused:
      return JournalRefused{taker.Number<uint64_t>()};
  }
  taker.Refuse();
  return Tick{};
}

// ---- Outputs -----------------------------------------------------------------------------------

std::string Digest(std::string_view bytes) {
  return fmt::format("{} bytes, hash {:016x}", bytes.size(), HashOf(bytes));
}

std::string TextOfSend(const SendRequest& send) {
  std::string text = fmt::format("call {} {} {}", send.call.value, ToString(send.request.method),
                                 send.request.target);
  if (send.stream) text += " as a stream";
  text += fmt::format(" within {} ms", send.timeout.milliseconds());
  if (send.not_after != Instant::Never()) text += fmt::format(", not after {}", send.not_after.ns);
  if (send.to != nullptr) text += fmt::format(" to {}:{}", send.to->host, send.to->port);
  if (send.once) text += ", once";
  for (const std::string_view name : kRequestHeaders) {
    const auto value = FindHeader(send.request.headers, name);
    if (value) text += fmt::format(", {}: {}", name, *value);
  }
  if (!send.request.body.empty()) text += fmt::format("\n{}", send.request.body.view());
  return text;
}

constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warning", "error"};

}  // namespace

std::string Describe(const Input& input) {
  constexpr std::array<std::string_view, 3> kFailures = {"not sent", "lost", "timed out"};
  std::string text = std::visit(
      Overloaded{[](const Tick&) { return std::string("tick"); },
                 [](const Response& in) {
                   return fmt::format("answer {} to call {}, {} bytes", in.response.status,
                                      in.call.value, in.response.body.size());
                 },
                 [](const StreamData& in) {
                   return fmt::format("watch {}: {}", in.call.value, in.data.view().substr(0, 160));
                 },
                 [](const StreamEnded& in) { return fmt::format("watch {} ended", in.call.value); },
                 [&](const CallFailed& in) {
                   return fmt::format("call {} {}", in.call.value,
                                      kFailures[static_cast<size_t>(in.failure)]);
                 },
                 [](const RequestArrived& in) {
                   return fmt::format("{} {} {} from {}", in.exchange.value,
                                      ToString(in.request.method), in.request.target, in.peer.user);
                 },
                 [](const ExchangeAbandoned& in) {
                   return fmt::format("{} abandoned", in.exchange.value);
                 },
                 [](const StreamDrained& in) {
                   return fmt::format("{} drained {}", in.exchange.value, in.bytes);
                 },
                 [](const JournalAppended& in) {
                   return fmt::format("append {} is durable", in.sequence);
                 },
                 [](const JournalRefused& in) {
                   return fmt::format("no room for append {}", in.sequence);
                 }},
      input);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string TextOf(const Output& output) {
  return std::visit(
      Overloaded{
          [](const SendRequest& out) { return TextOfSend(out); },
          [](const CancelCall& out) { return fmt::format("cancel call {}", out.call.value); },
          [](const Respond& out) {
            return fmt::format("answer exchange {}: {}{}, {}", out.exchange.value,
                               out.response.status, out.stream ? " as a stream" : "",
                               Digest(out.response.body.view()));
          },
          [](const Frame& out) {
            return fmt::format("frame of exchange {}: {}", out.exchange.value,
                               Digest(out.data.view()));
          },
          [](const EndStream& out) {
            return fmt::format("{} exchange {}", out.abort ? "abort" : "end", out.exchange.value);
          },
          [](const AppendJournal& out) {
            Hasher hasher;
            for (const JournalRecord& record : out.records)
              hasher.Add(record.key).Add(record.revision).Add(record.value.view());
            return fmt::format("append {}: {} records, hash {:016x}", out.sequence,
                               out.records.size(), hasher.value());
          },
          [](const Log& out) {
            return fmt::format("log {}: {}", kLevels[static_cast<size_t>(out.level)], out.text);
          }},
      output);
}

// ---- Writing ---------------------------------------------------------------------------------

Input RecordedPart(const Input& input) {
  if (const auto* in = std::get_if<Response>(&input)) {
    Response out{.call = in->call,
                 .response = {.status = in->response.status, .headers = {}, .body = {}}};
    out.response.body = in->response.body;
    for (const std::string_view name : kAnswerHeaders) {
      if (const auto value = FindHeader(in->response.headers, name))
        out.response.headers.push_back({.name = std::string(name), .value = std::string(*value)});
    }
    return out;
  }
  if (const auto* in = std::get_if<RequestArrived>(&input)) {
    return RequestArrived{
        .exchange = in->exchange,
        .peer = {},
        .request = {
            .method = in->request.method, .target = in->request.target, .headers = {}, .body = {}}};
  }
  return input;
}

std::string RecordingStart(std::string_view header) {
  std::string out(kRecordingMagic);
  Put(kRecordingVersion, out);
  out += SealBlock(header, BlockMethod::kDeflated);
  return out;
}

void AppendStep(const RecordedStep& step, std::string& items) {
  PutStepHead(step.now, step.input, step.outputs.size(), items);
  for (const Output& output : step.outputs) PutText(TextOf(output), items);
}

void AppendRead(const StepRead& step, std::string& items) {
  PutStepHead(step.now, step.input, step.outputs.size(), items);
  for (const std::string& output : step.outputs) PutText(output, items);
}

void AppendEnd(std::string_view why, std::string& items) {
  Put(static_cast<uint8_t>(ItemTag::kEnd), items);
  PutText(why, items);
}

std::string SealBlock(std::string_view items, BlockMethod method) {
  CHECK_LT(items.size(), kBlockBytesMax);
  std::string deflated;
  std::string_view payload = items;
  if (method == BlockMethod::kDeflated) {
    uLongf size = compressBound(items.size());
    deflated.resize(size);
    const int outcome =
        compress2(reinterpret_cast<Bytef*>(deflated.data()), &size,
                  reinterpret_cast<const Bytef*>(items.data()), items.size(), kDeflateLevel);
    CHECK_EQ(outcome, Z_OK);  // There is room, and memory ends the process elsewhere, too.
    deflated.resize(size);
    payload = deflated;
  }
  std::string out;
  out.reserve(kHeadBytes + payload.size());
  Put(static_cast<uint32_t>(items.size()), out);
  Put(static_cast<uint32_t>(payload.size()), out);
  Put(static_cast<uint32_t>(method), out);
  Put(Crc(payload), out);
  Put(Crc(out), out);
  out += payload;
  return out;
}

// ---- Reading ---------------------------------------------------------------------------------

Result<ItemRead> TakeItem(std::string_view& items) {
  Taker taker(items);
  const auto bad = [] { return Fail(ErrorCode::kInvalid, "holds what is no step"); };
  const auto tag = static_cast<ItemTag>(taker.Number<uint8_t>());
  if (tag == ItemTag::kEnd) {
    EndRead end{.why = std::string(taker.Text())};
    if (!taker.good()) return bad();
    return end;
  }
  if (tag != ItemTag::kStep) return bad();
  StepRead step;
  step.now = Instant{taker.Number<int64_t>()};
  step.input = TakeInput(taker);
  const auto outputs = taker.Number<uint32_t>();
  for (uint32_t i = 0; i < outputs && taker.good(); ++i) step.outputs.emplace_back(taker.Text());
  if (!taker.good()) return bad();
  return step;
}

Result<RecordingReader> RecordingReader::Open(std::string_view file) {
  constexpr size_t kStartBytes = kRecordingMagic.size() + sizeof(kRecordingVersion);
  if (!file.starts_with(kRecordingMagic) || file.size() < kStartBytes)
    return Fail(ErrorCode::kInvalid, "is no recording of berth");
  std::string_view rest = file.substr(kRecordingMagic.size());
  const auto version = Taker(rest).Number<uint32_t>();
  if (version != kRecordingVersion) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("is a recording of form {}; this berth reads form {}: use the one that "
                            "recorded it",
                            version, kRecordingVersion));
  }
  RecordingReader reader(file);
  reader.at_ = kStartBytes;
  const Result<bool> header = reader.TakeBlock();
  if (!header) return std::unexpected(header.error());
  if (!*header)
    return Fail(ErrorCode::kInvalid, "has no whole header: berth ended as it began to record");
  reader.header_ = std::exchange(reader.block_, {});
  return reader;
}

Result<bool> RecordingReader::TakeBlock() {
  taken_ = 0;
  block_.clear();
  std::string_view rest = file_.substr(at_);
  const auto damaged = [&](std::string_view how) {
    return Fail(ErrorCode::kInvalid, fmt::format("is damaged at byte {}: {}", at_, how));
  };
  // A file system may give zeros for what did not reach the disk.
  if (rest.size() < kHeadBytes || rest.find_first_not_of('\0') == std::string_view::npos) {
    torn_bytes_ = rest.size();
    return false;
  }
  const std::string_view head = rest.substr(0, kHeadBytes - sizeof(uint32_t));
  Taker taker(rest);
  const auto items_bytes = taker.Number<uint32_t>();
  const auto payload_bytes = taker.Number<uint32_t>();
  const auto method = static_cast<BlockMethod>(taker.Number<uint32_t>());
  const auto payload_crc = taker.Number<uint32_t>();
  if (taker.Number<uint32_t>() != Crc(head)) return damaged("a block's head has another checksum");
  if (payload_bytes > rest.size()) {
    torn_bytes_ = kHeadBytes + rest.size();
    return false;
  }
  const std::string_view payload = rest.substr(0, payload_bytes);
  if (Crc(payload) != payload_crc) return damaged("a block has another checksum");
  if (method == BlockMethod::kStored) {
    if (items_bytes != payload_bytes) return damaged("a block of another length");
    block_ = payload;
  } else if (method == BlockMethod::kDeflated) {
    if (items_bytes > payload_bytes * kDeflateRatioMax) return damaged("a block of another length");
    block_.resize(items_bytes);
    uLongf size = items_bytes;
    const int outcome = uncompress(reinterpret_cast<Bytef*>(block_.data()), &size,
                                   reinterpret_cast<const Bytef*>(payload.data()), payload.size());
    if (outcome != Z_OK || size != items_bytes) return damaged("a block that can't be inflated");
  } else {
    return damaged("a block of an unknown method");
  }
  at_ += kHeadBytes + payload_bytes;
  return true;
}

Result<std::optional<ItemRead>> RecordingReader::Next() {
  while (taken_ == block_.size()) {
    const Result<bool> more = TakeBlock();
    if (!more) return std::unexpected(more.error());
    at_end_ = !*more;
    if (at_end_) return std::nullopt;
  }
  std::string_view rest = std::string_view(block_).substr(taken_);
  Result<ItemRead> item = TakeItem(rest);
  if (!item)
    return Fail(item.error().code, fmt::format("before byte {}: {}", at_, item.error().message));
  taken_ = block_.size() - rest.size();
  if (auto* step = std::get_if<StepRead>(&*item)) step->number = ++steps_;
  return *std::move(item);
}

}  // namespace berth::env
