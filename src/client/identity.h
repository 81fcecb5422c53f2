#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace berth::client {

// What the client reads of every object.
struct Identity {
  std::string namespace_name;
  std::string name;
  std::string uid;
  std::string resource_version;
  bool operator==(const Identity&) const = default;
};

// Reads `metadata`. Nothing when the text is no object or has none, or when the name is missing.
// Stops behind metadata: later damage is found by whoever decodes the object. Pure; one pass over
// the bytes up to there.
[[nodiscard]] std::optional<Identity> ReadIdentity(std::string_view object);

}  // namespace berth::client
