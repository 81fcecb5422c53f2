#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

// Compressed answers (RFC 1952). Not thread-safe, but for functions.
namespace berth::net {

// Answers longer than this are compressed for who accepts it, as kube-apiserver's: below, the time
// is worth more than the bytes.
inline constexpr size_t kGzipBytesMin = size_t{128} * 1024;

// Whether an Accept-Encoding header asks for gzip.
[[nodiscard]] bool AcceptsGzip(std::string_view header);

// Compresses one text that is given in parts, each of which takes its time: with the least effort,
// which makes lists of objects ten times smaller at some 200 MB a second; noise goes at some 40.
class Gzipper {
 public:
  // Null: there is no memory for it.
  static std::unique_ptr<Gzipper> Make();
  ~Gzipper();
  Gzipper(const Gzipper&) = delete;
  Gzipper& operator=(const Gzipper&) = delete;

  // Appends what comes of it, which may be nothing but for the last part. REQUIRES: no part was the
  // last.
  void Add(std::string_view part, bool last, std::string& out);

 private:
  struct Stream;
  explicit Gzipper(std::unique_ptr<Stream> stream);
  std::unique_ptr<Stream> stream_;
};

}  // namespace berth::net
