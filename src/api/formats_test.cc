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
      {"uri",
       {"*",
        "/",
        "/a b",
        "a:b",
        "a:",
        "http://a",
        "http://a:1",
        "pg://a:1:2",
        "pg://a:1,b:2",
        "http://[::1]",
        "http://[::1]:80",
        "http://[::1%25e0]",
        "http://u:p@h/",
        "http://a%c3%a9/",
        "http://a/b#c d",
        "//a",
        "///a",
        "http:",
        "http://",
        "http://é.de/",
        "mailto:x@y",
        "http://a@b@c",
        "/a^b",
        "http://a/?%zz",
        "http://a:",
        "http://[::ffff:1.2.3.4]",
        "http://[fe80::1%25a%20b]",
        "x://a<b>"},
       {"",
        "/a%zz",
        "a",
        "http://a b",
        "http://a:x",
        "http://a:1:2",
        "http://a:1,b:2",
        "http://[1.2.3.4]",
        "http://[::1%25]",
        "http://[::1",
        "http://u p@h/",
        "http://a%20b/",
        "http://a#b",
        ":a",
        "1a:b",
        "http:/a%2",
        "/\t",
        "http://a^b",
        "http://a[b]",
        "HTTP://a:1:2",
        "http://a\\b",
        "http://%/"}},
      {"email",
       {"a@b",          "\"a b\"@c",   "a.b@c.d",
        "a@[1.2.3.4]",  "a@[::1]",     "X <a@b>",
        "X Y <a@b>",    "<a@b>",       "\"X, Y\" <a@b>",
        "a@b (c)",      "g: a@b;",     "é@ü",
        " a@b ",        "X. Y. <a@b>", "\"\" <a@b>",
        "\"a\\\"b\"@c", "X (c) <a@b>", "=?utf-8?q?x?= <a@b>",
        "a@b ((c))",    "a<b@c>",      "g: X <a@b> ;",
        "a@ b"},
       {"",       "a",        "a@",    "@b",    "a b@c",      "\"\"@c", ".a@b",      "a.@b",
        "a..b@c", "a@b.",     "a@.b",  "a@[x]", "X, Y <a@b>", "a@b (c", "(c) a@b",   "g: a@b, c@d;",
        "g:;",    "a@b, c@d", "a@b c", "\"a\\", "<a@b",       "a@b>",   "a@b (c) d", "a\"b\"@c",
        "a @b",   "a@b@c",    "a:b@c"}},
      {"hostname",
       {"a", "a.bc", "a-b", "a-", "1",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.de", "é", "é.de", "☃.de",
        "日本.日本", "a.b.c.de", "a-b.c-d.ef", "a--b.de", "€", "€.com", "A.COM"},
       {"", "a.b", "-a", "a.b-", "a.bc1", "1.2", "1.23", "a..bc", "a_b", ".a", "a.",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.de", "a.☃☃", "a.d",
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-", "a--b", "a b"}},
      {"isbn",
       {"0321751043", "978-0321751041", "0-321-75104-3", "0 321 75104 3", "080442957X",
        "978 0 321 75104 1"},
       {"0321751044", "9780321751042", "", "080442957x", "x"}},
      {"isbn10", {"0321751043", "080442957X", "0-8044-2957-X"}, {"978-0321751041", "080442957"}},
      {"isbn13", {"978-0321751041"}, {"0321751043", "9780321751042"}},
      {"creditcard",
       {"4111111111111111", "4111-1111-1111-1111", "378282246310005", "5555555555554444",
        "6011111111111117", "30569309025904", "3530111333300000", "4222222222222",
        "a4111b1111c1111 1111"},
       {"4111111111111112", "x", ""}},
      {"rgbcolor",
       {"rgb(0,0,0)", "rgb(255, 255, 255)", "rgb( 1 , 2 , 3 )", "rgb(199,249,100)", "rgb(1\n,2,3)"},
       {"rgb(256,0,0)", "rgb(01,2,3)", "rgb(1,2)", "rgb(1,2,3) ", "RGB(1,2,3)", "rgb (1,2,3)", "",
        "rgb(1,2,3,4)", "rgb(-1,0,0)"}},
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
