#include "api/url.h"

#include <algorithm>
#include <charconv>

namespace berth::api {

Url ParseUrl(std::string_view text) {
  Url url;
  if (const size_t hash = text.find('#'); hash != std::string_view::npos) {
    url.fragment = text.substr(hash + 1);
    text = text.substr(0, hash);
  }
  if (const size_t question = text.find('?'); question != std::string_view::npos) {
    url.query = text.substr(question + 1);
    text = text.substr(0, question);
  }
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos && colon < text.find('/')) {
    url.scheme = text.substr(0, colon);
    text = text.substr(colon + 1);
  }
  if (text.starts_with("//")) {
    text = text.substr(2);
    const size_t slash = std::min(text.find('/'), text.size());
    url.host = text.substr(0, slash);
    text = text.substr(slash);
    if (const size_t at = url.host.rfind('@'); at != std::string_view::npos) {
      url.has_user = true;
      url.user = url.host.substr(0, at);
      url.host = url.host.substr(at + 1);
    }
  }
  url.path = text;
  return url;
}

std::optional<std::string_view> UrlProblem(std::string_view text) {
  const bool control = std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
  if (control) return "net/url: invalid control character in URL";
  const std::string_view host = ParseUrl(text).host;
  if (host.contains(' ')) return "invalid character \" \" in host name";
  const size_t bracket = host.rfind(']');
  if (host.starts_with('[') && bracket == std::string_view::npos) return "missing ']' in host";
  const size_t colon = host.rfind(':');
  if (colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket))
    return std::nullopt;
  const std::string_view port = host.substr(colon + 1);
  const bool digits = std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) return "invalid port after host";
  return std::nullopt;
}

HostPort SplitHost(std::string_view host) {
  HostPort result;
  const size_t bracket = host.rfind(']');
  const size_t colon = host.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  result.host = has_port ? host.substr(0, colon) : host;
  if (has_port) {
    const std::string_view port = host.substr(colon + 1);
    int number = 0;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (error == std::errc() && end == port.data() + port.size() && number > 0 && number < 65'536)
      result.port = number;
  }
  if (result.host.starts_with('[') && result.host.ends_with(']'))
    result.host = result.host.substr(1, result.host.size() - 2);
  return result;
}

}  // namespace berth::api
