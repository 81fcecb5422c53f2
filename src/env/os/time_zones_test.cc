// Goal: the system's time zones are found by the names that users give them. Method: a folder of
// the test's own with what such folders hold.
#include "env/os/time_zones.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace berth::env::os {
namespace {

namespace fs = std::filesystem;

TEST(TimeZones, AreReadByTheirNames) {
  const fs::path folder = fs::path(::testing::TempDir()) / "berth-zones";
  fs::remove_all(folder);
  const auto write = [&](const std::string& name, const std::string& content) {
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name, std::ios::binary) << content;
  };
  write("UTC", "TZif2-utc");
  write("Europe/Berlin", "TZif2-berlin");
  write("America/Argentina/Salta", "TZif2-salta");
  write("right/UTC", "TZif2-right");
  write("posix/UTC", "TZif2-posix");
  write("zone.tab", "no zone");
  write("large", "TZif" + std::string(100'000, 'x'));
  fs::create_symlink("Berlin", folder / "Europe/Busingen");
  fs::create_symlink("nowhere", folder / "Europe/Lost");
  using Files = std::map<std::string, std::string>;
  EXPECT_EQ(ReadTimeZones(folder.string()), (Files{{"America/Argentina/Salta", "TZif2-salta"},
                                                   {"Europe/Berlin", "TZif2-berlin"},
                                                   {"Europe/Busingen", "TZif2-berlin"},
                                                   {"UTC", "TZif2-utc"}}));
  EXPECT_EQ(ReadTimeZones((folder / "none").string()), Files{});
  fs::remove_all(folder);
}

}  // namespace
}  // namespace berth::env::os
