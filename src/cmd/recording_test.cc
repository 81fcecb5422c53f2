// Goal: what a recording says that its scheduler was made of is what another is made of, without
// secrets; and `berth replay record` says whether it did the same, where not and why, or what is
// wrong with the file. Method: headers printed and read; files that a scheduler wrote in a folder of
// the test's own, as they are, changed, cut, and none; exit code, stdout and stderr.
#include "cmd/recording.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cli/command_line.h"
#include "cmd/commands.h"
#include "cmd/extenders.h"
#include "env/recording.h"
#include "testing/files.h"

namespace berth::cmd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Instant kNow = Instant::FromSeconds(1'767'225'600);

SchedulerSetup MadeOf() {
  SchedulerSetup setup{.scheduler_names = {"a", "b"}, .quota = true, .configz = R"({"a":1})"};
  setup.client.user_agent = "berth-scheduler";
  setup.client.base_path = "/proxy";
  setup.client.host = "10.0.0.1:6443";
  setup.client.seed = UINT64_MAX;
  setup.client.calls_in_flight_max = 32;
  setup.leader = control::LeaderElectionOptions{.identity = "host_1",
                                                .namespace_name = "n",
                                                .name = "l",
                                                .lease_duration = Duration::Seconds(20),
                                                .client = setup.client};
  setup.leader->client.seed = 7;
  return setup;
}

class RecordingCommand : public ::testing::Test {
 protected:
  std::string File(const std::string& name, std::string_view text) {
    std::ofstream(folder_.path() / name, std::ios::binary) << text;
    return folder_.path() / name;
  }
  struct Ran {
    int code = 0;
    std::string out;
    std::string err;
  };
  // What a recording says that the scheduler of this file was made of.
  static Result<RecordingHeader> ReadBack(const std::string& path, const SchedulerSetup& setup) {
    const Result<ConfigurationSource> source = SourceOf(path, {}, setup.configuration);
    if (!source) return std::unexpected(source.error());
    return ReadHeader(PrintHeader(setup, *source, kNow));
  }
  static Ran Run(const cli::ReplayRecordOptions& options) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    Ran ran{.code = ReplayRecord(options)};
    ran.out = ::testing::internal::GetCapturedStdout();
    ran.err = ::testing::internal::GetCapturedStderr();
    return ran;
  }

  const berth::testing::TempFolder folder_{"recording"};
};

// ---- The header -------------------------------------------------------------------------------

TEST_F(RecordingCommand, TheHeaderSaysAllThatASchedulerIsMadeOf) {
  const std::string path = File("config.yaml",
                                "apiVersion: config.berth.dev/v1alpha1\nkind: BerthConfiguration\n"
                                "compat: true  # a note with a secret\nplacement: separate\n");
  SchedulerSetup setup = MadeOf();
  setup.configuration = ReadConfiguration(path, {}).value();
  const Result<ConfigurationSource> source = SourceOf(path, {}, setup.configuration);
  ASSERT_TRUE(source.has_value()) << source.error().message;
  const std::string text = PrintHeader(setup, *source, kNow);
  EXPECT_THAT(text, Not(HasSubstr("secret")));
  const Result<RecordingHeader> header = ReadHeader(text);
  ASSERT_TRUE(header.has_value()) << header.error().message;
  EXPECT_EQ(header->started_at, kNow);
  EXPECT_FALSE(header->version.empty());
  EXPECT_FALSE(header->commit.empty());
  EXPECT_EQ(header->setup.configuration, setup.configuration);
  EXPECT_TRUE(header->setup.configuration.compat);
  // What is read is printed as the same: nothing is lost.
  EXPECT_EQ(PrintHeader(header->setup, *source, kNow), text);
  const control::SchedulerOptions options = OptionsOf(header->setup);
  EXPECT_EQ(options.scheduler_names, setup.scheduler_names);
  EXPECT_TRUE(options.quota);
  EXPECT_TRUE(options.engine.compat);
  EXPECT_EQ(options.client.seed, UINT64_MAX);
  EXPECT_EQ(options.client.host, "10.0.0.1:6443");  // A label of what /metrics answers.
  EXPECT_EQ(options.leader_election->client.seed, 7u);
  EXPECT_EQ(options.leader_election->client.base_path, "/proxy");
}

