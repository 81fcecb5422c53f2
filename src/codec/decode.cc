#include "codec/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/limits.h"
#include "codec/decode_reader.h"
#include "codec/json.h"
#include "codec/spec_memo.h"

namespace berth::codec {

using reader::AppendText;
using reader::Element;
using reader::Errors;
using reader::ForItems;
using reader::ForMembers;
using reader::Read;
using reader::ReadObject;

struct Decoder::Buffers {
  simdjson::dom::parser parser;
  std::string text;
  SpecMemo specs;
};

namespace {

void ReadNamespace(Errors& errors, const Element& root, api::Namespace& out) {
  ReadObject(
      errors, root, out.meta,
      [&](std::string_view key, const Element& value) {
        if (key == "finalizers") Read(errors, "spec.finalizers", value, out.spec_finalizers);
      },
      [&](std::string_view key, const Element& value) {
        if (key == "phase") Read(errors, "status.phase", value, out.phase);
        if (key == "conditions") Read(errors, "status.conditions", value, out.conditions);
      });
}

void ReadServiceAccount(Errors& errors, const Element& root, api::ServiceAccount& out) {
  ForMembers(errors, "object", root, [&](std::string_view key, const Element& value) {
    if (key == "metadata") Read(errors, key, value, out.meta);
    if (key != "imagePullSecrets") return;
    ForItems(errors, key, value, [&](const Element& item) {
      ForMembers(errors, key, item, [&](std::string_view name, const Element& part) {
        if (name == "name") Read(errors, key, part, out.image_pull_secrets.emplace_back());
      });
    });
  });
}

void ReadConfigMap(Errors& errors, const Element& root, api::ConfigMap& out) {
  ForMembers(errors, "object", root, [&](std::string_view key, const Element& value) {
    if (key == "metadata") Read(errors, key, value, out.meta);
    if (key == "data") Read(errors, key, value, out.data);
  });
}

void ReadPriorityClass(Errors& errors, const Element& root, api::PriorityClass& out) {
  ForMembers(errors, "object", root, [&](std::string_view key, const Element& value) {
    if (key == "metadata") {
      Read(errors, key, value, out.meta);
    } else if (key == "value") {
      Read(errors, key, value, out.value);
    } else if (key == "globalDefault") {
      Read(errors, key, value, out.global_default);
    } else if (key == "preemptionPolicy") {
      Read(errors, key, value, out.preemption_policy);
    }
  });
}

void ReadLimitRangeItem(Errors& errors, const Element& element, api::LimitRangeItem& out) {
  constexpr std::string_view kField = "spec.limits";
  ForMembers(errors, kField, element, [&](std::string_view key, const Element& value) {
    if (key == "type") {
      Read(errors, kField, value, out.type);
    } else if (key == "max") {
      reader::ReadAsked(errors, kField, value, out.max);
    } else if (key == "min") {
      reader::ReadAsked(errors, kField, value, out.min);
    } else if (key == "default") {
      reader::ReadAsked(errors, kField, value, out.defaults);
    } else if (key == "defaultRequest") {
      reader::ReadAsked(errors, kField, value, out.default_requests);
    }
  });
}

void ReadLimitRange(Errors& errors, const Element& root, api::LimitRange& out) {
  const auto spec = [&](std::string_view key, const Element& value) {
    if (key != "limits") return;
    ForItems(errors, "spec.limits", value, [&](const Element& item) {
      ReadLimitRangeItem(errors, item, out.items.emplace_back());
    });
  };
  ReadObject(errors, root, out.meta, spec,
             [](std::string_view /*key*/, const Element& /*value*/) {});
}

void ReadRuntimeClass(Errors& errors, const Element& root, api::RuntimeClass& out) {
  ForMembers(errors, "object", root, [&](std::string_view key, const Element& value) {
    if (key == "metadata") {
      Read(errors, key, value, out.meta);
    } else if (key == "overhead") {
      ForMembers(errors, key, value, [&](std::string_view name, const Element& amounts) {
        if (name == "podFixed") Read(errors, "overhead.podFixed", amounts, out.overhead);
      });
    } else if (key == "scheduling") {
      ForMembers(errors, key, value, [&](std::string_view name, const Element& of) {
        if (name == "nodeSelector") Read(errors, "scheduling.nodeSelector", of, out.node_selector);
        if (name == "tolerations") Read(errors, "scheduling.tolerations", of, out.tolerations);
      });
    }
  });
}

void ReadLease(Errors& errors, const Element& root, api::Lease& out) {
  ReadObject(
      errors, root, out.meta,
      [&](std::string_view key, const Element& value) {
        if (key == "holderIdentity") {
          Read(errors, "spec.holderIdentity", value, out.holder);
        } else if (key == "leaseDurationSeconds") {
          Read(errors, "spec.leaseDurationSeconds", value, out.duration_seconds);
        } else if (key == "renewTime") {
          Read(errors, "spec.renewTime", value, out.renew_time);
        }
      },
      [](std::string_view /*key*/, const Element& /*value*/) {});
}

void ReadDisruptedPods(Errors& errors, const Element& element,
                       std::vector<api::DisruptedPod>& out) {
  constexpr std::string_view kField = "status.disruptedPods";
  ForMembers(errors, kField, element, [&](std::string_view key, const Element& value) {
    Read(errors, kField, value, out.emplace_back(std::string(key), Instant()).time);
  });
  reader::SortUnique(out, [](const auto& pod) { return std::string_view(pod.name); });
}

void ReadBudgetStatus(Errors& errors, std::string_view key, const Element& value,
                      api::PodDisruptionBudget& out) {
  if (key == "observedGeneration") {
    Read(errors, "status.observedGeneration", value, out.observed_generation);
  } else if (key == "disruptionsAllowed") {
    Read(errors, "status.disruptionsAllowed", value, out.disruptions_allowed);
  } else if (key == "currentHealthy") {
    Read(errors, "status.currentHealthy", value, out.current_healthy);
  } else if (key == "desiredHealthy") {
    Read(errors, "status.desiredHealthy", value, out.desired_healthy);
  } else if (key == "expectedPods") {
    Read(errors, "status.expectedPods", value, out.expected_pods);
  } else if (key == "disruptedPods") {
    ReadDisruptedPods(errors, value, out.disrupted_pods);
  } else if (key == "conditions") {
    Read(errors, "status.conditions", value, out.conditions);
  }
}

void ReadBudget(Errors& errors, const Element& root, api::PodDisruptionBudget& out) {
  const auto spec = [&](std::string_view key, const Element& value) {
    if (key == "selector") {
      Read(errors, "spec.selector", value, out.selector);
    } else if (key == "minAvailable") {
      Read(errors, "spec.minAvailable", value, out.min_available);
    } else if (key == "maxUnavailable") {
      Read(errors, "spec.maxUnavailable", value, out.max_unavailable);
    } else if (key == "unhealthyPodEvictionPolicy") {
      std::string policy;
      Read(errors, "spec.unhealthyPodEvictionPolicy", value, policy);
      out.always_allow_unhealthy = policy == "AlwaysAllow";
    }
  };
  const auto status = [&](std::string_view key, const Element& value) {
    ReadBudgetStatus(errors, key, value, out);
  };
  ReadObject(errors, root, out.meta, spec, status);
}

void ReadGroupSpec(Errors& errors, std::string_view key, const Element& value, api::PodGroup& out) {
  if (key == "minMember") {
    Read(errors, "spec.minMember", value, out.min_member);
  } else if (key == "minTaskMember") {
    ForMembers(errors, "spec.minTaskMember", value,
               [&](std::string_view role, const Element& count) {
                 Read(errors, "spec.minTaskMember", count,
                      out.min_task_member.emplace_back(role, 0).second);
               });
  } else if (key == "queue") {
    Read(errors, "spec.queue", value, out.queue);
  } else if (key == "priorityClassName") {
    Read(errors, "spec.priorityClassName", value, out.priority_class);
  } else if (key == "minResources") {
    ForMembers(errors, "spec.minResources", value,
               [&](std::string_view name, const Element& amount) {
                 std::string& text = out.min_resources.emplace_back(name, "").second;
                 if (amount.is_string()) {
                   Read(errors, "spec.minResources", amount, text);
                 } else {
                   AppendText(amount, false, text);
                 }
               });
    std::ranges::sort(out.min_resources);
  }
}

void ReadGroupStatus(Errors& errors, std::string_view key, const Element& value,
                     api::PodGroup& out) {
  if (key == "phase") {
    Read(errors, "status.phase", value, out.phase);
  } else if (key == "running") {
    Read(errors, "status.running", value, out.running);
  } else if (key == "succeeded") {
    Read(errors, "status.succeeded", value, out.succeeded);
  } else if (key == "failed") {
    Read(errors, "status.failed", value, out.failed);
  } else if (key == "conditions") {
    ForItems(errors, "status.conditions", value, [&](const Element& item) {
      api::PodGroupCondition& read = out.conditions.emplace_back();
      Read(errors, "status.conditions", item, read.condition);
      ForMembers(errors, "status.conditions", item, [&](std::string_view name, const Element& id) {
        if (name == "transitionID")
          Read(errors, "status.conditions.transitionID", id, read.transition_id);
      });
    });
  }
}

void ReadGroup(Errors& errors, const Element& root, api::PodGroup& out) {
  ReadObject(
      errors, root, out.meta,
      [&](std::string_view key, const Element& value) { ReadGroupSpec(errors, key, value, out); },
      [&](std::string_view key, const Element& value) {
        ReadGroupStatus(errors, key, value, out);
      });
}

void ReadQueueSpec(Errors& errors, std::string_view key, const Element& value, api::Queue& out) {
  if (key == "weight") {
    Read(errors, "spec.weight", value, out.weight);
  } else if (key == "parent") {
    Read(errors, "spec.parent", value, out.parent);
  } else if (key == "capability") {
    ReadAmounts(errors, "spec.capability", value, limits::kQuotaMax, out.capability);
  } else if (key == "deserved") {
    ReadAmounts(errors, "spec.deserved", value, limits::kQuotaMax, out.deserved);
  } else if (key == "guarantee") {
    ForMembers(errors, "spec.guarantee", value, [&](std::string_view name, const Element& list) {
      if (name == "resource")
        ReadAmounts(errors, "spec.guarantee.resource", list, limits::kQuotaMax, out.guarantee);
    });
  }
}

void ReadQueueStatus(Errors& errors, std::string_view key, const Element& value, api::Queue& out) {
  if (key == "state") {
    Read(errors, "status.state", value, out.state);
  } else if (key == "pending") {
    Read(errors, "status.pending", value, out.groups.pending);
  } else if (key == "inqueue") {
    Read(errors, "status.inqueue", value, out.groups.inqueue);
  } else if (key == "running") {
    Read(errors, "status.running", value, out.groups.running);
  } else if (key == "unknown") {
    Read(errors, "status.unknown", value, out.groups.unknown);
  } else if (key == "completed") {
    Read(errors, "status.completed", value, out.groups.completed);
  }
}

void ReadQueue(Errors& errors, const Element& root, api::Queue& out) {
  ReadObject(
      errors, root, out.meta,
      [&](std::string_view key, const Element& value) { ReadQueueSpec(errors, key, value, out); },
      [&](std::string_view key, const Element& value) {
        ReadQueueStatus(errors, key, value, out);
      });
}

void ReadHead(Errors& errors, const Element& root, api::ObjectHead& out) {
  ForMembers(errors, "object", root, [&](std::string_view key, const Element& value) {
    if (key == "metadata") {
      Read(errors, key, value, out.meta);
    } else if (key == "kind") {
      Read(errors, key, value, out.kind);
    } else if (key == "apiVersion") {
      Read(errors, key, value, out.api_version);
    }
  });
}

constexpr int64_t kDocumentBytesMax = 4 * limits::kRequestBodyBytesMax;

// Parses `json` and reads it with `read`: of what is wrong, what else there is. The text is copied
// once, because simdjson reads past its end.
template <typename T, typename Reader>
Status ReadInto(simdjson::dom::parser& parser, std::string& text, std::string_view json,
                const Reader& read, T& view) {
  if (static_cast<int64_t>(json.size()) > kDocumentBytesMax) {
    return Fail(ErrorCode::kTooLarge, fmt::format("a document of {} bytes", json.size()));
  }
  text.reserve(json.size() + simdjson::SIMDJSON_PADDING);
  text.assign(json);
  Element root;
  const simdjson::error_code code = parser.parse(text.data(), text.size(), false).get(root);
  if (code != simdjson::SUCCESS) {
    // The slower parser says what is wrong, and where.
    Result<api::Json> parsed = ParseJson(json);
    if (!parsed) return std::unexpected(parsed.error());
    return Fail(ErrorCode::kInvalid,
                fmt::format("malformed JSON: {}", simdjson::error_message(code)));
  }
  Errors errors;
  if (!root.is_object()) errors.Add("a document", "an object");
  read(errors, root, view);
  if (errors.first) return std::unexpected(*errors.first);
  return {};
}

template <typename T, typename Reader>
Result<T> Decode(simdjson::dom::parser& parser, std::string& text, std::string_view json,
                 const Reader& read) {
  T view;
  if (const Status status = ReadInto(parser, text, json, read, view); !status)
    return std::unexpected(status.error());
  return view;
}

// A pod whose spec is known: what stands around the spec is read as a document of its own. Nothing
// when that fails or has another spec: reading it whole then tells what there is to tell.
std::optional<api::Pod> DecodeAround(simdjson::dom::parser& parser, std::string& text,
                                     std::string_view json, const SpecPlace& place,
                                     const SpecMemo::Known& known) {
  text.reserve(json.size() + simdjson::SIMDJSON_PADDING);
  text.assign(json.substr(0, place.comma)).append(json.substr(place.value + known.size));
  Element root;
  if (parser.parse(text.data(), text.size(), false).get(root) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  Errors errors;
  std::optional<api::Pod> pod(std::in_place);
  reader::ReadPod(errors, root, *pod);
  if (errors.first || !pod->spec.Is({}) || !pod->node_name.empty()) return std::nullopt;
  pod->spec = known.spec;
  pod->node_name.assign(known.node_name);
  return pod;
}

// Of a document that was parsed.
size_t CountSpecs(const Element& root) {
  reader::Object object;
  size_t count = 0;
  if (root.get(object) != simdjson::SUCCESS) return count;
  for (const auto& [key, value] : object) count += key == "spec" ? 1 : 0;
  return count;
}

}  // namespace

Decoder::Decoder() = default;
Decoder::~Decoder() = default;
Decoder::Decoder(const Decoder& /*other*/) {}
Decoder& Decoder::operator=(const Decoder& /*other*/) { return *this; }
Decoder::Decoder(Decoder&& /*other*/) noexcept {}
Decoder& Decoder::operator=(Decoder&& /*other*/) noexcept { return *this; }

Decoder::Buffers& Decoder::buffers() {
  if (buffers_ == nullptr) buffers_ = std::make_unique<Buffers>();
  return *buffers_;
}

Result<api::Pod> Decoder::Pod(std::string_view json) {
  auto& [parser, text, specs] = buffers();
  std::optional<SpecPlace> place;
  if (static_cast<int64_t>(json.size()) <= kDocumentBytesMax) place = FindSpec(json);
  if (place) {
    if (const auto known = specs.Find(json.substr(place->value))) {
      auto pod = DecodeAround(parser, text, json, *place, *known);
      if (pod) return std::move(*pod);
    }
  }
  Result<api::Pod> pod = Decode<api::Pod>(parser, text, json, reader::ReadPod);
  // Two specs in one document were read into one.
  if (place && pod && CountSpecs(parser.doc.root()) == 1) {
    specs.Learn(json.substr(place->value), *pod);
  }
  return pod;
}
api::Pod Decoder::PodInPart(std::string_view json) {
  api::Pod pod;
  // What is wrong Pod() has said.
  static_cast<void>(ReadInto(buffers().parser, buffers().text, json, reader::ReadPod, pod));
  return pod;
}
Result<api::Node> Decoder::Node(std::string_view json) {
  return Decode<api::Node>(buffers().parser, buffers().text, json, reader::ReadNode);
}
Result<api::Deployment> Decoder::Deployment(std::string_view json) {
  return Decode<api::Deployment>(buffers().parser, buffers().text, json, reader::ReadDeployment);
}
Result<api::ReplicaSet> Decoder::ReplicaSet(std::string_view json) {
  return Decode<api::ReplicaSet>(buffers().parser, buffers().text, json, reader::ReadReplicaSet);
}
Result<api::ReplicationController> Decoder::ReplicationController(std::string_view json) {
  return Decode<api::ReplicationController>(buffers().parser, buffers().text, json,
                                            reader::ReadReplicationController);
}
Result<api::StatefulSet> Decoder::StatefulSet(std::string_view json) {
  return Decode<api::StatefulSet>(buffers().parser, buffers().text, json, reader::ReadStatefulSet);
}
Result<api::ControllerRevision> Decoder::ControllerRevision(std::string_view json) {
  return Decode<api::ControllerRevision>(buffers().parser, buffers().text, json,
                                         reader::ReadControllerRevision);
}
Result<api::DaemonSet> Decoder::DaemonSet(std::string_view json) {
  return Decode<api::DaemonSet>(buffers().parser, buffers().text, json, reader::ReadDaemonSet);
}
Result<api::CronJob> Decoder::CronJob(std::string_view json) {
  return Decode<api::CronJob>(buffers().parser, buffers().text, json, reader::ReadCronJob);
}
Result<api::Job> Decoder::Job(std::string_view json) {
  return Decode<api::Job>(buffers().parser, buffers().text, json, reader::ReadJob);
}
Result<api::Namespace> Decoder::Namespace(std::string_view json) {
  return Decode<api::Namespace>(buffers().parser, buffers().text, json, ReadNamespace);
}
Result<api::ServiceAccount> Decoder::ServiceAccount(std::string_view json) {
  return Decode<api::ServiceAccount>(buffers().parser, buffers().text, json, ReadServiceAccount);
}
Result<api::ConfigMap> Decoder::ConfigMap(std::string_view json) {
  return Decode<api::ConfigMap>(buffers().parser, buffers().text, json, ReadConfigMap);
}
Result<api::PriorityClass> Decoder::PriorityClass(std::string_view json) {
  return Decode<api::PriorityClass>(buffers().parser, buffers().text, json, ReadPriorityClass);
}
Result<api::LimitRange> Decoder::LimitRange(std::string_view json) {
  return Decode<api::LimitRange>(buffers().parser, buffers().text, json, ReadLimitRange);
}
Result<api::RuntimeClass> Decoder::RuntimeClass(std::string_view json) {
  return Decode<api::RuntimeClass>(buffers().parser, buffers().text, json, ReadRuntimeClass);
}
Result<api::Lease> Decoder::Lease(std::string_view json) {
  return Decode<api::Lease>(buffers().parser, buffers().text, json, ReadLease);
}
Result<api::PodGroup> Decoder::PodGroup(std::string_view json) {
  return Decode<api::PodGroup>(buffers().parser, buffers().text, json, ReadGroup);
}
Result<api::Queue> Decoder::Queue(std::string_view json) {
  return Decode<api::Queue>(buffers().parser, buffers().text, json, ReadQueue);
}

Result<api::PodDisruptionBudget> Decoder::PodDisruptionBudget(std::string_view json) {
  return Decode<api::PodDisruptionBudget>(buffers().parser, buffers().text, json, ReadBudget);
}
Result<api::ResourceFlavor> Decoder::ResourceFlavor(std::string_view json) {
  return Decode<api::ResourceFlavor>(buffers().parser, buffers().text, json,
                                     reader::ReadResourceFlavor);
}
Result<api::ClusterQueue> Decoder::ClusterQueue(std::string_view json) {
  return Decode<api::ClusterQueue>(buffers().parser, buffers().text, json,
                                   reader::ReadClusterQueue);
}
Result<api::Cohort> Decoder::Cohort(std::string_view json) {
  return Decode<api::Cohort>(buffers().parser, buffers().text, json, reader::ReadCohort);
}
Result<api::LocalQueue> Decoder::LocalQueue(std::string_view json) {
  return Decode<api::LocalQueue>(buffers().parser, buffers().text, json, reader::ReadLocalQueue);
}
Result<api::AdmissionCheck> Decoder::AdmissionCheck(std::string_view json) {
  return Decode<api::AdmissionCheck>(buffers().parser, buffers().text, json,
                                     reader::ReadAdmissionCheck);
}
Result<api::Topology> Decoder::Topology(std::string_view json) {
  return Decode<api::Topology>(buffers().parser, buffers().text, json, reader::ReadTopology);
}
Result<api::WorkloadPriorityClass> Decoder::WorkloadPriorityClass(std::string_view json) {
  return Decode<api::WorkloadPriorityClass>(buffers().parser, buffers().text, json,
                                            reader::ReadWorkloadPriorityClass);
}
Result<api::Workload> Decoder::Workload(std::string_view json) {
  auto& [parser, text, specs] = buffers();
  return Decode<api::Workload>(parser, text, json,
                               [&](Errors& errors, const Element& root, api::Workload& out) {
                                 reader::ReadWorkload(errors, root, specs, out);
                               });
}
Result<api::TopologyAssignment> Decoder::TopologyAssignment(std::string_view json) {
  return Decode<api::TopologyAssignment>(
      buffers().parser, buffers().text, json,
      [](Errors& errors, const Element& root, api::TopologyAssignment& out) {
        reader::ReadTopologyAssignment(errors, "topologyAssignment", root, out);
      });
}
Result<std::vector<api::PodSetUpdate>> Decoder::PodSetUpdates(std::string_view json) {
  // Documents are objects.
  std::string document = R"({"podSetUpdates":)";
  document.append(json).append("}");
  return Decode<std::vector<api::PodSetUpdate>>(buffers().parser, buffers().text, document,
                                                reader::ReadPodSetUpdates);
}
Result<api::Placement> Decoder::Placement(std::string_view json) {
  return Decode<api::Placement>(buffers().parser, buffers().text, json, reader::ReadPlacement);
}
Result<api::ObjectHead> Decoder::Head(std::string_view json) {
  return Decode<api::ObjectHead>(buffers().parser, buffers().text, json, ReadHead);
}

Result<api::ObjectHead> DecodeHead(std::string_view json) { return Decoder().Head(json); }
Result<api::Pod> DecodePod(std::string_view json) { return Decoder().Pod(json); }
Result<api::Node> DecodeNode(std::string_view json) { return Decoder().Node(json); }

}  // namespace berth::codec
