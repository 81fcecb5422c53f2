#include "env/os/sqlite_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "env/os/end_mark.h"
#include "env/os/file_lock.h"
#include "env/os/head_check.h"
#include "env/os/wal_check.h"

// The file:
//
//   records: id | key | revision | checksum | value
//            One row a live key; found by the id that the map in memory remembers.
//   totals:  id = 1 | count | checksums | last_revision
//            Of all rows of `records`: how many, the sum of their checksums.
//
// There is no index over keys: the map in memory is cheaper to keep, and a file without one has no
// page that reading all rows does not visit, so that recovery verifies it whole.
namespace berth::env::os {
namespace {

constexpr int kApplicationId = 0x62657274;  // "bert", of which sqlite keeps 32 bits in the header.
// 2: the last revision is in `totals` alone; format 1 had a record of it besides.
constexpr int kFormatVersion = 2;
// Eight pods of 2 KB a page: the rows of a group lie side by side, so a group dirties few pages.
constexpr int kPageBytes = 16 * 1024;
// The log is copied back into the file when it is longer than this: about a second of a full-speed
// burst.
constexpr int kWalPagesMax = 64 * 1024 * 1024 / kPageBytes;
// What a group may well add to the log: with less than that beyond what the log holds it is copied
// back at once.
constexpr int64_t kGroupBytes = 8 * 1024 * 1024;
// What only changes and removals may use, so that room can be made where there is none: objects
// that are added find none before.
constexpr int64_t kReserveBytes = 1024 * 1024;
constexpr const char* kSchema =
    "CREATE TABLE records(id INTEGER PRIMARY KEY, key TEXT NOT NULL, revision INTEGER NOT NULL,"
    " checksum INTEGER NOT NULL, value BLOB NOT NULL) STRICT;"
    "CREATE TABLE totals(id INTEGER PRIMARY KEY, count INTEGER NOT NULL, checksums INTEGER NOT "
    "NULL,"
    " last_revision INTEGER NOT NULL) STRICT;"
    "INSERT INTO totals VALUES(1, 0, 0, 0);";

struct Row {
  int64_t id = 0;
  uint64_t checksum = 0;
};

struct Totals {
  uint64_t count = 0;
  uint64_t checksums = 0;
  uint64_t last_revision = 0;
  bool operator==(const Totals&) const = default;
};

uint64_t ChecksumOf(std::string_view key, uint64_t revision, std::string_view value) {
  return Hasher().Add(key).Add(revision).Add(value).value();
}

int64_t FreeBytes(const std::filesystem::path& path) {
  std::error_code error;
  const auto space = std::filesystem::space(path, error);
  // Where nothing is told, the journal finds out by writing.
  constexpr uintmax_t kMost = INT64_MAX;
  return error ? INT64_MAX : static_cast<int64_t>(std::min<uintmax_t>(space.available, kMost));
}

class Statement {
 public:
  Statement() = default;
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }
  int Prepare(sqlite3* db, const char* sql) {
    return sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
  }
  void Bind(int place, uint64_t value) {
    sqlite3_bind_int64(statement_, place, static_cast<int64_t>(value));
  }
  void Bind(int place, std::string_view text) {
    sqlite3_bind_text64(statement_, place, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  void BindBlob(int place, std::string_view bytes) {
    sqlite3_bind_blob64(statement_, place, bytes.data(), bytes.size(), SQLITE_STATIC);
  }
  int Step() { return sqlite3_step(statement_); }
  // Runs a statement that gives no rows.
  int Run() {
    const int code = sqlite3_step(statement_);
    sqlite3_reset(statement_);
    return code == SQLITE_DONE ? SQLITE_OK : code;
  }
  void Reset() { sqlite3_reset(statement_); }
  [[nodiscard]] uint64_t Integer(int column) const {
    return static_cast<uint64_t>(sqlite3_column_int64(statement_, column));
  }
  [[nodiscard]] std::string_view Data(int column) const {
    const void* data = sqlite3_column_blob(statement_, column);
    if (data == nullptr) return {};
    return {static_cast<const char*>(data),
            static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace

struct SqliteJournal::Impl {
  explicit Impl(const std::filesystem::path& p) : path(p), mark(p) {}
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status Open();
  Status Find();
  Status CheckFiles();
  Status CheckHead(const Head& head) const;
  Status CheckLogged();
  Status Make();
  Status Prepare();
  Status Recover(Recovered& recovered);
  Status Judge(const JournalOptions& options, Recovered& recovered) const;
  Result<Appended> Begin();
  Result<Appended> EnterLog();
  Status Sync();
  int Write(std::span<const AppendJournal> group);
  Result<Appended> Append(std::span<const AppendJournal> group);
  int Apply(const JournalRecord& record);
  [[nodiscard]] bool IsFull(int code) const;
  Status TakeBack();
  [[nodiscard]] bool IsShortOfRoom() const;
  [[nodiscard]] bool Adds(std::span<const AppendJournal> group) const;
  Result<bool> HasRoomToAdd();
  Result<bool> CopyBack(int mode);
  int Exec(const char* sql) { return sqlite3_exec(db, sql, nullptr, nullptr, nullptr); }
  Result<int> Pragma(const char* sql);
  void RemoveMadeLog() const;
  [[nodiscard]] std::unexpected<Error> Failure(int code) const;
  [[nodiscard]] std::unexpected<Error> Damaged(std::string_view what) const;
  [[nodiscard]] std::filesystem::path Log() const { return path.string() + "-wal"; }

  std::filesystem::path path;
  EndMark mark;
  bool left_open = false;  // By the process that had it before: there was a log beside the file.
  bool log_found = false;  // There is one now, which SQLite did not make.
  bool locked = false;     // Nobody else opens the file before it is closed.
  sqlite3* db = nullptr;
  bool writable = false;  // Recovered without a finding: may be checkpointed at the end.
  bool begun = false;     // Its end is marked, and there is a log: it may be appended to.
  Durability durability = Durability::kDisk;
  std::function<int64_t(const std::filesystem::path& path)> free_bytes;
  uint64_t last_given = 0;  // The last revision that was given out, recovered or not.
  Statement begin;
  Statement commit;
  Statement insert;
  Statement update;
  Statement remove;
  Statement set_totals;
  std::unordered_map<std::string, Row> rows;
  // What `rows` had of the keys of the group that is being written, in its order.
  std::vector<std::pair<std::string_view, std::optional<Row>>> before;
  Totals totals;
  int64_t next_id = 1;
  int log_pages = 0;  // Of the write-ahead log after the last commit.
};

SqliteJournal::Impl::~Impl() {
  // Finalised before the connection closes; close_v2 waits for the members' destructors.
  if (db == nullptr) return;
  if (writable) {
    // Copies the log into the file, which says from now on that it is whole.
    Exec("PRAGMA journal_mode=DELETE");
  } else {
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    RemoveMadeLog();
  }
  sqlite3_close_v2(db);
}

// SQLite makes an empty log where it expects one. A restore that skips what exists would skip the
// real one.
void SqliteJournal::Impl::RemoveMadeLog() const {
  if (!locked || log_found) return;
  std::error_code error;
  if (std::filesystem::file_size(Log(), error) == 0 && !error) unlink(Log().c_str());
}

std::unexpected<Error> SqliteJournal::Impl::Failure(int code) const {
  const std::string detail = db == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(db);
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Damaged(detail);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("journal {}: in use by another process", path.string()));
    case SQLITE_FULL:
      return Fail(ErrorCode::kUnavailable, fmt::format("journal {}: disk full", path.string()));
    default:
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("journal {}: {} (sqlite code {})", path.string(), detail, code));
  }
}

std::unexpected<Error> SqliteJournal::Impl::Damaged(std::string_view what) const {
  return Fail(ErrorCode::kDamaged,
              fmt::format("journal {} is damaged and was left as it is: {}", path.string(), what));
}

Result<int> SqliteJournal::Impl::Pragma(const char* sql) {
  Statement statement;
  int code = statement.Prepare(db, sql);
  if (code != SQLITE_OK) return Failure(code);
  code = statement.Step();
  if (code != SQLITE_ROW) return Failure(code);
  return static_cast<int>(statement.Integer(0));
}

// The file, made when there is none and none is missed.
Status SqliteJournal::Impl::Find() {
  std::error_code error;
  const auto there = [&](const std::filesystem::path& each) {
    return std::filesystem::exists(each, error);
  };
  if (!there(path)) {
    std::string missed;
    if (there(mark.path())) missed = mark.path().filename().string();
    if (there(path.string() + "-journal")) missed = "a rollback journal";
    if (there(Log())) missed = "a write-ahead log";
    // Another process may have made them all in the meantime.
    if (!missed.empty() && !there(path)) {
      return Damaged(fmt::format("it is missing beside {}", missed));
    }
    if (missed.empty()) {
      if (Status made = Make(); !made) return made;
    }
  }
  if (std::filesystem::is_regular_file(path, error)) return {};
  return Fail(ErrorCode::kRefused, fmt::format("journal {}: is not a file", path.string()));
}

// Looks at the files while nobody else has them, and before SQLite does: it would change some of
// those that have to be refused.
Status SqliteJournal::Impl::CheckFiles() {
  const Result<FileLock> lock = FileLock::Take(path);
  if (!lock) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("journal {}: {}", path.string(), lock.error().message));
  }
  const Result<Head> head = ReadHead(path);
  if (!head) return Damaged(head.error().message);
  if (Status owned = CheckHead(*head); !owned) return owned;
  std::error_code error;
  if (std::filesystem::is_symlink(Log(), error)) {
    return Fail(ErrorCode::kRefused,
                fmt::format("journal {}: its log, {}, is a symbolic link, which SQLite follows for "
                            "the file alone: put the log where the link leads",
                            path.string(), Log().string()));
  }
  Status checked = CheckRollback(path, *head);
  // It would take a log that breaks in the middle for one that ends there.
  if (checked) checked = CheckWal(Log());
  if (!checked) return Damaged(checked.error().message);
  left_open = head->has_log;
  log_found = std::filesystem::exists(Log(), error);
  return {};
}

Status SqliteJournal::Impl::CheckHead(const Head& head) const {
  Status owned = CheckOwner(head, kApplicationId, kFormatVersion);
  if (owned) return {};
  return Fail(owned.error().code,
              fmt::format("journal {} {}", path.string(), owned.error().message));
}

Status SqliteJournal::Impl::Open() {
  if (Status found = Find(); !found) return found;
  if (Status checked = CheckFiles(); !checked) return checked;
  int code = sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr);
  if (code != SQLITE_OK) return Failure(code);
  if (sqlite3_db_readonly(db, "main") == 1) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("journal {}: no permission to write", path.string()));
  }
  sqlite3_extended_result_codes(db, 1);
  // One process holds the file for as long as it lives; the log's index is then memory of this
  // process.
  code =
      Exec("PRAGMA locking_mode=EXCLUSIVE; PRAGMA cell_size_check=ON; PRAGMA trusted_schema=OFF;");
  if (code != SQLITE_OK) return Failure(code);
  if (Status status = CheckLogged(); !status) return status;
  code =
      Exec(durability == Durability::kDisk ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=OFF");
  if (code == SQLITE_OK) code = Exec("PRAGMA cache_size=-65536;");
  if (code != SQLITE_OK) return Failure(code);
  sqlite3_wal_hook(
      db,
      [](void* self, sqlite3*, const char*, int pages) {
        static_cast<Impl*>(self)->log_pages = pages;
        return SQLITE_OK;
      },
      this);
  return {};
}

