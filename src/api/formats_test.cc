// Goal: texts are of the formats that upstream takes them for. Method: texts that the genuine
// server took and refused, by format.

#include "api/formats.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace berth::api {
namespace {

struct Row {
  std::string_view format;
  std::vector<std::string_view> fit, unfit;
};

TEST(FormatsTest, TextsAreOfThem) {
  const std::vector<Row> rows = {
      {"byte", {"YQ==", "YWE=", "YWFh"}, {"YQ", "Y Q=", "!!", ""}},
      {"ipv4", {"1.2.3.4", "01.2.3.4", "::ffff:1.2.3.4"}, {"1.2.3", "::1", ""}},
      {"ipv6", {"::1", "::ffff:1.2.3.4"}, {"1.2.3.4", "g::"}},
      {"cidr", {"10.0.0.0/8", "10.0.0.1/8", "::/0"}, {"10.0.0.0", "10.0.0.0/33"}},
      {"mac",
       {"00:00:5e:00:53:01", "00-00-5e-00-53-01", "0000.5e00.5301", "02:00:5e:10:00:00:00:01"},
       {"x", "00:00", "00:00:5e:00:53:0", "00:00-5e:00:53:01", ""}},
      {"duration",
       {"1s", "1h30m", "1 day", "2 weeks", "3d", "-1s", "1.5h", "1us", "P1D", "1 week", "5 hours",
        "1w2d", "3 µs"},
       {"1", "", "soon", "3 moons"}},
      {"date", {"2026-01-01"}, {"2026-13-01", "2026-1-1", "2026-01-01T00:00:00Z", ""}},
      {"date-time",
       {"2026-01-01T00:00:00Z", "2026-01-01T00:00:00.1Z", "2026-01-01t00:00:00z"},
       {"2026-01-01", "2026-01-01 00:00:00Z", ""}},
      {"datetime", {"2026-01-01T00:00:00Z"}, {"x"}},
      {"uuid",
       {"d8e65fe6-0ca8-4361-a3d7-88ba98c025dd", "d8e65fe60ca84361a3d788ba98c025dd",
        "D8E65FE6-0CA8-4361-A3D7-88BA98C025DD"},
       {"x", "d8e65fe6-0ca8-4361-a3d7-88ba98c025d", "d8e65fe6-0ca8-4361-a3d7-88ba98c025dd0"}},
      {"uuid3", {"d8e65fe6-0ca8-3361-a3d7-88ba98c025dd"}, {"d8e65fe6-0ca8-4361-a3d7-88ba98c025dd"}},
      {"uuid4",
       {"d8e65fe6-0ca8-4361-a3d7-88ba98c025dd"},
       {"d8e65fe6-0ca8-4361-c3d7-88ba98c025dd", "d8e65fe6-0ca8-3361-a3d7-88ba98c025dd"}},
      {"uuid5", {"d8e65fe6-0ca8-5361-a3d7-88ba98c025dd"}, {"d8e65fe6-0ca8-5361-c3d7-88ba98c025dd"}},
      {"bsonobjectid", {"507f1f77bcf86cd799439011"}, {"x", "507f1f77bcf86cd79943901g"}},
      {"hexcolor", {"#fff", "fff", "#a0b1c2"}, {"x", "#ffff"}},
      {"ssn", {"123-45-6789"}, {"1", "123-45-678"}},
      {"k8s-short-name", {"a"}, {"A", "a.b"}},
      {"k8sshortname", {"a"}, {"A"}},
      {"k8s-long-name", {"a.b"}, {"A"}},
      {"ip", {"x"}, {}},
      {"password", {"x", ""}, {}},
      {"", {"x"}, {}}};
  for (const Row& row : rows) {
    for (const std::string_view text : row.fit) {
      EXPECT_TRUE(FitsFormat(row.format, text)) << row.format << " " << text;
    }
    for (const std::string_view text : row.unfit) {
      EXPECT_FALSE(FitsFormat(row.format, text)) << row.format << " " << text;
    }
  }
}

}  // namespace
}  // namespace berth::api
