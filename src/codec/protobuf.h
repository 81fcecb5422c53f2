#pragma once

#include <string_view>

#include "api/json.h"
#include "base/result.h"

// Kubernetes' protobuf (application/vnd.kubernetes.protobuf): a magic number, then a
// runtime.Unknown that names a kind and holds its message. Only read: what clients send who prefer
// it; answers are JSON, which they all take. By a table that tools/schema/protobuf makes from the
// .proto files. Safe on any bytes.
namespace berth::codec {

// The document that JSON would have sent, before any check: kind and apiVersion as the envelope
// says them, times, quantities and embedded JSON as text and values. What the table doesn't know is
// left out, as decoders of protobuf do. kInvalid: what is wrong, with what it is within.
[[nodiscard]] Result<api::Json> ParseProtobuf(std::string_view bytes, api::JsonMemory memory = {});

}  // namespace berth::codec
