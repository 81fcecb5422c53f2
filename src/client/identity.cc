#include "client/identity.h"

#include <utility>

#include "codec/scan.h"

namespace berth::client {

std::optional<Identity> ReadIdentity(std::string_view object) {
  codec::ObjectScanner root(object);
  while (root.Next()) {
    if (root.key() != "metadata") continue;
    Identity identity;
    codec::ObjectScanner scanner(root.rest());
    while (scanner.Next()) {
      const std::string_view key = scanner.key();
      std::string* field = nullptr;
      if (key == "name") field = &identity.name;
      if (key == "namespace") field = &identity.namespace_name;
      if (key == "uid") field = &identity.uid;
      if (key == "resourceVersion") field = &identity.resource_version;
      if (field == nullptr) continue;
      auto text = codec::Unquote(scanner.value());
      if (!text) return std::nullopt;
      *field = std::move(*text);
    }
    if (scanner.failed() || identity.name.empty()) return std::nullopt;
    return identity;
  }
  return std::nullopt;
}

}  // namespace berth::client
