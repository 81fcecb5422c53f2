#pragma once

#include <map>
#include <string>

namespace berth::env::os {

inline constexpr const char* kTimeZonesFolder = "/usr/share/zoneinfo";

// The system's files of time zones (RFC 8536) by the zones' names ("Europe/Berlin"), as they are:
// not looked into further than that they begin as such. What can't be read is left out; without a
// database there are none. Its second and third copies, "posix" and "right", don't count. Reads
// some 600 files of a few KiB.
[[nodiscard]] std::map<std::string, std::string> ReadTimeZones(
    const std::string& folder = kTimeZonesFolder);

}  // namespace berth::env::os
