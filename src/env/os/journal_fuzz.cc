// Goal: no bytes in place of a journal, of its write-ahead log or of a rollback journal crash berth
// or are taken for records that were not written. Method: the first byte says which of the files the
// rest replaces; a journal that opens must take an append.
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/check.h"
#include "env/os/sqlite_journal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace fs = std::filesystem;
  using berth::env::os::SqliteJournal;
  const berth::env::os::JournalOptions options{.durability = berth::env::os::Durability::kProcess};
  if (size == 0) return 0;
  const fs::path folder =
      fs::temp_directory_path() / ("berth-journal-fuzz-" + std::to_string(getpid()));
  fs::remove_all(folder);
  fs::create_directory(folder);
  const fs::path path = folder / "journal.db";
  berth::env::os::Recovered recovered;
  constexpr const char* kEndings[] = {"", "-wal", "-journal"};
  const char* const ending = kEndings[data[0] % 3];
  if (*ending != '\0') {
    CHECK(SqliteJournal::Open(path, options, recovered).has_value());
  }
  std::ofstream(path.string() + ending, std::ios::binary)
      << std::string(reinterpret_cast<const char*>(data + 1), size - 1);
  auto journal = SqliteJournal::Open(path, options, recovered);
  if (journal) {
    const berth::env::AppendJournal append{
        .sequence = 1,
        .records = {
            {.key = "key", .revision = recovered.last_revision + 1, .value = berth::Bytes("v")}}};
    CHECK((*journal)->Append(std::span(&append, 1)).has_value());
  }
  fs::remove_all(folder);
  return 0;
}
