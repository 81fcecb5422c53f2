#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace berth::env {

enum class Method : uint8_t { kGet, kPost, kPut, kPatch, kDelete, kOther, kHead };

[[nodiscard]] std::string_view ToString(Method method);

// A header field; the name is in lower case.
struct Header {
  std::string name;
  std::string value;
  bool operator==(const Header&) const = default;
};

// The first value of a header, or nothing. `name` is in lower case.
[[nodiscard]] std::optional<std::string_view> FindHeader(const std::vector<Header>& headers,
                                                         std::string_view name);

// One request of HTTP or of the in-process transport, which carries the same things.
struct HttpRequest {
  Method method = Method::kGet;
  std::string target;  // Path and query, percent-encoded, as on the wire.
  std::vector<Header> headers;
  Bytes body;
  bool operator==(const HttpRequest&) const = default;
};

struct HttpResponse {
  int status = 200;
  std::vector<Header> headers;
  Bytes body;
  bool operator==(const HttpResponse&) const = default;
};

// Who a transport says is at the other end: the verified client certificate's common name and
// organisations, or the identity wired into an in-process client. Empty when it knows nobody; a
// bearer token is a header and the API server's own matter.
struct Peer {
  std::string user;
  std::vector<std::string> groups;
  bool operator==(const Peer&) const = default;
};

}  // namespace berth::env
