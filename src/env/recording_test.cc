// Goal: what is recorded is read back as it was, but for what must not be in a file, and bytes that
// are no recording, or one no more, are told apart by what they are. Method: one step of each kind;
// a file that is cut and flipped at every byte.
#include "env/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::env {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Instant kNow = Instant::FromSeconds(1'767'225'600);

SendRequest Binding() {
  return {.call = {7},
          .request = {.method = Method::kPost,
                      .target = "/api/v1/namespaces/a/pods/p/binding",
                      .headers = {{"accept", "application/json"},
                                  {"authorization", "Bearer hidden-token"},
                                  {"content-type", "application/json"}},
                      .body = Bytes(std::string(R"({"kind":"Binding"})"))}};
}

std::vector<Input> Inputs() {
  return {
      Tick{},
      Response{.call = {3},
               .response = {.status = 429,
                            .headers = {{"retry-after", "7"}, {"set-cookie", "hidden-cookie"}},
                            .body = Bytes(std::string(5'000, 'b'))}},
      StreamData{.call = {4}, .data = Bytes(std::string("{\"a\":\0}", 7))},
      StreamEnded{{5}},
      CallFailed{.call = {6}, .failure = CallFailure::kTimeout, .why = "i/o timeout"},
      RequestArrived{.exchange = {UINT64_MAX},
                     .peer = {.user = "hidden-user", .groups = {"hidden-group"}},
                     .request = {.method = Method::kGet,
                                 .target = "/debug/why?pod=a%2Fb",
                                 .headers = {{"authorization", "Bearer hidden-token"}},
                                 .body = Bytes(std::string("hidden-body"))}},
      ExchangeAbandoned{{8}},
      StreamDrained{.exchange = {9}, .bytes = uint64_t{1} << 40},
      JournalAppended{10},
      JournalRefused{11},
  };
}

Outbox Outputs() {
  return {
      Binding(),
      CancelCall{{12}},
      Respond{
          .exchange = {13},
          .response = {.status = 200, .headers = {}, .body = Bytes(std::string("hidden-body"))}},
      Frame{.exchange = {14}, .data = Bytes(std::string("hidden-body"))},
      EndStream{.exchange = {15}, .abort = true},
      AppendJournal{
          .sequence = 16,
          .records = {{.key = "k", .revision = 1, .value = Bytes(std::string("hidden"))}}},
      Log{.level = LogLevel::kWarning, .text = "text"},
  };
}

std::string Items() {
  std::string items;
  int64_t seconds = 0;
  for (Input& input : Inputs()) {
    AppendStep({.now = kNow + Duration::Seconds(seconds++),
                .input = std::move(input),
                .outputs = seconds == 1 ? Outputs() : Outbox{}},
               items);
  }
  return items;
}

std::string File() {
  std::string file = RecordingStart("the header");
  file += SealBlock(Items(), BlockMethod::kDeflated);
  std::string more;
  AppendStep({.now = kNow + Duration::Minutes(1), .input = Tick{}, .outputs = {}}, more);
  AppendEnd("full", more);
  return file + SealBlock(more, BlockMethod::kStored);
}

struct AllRead {
  std::vector<StepRead> steps;
  std::string end;
  std::string error;
  size_t torn_bytes = 0;
};

AllRead ReadAll(std::string_view file) {
  AllRead out;
  auto reader = RecordingReader::Open(file);
  if (!reader) return {.steps = {}, .end = {}, .error = reader.error().message};
  for (;;) {
    auto item = reader->Next();
    if (!item) out.error = item.error().message;
    if (!item || !*item) break;
    if (auto* end = std::get_if<EndRead>(&**item)) {
      out.end = end->why;
    } else {
      out.steps.push_back(std::get<StepRead>(std::move(**item)));
    }
  }
  out.torn_bytes = reader->torn_bytes();
  return out;
}

// ---- What comes back --------------------------------------------------------------------------

TEST(RecordingTest, EveryInputIsReadBackAsTheActorSawIt) {
  const AllRead read = ReadAll(File());
  EXPECT_EQ(read.error, "");
  EXPECT_EQ(read.end, "full");
  EXPECT_EQ(read.torn_bytes, 0u);
  const std::vector<Input> inputs = Inputs();
  ASSERT_EQ(read.steps.size(), inputs.size() + 1);
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(read.steps[i].number, i + 1);
    EXPECT_EQ(read.steps[i].now, kNow + Duration::Seconds(static_cast<int64_t>(i)));
    EXPECT_EQ(read.steps[i].input.index(), inputs[i].index());
    // Whole, written again.
    std::string again;
    AppendRead(read.steps[i], again);
    std::string_view rest = again;
    ASSERT_TRUE(TakeItem(rest).has_value());
    EXPECT_TRUE(rest.empty());
  }
  const auto& response = std::get<Response>(read.steps[1].input);
  EXPECT_EQ(response.call.value, 3u);
  EXPECT_EQ(response.response.status, 429);
  EXPECT_EQ(response.response.headers, (std::vector<Header>{{"retry-after", "7"}}));
  EXPECT_EQ(response.response.body.view(), std::string(5'000, 'b'));
  EXPECT_EQ(std::get<StreamData>(read.steps[2].input).data.view(),
            std::string_view("{\"a\":\0}", 7));
  EXPECT_EQ(std::get<StreamEnded>(read.steps[3].input).call.value, 5u);
  const auto& failed = std::get<CallFailed>(read.steps[4].input);
  EXPECT_EQ(failed.failure, CallFailure::kTimeout);
  EXPECT_EQ(failed.why, "i/o timeout");
  const auto& arrived = std::get<RequestArrived>(read.steps[5].input);
  EXPECT_EQ(arrived.exchange.value, UINT64_MAX);
  EXPECT_EQ(arrived.request.method, Method::kGet);
  EXPECT_EQ(arrived.request.target, "/debug/why?pod=a%2Fb");
  EXPECT_EQ(std::get<StreamDrained>(read.steps[7].input).bytes, uint64_t{1} << 40);
  EXPECT_EQ(std::get<JournalRefused>(read.steps[9].input).sequence, 11u);
}

TEST(RecordingTest, EveryOutputIsATextOfAllThatItSays) {
  const std::vector<std::string> texts = ReadAll(File()).steps.front().outputs;
  const Outbox outputs = Outputs();
  ASSERT_EQ(texts.size(), outputs.size());
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(texts[i], TextOf(outputs[i]));
  EXPECT_EQ(texts[0],
            "call 7 POST /api/v1/namespaces/a/pods/p/binding within 30000 ms, accept: "
            "application/json, content-type: application/json\n{\"kind\":\"Binding\"}");
  EXPECT_EQ(texts[1], "cancel call 12");
  EXPECT_THAT(texts[2], HasSubstr("answer exchange 13: 200, 11 bytes, hash "));
  EXPECT_EQ(texts[4], "abort exchange 15");
  EXPECT_EQ(texts[6], "log warning: text");
  // Each part counts.
  const std::string binding = TextOf(Binding());
  const auto differs = [&](auto change) {
    SendRequest other = Binding();
    change(other);
    return TextOf(other) != binding;
  };
  EXPECT_TRUE(differs([](SendRequest& send) { send.call.value = 8; }));
  EXPECT_TRUE(differs([](SendRequest& send) { send.request.method = Method::kPut; }));
  EXPECT_TRUE(differs([](SendRequest& send) { send.request.target += "x"; }));
  EXPECT_TRUE(differs([](SendRequest& send) { send.request.body = {}; }));
  EXPECT_TRUE(differs([](SendRequest& send) { send.request.headers.pop_back(); }));
  EXPECT_TRUE(differs([](SendRequest& send) { send.stream = true; }));
  EXPECT_TRUE(differs([](SendRequest& send) { send.timeout = Duration::Seconds(1); }));
  EXPECT_TRUE(differs([](SendRequest& send) {
    send.to = std::make_shared<Endpoint>(Endpoint{
        .host = "h", .port = 1, .server_name = {}, .authority_pem = {}, .host_header = {}});
  }));
}

// Tokens, cookies, who asked, what was posted to us and what we answered.
TEST(RecordingTest, NoCredentialIsWritten) {
  const std::string items = Items();
  for (const char* hidden : {"hidden", "authorization", "cookie"})
    EXPECT_THAT(items, Not(HasSubstr(hidden)));
  EXPECT_THAT(items, HasSubstr("/binding"));
}

// What is kept of an input until it is written is what is written.
TEST(RecordingTest, OfAnInputNothingIsKeptThatIsNotWritten) {
  for (const Input& input : Inputs()) {
    const auto items = [](Input of) {
      std::string out;
      AppendStep({.now = kNow, .input = std::move(of), .outputs = {}}, out);
      return out;
    };
    EXPECT_EQ(items(RecordedPart(input)), items(input));
    const Input kept = RecordedPart(input);
    if (const auto* response = std::get_if<Response>(&kept)) {
      EXPECT_EQ(response->response.headers.size(), 1u);
    }
    if (const auto* arrived = std::get_if<RequestArrived>(&kept)) {
      EXPECT_TRUE(arrived->request.headers.empty());
      EXPECT_TRUE(arrived->request.body.empty());
      EXPECT_TRUE(arrived->peer.user.empty());
    }
  }
}

// ---- What is not whole ------------------------------------------------------------------------

TEST(RecordingTest, ATornTailIsLeftOutAndSaidWhereverItIsTorn) {
  const std::string file = File();
  const size_t start = RecordingStart("the header").size();
  const size_t first = start + SealBlock(Items(), BlockMethod::kDeflated).size();
  for (size_t size = start; size < file.size(); ++size) {
    const AllRead read = ReadAll(std::string_view(file).substr(0, size));
    EXPECT_EQ(read.error, "") << size;
    EXPECT_EQ(read.end, "") << size;
    EXPECT_EQ(read.steps.size(), size < first ? 0 : Inputs().size()) << size;
    EXPECT_EQ(read.torn_bytes, size < first ? size - start : size - first) << size;
  }
  // What a file system makes of bytes that did not reach the disk.
  const AllRead zeros = ReadAll(file.substr(0, first) + std::string(100, '\0'));
  EXPECT_EQ(zeros.error, "");
  EXPECT_EQ(zeros.steps.size(), Inputs().size());
  EXPECT_EQ(zeros.torn_bytes, 100u);
}

TEST(RecordingTest, AFlippedBitIsNeverTakenForWhatWasRecorded) {
  const std::string file = File();
  for (size_t at = 0; at < file.size(); ++at) {
    std::string flipped = file;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    EXPECT_NE(ReadAll(flipped).error, "") << at;
  }
}

TEST(RecordingTest, SaysWhatAFileIsThatItCantRead) {
  EXPECT_EQ(ReadAll("").error, "is no recording of berth");
  EXPECT_EQ(ReadAll("apiVersion: v1\nkind: Pod\n").error, "is no recording of berth");
  EXPECT_EQ(ReadAll(kRecordingMagic).error, "is no recording of berth");
  std::string newer = File();
  newer[kRecordingMagic.size()] = 2;
  EXPECT_EQ(ReadAll(newer).error,
            "is a recording of form 2; this berth reads form 1: use the one that recorded it");
  EXPECT_EQ(ReadAll(std::string_view(File()).substr(0, 20)).error,
            "has no whole header: berth ended as it began to record");
  const std::string start = RecordingStart("h");
  EXPECT_EQ(ReadAll(start + SealBlock("\x07 no step", BlockMethod::kStored)).error,
            "before byte " + std::to_string(start.size() + 20 + 9) + ": holds what is no step");
  std::string damaged = File();
  damaged[start.size() + 30] = static_cast<char>(damaged[start.size() + 30] ^ 1);
  EXPECT_THAT(ReadAll(damaged).error, HasSubstr("is damaged at byte "));
}

// With right checksums: who writes such a file means it.
TEST(RecordingTest, ABlockThatLiesAboutItselfIsRefusedAndTakesNoMemory) {
  const auto number = [](uint32_t value) {
    std::string out;
    for (int i = 0; i < 4; ++i) out += static_cast<char>((value >> (8 * i)) & 0xff);
    return out;
  };
  const auto crc = [](std::string_view bytes) {
    return static_cast<uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  };
  const auto error = [&](uint32_t items, uint32_t method, const std::string& payload) {
    std::string head = number(items);
    head += number(static_cast<uint32_t>(payload.size()));
    head += number(method);
    head += number(crc(payload));
    head += number(crc(head));
    return ReadAll(RecordingStart("h") + head + payload).error;
  };
  const std::string payload = "twelve bytes";
  EXPECT_THAT(error(3'000'000'000, 1, payload), HasSubstr("a block of another length"));
  EXPECT_THAT(error(12'000, 1, payload), HasSubstr("a block that can't be inflated"));
  EXPECT_THAT(error(13, 0, payload), HasSubstr("a block of another length"));
  EXPECT_THAT(error(12, 7, payload), HasSubstr("a block of an unknown method"));
}

}  // namespace
}  // namespace berth::env
