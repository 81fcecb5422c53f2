// Goal: the files of an authority are made once, kept private, used again, renewed in time, and
// never overwritten when they are damaged; reading a file ends. Method: a temporary folder, a
// moving "now".
#include "net/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "net/kubeconfig.h"
#include "testing/files.h"

namespace berth::net {
namespace {

using ::testing::HasSubstr;

constexpr Instant kNow = Instant::FromSeconds(1'800'000'000);
constexpr int64_t kDay = 86'400;

class PkiTest : public ::testing::Test {
 protected:
  const berth::testing::TempFolder temporary_{"pki"};
  const std::filesystem::path& folder_ = temporary_.path();
};

TEST_F(PkiTest, IsMadeOnceAndKeysArePrivate) {
  const Result<Pki> first = LoadOrMakePki(folder_, "10.1.2.3", kNow);
  ASSERT_TRUE(first.has_value()) << first.error().message;
  const Result<Pki> second = LoadOrMakePki(folder_, "10.1.2.3", kNow + Duration::Seconds(kDay));
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(first->authority.key_pem, second->authority.key_pem);
  EXPECT_EQ(first->server.certificate_pem, second->server.certificate_pem);
  EXPECT_EQ(first->admin.certificate_pem, second->admin.certificate_pem);
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    struct stat status{};
    ASSERT_EQ(stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U) << entry.path();
  }
  EXPECT_TRUE(CheckCertificate(first->authority, first->server.certificate_pem,
                               {"localhost", "127.0.0.1", "::1", "10.1.2.3"}, kNow));
}

TEST_F(PkiTest, TheServersIsRenewedBeforeItExpiresAndForAnotherHost) {
  const Result<Pki> first = LoadOrMakePki(folder_, "127.0.0.1", kNow);
  ASSERT_TRUE(first.has_value());
  const Result<Pki> later =
      LoadOrMakePki(folder_, "127.0.0.1", kNow + Duration::Seconds(340 * kDay));
  ASSERT_TRUE(later.has_value());
  EXPECT_EQ(first->authority.certificate_pem, later->authority.certificate_pem);
  EXPECT_NE(first->server.certificate_pem, later->server.certificate_pem);
  const Result<Pki> moved =
      LoadOrMakePki(folder_, "berth.example", kNow + Duration::Seconds(340 * kDay));
  ASSERT_TRUE(moved.has_value());
  EXPECT_NE(moved->server.certificate_pem, later->server.certificate_pem);
  EXPECT_EQ(moved->admin.certificate_pem, later->admin.certificate_pem);
}

TEST_F(PkiTest, DamagedFilesAreRefusedAndLeft) {
  ASSERT_TRUE(LoadOrMakePki(folder_, "127.0.0.1", kNow).has_value());
  ASSERT_TRUE(WritePrivateFile(folder_ / "ca.key", "no key").has_value());
  const Result<Pki> damaged = LoadOrMakePki(folder_, "127.0.0.1", kNow);
  ASSERT_FALSE(damaged.has_value());
  EXPECT_EQ(damaged.error().code, ErrorCode::kDamaged);
  EXPECT_THAT(damaged.error().message, HasSubstr("ca.key"));
  EXPECT_EQ(ReadFile(folder_ / "ca.key").value(), "no key");
}

TEST_F(PkiTest, AnAuthorityThatClientsTrustIsNotReplaced) {
  const Result<Pki> first = LoadOrMakePki(folder_, "127.0.0.1", kNow);
  ASSERT_TRUE(first.has_value());
  std::filesystem::remove(folder_ / "ca.key");
  const Result<Pki> gone = LoadOrMakePki(folder_, "127.0.0.1", kNow);
  ASSERT_FALSE(gone.has_value());
  EXPECT_THAT(gone.error().message, HasSubstr("ca.key"));
  EXPECT_EQ(ReadFile(folder_ / "ca.crt").value(), first->authority.certificate_pem);
  std::filesystem::remove(folder_ / "server.crt");
  EXPECT_TRUE(LoadOrMakePki(folder_, "127.0.0.1", kNow).has_value());
}

// Whatever a path names, reading it ends.
TEST(Files, AreReadUpToALimit) {
  EXPECT_THAT(ReadFile("/dev/zero", 100'000).error().message,
              HasSubstr("larger than 100000 bytes"));
  EXPECT_EQ(ReadFile("/dev/null"), "");
  const berth::testing::TempFolder folder("files");
  const std::filesystem::path path = folder.path() / "a";
  std::ofstream(path) << std::string(70'000, 'x');
  EXPECT_EQ(ReadFile(path, 70'000)->size(), 70'000u);
  EXPECT_FALSE(ReadFile(path, 69'999).has_value());
  const std::filesystem::path pipe = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(ReadFile(pipe).error().message, HasSubstr("is a named pipe"));
}

TEST(Kubeconfig, HoldsWhatItIsToldAndNothingElse) {
  const std::string text = KubeconfigText({.server = "https://[::1]:7443",
                                           .authority_pem = "ca",
                                           .token = "tok",
                                           .certificate_pem = "",
                                           .key_pem = ""});
  EXPECT_THAT(text, HasSubstr("server: https://[::1]:7443\n"));
  EXPECT_THAT(text, HasSubstr("certificate-authority-data: Y2E=\n"));
  EXPECT_THAT(text, HasSubstr("token: tok\n"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("client-")));
}

TEST(Base64, PadsAsRfc4648Section10Shows) {
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foobar"), "Zm9vYmFy");
}

}  // namespace
}  // namespace berth::net
