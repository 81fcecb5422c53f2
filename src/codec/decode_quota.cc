#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "codec/decode_reader.h"

// Kueue's kinds.
namespace berth::codec::reader {
namespace {

// The member of that name of each item, which is a string.
void ReadEach(Errors& errors, std::string_view field, const Element& element,
              std::string_view member, std::vector<std::string>& out) {
  ForItems(errors, field, element, [&](const Element& item) {
    std::string& name = out.emplace_back();
    ForMembers(errors, field, item, [&](std::string_view key, const Element& value) {
      if (key == member) Read(errors, field, value, name);
    });
  });
}

void ReadStop(Errors& errors, const Element& element, api::StopPolicy& out) {
  std::string policy;
  Read(errors, "spec.stopPolicy", element, policy);
  out = policy == "HoldAndDrain" ? api::StopPolicy::kHoldAndDrain
        : policy == "Hold"       ? api::StopPolicy::kHold
                                 : api::StopPolicy::kNone;
}

// ---- Queues ------------------------------------------------------------------------------------

// The name, which says what the amounts are of, may stand behind them.
void ReadQuota(Errors& errors, const Element& element, api::ResourceQuota& out) {
  constexpr std::string_view kField = "spec.resourceGroups.flavors.resources";
  ForMembers(errors, kField, element, [&](std::string_view key, const Element& value) {
    if (key == "name")
      Read(errors, "spec.resourceGroups.flavors.resources.name", value, out.resource);
  });
  const auto read = [&](std::string_view key, const Element& value, int64_t& amount) {
    ReadAmount(errors, fmt::format("{}.{}", kField, key), out.resource, value, amount);
    amount = std::min(amount, limits::kQuotaMax);
  };
  ForMembers(errors, kField, element, [&](std::string_view key, const Element& value) {
    if (key == "nominalQuota") {
      read(key, value, out.nominal);
    } else if (key == "borrowingLimit") {
      read(key, value, out.borrowing_limit.emplace());
    } else if (key == "lendingLimit") {
      read(key, value, out.lending_limit.emplace());
    }
  });
}

void ReadFlavorQuotas(Errors& errors, const Element& element, api::FlavorQuotas& out) {
  constexpr std::string_view kField = "spec.resourceGroups.flavors";
  ForMembers(errors, kField, element, [&](std::string_view key, const Element& value) {
    if (key == "name") {
      Read(errors, "spec.resourceGroups.flavors.name", value, out.flavor);
    } else if (key == "resources") {
      ForItems(errors, "spec.resourceGroups.flavors.resources", value,
               [&](const Element& item) { ReadQuota(errors, item, out.resources.emplace_back()); });
    }
  });
}

void ReadResourceGroups(Errors& errors, const Element& element,
                        std::vector<api::ResourceGroup>& out) {
  constexpr std::string_view kField = "spec.resourceGroups";
  ForItems(errors, kField, element, [&](const Element& item) {
    api::ResourceGroup& group = out.emplace_back();
    ForMembers(errors, kField, item, [&](std::string_view key, const Element& value) {
      if (key == "coveredResources") {
        Read(errors, "spec.resourceGroups.coveredResources", value, group.covered);
      } else if (key == "flavors") {
        ForItems(errors, "spec.resourceGroups.flavors", value, [&](const Element& flavor) {
          ReadFlavorQuotas(errors, flavor, group.flavors.emplace_back());
        });
      }
    });
  });
}

void ReadFungibility(Errors& errors, const Element& element, api::ClusterQueue& out) {
  ForMembers(
      errors, "spec.flavorFungibility", element, [&](std::string_view key, const Element& value) {
        if (key == "whenCanBorrow") {
          Read(errors, "spec.flavorFungibility.whenCanBorrow", value, out.when_can_borrow);
        } else if (key == "whenCanPreempt") {
          Read(errors, "spec.flavorFungibility.whenCanPreempt", value, out.when_can_preempt);
        } else if (key == "preference") {
          Read(errors, "spec.flavorFungibility.preference", value, out.fungibility_preference);
        }
      });
}

void ReadPreemption(Errors& errors, const Element& element, api::ClusterQueuePreemption& out) {
  ForMembers(errors, "spec.preemption", element, [&](std::string_view key, const Element& value) {
    if (key == "withinClusterQueue") {
      Read(errors, "spec.preemption.withinClusterQueue", value, out.within_cluster_queue);
    } else if (key == "reclaimWithinCohort") {
      Read(errors, "spec.preemption.reclaimWithinCohort", value, out.reclaim_within_cohort);
    } else if (key == "borrowWithinCohort") {
      ForMembers(errors, "spec.preemption.borrowWithinCohort", value,
                 [&](std::string_view name, const Element& part) {
                   if (name == "policy") {
                     Read(errors, "spec.preemption.borrowWithinCohort.policy", part,
                          out.borrow_within_cohort);
                   } else if (name == "maxPriorityThreshold") {
                     Read(errors, "spec.preemption.borrowWithinCohort.maxPriorityThreshold", part,
                          out.borrow_priority_threshold);
                   }
                 });
    }
  });
}

void ReadChecks(Errors& errors, const Element& element, std::vector<api::RequiredCheck>& out) {
  constexpr std::string_view kField = "spec.admissionChecksStrategy.admissionChecks";
  ForMembers(errors, "spec.admissionChecksStrategy", element,
             [&](std::string_view key, const Element& value) {
               if (key != "admissionChecks") return;
               ForItems(errors, kField, value, [&](const Element& item) {
                 api::RequiredCheck& check = out.emplace_back();
                 ForMembers(errors, kField, item, [&](std::string_view name, const Element& part) {
                   if (name == "name") Read(errors, kField, part, check.name);
                   if (name == "onFlavors") Read(errors, kField, part, check.flavors);
                 });
               });
             });
}

void ReadClusterQueueSpec(Errors& errors, std::string_view key, const Element& value,
                          api::ClusterQueue& out) {
  if (key == "cohortName") {
    Read(errors, "spec.cohortName", value, out.cohort);
  } else if (key == "resourceGroups") {
    ReadResourceGroups(errors, value, out.resource_groups);
  } else if (key == "queueingStrategy") {
    std::string strategy;
    Read(errors, "spec.queueingStrategy", value, strategy);
    out.strict_fifo = strategy == "StrictFIFO";
  } else if (key == "namespaceSelector") {
    Read(errors, "spec.namespaceSelector", value, out.namespace_selector);
  } else if (key == "flavorFungibility") {
    ReadFungibility(errors, value, out);
  } else if (key == "preemption") {
    ReadPreemption(errors, value, out.preemption);
  } else if (key == "admissionChecksStrategy") {
    ReadChecks(errors, value, out.checks);
  } else if (key == "stopPolicy") {
    ReadStop(errors, value, out.stop);
  }
}

// As of quotas, the name may stand behind the amounts. What is none is told as less than nothing:
// whatever a status says, its queue is read.
void ReadUsage(Errors& errors, std::string_view field, const Element& element,
               api::ResourceUsage& out) {
  ForMembers(errors, field, element, [&](std::string_view key, const Element& value) {
    if (key == "name") Read(errors, fmt::format("{}.name", field), value, out.resource);
  });
  Errors ignored;
  ForMembers(errors, field, element, [&](std::string_view key, const Element& value) {
    int64_t* amount = key == "total" ? &out.total : key == "borrowed" ? &out.borrowed : nullptr;
    if (amount == nullptr) return;
    *amount = -1;
    ReadAmount(ignored, field, out.resource, value, *amount);
  });
}

void ReadUsages(Errors& errors, const std::string& field, const Element& element,
                api::FlavorUsages& out) {
  ForItems(errors, field, element, [&](const Element& item) {
    api::FlavorUsage& usage = out.emplace_back();
    ForMembers(errors, field, item, [&](std::string_view key, const Element& value) {
      if (key == "name") {
        Read(errors, field + ".name", value, usage.flavor);
      } else if (key == "resources") {
        ForItems(errors, field + ".resources", value, [&](const Element& resource) {
          ReadUsage(errors, field + ".resources", resource, usage.resources.emplace_back());
        });
      }
    });
  });
}

// What the status of a ClusterQueue and that of a LocalQueue say alike.
template <typename Queue>
void ReadQueueStatus(Errors& errors, std::string_view key, const Element& value, Queue& out) {
  if (key == "conditions") {
    Read(errors, "status.conditions", value, out.conditions);
  } else if (key == "pendingWorkloads") {
    Read(errors, "status.pendingWorkloads", value, out.pending);
  } else if (key == "reservingWorkloads") {
    Read(errors, "status.reservingWorkloads", value, out.reserving);
  } else if (key == "admittedWorkloads") {
    Read(errors, "status.admittedWorkloads", value, out.admitted);
  } else if (key == "flavorsReservation") {
    ReadUsages(errors, "status.flavorsReservation", value, out.flavors_reserved);
  } else if (key == "flavorsUsage") {
    ReadUsages(errors, "status.flavorsUsage", value, out.flavors_used);
  }
}

// ---- Workloads ---------------------------------------------------------------------------------

// Templates are those of many Workloads, and read once. Errors of a spec are told as a pod's.
void ReadTemplateSpec(Errors& errors, const Element& element, SpecMemo& specs,
                      Shared<api::PodSpec>& out) {
  std::string text;
  AppendText(element, false, text);
  if (const auto known = specs.Find(text)) {
    out = known->spec;
    return;
  }
  Errors own;
  api::Pod pod;
  ReadPodSpec(own, element, pod);
  if (!own.first) {
    specs.Learn(text, pod);
  } else if (!errors.first) {
    own.first->message.insert(0, "spec.podSets.template.");
    errors.first = own.first;
  }
  out = std::move(pod.spec);
}

// One size for pods of a domain, or several, each within the one before.
void ReadSlices(Errors& errors, const Element& element, std::vector<api::TopologySlice>& out) {
  constexpr std::string_view kField =
      "spec.podSets.topologyRequest.podsetSliceRequiredTopologyConstraints";
  ForItems(errors, kField, element, [&](const Element& item) {
    api::TopologySlice& slice = out.emplace_back();
    ForMembers(errors, kField, item, [&](std::string_view key, const Element& value) {
      if (key == "topology") Read(errors, kField, value, slice.level);
      if (key == "size") Read(errors, kField, value, slice.size);
    });
  });
}

void ReadTopologyRequest(Errors& errors, const Element& element, api::TopologyRequest& out) {
  constexpr std::string_view kField = "spec.podSets.topologyRequest";
  api::TopologySlice slice{.level = {}, .size = 0};
  ForMembers(errors, kField, element, [&](std::string_view key, const Element& value) {
    if (key == "required") {
      Read(errors, kField, value, out.required);
    } else if (key == "preferred") {
      Read(errors, kField, value, out.preferred);
    } else if (key == "unconstrained") {
      Read(errors, kField, value, out.unconstrained);
    } else if (key == "podIndexLabel") {
      Read(errors, kField, value, out.pod_index_label);
    } else if (key == "subGroupIndexLabel") {
      Read(errors, kField, value, out.sub_group_index_label);
    } else if (key == "subGroupCount") {
      Read(errors, kField, value, out.sub_group_count);
    } else if (key == "podSetGroupName") {
      Read(errors, kField, value, out.group);
    } else if (key == "podSetSliceRequiredTopology") {
      Read(errors, kField, value, slice.level);
    } else if (key == "podSetSliceSize") {
      Read(errors, kField, value, slice.size);
    } else if (key == "podsetSliceRequiredTopologyConstraints") {
      ReadSlices(errors, value, out.slices);
    }
  });
  if (out.slices.empty() && !slice.level.empty() && slice.size > 0) out.slices = {slice};
}

void ReadTemplateMeta(Errors& errors, const Element& element, api::WorkloadPodSet& out) {
  ForMembers(errors, "spec.podSets.template.metadata", element,
             [&](std::string_view key, const Element& value) {
               if (key == "labels") Read(errors, key, value, out.labels);
               if (key == "annotations") Read(errors, key, value, out.annotations);
             });
}

void ReadPodSet(Errors& errors, const Element& element, SpecMemo& specs, api::WorkloadPodSet& out) {
  constexpr std::string_view kField = "spec.podSets";
  ForMembers(errors, kField, element, [&](std::string_view key, const Element& value) {
    if (key == "name") {
      Read(errors, "spec.podSets.name", value, out.name);
    } else if (key == "count") {
      Read(errors, "spec.podSets.count", value, out.count);
    } else if (key == "minCount") {
      Read(errors, "spec.podSets.minCount", value, out.min_count);
    } else if (key == "topologyRequest") {
      ReadTopologyRequest(errors, value, out.topology.emplace());
    } else if (key == "template") {
      ForMembers(errors, "spec.podSets.template", value,
                 [&](std::string_view name, const Element& part) {
                   if (name == "spec") ReadTemplateSpec(errors, part, specs, out.spec);
                   if (name == "metadata") ReadTemplateMeta(errors, part, out);
                 });
    }
  });
}

void ReadWorkloadSpec(Errors& errors, std::string_view key, const Element& value, SpecMemo& specs,
                      api::Workload& out) {
  if (key == "podSets") {
    ForItems(errors, "spec.podSets", value, [&](const Element& item) {
      ReadPodSet(errors, item, specs, out.pod_sets.emplace_back());
    });
  } else if (key == "queueName") {
    Read(errors, "spec.queueName", value, out.queue);
  } else if (key == "priorityClassRef") {
    ForMembers(errors, "spec.priorityClassRef", value,
               [&](std::string_view name, const Element& part) {
                 if (name == "name")
                   Read(errors, "spec.priorityClassRef.name", part, out.priority_class);
                 if (name == "group")
                   Read(errors, "spec.priorityClassRef.group", part, out.priority_class_group);
               });
  } else if (key == "priority") {
    Read(errors, "spec.priority", value, out.priority);
  } else if (key == "active") {
    Read(errors, "spec.active", value, out.active);
  } else if (key == "maximumExecutionTimeSeconds") {
    Read(errors, "spec.maximumExecutionTimeSeconds", value, out.max_execution.emplace());
  }
}

void ReadAssignment(Errors& errors, const Element& element, api::PodSetAssignment& out) {
  constexpr std::string_view kField = "status.admission.podSetAssignments";
  ForMembers(errors, kField, element, [&](std::string_view key, const Element& value) {
    if (key == "name") {
      Read(errors, kField, value, out.name);
    } else if (key == "flavors") {
      Read(errors, "status.admission.podSetAssignments.flavors", value, out.flavors);
    } else if (key == "resourceUsage") {
      ReadAmounts(errors, "status.admission.podSetAssignments.resourceUsage", value,
                  limits::kQuotaMax, out.usage);
    } else if (key == "count") {
      Read(errors, "status.admission.podSetAssignments.count", value, out.count);
    } else if (key == "topologyAssignment") {
      ReadTopologyAssignment(errors, "status.admission.podSetAssignments.topologyAssignment", value,
                             out.topology.emplace());
    } else if (key == "delayedTopologyRequest") {
      std::string request;
      Read(errors, "status.admission.podSetAssignments.delayedTopologyRequest", value, request);
      out.topology_delayed = request == "Pending";
      out.topology_came = request == "Ready";
    }
  });
}

void ReadAdmission(Errors& errors, const Element& element, api::Admission& out) {
  ForMembers(errors, "status.admission", element, [&](std::string_view key, const Element& value) {
    if (key == "clusterQueue") {
      Read(errors, "status.admission.clusterQueue", value, out.cluster_queue);
    } else if (key == "podSetAssignments") {
      ForItems(errors, "status.admission.podSetAssignments", value, [&](const Element& item) {
        ReadAssignment(errors, item, out.pod_sets.emplace_back());
      });
    }
  });
}

void ReadCheckState(Errors& errors, const Element& element, api::CheckState& out) {
  constexpr std::string_view kField = "status.admissionChecks";
  ForMembers(errors, kField, element, [&](std::string_view key, const Element& value) {
    if (key == "name") {
      Read(errors, kField, value, out.name);
    } else if (key == "state") {
      Read(errors, kField, value, out.state);
    } else if (key == "message") {
      Read(errors, kField, value, out.message);
    } else if (key == "lastTransitionTime") {
      Read(errors, kField, value, out.transition);
    } else if (key == "requeueAfterSeconds") {
      Read(errors, kField, value, out.requeue_after.emplace());
    } else if (key == "retryCount") {
      Read(errors, kField, value, out.retries);
    } else if (key == "podSetUpdates") {
      out.updates = simdjson::minify(value);
    }
  });
}

void ReadWorkloadStatus(Errors& errors, std::string_view key, const Element& value,
                        api::Workload& out) {
  if (key == "conditions") {
    Read(errors, "status.conditions", value, out.conditions);
  } else if (key == "admission") {
    ReadAdmission(errors, value, out.admission.emplace());
  } else if (key == "requeueState") {
    ForMembers(errors, "status.requeueState", value,
               [&](std::string_view name, const Element& part) {
                 if (name == "count")
                   Read(errors, "status.requeueState.count", part, out.requeue_count);
                 if (name == "requeueAt")
                   Read(errors, "status.requeueState.requeueAt", part, out.requeue_at);
               });
  } else if (key == "reclaimablePods") {
    constexpr std::string_view kField = "status.reclaimablePods";
    ForItems(errors, kField, value, [&](const Element& item) {
      auto& [pod_set, count] = out.reclaimable.emplace_back();
      ForMembers(errors, kField, item, [&](std::string_view name, const Element& part) {
        if (name == "name") Read(errors, kField, part, pod_set);
        if (name == "count") Read(errors, kField, part, count);
      });
    });
  } else if (key == "admissionChecks") {
    ForItems(errors, "status.admissionChecks", value,
             [&](const Element& item) { ReadCheckState(errors, item, out.checks.emplace_back()); });
  } else if (key == "accumulatedPastExecutionTimeSeconds") {
    Read(errors, "status.accumulatedPastExecutionTimeSeconds", value, out.past_execution);
  } else if (key == "unhealthyNodes") {
    ReadEach(errors, "status.unhealthyNodes", value, "name", out.unhealthy_nodes);
  }
}

void ReadNothing(std::string_view /*key*/, const Element& /*value*/) {}

}  // namespace

void ReadResourceFlavor(Errors& errors, const Element& root, api::ResourceFlavor& out) {
  const auto spec = [&](std::string_view key, const Element& value) {
    if (key == "nodeLabels") {
      Read(errors, "spec.nodeLabels", value, out.node_labels);
    } else if (key == "nodeTaints") {
      Read(errors, "spec.nodeTaints", value, out.node_taints);
    } else if (key == "tolerations") {
      Read(errors, "spec.tolerations", value, out.tolerations);
    } else if (key == "topologyName") {
      Read(errors, "spec.topologyName", value, out.topology);
    }
  };
  ReadObject(errors, root, out.meta, spec, ReadNothing);
}

void ReadClusterQueue(Errors& errors, const Element& root, api::ClusterQueue& out) {
  ReadObject(
      errors, root, out.meta,
      [&](std::string_view key, const Element& value) {
        ReadClusterQueueSpec(errors, key, value, out);
      },
      [&](std::string_view key, const Element& value) {
        ReadQueueStatus(errors, key, value, out);
      });
}

void ReadCohort(Errors& errors, const Element& root, api::Cohort& out) {
  const auto spec = [&](std::string_view key, const Element& value) {
    if (key == "parentName") {
      Read(errors, "spec.parentName", value, out.parent);
    } else if (key == "resourceGroups") {
      ReadResourceGroups(errors, value, out.resource_groups);
    }
  };
  ReadObject(errors, root, out.meta, spec, ReadNothing);
}

void ReadLocalQueue(Errors& errors, const Element& root, api::LocalQueue& out) {
  const auto spec = [&](std::string_view key, const Element& value) {
    if (key == "clusterQueue") {
      Read(errors, "spec.clusterQueue", value, out.cluster_queue);
    } else if (key == "stopPolicy") {
      ReadStop(errors, value, out.stop);
    }
  };
  ReadObject(errors, root, out.meta, spec, [&](std::string_view key, const Element& value) {
    ReadQueueStatus(errors, key, value, out);
  });
}

void ReadAdmissionCheck(Errors& errors, const Element& root, api::AdmissionCheck& out) {
  ReadObject(
      errors, root, out.meta,
      [&](std::string_view key, const Element& value) {
        if (key == "controllerName") Read(errors, "spec.controllerName", value, out.controller);
      },
      [&](std::string_view key, const Element& value) {
        if (key == "conditions") Read(errors, "status.conditions", value, out.conditions);
      });
}

void ReadTopology(Errors& errors, const Element& root, api::Topology& out) {
  const auto spec = [&](std::string_view key, const Element& value) {
    if (key == "levels") ReadEach(errors, "spec.levels", value, "nodeLabel", out.levels);
  };
  ReadObject(errors, root, out.meta, spec, ReadNothing);
}

void ReadWorkloadPriorityClass(Errors& errors, const Element& root,
                               api::WorkloadPriorityClass& out) {
  ForMembers(errors, "object", root, [&](std::string_view key, const Element& value) {
    if (key == "metadata") Read(errors, key, value, out.meta);
    if (key == "value") Read(errors, key, value, out.value);
  });
}

void ReadPodSetUpdate(Errors& errors, const Element& element, api::PodSetUpdate& out) {
  ForMembers(errors, "podSetUpdates", element, [&](std::string_view key, const Element& value) {
    if (key == "name") Read(errors, key, value, out.name);
    if (key == "labels") Read(errors, key, value, out.labels);
    if (key == "annotations") Read(errors, key, value, out.annotations);
    if (key == "nodeSelector") Read(errors, key, value, out.node_selector);
    if (key == "tolerations") Read(errors, key, value, out.tolerations);
  });
}

void ReadPodSetUpdates(Errors& errors, const Element& root, std::vector<api::PodSetUpdate>& out) {
  ForMembers(errors, "podSetUpdates", root, [&](std::string_view key, const Element& value) {
    if (key != "podSetUpdates") return;
    ForItems(errors, key, value,
             [&](const Element& item) { ReadPodSetUpdate(errors, item, out.emplace_back()); });
  });
}

void ReadWorkload(Errors& errors, const Element& root, SpecMemo& specs, api::Workload& out) {
  ReadObject(
      errors, root, out.meta,
      [&](std::string_view key, const Element& value) {
        ReadWorkloadSpec(errors, key, value, specs, out);
      },
      [&](std::string_view key, const Element& value) {
        ReadWorkloadStatus(errors, key, value, out);
      });
}

}  // namespace berth::codec::reader
