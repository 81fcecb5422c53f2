// Goal: the demo submits its whole plan once, basics first, the same for one seed; counts each pod
// in one place; and knows when it has run. Method: a toy API server that lists nothing, takes all
// writes, and streams what the test says.
#include "cli/demo.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using ::testing::HasSubstr;

class Toy {
 public:
  explicit Toy(uint64_t seed) : demo_(Options(seed)) {}

  // Runs until `end`, with a tick whenever one is wanted.
  void RunUntil(Instant end) {
    for (int guard = 0; guard < 100'000; ++guard) {
      Drain();
      if (demo_.wake_at() > end) break;
      now_ = std::max(now_, demo_.wake_at());
      Give(env::Tick{});
    }
    now_ = std::max(now_, end);
  }
  void Pod(const std::string& type, int number, const std::string& node, const std::string& phase) {
    Stream(pods_watch_, type, PodText(number, node, phase));
  }

  std::vector<std::string> writes;
  bool left_over = false;  // A pod is there when the demo lists.
  [[nodiscard]] DemoProgress progress() const { return demo_.progress(); }
  Instant now_ = Instant::FromSeconds(1000);

 private:
  std::string PodText(int number, const std::string& node, const std::string& phase) {
    return fmt::format(
        R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p{}","namespace":"vision","uid":"u{}","resourceVersion":"{}"}},)"
        R"("spec":{{"nodeName":"{}","containers":[{{"name":"c","resources":{{"requests":{{"cpu":"2"}}}}}}]}},"status":{{"phase":"{}"}}}})",
        number, number, ++version_, node, phase);
  }
  static DemoOptions Options(uint64_t seed) {
    DemoOptions options;
    options.seed = seed;
    options.nodes = 10;
    return options;
  }
  void Stream(env::CallId watch, const std::string& type, const std::string& object) {
    Give(env::StreamData{
        watch, Bytes(fmt::format(R"({{"type":"{}","object":{}}})", type, object) + "\n")});
    Drain();
  }
  void Give(env::Input input) { demo_.Step(now_, std::move(input), out_); }
  void Drain() {
    while (!out_.empty()) {
      env::Outbox out;
      out.swap(out_);
      for (env::Output& output : out) {
        if (const auto* send = std::get_if<env::SendRequest>(&output)) Answer(*send);
      }
    }
  }
  void Answer(const env::SendRequest& send) {
    const std::string& target = send.request.target;
    if (send.stream) {
      if (target.find("/pods") != std::string::npos) pods_watch_ = send.call;
      Give(env::Response{send.call, {.status = 200, .headers = {}, .body = {}}});
    } else if (send.request.method == env::Method::kGet) {
      const bool pod = left_over && target.find("/pods") != std::string::npos;
      Give(env::Response{
          send.call,
          {200,
           {},
           Bytes(
               fmt::format(R"({{"kind":"List","metadata":{{"resourceVersion":"1"}},"items":[{}]}})",
                           pod ? PodText(1, "n1", "Running") : ""))}});
    } else {
      writes.push_back(target + " " + std::string(send.request.body.view()));
      Give(env::Response{send.call, {201, {}, Bytes("{}")}});
    }
  }

  Demo demo_;
  env::Outbox out_;
  env::CallId pods_watch_;
  int version_ = 1;
};

TEST(Demo, SubmitsItsWholePlanBasicsFirstAndTheSameForOneSeed) {
  Toy a(7);
  a.RunUntil(a.now_ + Duration::Seconds(50));
  Toy b(7);
  b.RunUntil(b.now_ + Duration::Seconds(50));
  Toy c(8);
  c.RunUntil(c.now_ + Duration::Seconds(50));
  EXPECT_EQ(a.writes, b.writes);
  EXPECT_NE(a.writes, c.writes);
  ASSERT_GT(a.writes.size(), 20U);
  for (int i = 0; i < 4; ++i)
    EXPECT_THAT(a.writes[static_cast<size_t>(i)], HasSubstr("\"kind\":\"Namespace\""));
  const DemoProgress progress = a.progress();
  EXPECT_EQ(progress.workloads_submitted, progress.workloads_planned);
  EXPECT_FALSE(progress.finished);
}