// The head as the log has it.
Status SqliteJournal::Impl::CheckLogged() {
  const Result<int> version = Pragma("PRAGMA user_version");
  if (!version) return std::unexpected(version.error());
  const Result<int> application = Pragma("PRAGMA application_id");
  if (!application) return std::unexpected(application.error());
  const Result<int> schema = Pragma("PRAGMA schema_version");
  if (!schema) return std::unexpected(schema.error());
  if (*schema == 0) return Damaged("it is empty");
  const Head head{.application_id = static_cast<uint32_t>(*application),
                  .format_version = static_cast<uint32_t>(*version)};
  if (Status owned = CheckHead(head); !owned) return owned;
  if (*version != kFormatVersion) return Damaged(fmt::format("format {} never was", *version));
  // Takes the lock, which reading alone does not.
  const int code = Exec("BEGIN EXCLUSIVE; COMMIT");
  locked = code == SQLITE_OK;
  return locked ? Status() : Failure(code);
}

// Made under another name and moved into place whole, so that a file that exists and is empty was
// damaged.
Status SqliteJournal::Impl::Make() {
  const std::string draft = fmt::format("{}.{}.new", path.string(), getpid());
  const auto fail = [&](int number) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("journal {}: can't be made: {}", path.string(), std::strerror(number)));
  };
  // Sqlite makes files readable to all; they hold secrets.
  const int file = open(draft.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) return fail(errno);
  close(file);
  sqlite3* made = nullptr;
  int code = sqlite3_open_v2(draft.c_str(), &made, SQLITE_OPEN_READWRITE, nullptr);
  const std::string sql = fmt::format(
      "PRAGMA page_size={}; BEGIN; {} PRAGMA application_id={}; "
      "PRAGMA user_version={}; COMMIT;",
      kPageBytes, kSchema, kApplicationId, kFormatVersion);
  if (code == SQLITE_OK) code = sqlite3_exec(made, sql.c_str(), nullptr, nullptr, nullptr);
  const std::string detail = sqlite3_errmsg(made);
  sqlite3_close(made);
  if (code != SQLITE_OK) {
    unlink(draft.c_str());
    return Fail(ErrorCode::kUnavailable,
                fmt::format("journal {}: can't be made: {}", path.string(), detail));
  }
  const int moved = renameat2(AT_FDCWD, draft.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE);
  const int number = errno;
  if (moved != 0) unlink(draft.c_str());
  if (moved != 0 && number != EEXIST) return fail(number);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const int directory = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return fail(errno);
  const int synced = fsync(directory);
  close(directory);
  return synced == 0 ? Status() : fail(errno);
}

