#pragma once

#include <string>

#include "client/known_set.h"
#include "client/watch.h"

namespace berth::control {

// The object's namespace/name.
inline std::string KeyOf(const client::ObjectEvent& event) {
  return client::KnownSet::Key(event.namespace_name, event.name);
}

}  // namespace berth::control
