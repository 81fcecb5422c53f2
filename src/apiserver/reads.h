#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

// What a list is of.
struct Listing {
  std::vector<store::ObjectRef> objects;
  std::string metadata;  // The members of its ListMeta.
};

// By the query's selectors, limit, continue and resourceVersion. Of the head: objects that are not
// durable yet, too, where no revision is asked for. Problems: what is wrong with the query.
enum class View : uint8_t { kDurable, kHead };
[[nodiscard]] Outcome<Listing> FindListed(const store::Store& store, const ResourceRequest& request,
                                          View view);

// list: whole or in pages, at the newest or at an exact revision. Nothing of it is written yet.
[[nodiscard]] Outcome<ListRenderer> List(Instant now, const store::Store& store,
                                         const ResourceRequest& request);

// Checks a watch request. `prng` spreads the ends of watches that don't say when to end. The
// problem `too old` comes within the stream, as upstream has it, so it is not among this
// function's.
[[nodiscard]] Outcome<WatchStart> ParseWatch(Instant now, const ResourceRequest& request,
                                             Prng& prng);

}  // namespace berth::apiserver
