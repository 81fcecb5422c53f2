#pragma once

#include <string_view>

// Private to api/: the formats of texts in users' schemas.
namespace berth::api {

// Whether a text is of a format, as upstream reads that: `byte`, `date`, `date-time`, `duration`,
// `ipv4`, `ipv6`, `cidr`, `mac`, `uuid` to `uuid5`, `bsonobjectid`, `hexcolor`, `rgbcolor`, `ssn`,
// `creditcard`, `isbn`, `isbn10`, `isbn13`, `uri`, `email`, `hostname`, `k8s-short-name`,
// `k8s-long-name`, with or without their dashes. Any text is of any other format.
[[nodiscard]] bool FitsFormat(std::string_view format, std::string_view text);

// Whether upstream knows a format of values of a type; "" is any type.
[[nodiscard]] bool IsKnownFormat(std::string_view type, std::string_view format);

}  // namespace berth::api
