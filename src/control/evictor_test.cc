// Goal: an eviction is carried out once, told once, repeated while its fate is open, and given up
// when it is refused or fails without end. Method: the test plays the API server by scripts of
// words; each word is followed by what the evictor sent or said because of it.
#include "control/evictor.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>

#include "testing/hashes.h"

namespace berth::control {
namespace {

class Rig {
 public:
  // What came of the script, word by word.
  std::string Play(const std::string& script) {
    std::istringstream words(script);
    std::string word;
    std::string told;
    while (words >> word) {
      Do(word);
      Wait();
      told += (told.empty() ? "" : " ") + word + Took();
    }
    return told;
  }

  Instant now = Instant::FromSeconds(1'000);
  Evictor evictor;
  std::string wanted_for = "m";
  bool marked = false;
  bool others_first = false;
  std::vector<std::string> bodies;

 private:
  void Do(const std::string& word) {
    if (word == "evict" || word == "again") {
      if (word == "again") wanted_for = "h";
      evictor.Evict({.pod = {.namespace_name = "ns", .name = "v", .uid = "u-v"},
                     .node = "n1",
                     .scheduler_name = "berth",
                     .preemptor = {.namespace_name = "ns", .name = "p", .uid = wanted_for},
                     .marked = marked});
    } else if (word == "left") {
      evictor.Left("u-v");
    } else if (word == "spared") {
      wanted_for = "nobody";
    } else if (word == "others") {
      others_first = true;
    } else if (word == "heard" || word == "first") {
      others_first = others_first && word == "heard";
      evictor.AskAgain();
    } else if (word == "lost") {
      Hear(env::CallFailed{.call = open_, .failure = env::CallFailure::kTimeout});
    } else if (word == "unsent") {
      // The client tries for as long as its patience lasts.
      answered_ = false;
      for (int i = 0; i < 1'000 && !answered_; ++i) {
        if (open_.value != 0) {
          Hear(env::CallFailed{.call = std::exchange(open_, {}),
                               .failure = env::CallFailure::kNotSent});
        }
        if (!answered_) Advance(client_.wake_at());
      }
      ASSERT_TRUE(answered_);
      last_.clear();
    } else {
      Hear(env::Response{.call = open_,
                         .response = {.status = std::stoi(word), .headers = {}, .body = Bytes()}});
    }
  }
  // Until something is sent, or nothing is due.
  void Wait() {
    for (int i = 0; i < 4 && open_.value == 0; ++i) {
      evictor.Pump(
          now,
          {.wanted = [&](const Evictor::Victim& v) { return v.preemptor.uid == wanted_for; },
           .goes_after = [&](const Evictor::Victim&) { return others_first; }},
          client_, out_);
      Sent();
      if (open_.value == 0) Advance(std::min(evictor.wake_at(), client_.wake_at()));
    }
  }
  void Advance(Instant at) {
    if (at == Instant::Never()) return;
    now = std::max(now, at);
    Hear(env::Tick{});
  }
  void Hear(const env::Input& input) {
    std::vector<client::Event> events;
    client_.Handle(now, input, out_, events);
    for (const client::Event& event : events) {
      open_ = {};
      answered_ = true;
      const auto result = evictor.OnCallDone(now, std::get<client::CallDone>(event));
      ASSERT_TRUE(result);
      for (const Evictor::Victim& v : evictor.TakeEvicted()) told_ += "!" + v.preemptor.uid;
      if (result->end == Evictor::Result::End::kRefused)
        told_ += fmt::format("!refused({})", result->code);
      if (result->end == Evictor::Result::End::kFailed)
        told_ += fmt::format("!failed({})", result->code);
    }
    Sent();
  }
  void Sent() {
    for (const env::Output& output : std::exchange(out_, {})) {
      const auto& send = std::get<env::SendRequest>(output);
      open_ = send.call;
      const bool mark = send.request.method == env::Method::kPatch;
      bodies.emplace_back(send.request.body.view());
      last_ = mark ? ":MARK" : ":DELETE";
    }
  }
  std::string Took() {
    for (const Evictor::Victim& v : evictor.TakeEvicted()) told_ += "!" + v.preemptor.uid;
    return std::exchange(told_, "") + std::exchange(last_, "");
  }

  client::Client client_{client::Options{}};
  env::Outbox out_;
  env::CallId open_;
  bool answered_ = false;
  std::string told_;
  std::string last_;
};

std::string Times(int count, std::string_view text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

TEST(Evictor, WhatComesOfEachAnswer) {
  const std::vector<std::string> conversations = {
      // Marked, deleted, told; and nothing is due any more.
      "evict:MARK 200:DELETE 200!m left",
      // The watch is quicker than the answer.
      "evict:MARK 200:DELETE left 200!m",
      "evict:MARK left 200",
      "evict:MARK 200:DELETE left lost!m",
      "evict:MARK 200:DELETE left 403",
      // Of unknown fate, in conflict, never sent: it is repeated while it is wanted.
      "evict:MARK 500:MARK 409:MARK lost:MARK unsent:MARK 200:DELETE 200!m",
      "evict:MARK 200:DELETE 500:DELETE 409:DELETE unsent:DELETE 200!m",
      "evict:MARK 200:DELETE 500:DELETE spared 409 evict:MARK",
      // Throttled: it is no refusal, and asked again.
      "evict:MARK 429:MARK 200:DELETE 429:DELETE 429:DELETE 200!m",
      "evict:MARK 200:DELETE spared 429 evict:MARK",
      // Gone by a deletion of which nothing was known, or by another's.
      "evict:MARK 200:DELETE lost:DELETE left 404!m",
      "evict:MARK 200:DELETE lost:DELETE 404!m left",
      "evict:MARK 200:DELETE 404 left",
      "evict:MARK 200:DELETE 409:DELETE left 409",
      // Refused.
      "evict:MARK 403!refused(403)",
      "evict:MARK 200:DELETE 422!refused(422)",
      // Another gets the room: nothing is done twice, and it is told for whom it was in the end.
      "evict:MARK 200:DELETE 200!m again left",
      "evict:MARK 200:DELETE again 200!h left",
      "evict:MARK again 200:DELETE 200!h",
      // Others go first, which is asked again before each write when something was heard.
      "others evict heard first:MARK 200:DELETE 200!m",
      "evict:MARK others 200 heard first:DELETE 200!m",
      "others evict spared heard evict first:MARK",
      "others evict left heard first",
      "others evict first:MARK others lost left heard",
      // Failures are of one write, in a row.
      "evict:MARK " + Times(7, "500:MARK ") + "200:DELETE " + Times(7, "500:DELETE ") +
          "500!failed(500)",
      "evict:MARK " + Times(6, "409:MARK ") + "unsent:MARK 409:MARK 409!failed(409) evict:MARK",
  };
  for (const std::string& conversation : conversations) {
    std::istringstream words(conversation);
    std::string script;
    for (std::string word; words >> word;) script += word.substr(0, word.find_first_of(":!")) + " ";
    Rig rig;
    EXPECT_EQ(rig.Play(script), conversation);
  }
}

// A mark that is repeated changes nothing, the time of its condition neither; who is marked is not
// marked again.
TEST(Evictor, AMarkIsTheSameEachTime) {
  Rig rig;
  rig.Play("evict 500 lost 200");
  ASSERT_EQ(rig.bodies.size(), 4u);
  EXPECT_EQ(rig.bodies[0], rig.bodies[1]);
  EXPECT_EQ(rig.bodies[0], rig.bodies[2]);
  EXPECT_NE(rig.bodies[0].find("1970-01-01T00:16:40Z"), std::string::npos);
  Rig again;
  again.marked = true;
  EXPECT_EQ(again.Play("evict 200"), "evict:DELETE 200!m");
}

TEST(Evictor, CountsWhatBecameOfThem) {
  Rig rig;
  rig.Play("evict 500 200 unsent 200 left evict 403 evict 409 spared 409");
  const Evictor::Counters& counters = rig.evictor.counters();
  EXPECT_EQ(counters.evicted, 1u);
  EXPECT_EQ(counters.refused, 1u);
  EXPECT_EQ(counters.unknown, 3u);
  EXPECT_EQ(counters.not_sent, 1u);
  EXPECT_EQ(counters.spared, 1u);
  EXPECT_EQ(counters.given_up, 0u);
  EXPECT_EQ(rig.evictor.size(), 0u);
}

}  // namespace
}  // namespace berth::control