TEST_F(RecordingCommand, BothDocumentsOfAFileAreAmongIt) {
  const std::string path = File("config.yaml",
                                "apiVersion: kubescheduler.config.k8s.io/v1\n"
                                "kind: KubeSchedulerConfiguration\n"
                                "profiles: [{schedulerName: packs}]\n---\n"
                                "apiVersion: config.berth.dev/v1alpha1\nkind: BerthConfiguration\n"
                                "compat: true\n");
  SchedulerSetup setup;
  setup.configuration = ReadConfiguration(path, {}).value();
  const Result<RecordingHeader> header = ReadBack(path, setup);
  ASSERT_TRUE(header.has_value()) << header.error().message;
  EXPECT_EQ(header->setup.configuration, setup.configuration);
  EXPECT_TRUE(OptionsOf(header->setup).engine.compat);
  EXPECT_EQ(OptionsOf(header->setup).scheduler_names, std::vector<std::string>{"packs"});
}

TEST_F(RecordingCommand, ProfilesAndGatesAreAmongIt) {
  const std::string path = File("config.yaml",
                                "apiVersion: kubescheduler.config.k8s.io/v1\n"
                                "kind: KubeSchedulerConfiguration\nprofiles:\n"
                                "- schedulerName: packs\n  pluginConfig:\n"
                                "  - name: NodeResourcesFit\n    args:\n"
                                "      scoringStrategy: {type: MostAllocated}\n");
  SchedulerSetup setup;
  setup.configuration = ReadConfiguration(path, {}).value();
  const Result<RecordingHeader> header = ReadBack(path, setup);
  ASSERT_TRUE(header.has_value()) << header.error().message;
  EXPECT_EQ(header->setup.configuration, setup.configuration);
  EXPECT_EQ(OptionsOf(header->setup).engine.profiles, OptionsOf(setup).engine.profiles);
  EXPECT_EQ(OptionsOf(header->setup).engine.profiles.size(), 1u);
  // It changed while berth started.
  File("config.yaml", "apiVersion: config.berth.dev/v1alpha1\nkind: BerthConfiguration\n");
  const Result<ConfigurationSource> changed = SourceOf(path, {}, setup.configuration);
  ASSERT_FALSE(changed.has_value());
  EXPECT_THAT(changed.error().message, HasSubstr("config.yaml: can't be recorded"));
}

// A replay asks nobody, and has no need of their keys.
TEST_F(RecordingCommand, ExtendersAreAmongItWithoutTheirFiles) {
  const std::string authority = File("ca.pem", "authority");
  const std::string path = File(
      "config.yaml",
      fmt::format("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
                  "extenders:\n- {{urlPrefix: 'https://e:8443/x', filterVerb: f, httpTimeout: 3s, "
                  "ignorable: true, tlsConfig: {{caFile: {}}}}}\n",
                  authority));
  SchedulerSetup setup;
  setup.configuration = ReadConfiguration(path, {}).value();
  setup.extenders = ExtendersOf(*setup.configuration.scheduler, ExtenderFiles::kRead).value();
  EXPECT_EQ(setup.extenders.at(0).to->authority_pem, "authority");
  const Result<ConfigurationSource> source = SourceOf(path, {}, setup.configuration);
  ASSERT_TRUE(source.has_value()) << source.error().message;
  std::filesystem::remove(authority);
  const Result<RecordingHeader> header = ReadHeader(PrintHeader(setup, *source, kNow));
  ASSERT_TRUE(header.has_value()) << header.error().message;
  const control::SchedulerOptions options = OptionsOf(header->setup);
  ASSERT_EQ(options.extenders.size(), 1u);
  const control::ExtenderOptions& extender = options.extenders.front();
  EXPECT_EQ(extender.url, "https://e:8443/x");
  EXPECT_EQ(extender.to->port, 8443);
  EXPECT_EQ(extender.to->authority_pem, "");
  EXPECT_EQ(extender.filter_verb, "f");
  EXPECT_EQ(extender.timeout, Duration::Seconds(3));
  EXPECT_TRUE(extender.ignorable);
  EXPECT_EQ(options.engine.queries_max, OptionsOf(setup).engine.queries_max);
}

TEST_F(RecordingCommand, AHeaderThatLacksSomethingSaysWhat) {
  EXPECT_EQ(ReadHeader("[]").error().message, "the header is no object");
  EXPECT_EQ(ReadHeader("{}").error().message, "the header has no text berth");
  std::string text = PrintHeader(MadeOf(), {}, kNow);
  text.replace(text.find("\"renewDeadline\":10"), 18, "\"renewDeadline\":90");
  EXPECT_THAT(ReadHeader(text).error().message, HasSubstr("renew"));
}

// ---- The command ------------------------------------------------------------------------------

