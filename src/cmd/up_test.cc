// Goal: `berth up` starts no empty cluster where another one has lost its journal. Method: folders
// that no start can succeed in; exit code, message and what is left in them are read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "cli/command_line.h"
#include "cmd/commands.h"
#include "testing/files.h"

namespace berth::cmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class UpCommand : public ::testing::Test {
 protected:
  void File(const std::string& name, std::string_view text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  // REQUIRES: the start fails; it would serve until a signal otherwise.
  std::string Refusal() {
    cli::UpOptions options;
    options.data_dir = folder_;
    options.port = 0;
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(Up(options), cli::kFailed);
    return ::testing::internal::GetCapturedStderr();
  }

  const berth::testing::TempFolder temporary_{"up"};
  const std::filesystem::path& folder_ = temporary_.path();
};

TEST_F(UpCommand, RefusesCertificatesWithoutTheJournalThatWasBesideThem) {
  File("ca.crt", "no certificate");
  File("ca.key", "no key");
  for (int start = 0; start < 2; ++start) {
    EXPECT_THAT(Refusal(), AllOf(HasSubstr("journal.db is missing beside certificates made at 20"),
                                 HasSubstr("restore it, or remove " + folder_.string())));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "journal.db"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "token"));
  }
  File("journal.db-wal", "writes");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("restore it to its log, journal.db-wal, which has the "),
                               HasSubstr("or move away " + folder_.string())));
}

TEST_F(UpCommand, ClosesWhatOthersCouldRead) {
  File("token", "no token");
  std::filesystem::permissions(folder_ / "token", std::filesystem::perms(0644));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("token may have been read by others (mode 644)"),
                               HasSubstr("its mode is now 600")));
  EXPECT_EQ(std::filesystem::status(folder_ / "token").permissions(), std::filesystem::perms(0600));
  EXPECT_THAT(Refusal(), Not(HasSubstr("read by others")));
}

TEST_F(UpCommand, LeavesNoCertificatesAloneWhenTheFirstStartFails) {
  File("token", "no token");
  EXPECT_THAT(Refusal(), HasSubstr("is no token"));
  ASSERT_TRUE(std::filesystem::exists(folder_ / "ca.crt"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "journal.db"));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("is no token"), Not(HasSubstr("missing"))));
}

}  // namespace
}  // namespace berth::cmd
