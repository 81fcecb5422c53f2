#pragma once

#include "api/json.h"
#include "api/kinds.h"

// Kinds that are views of others (Kind::storage): the events of events.k8s.io, and Kueue's version
// v1beta1. An object is stored in one form and told in the other; what of Kueue's each form says is
// in docs/design/0014-versions.md. Pure functions; safe on any document.
namespace berth::api {

// Turns a document from one form of a kind into the other: `from` or `to` is the storage of the
// other. What the other has no words for is left out; members stand in the order of its schema, and
// what it has a default for is there. Nothing happens when they are the same.
void Convert(KindId from, KindId to, Json& object);

// What is to be stored of a document that was written as `view`. `stored`, null for a new object,
// is what it replaces: what the view has no words for stays as it is there, and so does, to the
// letter, what the writer left as the view told it.
[[nodiscard]] Json ToStored(KindId view, Json object, const Json* stored);

}  // namespace berth::api
