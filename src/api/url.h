#pragma once

#include <optional>
#include <string_view>

namespace berth::api {

// The parts of a URL as RFC 3986 cuts it; views of its text, nothing decoded. Any text has some.
struct Url {
  std::string_view scheme;
  std::string_view user;  // With a user, `has_user`, though it may be empty.
  std::string_view host;  // With the port: "a.example:443", "[::1]".
  std::string_view path;
  std::string_view query;
  std::string_view fragment;
  bool has_user = false;
};
[[nodiscard]] Url ParseUrl(std::string_view text);

// Whether a URL has no character that none may have, and its host a port that is one. Nothing, or
// what Go's net/url says of it.
[[nodiscard]] std::optional<std::string_view> UrlProblem(std::string_view text);

// A host of a URL without its port and brackets, and the port; 0: there is none.
struct HostPort {
  std::string_view host;
  int port = 0;
};
[[nodiscard]] HostPort SplitHost(std::string_view host);

}  // namespace berth::api