TEST(Demo, CountsEachPodInOnePlaceFromFirstSightToItsEnd) {
  Toy toy(7);
  toy.RunUntil(toy.now_ + Duration::Seconds(1));
  toy.Pod("ADDED", 1, "", "Pending");
  EXPECT_EQ(toy.progress().waiting, 1);
  toy.now_ = toy.now_ + Duration::Milliseconds(20);
  toy.Pod("MODIFIED", 1, "n1", "Pending");
  EXPECT_EQ(toy.progress().waiting, 0);
  EXPECT_EQ(toy.progress().starting, 1);
  EXPECT_EQ(toy.progress().cpu_milli_placed, 2000);
  EXPECT_EQ(toy.progress().bind_p50, Duration::Milliseconds(20));
  toy.Pod("MODIFIED", 1, "n1", "Running");
  EXPECT_EQ(toy.progress().running, 1);
  EXPECT_EQ(toy.progress().teams.at("vision").first, 1);
  toy.Pod("MODIFIED", 1, "n1", "Succeeded");
  EXPECT_EQ(toy.progress().running, 0);
  EXPECT_EQ(toy.progress().cpu_milli_placed, 0);
  toy.Pod("DELETED", 1, "n1", "Succeeded");
  EXPECT_EQ(toy.progress().succeeded, 1);
  EXPECT_EQ(toy.progress().pods_seen, 1);
}

TEST(Demo, GivesUpWhenNothingChangesForLong) {
  Toy toy(7);
  toy.RunUntil(toy.now_ + Duration::Seconds(60));
  EXPECT_FALSE(toy.progress().finished);
  toy.RunUntil(toy.now_ + Duration::Seconds(60));
  EXPECT_TRUE(toy.progress().finished);
  EXPECT_FALSE(toy.progress().complete);
  EXPECT_THAT(DemoSummary(toy.progress()), HasSubstr("did not come to its end"));
}

TEST(Demo, SummaryAddsUpToThePodsSeen) {
  const DemoProgress progress{.pods_seen = 1544,
                              .waiting = 1,
                              .starting = 2,
                              .running = 31,
                              .succeeded = 433,
                              .failed = 4,
                              .gone = 1073};
  EXPECT_THAT(DemoSummary(progress), HasSubstr("1,544 pods\n"));
  EXPECT_THAT(DemoSummary(progress),
              HasSubstr("433 succeeded, 4 failed as planned, 31 running, 1 waiting, 2 starting, "
                        "1,073 deleted by updates and scaling\n"));
}

TEST(Demo, ShowsOneLineOrABlockOfAlwaysAsManyLines) {
  DemoProgress progress;
  progress.elapsed = Duration::Seconds(12);
  progress.cpu_milli_total = 1000;
  progress.cpu_milli_placed = 500;
  EXPECT_THAT(DemoLine(progress), HasSubstr("cpu 50 %\n"));
  const std::string block = DemoBlock(progress, 200);
  EXPECT_THAT(block, HasSubstr("[####################                    ]  50 %"));
  progress.reasons["100 Insufficient cpu"] = 3;
  progress.reasons[std::string(300, 'x')] = 2;
  const std::string narrow = DemoBlock(progress, 60);
  EXPECT_EQ(std::count(block.begin(), block.end(), '\n'),
            std::count(narrow.begin(), narrow.end(), '\n'));
  EXPECT_THAT(narrow, HasSubstr("    3 pods: 100 Insufficient cpu\n"));
  size_t longest = 0;
  size_t begin = 0;
  for (size_t end = 0; (end = narrow.find('\n', begin)) != std::string::npos; begin = end + 1)
    longest = std::max(longest, end - begin);
  EXPECT_EQ(longest, 60U);
}

TEST(Demo, DeletesWhatAnEarlierDemoLeftBeforeItBegins) {
  Toy toy(7);
  toy.left_over = true;
  toy.RunUntil(toy.now_ + Duration::Seconds(3));
  EXPECT_TRUE(toy.progress().clearing);
  ASSERT_EQ(toy.writes.size(), 8U);
  EXPECT_THAT(toy.writes[0],
              HasSubstr("/apis/apps/v1/namespaces/vision/deployments?labelSelector="));
  EXPECT_THAT(toy.writes[0], HasSubstr("Background"));
  toy.Pod("DELETED", 1, "n1", "Running");
  toy.RunUntil(toy.now_ + Duration::Seconds(50));
  EXPECT_FALSE(toy.progress().clearing);
  EXPECT_THAT(toy.writes[8], HasSubstr("\"kind\":\"Namespace\""));
  EXPECT_EQ(toy.progress().pods_seen, 0);
  EXPECT_EQ(toy.progress().workloads_submitted, toy.progress().workloads_planned);
}

}  // namespace
}  // namespace berth::cli
