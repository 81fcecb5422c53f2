#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "config/effects.h"
#include "config/profile.h"
#include "config/scheduler_configuration.h"
#include "testing/datadriven.h"

// Goal: what becomes of a KubeSchedulerConfiguration, and why, as files that a reader can check
// against kube-scheduler's documents. Method: testdata/*.txt; the input's first two lines, which
// say what it is, are put before it unless `whole` is given.
//
//   profiles [whole] [gates=A=true,B=false]   which plugins act where, by whom
//   problems                                  what is wrong with it; OK when nothing is
//   check [all]                               what each setting becomes; only those that are not
//                                             as without a file, unless `all`
//   print                                     as YAML, which reads back as the same
namespace berth::config {
namespace {

std::string Handle(const testing::Directive& d) {
  const auto gates = FeatureGates::Parse({d.Value("gates")});
  if (!gates) return fmt::format("{}", fmt::join(gates.error(), "\n"));
  const std::string text = d.Has("whole") ? d.input
                                          : fmt::format("apiVersion: {}\nkind: {}\n{}\n",
                                                        kSchedulerVersion, kSchedulerKind, d.input);
  const auto read = ReadSchedulerConfiguration(text, *gates);
  if (!read) return fmt::format("{}", fmt::join(read.error(), "\n"));
  if (d.command == "problems") return "OK";
  if (d.command == "check") {
    std::vector<Setting> settings = Explain(*read, *gates);
    const std::vector<Setting> usual = Explain(DefaultSchedulerConfiguration());
    std::erase_if(settings, [&](const Setting& setting) {
      return !d.Has("all") && std::ranges::find(usual, setting) != usual.end();
    });
    return Text(settings);
  }
  if (d.command == "print") {
    const std::string printed = PrintSchedulerConfiguration(*read, *gates);
    const auto again = ReadSchedulerConfiguration(printed, *gates);
    if (!again) return fmt::format("{}", fmt::join(again.error(), "\n"));
    EXPECT_EQ(PrintSchedulerConfiguration(*again, *gates), printed);
    return printed;
  }
  std::string out;
  for (const Profile& profile : read->profiles) {
    out += fmt::format("{}\n{}", *profile.scheduler_name, Text(Expand(profile, *gates)));
  }
  return out;
}

TEST(SchedulerConfigurationTest, GoldenFiles) {
  for (const std::string& path : testing::GoldenFiles(BERTH_TESTDATA)) {
    SCOPED_TRACE(path);
    testing::RunGoldenFile(path, Handle);
  }
}

}  // namespace
}  // namespace berth::config