Status SqliteJournal::Impl::Prepare() {
  const std::pair<Statement*, const char*> all[] = {
      {&begin, "BEGIN"},
      {&commit, "COMMIT"},
      {&insert, "INSERT INTO records VALUES(?1, ?2, ?3, ?4, ?5)"},
      {&update, "UPDATE records SET revision=?2, checksum=?3, value=?4 WHERE id=?1"},
      {&remove, "DELETE FROM records WHERE id=?1"},
      {&set_totals, "UPDATE totals SET count=?1, checksums=?2, last_revision=?3 WHERE id=1"},
  };
  for (const auto& [statement, sql] : all) {
    const int code = statement->Prepare(db, sql);
    if (code != SQLITE_OK) return Failure(code);
  }
  return {};
}

Status SqliteJournal::Impl::Recover(Recovered& recovered) {
  Statement read;
  int code = read.Prepare(db, "SELECT count, checksums, last_revision FROM totals WHERE id=1");
  if (code != SQLITE_OK) return Failure(code);
  code = read.Step();
  if (code == SQLITE_DONE) return Damaged("it has no totals");
  if (code != SQLITE_ROW) return Failure(code);
  const Totals stored{
      .count = read.Integer(0), .checksums = read.Integer(1), .last_revision = read.Integer(2)};
  Statement scan;
  code = scan.Prepare(db, "SELECT id, key, revision, checksum, value FROM records");
  if (code != SQLITE_OK) return Failure(code);
  Totals seen{.last_revision = stored.last_revision};
  while ((code = scan.Step()) == SQLITE_ROW) {
    JournalRecord record{.key = std::string(scan.Data(1)),
                         .revision = scan.Integer(2),
                         .value = Bytes(std::string(scan.Data(4)))};
    const Row row{.id = static_cast<int64_t>(scan.Integer(0)), .checksum = scan.Integer(3)};
    if (row.checksum != ChecksumOf(record.key, record.revision, record.value.view())) {
      return Damaged(fmt::format("record {} ({}) does not match its checksum", row.id, record.key));
    }
    if (!rows.emplace(record.key, row).second) {
      return Damaged(fmt::format("record {} repeats key {}", row.id, record.key));
    }
    if (record.revision > stored.last_revision) {
      return Damaged(fmt::format("record {} has revision {} past the last, {}", row.id,
                                 record.revision, stored.last_revision));
    }
    ++seen.count;
    seen.checksums += row.checksum;
    next_id = std::max(next_id, row.id + 1);
    recovered.records.push_back(std::move(record));
  }
  if (code != SQLITE_DONE) return Failure(code);
  // Reading the rows did not look at the list of free pages, nor at what pages hold besides rows.
  Statement check;
  code = check.Prepare(db, "PRAGMA quick_check(1)");
  if (code != SQLITE_OK) return Failure(code);
  code = check.Step();
  if (code != SQLITE_ROW) return Failure(code);
  if (check.Data(0) != "ok") return Damaged(check.Data(0));
  if (seen != stored) {
    return Damaged(
        fmt::format("{} records where {} were written, or old ones", seen.count, stored.count));
  }
  std::ranges::sort(recovered.records, [](const JournalRecord& a, const JournalRecord& b) {
    return std::pair(a.revision, std::string_view(a.key)) <
           std::pair(b.revision, std::string_view(b.key));
  });
  totals = stored;
  recovered.last_revision = stored.last_revision;
  return {};
}

