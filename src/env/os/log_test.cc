// Goal: a line of the log is one line, whatever it quotes, and as JSON one object with the members
// that kube-scheduler's has. Method: lines of each level and of hostile texts, as they are written.
#include "env/os/log.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "env/log_keys.h"

namespace berth::env::os {
namespace {

constexpr Instant kTime{1'796'000'000'123'456'789};

TEST(Log, TextHasTimeLevelWhoAndKeys) {
  EXPECT_EQ(LogLine(LogFormat::kText, kTime, LogLevel::kInfo, "run", "it leads"),
            "2026-11-30T00:53:20.123+00:00 info run: it leads");
  EXPECT_EQ(
      LogLine(LogFormat::kText, kTime, LogLevel::kWarning, "run",
              WithKeys("not bound", {{"pod", "ns/p"}, {"why", "a \"b\" \\ c"}})),
      R"(2026-11-30T00:53:20.123+00:00 warning run: not bound pod="ns/p" why="a \"b\" \\ c")");
}

TEST(Log, JsonHasWhatKubeSchedulersHas) {
  EXPECT_EQ(LogLine(LogFormat::kJson, kTime, LogLevel::kInfo, "run", "it leads"),
            R"({"ts":1796000000123.456,"severity":"info","logger":"run","v":0,"msg":"it leads"})");
  EXPECT_EQ(LogLine(LogFormat::kJson, kTime, LogLevel::kDebug, "run",
                    WithKeys("a", {{"pod", "ns/p"}, {"node", ""}})),
            R"({"ts":1796000000123.456,"severity":"debug","logger":"run","v":4,"msg":"a",)"
            R"("pod":"ns/p","node":""})");
  EXPECT_EQ(
      LogLine(LogFormat::kJson, kTime, LogLevel::kError, "run", "bad"),
      R"({"ts":1796000000123.456,"severity":"error","logger":"run","msg":"bad","err":"bad"})");
}

TEST(Log, NothingThatALineQuotesBeginsAnotherOrAKey) {
  const std::string_view hostile = "a\nb\r\t\x1b[1m\"\\\xff\xc3\xa9 \xed\xa0\x80";
  EXPECT_EQ(LogLine(LogFormat::kText, kTime, LogLevel::kInfo, "run", hostile),
            "2026-11-30T00:53:20.123+00:00 info run: a\\nb\\r\\t\\u001b[1m\"\\\xef\xbf\xbd\xc3\xa9 "
            "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(LogLine(LogFormat::kJson, kTime, LogLevel::kInfo, "run", hostile),
            "{\"ts\":1796000000123.456,\"severity\":\"info\",\"logger\":\"run\",\"v\":0,\"msg\":"
            "\"a\\nb\\r\\t\\u001b[1m\\\"\\\\\xef\xbf\xbd\xc3\xa9 "
            "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"}");
  // A text can't bring keys along, nor a key take the place of one of the line's own.
  EXPECT_EQ(LogLine(LogFormat::kJson, kTime, LogLevel::kInfo, "run",
                    WithKeys("x\x1fpod\x1fother", {{"msg",
                                                    "y\x1fv\x1f"
                                                    "9"}})),
            R"({"ts":1796000000123.456,"severity":"info","logger":"run","v":0,)"
            R"("msg":"xpodother","msg_":"yv9"})");
}

// An API server's message may be as long as its answer: it is told how long.
TEST(Log, ALineIsBounded) {
  std::string text(4'095, 'x');
  text += "\xc3\xa9";  // A letter is not cut in two.
  text += std::string(9'000, 'y');
  const std::string line = LogLine(LogFormat::kText, kTime, LogLevel::kInfo, "run", text);
  EXPECT_TRUE(line.ends_with("x... (13097 bytes)")) << line.substr(line.size() - 40);
  EXPECT_LT(line.size(), 4'200u);
  EXPECT_LT(LogLine(LogFormat::kJson, kTime, LogLevel::kError, "run", text).size(), 8'600u);
  EXPECT_LT(
      LogLine(LogFormat::kText, kTime, LogLevel::kInfo, "run", WithKeys("a", {{"k", text}})).size(),
      4'300u);
}

TEST(Log, KeysAreTakenApartAsTheyWerePut) {
  const std::string line = WithKeys("text", {{"a", "1"}, {"b", ""}});
  const KeyedText split = SplitKeys(line);
  EXPECT_EQ(split.text, "text");
  EXPECT_EQ(split.keys, (LogKeys{{"a", "1"}, {"b", ""}}));
  EXPECT_TRUE(SplitKeys("text").keys.empty());
  EXPECT_TRUE(SplitKeys("\x1ftext\x1fkey").keys.empty());
  // What a line quotes brings none along.
  const std::string_view quoted =
      "watch of pods: no\x1f"
      "err\x1f"
      "forged";
  EXPECT_EQ(SplitKeys(quoted).text, quoted);
  EXPECT_TRUE(SplitKeys(quoted).keys.empty());
}

}  // namespace
}  // namespace berth::env::os
