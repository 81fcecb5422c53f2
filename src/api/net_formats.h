#pragma once

#include <string_view>

// Private to api/: texts that name somebody or something in a network, as upstream reads them.
// Cost: linear in the text.
namespace berth::api {

// Go's net/url.ParseRequestURI: an absolute URL, or a path from the root.
[[nodiscard]] bool IsRequestUri(std::string_view text);
// Go's net/mail.ParseAddress: one mailbox, with or without a name. Encoded words of a name are
// words, whatever their charset.
[[nodiscard]] bool IsMailAddress(std::string_view text);
// go-openapi's hostname: letters and symbols of any script, and a last label of letters alone.
[[nodiscard]] bool IsHostName(std::string_view text);

}  // namespace berth::api