// Whether what was recovered is all that was acknowledged.
Status SqliteJournal::Impl::Judge(const JournalOptions& options, Recovered& recovered) const {
  const bool accept = options.lost_writes == LostWrites::kAccept;
  constexpr std::string_view kWayOn =
      ". Restore all files of the journal, or start with --accept-lost-writes to go on with what "
      "is there";
  const Result<std::optional<EndMark::End>> end = mark.Read();
  if (!end) {
    if (end.error().code != ErrorCode::kDamaged || !accept) {
      return Fail(end.error().code, fmt::format("{}{}", end.error().message, kWayOn));
    }
    recovered.warning = end.error().message;
    return {};
  }
  std::string loss;
  if (!*end && left_open) {
    // SQLite makes an empty log where it expects one.
    std::error_code error;
    const uintmax_t log_bytes = std::filesystem::file_size(Log(), error);
    const std::string gone = mark.path().string();
    loss = !error && log_bytes > 0
               ? fmt::format(
                     "journal {} was not closed, and {}, which says how far its writes were "
                     "acknowledged, is gone; its log, {}, is there, and with it the last "
                     "revision is {}",
                     path.string(), gone, Log().filename().string(), recovered.last_revision)
               : fmt::format(
                     "journal {} was not closed, and the files beside it, {} and its log, are gone",
                     path.string(), gone);
  } else if (*end && (*end)->revision > recovered.last_revision) {
    loss = fmt::format(
        "journal {} ends at revision {}, but writes up to {} were acknowledged: its log was cut or "
        "removed, or the file is an old copy",
        path.string(), recovered.last_revision, (*end)->revision);
    // Numbers that were given out once mean something to the clients that saw them.
    const bool powerless = !(*end)->durable && !(*end)->boot.empty() && (*end)->boot != BootId();
    if (accept || powerless) recovered.last_revision = (*end)->revision;
    if (powerless) {
      recovered.warning = fmt::format(
          "journal {} lost acknowledged writes, the last of them {}, when the machine went down: "
          "they were not waited for (--durability process)",
          path.string(), (*end)->revision);
      return {};
    }
  }
  if (loss.empty()) return {};
  if (!accept) return Fail(ErrorCode::kDamaged, fmt::format("{}{}", loss, kWayOn));
  recovered.warning = loss;
  return {};
}

