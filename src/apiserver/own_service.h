#pragma once

#include <string_view>

#include "base/prng.h"
#include "base/time.h"
#include "store/store.h"

// default/kubernetes, the Service that an API server is known by within its cluster, and where it
// is found: Endpoints and an EndpointSlice, which no controller makes. The server keeps them as
// they are to be, whoever changes or deletes them.
namespace berth::apiserver {

// Makes what is missing and puts right what differs; what else somebody has set of these objects
// stays. `host` is an address and a port, "127.0.0.1:6443" or "[::1]:6443"; where it is none, the
// Service is kept alone. Idempotent. False: the Service can't be made now, since a quota is used up
// or its address is another's.
[[nodiscard]] bool KeepOwnService(Instant now, store::Store& store, Prng& prng,
                                  std::string_view host);

// Whether an object is one of these.
[[nodiscard]] bool IsOwnService(const store::StoredObject& object);

}  // namespace berth::apiserver