// A scheduler that can't reach its server: ticks and failures, a question, and a watch's answer.
std::string Recording(const std::function<void(size_t, env::RecordedStep&)>& change = {},
                      bool ends = true) {
  SchedulerSetup setup = MadeOf();
  const auto scheduler = MakeScheduler(setup);
  std::string items;
  size_t number = 0;
  std::vector<env::Input> next = {env::Tick{}};
  for (int round = 0; round < 20; ++round) {
    for (env::Input& input : std::exchange(next, {})) {
      env::RecordedStep step{.now = kNow + Duration::Seconds(round), .input = input, .outputs = {}};
      scheduler->Step(step.now, std::move(input), step.outputs);
      for (const env::Output& output : step.outputs) {
        if (const auto* send = std::get_if<env::SendRequest>(&output))
          next.emplace_back(
              env::CallFailed{.call = send->call, .failure = env::CallFailure::kLost});
      }
      if (change) change(++number, step);
      env::AppendStep(step, items);
    }
    next.emplace_back(env::Tick{});
  }
  if (ends) env::AppendEnd("the process ended", items);
  return env::RecordingStart(PrintHeader(setup, {}, kNow)) +
         env::SealBlock(items, env::BlockMethod::kDeflated);
}

TEST_F(RecordingCommand, SaysThatAllIsEqualAndHowItEnded) {
  const Ran ran = Run({.file = File("rec", Recording())});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("recorded from 2026-01-01T00:00:00.000000Z by berth "));
  EXPECT_THAT(ran.out, HasSubstr("equal: "));
  EXPECT_THAT(ran.out, HasSubstr("the recording ended: the process ended"));
  const Ran torn = Run({.file = File("torn", Recording({}, /*ends=*/false) + "torn")});
  EXPECT_EQ(torn.code, 0) << torn.err;
  EXPECT_THAT(torn.out, HasSubstr("has no end: the scheduler was killed, or runs still; 4 bytes"));
}

TEST_F(RecordingCommand, NamesTheFirstDifferenceWithBothTexts) {
  const std::string recording = Recording([](size_t number, env::RecordedStep& step) {
    if (number == 5) step.outputs.emplace_back(env::CancelCall{{12'345}});
  });
  const Ran ran = Run({.file = File("rec", recording)});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("input 5: call "));
  EXPECT_THAT(ran.out, HasSubstr("recorded: cancel call 12345\nreplayed: nothing\n"));
  EXPECT_THAT(ran.out, HasSubstr("at 2026-01-01T00:00:0"));
  // Before it nothing differs.
  EXPECT_EQ(Run({.file = folder_.path() / "rec", .until_number = 4}).code, 0);
}

TEST_F(RecordingCommand, EndsWhereItIsToldAndAnswersThere) {
  const std::string file = File("rec", Recording());
  const Ran by_number = Run({.file = file, .until_number = 3});
  EXPECT_THAT(by_number.out, HasSubstr("equal: 3 inputs"));
  EXPECT_THAT(by_number.out, Not(HasSubstr("recording ended")));
  const Ran by_time = Run({.file = file, .until_time = kNow + Duration::Seconds(2)});
  EXPECT_THAT(by_time.out, HasSubstr("to 2026-01-01T00:00:02.000000Z"));
  const Ran why = Run({.file = file, .why = "a/b"});
  EXPECT_EQ(why.code, 2);
  EXPECT_THAT(why.err, HasSubstr("a/b"));  // No such pod was ever heard of.
}

TEST_F(RecordingCommand, SaysWhatIsWrongWithAFile) {
  const auto error = [&](const std::string& file) {
    const Ran ran = Run({.file = file});
    EXPECT_EQ(ran.code, 2) << file;
    return ran.err;
  };
  EXPECT_THAT(error(folder_.path() / "none"), HasSubstr("none: can't be read: No such file"));
  EXPECT_THAT(error(folder_.path()), HasSubstr("is a directory"));
  EXPECT_THAT(error(File("notes", "notes")), HasSubstr("notes is no recording of berth"));
  EXPECT_THAT(error(File("empty", "")), HasSubstr("empty is no recording of berth"));
  EXPECT_THAT(error(File("other", env::RecordingStart("{}"))),
              HasSubstr("other can't be replayed: the header has no text berth"));
  std::string newer = Recording();
  newer[env::kRecordingMagic.size()] = 9;
  EXPECT_THAT(error(File("newer", newer)), HasSubstr("newer is a recording of form 9"));
  std::string damaged = Recording();
  damaged[damaged.size() - 9] = static_cast<char>(damaged[damaged.size() - 9] ^ 1);
  EXPECT_THAT(error(File("damaged", damaged)), HasSubstr("damaged is damaged at byte"));
}

}  // namespace
}  // namespace berth::cmd