// From here on the journal is open: its end is marked, and there is a log beside the file. Neither
// is ever there without the other, nor does a mark ever promise what could be lost: whenever this
// is cut short, the next start finds no less than this one found. Without room it is as before, and
// begins when something is appended.
Result<Appended> SqliteJournal::Impl::Begin() {
  // Lost revisions were told by a mark, which is there: the number first, then the new mark, which
  // would promise it in the name of this run of the machine.
  const bool lost = totals.last_revision != last_given;
  if (lost) {
    const Result<Appended> entered = EnterLog();
    if (!entered || *entered == Appended::kNoRoom) return entered;
    const uint64_t recovered = std::exchange(totals.last_revision, last_given);
    if (const int code = Write({}); code != SQLITE_OK) {
      if (!IsFull(code)) return Failure(code);
      totals.last_revision = recovered;
      if (Status back = TakeBack(); !back) return std::unexpected(back.error());
      return Appended::kNoRoom;
    }
  }
  if (durability == Durability::kDisk) {
    if (Status synced = Sync(); !synced) return std::unexpected(synced.error());
  }
  const Result<bool> made = mark.Make(
      {.revision = last_given, .durable = durability == Durability::kDisk, .boot = BootId()});
  if (!made) return std::unexpected(made.error());
  if (!*made) return Appended::kNoRoom;
  const Result<Appended> entered = EnterLog();
  begun = entered && *entered == Appended::kDurable;
  return entered;
}

