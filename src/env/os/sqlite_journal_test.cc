// Goal: the journal gives back exactly what was acknowledged, survives kill -9 at any point, and
// refuses, without touching it, a file that is damaged, newer, foreign, in use or not writable.
// Method: a model (a map) beside random appends; a child process killed in the middle of appending,
// or at what SQLite does to a file; files truncated and flipped bit by bit in many places.
#include "env/os/sqlite_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>

#include "base/prng.h"
#include "env/os/end_mark.h"
#include "env/os/watched_vfs.h"
#include "testing/files.h"

namespace berth::env::os {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Lt;

namespace fs = std::filesystem;

class JournalTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<SqliteJournal>> Open(Durability durability = Durability::kProcess,
                                              LostWrites lost = LostWrites::kRefuse) {
    recovered_ = {};
    return SqliteJournal::Open(
        path_, {.durability = durability, .lost_writes = lost, .free_bytes = {}}, recovered_);
  }
  // Of a journal that was left with `path_` and its companions as they stand.
  void ExpectLoss(const char* part, const ::testing::Matcher<size_t>& left) {
    const std::string before = Read(path_);
    {
      const auto journal = Open();
      ASSERT_FALSE(journal.has_value()) << recovered_.records.size() << " records";
      EXPECT_EQ(journal.error().code, ErrorCode::kDamaged);
      EXPECT_THAT(journal.error().message, HasSubstr(part));
      EXPECT_THAT(journal.error().message, HasSubstr("--accept-lost-writes"));
    }
    EXPECT_EQ(Read(path_), before) << "a refused file was changed";
    {
      const auto journal = Open(Durability::kProcess, LostWrites::kAccept);
      ASSERT_TRUE(journal.has_value()) << journal.error().message;
      EXPECT_THAT(recovered_.records.size(), left);
      EXPECT_NE(recovered_.warning, "");
    }
    // Accepted once, and no more spoken of.
    EXPECT_TRUE(Open().has_value());
    EXPECT_EQ(recovered_.warning, "");
  }
  // Opens, appends `count` pods of one record each, leaves the log as kill -9 would.
  void FillAndKill(int count) {
    const pid_t child = fork();
    if (child == 0) {
      auto journal = Open();
      if (!journal) _exit(1);
      for (int i = 1; i <= count; ++i) {
        const AppendJournal one = Pod(i, "value " + std::to_string(i));
        if (!(*journal)->Append(std::span(&one, 1))) _exit(1);
      }
      kill(getpid(), SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
  }
  static AppendJournal Pod(int number, const std::string& value) {
    return {.sequence = static_cast<uint64_t>(number),
            .records = {{.key = "pods/default/p" + std::to_string(number),
                         .revision = static_cast<uint64_t>(number),
                         .value = Bytes(value + std::string(500, 'x'))}}};
  }
  // What is in the folder: each name with its bytes, or what it is instead of a file.
  std::map<std::string, std::string> Folder() const {
    std::map<std::string, std::string> files;
    for (const fs::directory_entry& each : fs::directory_iterator(folder_)) {
      files[each.path().filename()] =
          each.is_regular_file() ? "file " + Read(each.path()) : std::string("no file");
    }
    return files;
  }
  void Restore(const std::map<std::string, std::string>& files) {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    for (const auto& [name, bytes] : files) Write(folder_ / name, bytes.substr(5));
  }
  // Opens in a process of its own, which is killed at the first thing done to a file for which
  // `dies` holds.
  void OpenAndDie(Durability durability,
                  const std::function<bool(std::string_view, const std::string&)>& dies) {
    const pid_t child = fork();
    if (child == 0) {
      const WatchedVfs watched([&](std::string_view what, const std::string& path) {
        if (dies(what, path)) kill(getpid(), SIGKILL);
      });
      {
        const auto journal = Open(durability);
      }
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it did not come to that";
  }
  static std::string Read(const fs::path& path) { return berth::testing::ReadTestFile(path); }
  static void Write(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }

  const berth::testing::TempFolder temporary_{"journal"};
  const fs::path& folder_ = temporary_.path();
  fs::path path_ = folder_ / "journal.db";
  Recovered recovered_;
};

TEST_F(JournalTest, GivesBackWhatAModelHolds) {
  Prng prng(11);
  std::map<std::string, JournalRecord> model;
  uint64_t revision = 0;
  for (int round = 0; round < 10; ++round) {
    auto journal = Open(round % 2 == 0 ? Durability::kProcess : Durability::kDisk);
    ASSERT_TRUE(journal.has_value()) << journal.error().message;
    ASSERT_EQ(recovered_.last_revision, revision);
    std::map<std::string, JournalRecord> got;
    uint64_t last = 0;
    for (const JournalRecord& record : recovered_.records) {
      ASSERT_GT(record.revision, last);
      last = record.revision;
      got[record.key] = record;
    }
    ASSERT_EQ(got, model);
    for (int group = 0; group < 8; ++group) {
      std::vector<AppendJournal> appends(1 + prng.Below(3));
      for (AppendJournal& append : appends) {
        for (uint64_t i = prng.Below(6); i > 0; --i) {
          JournalRecord record{
              .key = "key" + std::to_string(prng.Below(20)), .revision = ++revision, .value = {}};
          if (!prng.Chance({1, 3})) record.value = Bytes(std::string(1 + prng.Below(40'000), 'v'));
          if (record.value.empty()) {
            model.erase(record.key);
          } else {
            model[record.key] = record;
          }
          append.records.push_back(std::move(record));
        }
      }
      ASSERT_TRUE((*journal)->Append(appends));
    }
  }
}

TEST_F(JournalTest, LosesNothingAcknowledgedToKillMinus9) {
  for (int round = 0; round < 5; ++round) {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      auto journal = Open();
      if (!journal) _exit(1);
      for (int i = 1;; ++i) {
        const AppendJournal one = Pod(i, "v");
        if (!(*journal)->Append(std::span(&one, 1))) _exit(1);
        if (write(pipe_ends[1], &i, sizeof(i)) != sizeof(i)) _exit(1);
      }
    }
    close(pipe_ends[1]);
    int acknowledged = 0;
    while (acknowledged < 20 + 50 * round &&
           read(pipe_ends[0], &acknowledged, sizeof(acknowledged)) == sizeof(acknowledged)) {
    }
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    for (int last = 0; read(pipe_ends[0], &last, sizeof(last)) == sizeof(last);)
      acknowledged = last;
    close(pipe_ends[0]);
    auto journal = Open();
    ASSERT_TRUE(journal.has_value()) << journal.error().message;
    EXPECT_GE(recovered_.records.size(), static_cast<size_t>(acknowledged));
    EXPECT_LE(recovered_.records.size(), static_cast<size_t>(acknowledged) + 1);
    EXPECT_EQ(recovered_.last_revision, recovered_.records.size());
  }
}

TEST_F(JournalTest, RefusesASecondProcess) {
  auto journal = Open();
  ASSERT_TRUE(journal.has_value());
  const pid_t child = fork();
  if (child == 0) {
    Recovered recovered;
    const auto second = SqliteJournal::Open(path_, {.durability = Durability::kProcess}, recovered);
    const bool refused =
        !second && second.error().code == ErrorCode::kUnavailable &&
        second.error().message.find("in use by another process") != std::string::npos;
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(JournalTest, IsInUseAndNotDamagedWhateverAnotherProcessSeesOfItsFiles) {
  auto journal = Open();
  ASSERT_TRUE(journal.has_value());
  for (int i = 1; i <= 3; ++i) {
    const AppendJournal one = Pod(i, "value");
    ASSERT_TRUE((*journal)->Append(std::span(&one, 1)));
  }
  // What is seen of a log that is being written: a head, a group, that do not match.
  const std::string log = path_.string() + "-wal";
  const std::string whole = Read(log);
  for (const size_t at : {size_t{17}, size_t{2000}}) {
    const pid_t child = fork();
    if (child == 0) {
      std::fstream file(log, std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(static_cast<std::streamoff>(at));
      file.put(static_cast<char>(whole[at] ^ 1));
      file.close();
      Recovered recovered;
      const auto second = SqliteJournal::Open(path_, {}, recovered);
      const bool in_use =
          !second && second.error().code == ErrorCode::kUnavailable &&
          second.error().message.find("in use by another process") != std::string::npos;
      if (!in_use && !second) fprintf(stderr, "%s\n", second.error().message.c_str());
      _exit(in_use ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 0) << "changed at " << at;
    std::fstream file(log, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(whole[at]);
  }
}

TEST_F(JournalTest, IsInUseToEachOfManyThatTryWhileItIsWritten) {
  auto journal = Open();
  ASSERT_TRUE(journal.has_value());
  const pid_t child = fork();
  if (child == 0) {
    int others = 0;
    for (int i = 0; i < 200; ++i) {
      Recovered recovered;
      const auto second = SqliteJournal::Open(path_, {}, recovered);
      if (second || second.error().code != ErrorCode::kUnavailable) ++others;
    }
    _exit(others == 0 ? 0 : 1);
  }
  int status = 0;
  for (int i = 1; waitpid(child, &status, WNOHANG) == 0; ++i) {
    const AppendJournal one = Pod(i, "value");
    ASSERT_TRUE((*journal)->Append(std::span(&one, 1)));
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// SQLite deletes the log beside a file of no pages, and plays back a rollback journal.
TEST_F(JournalTest, ARefusedStartChangesNoByteOfAnyFile) {
  FillAndKill(20);
  const std::map<std::string, std::string> whole = Folder();
  const std::string file = Read(path_);
  const std::string log = path_.string() + "-wal";
  const std::string rollback = path_.string() + "-journal";
  const std::string zero(1, '\0');
  // The head of a rollback journal: of `pages` pages of 16 KiB, in sectors of 512 bytes.
  const auto head = [&](char pages) {
    std::string text("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7\xff\xff\xff\xff", 12);
    for (const char last : {char{0}, pages}) text += std::string(3, '\0') + last;
    text += std::string("\0\0\x02\0\0\0\x40\0", 8);
    return text + std::string(512 - text.size(), '\0');
  };
  const auto pages = static_cast<char>(file.size() / 16'384);
  // A page of zeros, which sums up to the nonce, 0.
  const auto page = [&](char number) {
    return std::string(3, '\0') + number + std::string(16'384 + 4, '\0');
  };
  const std::vector<std::pair<const char*, std::function<void()>>> states = {
      {"empty", [&] { Write(path_, ""); }},
      {"one byte", [&] { Write(path_, zero); }},
      {"one byte of it", [&] { Write(path_, file.substr(0, 1)); }},
      {"half a head", [&] { Write(path_, file.substr(0, 50)); }},
      {"a head alone", [&] { Write(path_, file.substr(0, 99)); }},
      {"zeros", [&] { Write(path_, std::string(16'384, '\0')); }},
      {"rubbish", [&] { Write(path_, std::string(40'000, 'x')); }},
      {"no page size", [&] { Write(path_, file.substr(0, 16) + zero + zero + file.substr(18)); }},
      {"missing", [&] { fs::remove(path_); }},
      {"missing, without end", [&] { fs::remove(path_), fs::remove(path_.string() + "-end"); }},
      {"missing beside its end", [&] { fs::remove(path_), fs::remove(log); }},
      {"missing beside a rollback journal",
       [&] {
         for (const auto& [name, bytes] : whole) fs::remove(folder_ / name);
         Write(rollback, head(pages) + page(1));
       }},
      {"a folder", [&] { fs::remove(path_), fs::create_directory(path_); }},
      {"a folder for a log", [&] { fs::remove(log), fs::create_directory(log); }},
      {"empty beside a rollback journal",
       [&] { Write(path_, ""), fs::remove(log), Write(rollback, head(0)); }},
      {"a rollback journal of no kind", [&] { Write(rollback, "no journal at all"); }},
      {"a rollback journal of a shorter file", [&] { Write(rollback, head(1)); }},
      {"a rollback journal of a longer file", [&] { Write(rollback, head(9) + page(9)); }},
      {"a rollback journal of a first page of zeros",
       [&] { Write(rollback, head(pages) + page(1)); }},
      {"a rollback journal of another page", [&] { Write(rollback, head(pages) + page(2)); }},
      {"a rollback journal of many pages",
       [&] { Write(rollback, head(pages) + page(1) + page(2)); }},
      {"a log that is cut", [&] { fs::resize_file(log, fs::file_size(log) / 2); }},
      {"no log", [&] { fs::remove(log); }},
      {"an empty log", [&] { Write(log, ""); }},
      {"a link to its log",
       [&] {
         fs::rename(log, folder_ / "moved");
         fs::create_symlink(folder_ / "moved", log);
       }},
      {"no end and no log", [&] { fs::remove(log), fs::remove(path_.string() + "-end"); }},
  };
  for (const auto& [what, make] : states) {
    Restore(whole);
    make();
    const auto before = Folder();
    const auto journal = Open();
    EXPECT_FALSE(journal.has_value()) << what;
    EXPECT_TRUE(Folder() == before) << what << ": a file was changed";
    if (journal) continue;
    EXPECT_THAT(journal.error().message, HasSubstr("journal.db")) << what;
  }
  Restore(whole);
  ASSERT_TRUE(Open().has_value());
  EXPECT_EQ(recovered_.records.size(), 20U);
}

TEST_F(JournalTest, SurvivesAKillWhileItChangesItsMode) {
  FillAndKill(5);
  int kills = 0;
  // Once as it is opened, once as it is closed, which the child does at once.
  for (const int nth : {1, 2}) {
    int seen = 0;
    OpenAndDie(Durability::kDisk, [&](std::string_view what, const std::string& path) {
      if (what != "written" || path != path_) return false;
      const std::string rollback = Read(path_.string() + "-journal");
      return !rollback.empty() && rollback[0] != '\0' && ++seen == nth;
    });
    const std::string rollback = Read(path_.string() + "-journal");
    ASSERT_NE(rollback, "");
    ASSERT_NE(rollback[0], '\0');
    ++kills;
    ASSERT_TRUE(Open().has_value()) << "after kill " << nth;
    EXPECT_EQ(recovered_.records.size(), 5U);
    EXPECT_EQ(recovered_.warning, "");
  }
  EXPECT_EQ(kills, 2);
}

TEST_F(JournalTest, OfALinkLooksAtTheLogBesideTheFile) {
  FillAndKill(5);
  const fs::path elsewhere = folder_ / "elsewhere";
  fs::create_directory(elsewhere);
  for (const char* each : {"journal.db", "journal.db-wal", "journal.db-end"}) {
    fs::rename(folder_ / each, elsewhere / each);
  }
  fs::create_symlink(elsewhere / "journal.db", path_);
  fs::resize_file(elsewhere / "journal.db-wal", 60'000);
  const auto refused = Open();
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("writes up to 5 were acknowledged"));
}

TEST_F(JournalTest, RefusesNewerForeignAndEmptyFilesAndLeavesThem) {
  ASSERT_TRUE(Open().has_value());
  const auto change = [this](const char* sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(db);
  };
  const auto refused = [this](ErrorCode code, const char* part) {
    const std::string before = Read(path_);
    const auto journal = Open();
    ASSERT_FALSE(journal.has_value());
    EXPECT_EQ(journal.error().code, code);
    EXPECT_THAT(journal.error().message, HasSubstr(part));
    EXPECT_EQ(Read(path_), before);
  };
  change("PRAGMA user_version=3");
  refused(ErrorCode::kRefused, "has format 3, made by a newer berth");
  change("PRAGMA user_version=1");
  refused(ErrorCode::kRefused, "has format 1, made by an older berth");
  change("PRAGMA user_version=0");
  refused(ErrorCode::kDamaged, "format 0 never was");
  change("PRAGMA user_version=2; PRAGMA application_id=7");
  refused(ErrorCode::kRefused, "is not a file of berth");
  Write(path_, "");
  refused(ErrorCode::kDamaged, "it is empty");
  Write(path_,
        "this is no database at all, but long enough to be looked at: " + std::string(5000, '.'));
  refused(ErrorCode::kDamaged, "left as it is");
}

TEST_F(JournalTest, RefusesRowsThatWereLostOrChanged) {
  const char* const damages[] = {
      "DELETE FROM records WHERE id=2", "UPDATE records SET key='other' WHERE id=2",
      "UPDATE records SET revision=9 WHERE id=2", "DELETE FROM totals",
      "INSERT INTO records SELECT 99, key, revision, checksum, value FROM records LIMIT 1"};
  for (const char* damage : damages) {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    FillAndKill(4);
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(db, damage, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(db);
    const auto journal = Open();
    ASSERT_FALSE(journal.has_value()) << damage;
    EXPECT_EQ(journal.error().code, ErrorCode::kDamaged) << damage;
  }
}

TEST_F(JournalTest, RefusesFoldersThatAreAbsentOrReadOnly) {
  path_ = folder_ / "absent" / "journal.db";
  auto journal = Open();
  ASSERT_FALSE(journal.has_value());
  EXPECT_THAT(journal.error().message, HasSubstr("can't be made: No such file or directory"));
  if (geteuid() == 0) GTEST_SKIP() << "root writes everywhere";
  path_ = folder_ / "journal.db";
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  journal = Open();
  fs::permissions(folder_, fs::perms::owner_all);
  ASSERT_FALSE(journal.has_value());
  EXPECT_THAT(journal.error().message, HasSubstr("Permission denied"));
}

TEST_F(JournalTest, MakesItsFileForTheOwnerAlone) {
  ASSERT_TRUE(Open().has_value());
  struct stat status{};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

// A broken file is refused or, where the break touches nothing that counts, gives back all records;
// never fewer.
TEST_F(JournalTest, NeverGivesBackLessFromABrokenFile) {
  FillAndKill(40);
  ASSERT_TRUE(Open().has_value());  // Copies the log into the file.
  ASSERT_EQ(recovered_.records.size(), 40U);
  const std::string whole = Read(path_);
  Prng prng(5);
  int refused = 0;
  for (int i = 0; i < 150; ++i) {
    std::string broken = whole;
    if (i % 3 == 0) {
      broken.resize(prng.Below(whole.size()));
    } else {
      const size_t at = prng.Below(whole.size());
      broken[at] = static_cast<char>(broken[at] ^ (1 << prng.Below(8)));
    }
    Write(path_, broken);
    const auto journal = Open();
    if (!journal) {
      ++refused;
      EXPECT_THAT(journal.error().code, AnyOf(ErrorCode::kDamaged, ErrorCode::kRefused))
          << journal.error().message;
      EXPECT_EQ(Read(path_), broken) << "a refused file was changed";
      continue;
    }
    ASSERT_EQ(recovered_.records.size(), 40U) << "break " << i;
    ASSERT_EQ(recovered_.last_revision, 40U);
  }
  EXPECT_GT(refused, 50);
}

TEST_F(JournalTest, NeverDropsGroupsBehindABreakInTheLog) {
  FillAndKill(20);
  const fs::path log = path_.string() + "-wal";
  const std::string whole = Read(path_);
  const std::string whole_log = Read(log);
  ASSERT_GT(whole_log.size(), 20U * 16'384);
  Prng prng(6);
  int refused = 0;
  for (int i = 0; i < 100; ++i) {
    std::string broken = whole_log;
    // In front of the last two groups: what is behind that may be an unfinished end.
    const size_t at = prng.Below(whole_log.size() - 5 * 16'408);
    broken[at] = static_cast<char>(broken[at] ^ (1 << prng.Below(8)));
    Write(path_, whole);
    Write(log, broken);
    const auto journal = Open();
    ASSERT_FALSE(journal.has_value())
        << "a flip at " << at << " gave " << recovered_.records.size() << " records";
    EXPECT_EQ(journal.error().code, ErrorCode::kDamaged);
    EXPECT_EQ(Read(log), broken) << "a refused log was changed";
    ++refused;
  }
  EXPECT_EQ(refused, 100);
  // A group that was never acknowledged is what a crash leaves.
  Write(path_, whole);
  Write(log, whole_log + whole_log.substr(whole_log.size() - 100));
  ASSERT_TRUE(Open().has_value());
  EXPECT_EQ(recovered_.records.size(), 20U);
}

TEST_F(JournalTest, MissesWhatALogThatWasCutOrRemovedHeld) {
  FillAndKill(20);
  const fs::path log = path_.string() + "-wal";
  const fs::path end = path_.string() + "-end";
  const std::string whole = Read(path_);
  const std::string whole_log = Read(log);
  const std::string whole_end = Read(end);
  const auto restore = [&] {
    Write(path_, whole);
    Write(log, whole_log);
    Write(end, whole_end);
  };
  // Cut inside the last group that was acknowledged, and at the end of an earlier one.
  Write(log, whole_log.substr(0, whole_log.size() - 100));
  ExpectLoss("ends at revision 19, but writes up to 20 were acknowledged", 19U);
  restore();
  Write(log, whole_log.substr(0, whole_log.size() / 2));
  ExpectLoss("but writes up to 20 were acknowledged", Lt(12U));
  restore();
  fs::remove(log);
  ExpectLoss("ends at revision 0, but writes up to 20 were acknowledged", 0U);
  restore();
  // The file alone, as somebody copies it who does not know of the log.
  fs::remove(log);
  fs::remove(end);
  ExpectLoss("journal.db-end and its log, are gone", 0U);
  restore();
  fs::remove(end);
  ExpectLoss("its log, journal.db-wal, is there, and with it the last revision is 20", 20U);
  for (const bool log_too : {false, true}) {
    restore();
    fs::remove(path_);
    if (log_too) fs::remove(log);
    ASSERT_FALSE(Open().has_value());
    EXPECT_FALSE(fs::exists(path_));
  }
}

TEST_F(JournalTest, IsWholeInOneFileAfterACleanEnd) {
  FillAndKill(20);
  ASSERT_TRUE(Open().has_value());
  EXPECT_FALSE(fs::exists(path_.string() + "-wal"));
  fs::remove(path_.string() + "-end");
  ASSERT_TRUE(Open().has_value());
  EXPECT_EQ(recovered_.records.size(), 20U);
  EXPECT_EQ(recovered_.warning, "");
}

TEST_F(JournalTest, MissesTheWritesAfterAnOldCopyOfItsFile) {
  FillAndKill(5);
  ASSERT_TRUE(Open().has_value());
  const std::string old = Read(path_);
  {
    auto journal = Open();
    const AppendJournal one = Pod(6, "value");
    ASSERT_TRUE((*journal)->Append(std::span(&one, 1)));
  }
  Write(path_, old);
  ExpectLoss("ends at revision 5, but writes up to 6 were acknowledged", 5U);
}

TEST_F(JournalTest, ALossOfPowerMayTakeWhatWasNeverOnDisk) {
  FillAndKill(3);  // With Durability::kProcess.
  fs::remove(path_.string() + "-wal");
  EndMark mark(path_);
  ASSERT_EQ(mark.Read().value()->revision, 3U);
  ASSERT_TRUE(mark.Make({.revision = 3, .durable = false, .boot = "another"}));
  ASSERT_TRUE(Open().has_value());
  EXPECT_EQ(recovered_.records.size(), 0U);
  EXPECT_THAT(recovered_.warning, HasSubstr("3"));
}

TEST_F(JournalTest, ALossOfPowerIsForgivenAlsoAfterAKillOfTheStartThatTellsIt) {
  FillAndKill(3);
  fs::remove(path_.string() + "-wal");
  EndMark mark(path_);
  ASSERT_TRUE(mark.Make({.revision = 3, .durable = false, .boot = "another"}));
  for (const char* const point : {"write", "written"}) {
    OpenAndDie(Durability::kDisk, [&](std::string_view what, const std::string& path) {
      return what == point && path.ends_with("-wal");
    });
  }
  const auto journal = Open();
  ASSERT_TRUE(journal.has_value()) << journal.error().message;
  EXPECT_EQ(recovered_.last_revision, 3U);
}

// Else a loss of power would take what the new mark promises in the name of the disk.
TEST_F(JournalTest, SyncsWhatWasNotWaitedForBeforeItPromisesTheDisk) {
  for (const bool killed : {true, false}) {
    FillAndKill(3);  // With Durability::kProcess.
    if (!killed) {
      ASSERT_TRUE(Open().has_value());
    }
    std::map<std::string, std::string> synced;  // File -> durability as marked then.
    {
      const EndMark mark(path_);
      const WatchedVfs watched([&](std::string_view what, const std::string& path) {
        if (what != "sync") return;
        const auto end = mark.Read();
        synced.emplace(path, end && *end && (*end)->durable ? "disk" : "process");
      });
      ASSERT_TRUE(Open(Durability::kDisk).has_value());
    }
    EXPECT_EQ(synced[path_], "process");
    if (killed) {
      EXPECT_EQ(synced[path_.string() + "-wal"], "process");
    }
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
}

// At any write of a group, and at any write of a checkpoint: nothing of a group that was refused is
// there, all of those that were not, and the journal goes on.
TEST_F(JournalTest, AFullDiskTakesNothingAwayAndIsWrittenToAgain) {
  Prng prng(5);
  std::map<std::string, JournalRecord> model;
  uint64_t revision = 0;
  uint64_t refused = 0;
  for (int life = 0; life < 4; ++life) {
    WatchedVfs disk([](std::string_view, const std::string&) {});
    auto journal = Open();
    ASSERT_TRUE(journal.has_value()) << journal.error().message;
    EXPECT_EQ(recovered_.records.size(), model.size());
    for (const JournalRecord& record : recovered_.records) EXPECT_EQ(record, model[record.key]);
    EXPECT_EQ(recovered_.last_revision, revision);
    for (int round = 0; round < 150; ++round) {
      auto next = model;
      AppendJournal append{.sequence = static_cast<uint64_t>(round), .records = {}};
      for (uint64_t i = 0; i <= prng.Below(12); ++i) {
        JournalRecord record{.key = "pods/n/p" + std::to_string(prng.Below(40)),
                             .revision = revision + i + 1,
                             .value = {}};
        // Of a key that is not there, and of one that the same group has, too.
        if (!prng.Chance({1, 3}))
          record.value = Bytes(std::string(1 + prng.Below(30'000), static_cast<char>('a' + i)));
        next[record.key] = record;
        if (record.value.empty()) next.erase(record.key);
        append.records.push_back(std::move(record));
      }
      if (prng.Chance({1, 2})) disk.LimitWrites(static_cast<int64_t>(prng.Below(40)));
      const Result<Appended> outcome = (*journal)->Append(std::span(&append, 1));
      disk.LiftLimit();
      ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
      if (*outcome == Appended::kNoRoom) {
        ++refused;
        continue;
      }
      model = std::move(next);
      revision += append.records.size();
    }
    // What is left in the log stays there when it can't be copied back.
    if (life % 2 == 0) disk.LimitWrites(0);
    journal->reset();
  }
  EXPECT_GT(refused, 50U);
  ASSERT_TRUE(Open().has_value());
  EXPECT_EQ(recovered_.records.size(), model.size());
  EXPECT_EQ(recovered_.warning, "");
}

// One write of the pod, which has so many bytes then; none: it is removed.
Appended AppendPod(SqliteJournal& journal, uint64_t revision, uint64_t pod, size_t bytes) {
  AppendJournal one{.sequence = revision, .records = {}};
  one.records.push_back({.key = "pods/n/p" + std::to_string(pod),
                         .revision = revision,
                         .value = bytes == 0 ? Bytes() : Bytes(std::string(bytes, 'v'))});
  return journal.Append(std::span(&one, 1)).value();
}

// Writes of a few objects again and again find room on a disk that has it for eight times as much:
// the log never takes it all. And a disk that others have filled gives room back.
TEST_F(JournalTest, TheLogLeavesRoomForWhatItHolds) {
  constexpr int64_t kDiskBytes = 40 * 1024 * 1024;
  for (const bool others : {false, true}) {
    SCOPED_TRACE(others ? "a disk that others fill" : "a disk of our own");
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    WatchedVfs disk([](std::string_view, const std::string&) {});
    disk.LimitBytes(kDiskBytes);
    // Of a disk whose room is not told, the writes alone tell.
    const JournalOptions options{
        .durability = Durability::kProcess,
        .free_bytes = [&](const fs::path&) { return others ? INT64_MAX : disk.free_bytes(); }};
    auto journal = SqliteJournal::Open(path_, options, recovered_);
    ASSERT_TRUE(journal.has_value()) << journal.error().message;
    uint64_t revision = 0;
    const auto append = [&](uint64_t pod, size_t bytes) {
      return AppendPod(**journal, ++revision, pod, bytes);
    };
    constexpr uint64_t kPods = 50;
    // Small ones are written in their place: the file needn't grow where it can't.
    const size_t bytes = others ? 10'000 : 100'000;
    for (uint64_t pod = 0; pod < kPods; ++pod) ASSERT_EQ(append(pod, bytes), Appended::kDurable);
    if (others) {
      // What is live has its place in the file.
      journal->reset();
      journal = SqliteJournal::Open(path_, options, recovered_);
      ASSERT_TRUE(journal.has_value()) << journal.error().message;
      disk.LimitBytes(int64_t{4} * 1024 * 1024);
    }
    for (uint64_t i = 0; i < 1'000; ++i)
      ASSERT_EQ(append(i % kPods, bytes), Appended::kDurable) << i;
    for (uint64_t pod = 0; pod < kPods; ++pod) ASSERT_EQ(append(pod, 0), Appended::kDurable);
  }
}

// A disk that is filled to the last can be emptied, and filled again.
TEST_F(JournalTest, OfAFullDiskObjectsCanBeRemoved) {
  WatchedVfs disk([](std::string_view, const std::string&) {});
  disk.LimitBytes(int64_t{20} * 1024 * 1024);
  auto journal =
      SqliteJournal::Open(path_,
                          {.durability = Durability::kProcess,
                           .free_bytes = [&](const fs::path&) { return disk.free_bytes(); }},
                          recovered_);
  ASSERT_TRUE(journal.has_value()) << journal.error().message;
  uint64_t revision = 0;
  const auto append = [&](uint64_t pod, size_t bytes) {
    return AppendPod(**journal, ++revision, pod, bytes);
  };
  uint64_t first = 0;
  for (int round = 0; round < 3; ++round) {
    uint64_t next = first;
    while (append(next, 50'000) == Appended::kDurable) ++next;
    EXPECT_GT(next - first, 200U);
    EXPECT_EQ(append(first, 49'000), Appended::kDurable);
    for (; first < next; ++first) ASSERT_EQ(append(first, 0), Appended::kDurable) << first;
  }
}

// Whatever write of the start is the first without room, and however the journal was left: closed,
// killed, and with a loss that is accepted.
TEST_F(JournalTest, AFullDiskAtTheStartRefusesWritesAndNoReads) {
  const auto start_full = [&](const char* left, size_t records, LostWrites lost) {
    const auto before = Folder();
    uint64_t refusals = 0;
    for (int64_t room = 0; room < 12; ++room) {
      SCOPED_TRACE(fmt::format("{}, room for {} writes", left, room));
      Restore(before);
      WatchedVfs disk([](std::string_view, const std::string&) {});
      disk.LimitWrites(room);
      {
        auto journal = Open(Durability::kDisk, lost);
        ASSERT_TRUE(journal.has_value()) << journal.error().message;
        EXPECT_EQ(recovered_.records.size(), records);
        const uint64_t last = recovered_.last_revision;
        const bool full = recovered_.warning.contains("no space left on the disk");
        AppendJournal append{.sequence = 1, .records = {}};
        append.records.push_back(
            {.key = "pods/d/new", .revision = last + 1, .value = Bytes(std::string(9'000, 'n'))});
        const auto try_append = [&] { return (*journal)->Append(std::span(&append, 1)); };
        Result<Appended> outcome = try_append();
        ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
        if (full) {
          EXPECT_EQ(*outcome, Appended::kNoRoom);
          ++refusals;
        }
        disk.LiftLimit();
        if (*outcome == Appended::kNoRoom) outcome = try_append();
        ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
        EXPECT_EQ(*outcome, Appended::kDurable);
      }
      ASSERT_TRUE(Open().has_value());
      EXPECT_EQ(recovered_.records.size(), records + 1);
      EXPECT_EQ(recovered_.warning, "");
    }
    EXPECT_GT(refusals, 0U) << left;
    Restore(before);
    // Nothing of a start that could not write is left behind.
    {
      WatchedVfs disk([](std::string_view, const std::string&) {});
      disk.LimitWrites(0);
      ASSERT_TRUE(Open(Durability::kDisk, lost).has_value());
    }
    ASSERT_TRUE(Open(Durability::kDisk, lost).has_value());
    EXPECT_EQ(recovered_.records.size(), records) << left;
  };
  FillAndKill(5);
  const auto killed = Folder();
  ASSERT_TRUE(Open().has_value());
  start_full("closed", 5, LostWrites::kRefuse);
  Restore(killed);
  fs::resize_file(path_.string() + "-wal", 0);
  start_full("lost", 0, LostWrites::kAccept);
}

TEST_F(JournalTest, RefusesAnEndThatWasChanged) {
  FillAndKill(3);
  const fs::path end = path_.string() + "-end";
  const std::string whole = Read(end);
  for (const std::string& broken :
       {std::string(), std::string("x"), whole.substr(0, whole.size() - 1), whole + "x",
        "revision 2" + whole.substr(10)}) {
    Write(end, broken);
    const auto journal = Open();
    ASSERT_FALSE(journal.has_value()) << broken;
    EXPECT_EQ(journal.error().code, ErrorCode::kDamaged);
    EXPECT_THAT(journal.error().message, HasSubstr("journal.db-end"));
    EXPECT_EQ(Read(end), broken);
  }
  fs::remove(end);
  fs::create_directory(end);
  const auto journal = Open();
  ASSERT_FALSE(journal.has_value());
  EXPECT_EQ(journal.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(journal.error().message, HasSubstr("journal.db-end: can't be read"));
}

}  // namespace
}  // namespace berth::env::os
