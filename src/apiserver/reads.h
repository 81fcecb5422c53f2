#pragma once

#include "apiserver/problem.h"
#include "apiserver/render.h"
#include "apiserver/request.h"
#include "apiserver/watches.h"
#include "base/prng.h"
#include "base/time.h"
#include "store/store.h"

// The read verbs, on the store's durable view.
namespace berth::apiserver {

// get, also of status and scale.
[[nodiscard]] Outcome<env::HttpResponse> Get(Instant now, const store::Store& store,
                                             const ResourceRequest& request);

// list: whole or in pages, at the newest or at an exact revision.
[[nodiscard]] Outcome<env::HttpResponse> List(Instant now, const store::Store& store,
                                              const ResourceRequest& request);

// Checks a watch request. `prng` spreads the ends of watches that don't say when to end. The
// problem `too old` comes within the stream, as upstream has it, so it is not among this
// function's.
[[nodiscard]] Outcome<WatchStart> ParseWatch(Instant now, const ResourceRequest& request,
                                             Prng& prng);

}  // namespace berth::apiserver