Result<Appended> SqliteJournal::Impl::EnterLog() {
  Statement enter;
  int code = enter.Prepare(db, "PRAGMA journal_mode=WAL");
  if (code == SQLITE_OK) code = enter.Step();
  if (code != SQLITE_ROW) {
    if (IsFull(code)) return Appended::kNoRoom;
    return Failure(code);
  }
  CHECK(enter.Data(0) == "wal");
  writable = true;
  return Appended::kDurable;
}

// What an earlier process wrote without waiting for the disk, is on it when this returns. By the
// files that SQLite has open: closing another descriptor of them would drop its locks.
Status SqliteJournal::Impl::Sync() {
  for (const int which : {SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_FILE_POINTER}) {
    sqlite3_file* file = nullptr;
    int code = sqlite3_file_control(db, "main", which, static_cast<void*>(&file));
    if (code == SQLITE_OK && file != nullptr && file->pMethods != nullptr) {
      code = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
    }
    if (code != SQLITE_OK) return Failure(code);
  }
  return {};
}

int SqliteJournal::Impl::Apply(const JournalRecord& record) {
  totals.last_revision = std::max(totals.last_revision, record.revision);
  const auto found = rows.find(record.key);
  before.emplace_back(record.key,
                      found == rows.end() ? std::nullopt : std::optional(found->second));
  if (record.value.empty()) {
    if (found == rows.end()) return SQLITE_OK;
    remove.Bind(1, static_cast<uint64_t>(found->second.id));
    totals.count -= 1;
    totals.checksums -= found->second.checksum;
    rows.erase(found);
    return remove.Run();
  }
  const uint64_t checksum = ChecksumOf(record.key, record.revision, record.value.view());
  totals.checksums += checksum;
  if (found == rows.end()) {
    const int64_t id = next_id++;
    rows.emplace(record.key, Row{.id = id, .checksum = checksum});
    totals.count += 1;
    insert.Bind(1, static_cast<uint64_t>(id));
    insert.Bind(2, std::string_view(record.key));
    insert.Bind(3, record.revision);
    insert.Bind(4, checksum);
    insert.BindBlob(5, record.value.view());
    return insert.Run();
  }
  totals.checksums -= found->second.checksum;
  found->second.checksum = checksum;
  update.Bind(1, static_cast<uint64_t>(found->second.id));
  update.Bind(2, record.revision);
  update.Bind(3, checksum);
  update.BindBlob(4, record.value.view());
  return update.Run();
}

// One transaction. Returns SQLite's code; what it began is to be taken back unless that is
// SQLITE_OK.
int SqliteJournal::Impl::Write(std::span<const AppendJournal> group) {
  before.clear();
  int code = begin.Run();
  for (const AppendJournal& append : group) {
    for (const JournalRecord& record : append.records) {
      if (code == SQLITE_OK) code = Apply(record);
    }
  }
  if (code == SQLITE_OK) {
    set_totals.Bind(1, totals.count);
    set_totals.Bind(2, totals.checksums);
    set_totals.Bind(3, totals.last_revision);
    code = set_totals.Run();
  }
  if (code == SQLITE_OK) code = commit.Run();
  return code;
}

// Whether a write found no room. A sync that fails is another matter: what the disk has then is not
// known.
bool SqliteJournal::Impl::IsFull(int code) const {
  if ((code & 0xff) == SQLITE_FULL) return true;
  return code == SQLITE_IOERR_WRITE && sqlite3_system_errno(db) == EDQUOT;
}

// Ends a transaction as if it had not begun.
Status SqliteJournal::Impl::TakeBack() {
  // SQLite may have done so by itself.
  if (sqlite3_get_autocommit(db) == 0) {
    if (const int code = Exec("ROLLBACK"); code != SQLITE_OK) return Failure(code);
  }
  // Backwards: a group may have a key more than once.
  for (auto each = before.rbegin(); each != before.rend(); ++each) {
    if (each->second) {
      rows.insert_or_assign(std::string(each->first), *each->second);
    } else {
      rows.erase(std::string(each->first));
    }
  }
  before.clear();
  return {};
}

