// Any bytes: the parser ends with a document or an error, the same whichever of the two parsers it
// is; a document that it made prints as text that reads back the same, and the typed decoder takes
// or refuses it without harm.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "codec/decode.h"
#include "codec/json.h"
#include "codec/json_parsers.h"
#include "codec/topology.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  codec::Decoder decoder;
  static_cast<void>(decoder.Pod(text));
  static_cast<void>(decoder.Deployment(text));
  static_cast<void>(decoder.PodDisruptionBudget(text));
  static_cast<void>(decoder.PodGroup(text));
  static_cast<void>(decoder.Queue(text));
  static_cast<void>(decoder.ResourceFlavor(text));
  static_cast<void>(decoder.ClusterQueue(text));
  static_cast<void>(decoder.Cohort(text));
  static_cast<void>(decoder.LocalQueue(text));
  static_cast<void>(decoder.AdmissionCheck(text));
  static_cast<void>(decoder.Topology(text));
  static_cast<void>(decoder.WorkloadPriorityClass(text));
  static_cast<void>(decoder.LimitRange(text));
  static_cast<void>(decoder.RuntimeClass(text));
  static_cast<void>(decoder.Workload(text));
  static_cast<void>(decoder.Placement(text));
  if (const Result<api::TopologyAssignment> assignment = decoder.TopologyAssignment(text)) {
    const std::string written = codec::TopologyAssignmentText(*assignment);
    CHECK(decoder.TopologyAssignment(written).value() == *assignment);
  }
  const Result<api::Json> value = codec::ParseJson(text);
  const Result<codec::ParsedJson> other = codec::ParseAnyJson(text, {}, {});
  CHECK_EQ(other.has_value(), value.has_value());
  if (!value) return 0;
  CHECK(other->value == *value);
  const std::string printed = codec::PrintJson(*value);
  const Result<api::Json> again = codec::ParseJson(printed);
  CHECK(again.has_value());
  CHECK_EQ(codec::PrintJson(*again), printed);
  return 0;
}
