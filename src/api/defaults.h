#pragma once

#include <cstdint>
#include <string_view>

#include "api/json.h"
#include "api/kinds.h"
#include "base/time.h"

// What the API server fills in. Pure functions on conformed documents (api/fields.h); idempotent.
namespace berth::api {

// The defaults of a kind's fields, as upstream applies them whenever it decodes an object.
void ApplyDefaults(const Kind& kind, Json& object);
void ApplyDefaults(KindId kind, Json& object);
// What upstream's conversion adds to an object of a kind before anybody looks at who holds which
// fields.
void AddHeld(const Kind& kind, Json& object);
// The same where the object's spec is empty and gives way to another: it needn't get its defaults.
void ApplyDefaultsWithoutSpec(const Kind& kind, Json& object);

// What upstream does to a new object before it validates it, after defaulting: fields that only the
// server owns are reset, the status too where the kind has one, generation starts at 1, a Job gets
// its selector and labels from metadata.uid, a Namespace its finalizer, phase and name label, a pod
// its phase and QoS class. REQUIRES: metadata.uid and name are set.
void PrepareForCreate(const Kind& kind, Json& object);
void PrepareForCreate(KindId kind, Json& object);

// DefaultTolerationSeconds, of the admission steps that an ordinary cluster has on: a pod that does
// not say otherwise stays for five minutes on a node that is not ready or not reached.
void AddDefaultTolerations(Json& pod);

enum class Subresource : uint8_t {
  kNone,
  kStatus,
  kFinalize,  // Of namespaces.
  kEphemeralContainers,
  kResize,
};

// The same for an update of `old`: what the request may not touch is taken from `old` (the status,
// or with kStatus everything but status), metadata.generation goes up when the spec changed, and a
// pod has the default tolerations also where the request left them out.
void PrepareForUpdate(const Kind& kind, const Json& old, Json& object, Subresource subresource);
void PrepareForUpdate(KindId kind, const Json& old, Json& object, Subresource subresource);

// Guaranteed, Burstable or BestEffort, from a pod's requests and limits.
[[nodiscard]] std::string_view QosClassOf(const Json& pod);

// What the events of `to`, kEvent or kEventsEvent, call a member of the other's.
[[nodiscard]] std::string_view EventMember(KindId to, std::string_view name);
// An Event as the other group has it: `from` and `to` are kEvent and kEventsEvent.
void ConvertEvent(KindId from, KindId to, Json& event);

}  // namespace berth::api