Result<Appended> SqliteJournal::Impl::Append(std::span<const AppendJournal> group) {
  if (!begun) {
    const Result<Appended> outcome = Begin();
    if (!outcome || *outcome == Appended::kNoRoom) return outcome;
  }
  if (Adds(group)) {
    const Result<bool> room = HasRoomToAdd();
    if (!room) return std::unexpected(room.error());
    if (!*room) return Appended::kNoRoom;
  }
  const Totals totals_before = totals;
  const int64_t next_id_before = next_id;
  int code = Write(group);
  // Once more when the log could be given back.
  for (bool again = true; code != SQLITE_OK; again = false) {
    if (!IsFull(code)) return Failure(code);
    if (Status back = TakeBack(); !back) return std::unexpected(back.error());
    totals = totals_before;
    next_id = next_id_before;
    if (!again) return Appended::kNoRoom;
    const Result<bool> copied = CopyBack(SQLITE_CHECKPOINT_TRUNCATE);
    if (!copied) return std::unexpected(copied.error());
    if (!*copied) return Appended::kNoRoom;
    code = Write(group);
  }
  if (Status marked = mark.Advance(totals.last_revision); !marked)
    return std::unexpected(marked.error());
  const bool is_short = IsShortOfRoom();
  if (log_pages < kWalPagesMax && !is_short) return Appended::kDurable;
  // Without room the log keeps what it has, and the next append tries again.
  const Result<bool> copied =
      CopyBack(is_short ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE);
  if (!copied) return std::unexpected(copied.error());
  return Appended::kDurable;
}

// Whether the disk may soon have no room for what the log holds: it is copied into the file before
// the log is given back, and has to grow before that.
bool SqliteJournal::Impl::IsShortOfRoom() const {
  const int64_t log_bytes = int64_t{log_pages} * kPageBytes;
  return free_bytes(path) < 2 * log_bytes + kGroupBytes;
}

bool SqliteJournal::Impl::Adds(std::span<const AppendJournal> group) const {
  return std::ranges::any_of(group, [&](const AppendJournal& append) {
    return std::ranges::any_of(append.records, [&](const JournalRecord& record) {
      return !record.value.empty() && !rows.contains(record.key);
    });
  });
}

// Pages that removals left in the file are room, too.
Result<bool> SqliteJournal::Impl::HasRoomToAdd() {
  if (free_bytes(path) >= kReserveBytes) return true;
  const Result<bool> copied = CopyBack(SQLITE_CHECKPOINT_TRUNCATE);
  if (!copied) return copied;
  const Result<int> pages = Pragma("PRAGMA freelist_count");
  if (!pages) return std::unexpected(pages.error());
  return free_bytes(path) + int64_t{*pages} * kPageBytes >= kReserveBytes;
}

// Copies the log into the file. Whether there was room.
Result<bool> SqliteJournal::Impl::CopyBack(int mode) {
  const int code = sqlite3_wal_checkpoint_v2(db, "main", mode, nullptr, nullptr);
  if (code != SQLITE_OK && !IsFull(code)) return Failure(code);
  if (code == SQLITE_OK) log_pages = 0;
  return code == SQLITE_OK;
}

SqliteJournal::SqliteJournal(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SqliteJournal::~SqliteJournal() = default;

Result<std::unique_ptr<SqliteJournal>> SqliteJournal::Open(const std::filesystem::path& path,
                                                           JournalOptions options,
                                                           Recovered& recovered) {
  // SQLite puts its logs beside the file that a link leads to.
  std::error_code error;
  const bool link = std::filesystem::is_symlink(path, error);
  auto impl = std::make_unique<Impl>(link ? std::filesystem::weakly_canonical(path, error) : path);
  impl->durability = options.durability;
  impl->free_bytes = options.free_bytes ? std::move(options.free_bytes) : &FreeBytes;
  Status status = impl->Open();
  if (status) status = impl->Prepare();
  if (status) status = impl->Recover(recovered);
  if (status) status = impl->Judge(options, recovered);
  if (!status) return std::unexpected(status.error());
  impl->last_given = recovered.last_revision;
  const Result<Appended> begun = impl->Begin();
  if (!begun) return std::unexpected(begun.error());
  if (*begun == Appended::kNoRoom) {
    if (!recovered.warning.empty()) recovered.warning += "; ";
    recovered.warning +=
        fmt::format("journal {}: no space left on the disk: writes are refused until there is room",
                    path.string());
  }
  return std::unique_ptr<SqliteJournal>(new SqliteJournal(std::move(impl)));
}

Result<Appended> SqliteJournal::Append(std::span<const AppendJournal> group) {
  return impl_->Append(group);
}

}  // namespace berth::env::os
