#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codec/decode_reader.h"

namespace berth::codec::reader {
namespace {

using api::Container;
using api::ContainerPort;
using api::ContainerStatus;
using api::Pod;
using api::PodSpec;
using api::PodVolume;

void AddUnsupported(PodSpec& spec, std::string path) {
  if (std::ranges::find(spec.unsupported, path) == spec.unsupported.end()) {
    spec.unsupported.push_back(std::move(path));
  }
}

bool IsEmptyArray(const Element& element) {
  Array array;
  return element.get(array) == simdjson::SUCCESS && array.begin() == array.end();
}

// spec.resources or a container's resources.
void ReadResources(Errors& errors, std::string_view field, const Element& element,
                   std::optional<api::ResourceList>& requests, api::ResourceList& limits) {
  ForMembers(errors, field, element, [&](std::string_view key, const Element& value) {
    if (key == "requests") {
      ReadAsked(errors, "resources.requests", value, requests.emplace());
    } else if (key == "limits") {
      ReadAsked(errors, "resources.limits", value, limits);
    }
  });
}

void ReadPort(Errors& errors, const Element& element, ContainerPort& out) {
  constexpr std::string_view kField = "spec.containers.ports";
  ForMembers(errors, kField, element, [&](std::string_view key, const Element& value) {
    if (key == "name") {
      Read(errors, kField, value, out.name);
    } else if (key == "containerPort") {
      Read(errors, kField, value, out.port);
    } else if (key == "hostPort") {
      Read(errors, kField, value, out.host_port);
    } else if (key == "hostIP") {
      Read(errors, kField, value, out.host_ip);
    } else if (key == "protocol") {
      Read(errors, kField, value, out.protocol);
    }
  });
}

void ReadContainer(Errors& errors, std::string_view field, const Element& element, Container& out) {
  ForMembers(errors, field, element, [&](std::string_view key, const Element& value) {
    if (key == "name") {
      Read(errors, field, value, out.name);
    } else if (key == "image") {
      Read(errors, field, value, out.image);
    } else if (key == "resources") {
      std::optional<api::ResourceList> requests;
      ReadResources(errors, field, value, requests, out.limits);
      if (requests) out.requests = std::move(*requests);
    } else if (key == "restartPolicy") {
      std::string policy;
      Read(errors, field, value, policy);
      out.restart_always = policy == "Always";
    } else if (key == "restartPolicyRules") {
      ForItems(errors, field, value, [&](const Element& rule) {
        ForMembers(errors, field, rule, [&](std::string_view name, const Element& action) {
          std::string text;
          if (name == "action") Read(errors, field, action, text);
          if (text == "RestartAllContainers") out.restarts_all = true;
        });
      });
    } else if (key == "ports") {
      ForItems(errors, field, value,
               [&](const Element& item) { ReadPort(errors, item, out.ports.emplace_back()); });
    }
  });
}

void ReadTerm(Errors& errors, const Element& element, api::NodeSelectorTerm& out) {
  constexpr std::string_view kField = "spec.affinity.nodeAffinity";
  ForMembers(errors, kField, element, [&](std::string_view key, const Element& value) {
    if (key == "matchExpressions") {
      Read(errors, kField, value, out.match_expressions);
    } else if (key == "matchFields") {
      Read(errors, kField, value, out.match_fields);
    }
  });
}

void ReadNodeAffinity(Errors& errors, const Element& element, PodSpec& out) {
  constexpr std::string_view kField = "spec.affinity.nodeAffinity";
  ForMembers(errors, kField, element, [&](std::string_view key, const Element& value) {
    if (key == "requiredDuringSchedulingIgnoredDuringExecution") {
      auto& terms = out.required_node_affinity.emplace();
      ForMembers(errors, kField, value, [&](std::string_view name, const Element& list) {
        if (name != "nodeSelectorTerms") return;
        ForItems(errors, kField, list,
                 [&](const Element& item) { ReadTerm(errors, item, terms.emplace_back()); });
      });
    } else if (key == "preferredDuringSchedulingIgnoredDuringExecution") {
      ForItems(errors, kField, value, [&](const Element& item) {
        api::PreferredTerm& term = out.preferred_node_affinity.emplace_back();
        ForMembers(errors, kField, item, [&](std::string_view name, const Element& part) {
          if (name == "weight") Read(errors, kField, part, term.weight);
          if (name == "preference") ReadTerm(errors, part, term.term);
        });
      });
    }
  });
}

void ReadAffinity(Errors& errors, const Element& element, PodSpec& out) {
  ForMembers(errors, "spec.affinity", element, [&](std::string_view key, const Element& value) {
    if (key == "nodeAffinity") {
      ReadNodeAffinity(errors, value, out);
    } else if (key == "podAffinity" || key == "podAntiAffinity") {
      const std::string path = "spec.affinity." + std::string(key);
      ForMembers(errors, path, value, [&](std::string_view name, const Element& terms) {
        if (name == "requiredDuringSchedulingIgnoredDuringExecution" && !IsEmptyArray(terms)) {
          AddUnsupported(out, path);
        }
      });
    }
  });
}

void ReadSpread(Errors& errors, const Element& element, PodSpec& out) {
  constexpr std::string_view kField = "spec.topologySpreadConstraints";
  ForItems(errors, kField, element, [&](const Element& item) {
    api::TopologySpreadConstraint& one = out.spread_constraints.emplace_back();
    ForMembers(errors, kField, item, [&](std::string_view key, const Element& value) {
      if (key == "maxSkew") {
        Read(errors, kField, value, one.max_skew);
      } else if (key == "topologyKey") {
        Read(errors, kField, value, one.topology_key);
      } else if (key == "whenUnsatisfiable") {
        Read(errors, kField, value, one.when_unsatisfiable);
      } else if (key == "labelSelector") {
        Read(errors, kField, value, one.label_selector.emplace());
      } else if (key == "matchLabelKeys") {
        Read(errors, kField, value, one.match_label_keys);
      } else if (key == "minDomains") {
        Read(errors, kField, value, one.min_domains.emplace());
      } else if (key == "nodeAffinityPolicy") {
        Read(errors, kField, value, one.node_affinity_policy);
      } else if (key == "nodeTaintsPolicy") {
        Read(errors, kField, value, one.node_taints_policy);
      }
    });
  });
}

// What tells a claim or disk from others of its source.
void ReadVolumeSource(Errors& errors, const Element& element, PodVolume& out) {
  constexpr std::string_view kField = "spec.volumes";
  std::string image;
  std::string pool = "rbd";
  ForMembers(errors, kField, element, [&](std::string_view key, const Element& value) {
    if (key == "claimName" || key == "pdName" || key == "volumeID" || key == "iqn") {
      Read(errors, kField, value, out.id);
    } else if (key == "readOnly") {
      Read(errors, kField, value, out.read_only);
    } else if (key == "monitors") {
      Read(errors, kField, value, out.monitors);
    } else if (key == "image") {
      Read(errors, kField, value, image);
    } else if (key == "pool") {
      Read(errors, kField, value, pool);
    }
  });
  if (out.source == "rbd") out.id = fmt::format("{}/{}", pool, image);
}

// Volumes that decide where a pod can run: claims, and disks that attach to one node.
void ReadVolumes(Errors& errors, const Element& element, PodSpec& out) {
  constexpr std::string_view kField = "spec.volumes";
  ForItems(errors, kField, element, [&](const Element& item) {
    PodVolume volume;
    ForMembers(errors, kField, item, [&](std::string_view key, const Element& value) {
      if (key == "name") Read(errors, kField, value, volume.name);
      if (key == "image") {
        ForMembers(errors, kField, value, [&](std::string_view name, const Element& part) {
          if (name == "reference") Read(errors, kField, part, out.image_volumes.emplace_back());
        });
      }
      if (key == "persistentVolumeClaim" || key == "ephemeral" || key == "azureDisk")
        AddUnsupported(out, "spec.volumes." + std::string(key));
      if (key == "persistentVolumeClaim" || key == "ephemeral" || key == "gcePersistentDisk" ||
          key == "awsElasticBlockStore" || key == "iscsi" || key == "rbd") {
        volume.source = key;
        ReadVolumeSource(errors, value, volume);
      }
    });
    if (volume.source.empty()) return;
    if (volume.source == "persistentVolumeClaim") out.claims.push_back(volume.id);
    if (volume.source == "ephemeral") out.ephemeral_volumes.push_back(volume.name);
    out.volumes.push_back(std::move(volume));
  });
}

void ReadSpecNames(Errors& errors, std::string_view key, const Element& value, PodSpec& out) {
  if (key == "schedulerName") {
    Read(errors, "spec.schedulerName", value, out.scheduler_name);
  } else if (key == "priorityClassName") {
    Read(errors, "spec.priorityClassName", value, out.priority_class_name);
  } else if (key == "runtimeClassName") {
    Read(errors, "spec.runtimeClassName", value, out.runtime_class_name);
  } else if (key == "priority") {
    Read(errors, "spec.priority", value, out.priority);
  } else if (key == "preemptionPolicy") {
    Read(errors, "spec.preemptionPolicy", value, out.preemption_policy);
  } else if (key == "restartPolicy") {
    Read(errors, "spec.restartPolicy", value, out.restart_policy);
  } else if (key == "terminationGracePeriodSeconds") {
    Read(errors, "spec.terminationGracePeriodSeconds", value, out.termination_grace_seconds);
  } else if (key == "activeDeadlineSeconds") {
    Read(errors, "spec.activeDeadlineSeconds", value, out.active_deadline_seconds);
  } else if (key == "hostNetwork") {
    Read(errors, "spec.hostNetwork", value, out.host_network);
  } else if (key == "hostUsers") {
    Read(errors, "spec.hostUsers", value, out.host_users);
  } else if (key == "hostname") {
    Read(errors, "spec.hostname", value, out.hostname);
  } else if (key == "subdomain") {
    Read(errors, "spec.subdomain", value, out.subdomain);
  } else if (key == "nodeSelector") {
    Read(errors, "spec.nodeSelector", value, out.node_selector);
  } else if (key == "schedulingGates") {
    ForItems(errors, "spec.schedulingGates", value, [&](const Element& item) {
      ForMembers(
          errors, "spec.schedulingGates", item, [&](std::string_view name, const Element& gate) {
            if (name == "name") {
              Read(errors, "spec.schedulingGates", gate, out.scheduling_gates.emplace_back());
            }
          });
    });
  } else if (key == "schedulingGroup") {
    AddUnsupported(out, "spec.schedulingGroup");
  }
}

void ReadCondition(Errors& errors, const Element& element, api::PodCondition& out) {
  constexpr std::string_view kField = "status.conditions";
  ForMembers(errors, kField, element, [&](std::string_view key, const Element& value) {
    if (key == "type") {
      Read(errors, kField, value, out.type);
    } else if (key == "status") {
      Read(errors, kField, value, out.status);
    } else if (key == "reason") {
      Read(errors, kField, value, out.reason);
    } else if (key == "message") {
      Read(errors, kField, value, out.message);
    } else if (key == "lastTransitionTime") {
      Read(errors, kField, value, out.transition);
    }
  });
}

constexpr std::string_view kStatuses = "status.containerStatuses";

void ReadTerminated(Errors& errors, const Element& element, ContainerStatus& out) {
  ForMembers(errors, kStatuses, element, [&](std::string_view key, const Element& value) {
    if (key == "exitCode") {
      Read(errors, kStatuses, value, out.exit_code);
    } else if (key == "finishedAt") {
      Read(errors, kStatuses, value, out.finished);
    } else if (key == "startedAt") {
      Read(errors, kStatuses, value, out.started);
    } else if (key == "reason") {
      Read(errors, kStatuses, value, out.reason);
    }
  });
}

void ReadState(Errors& errors, const Element& element, ContainerStatus& out) {
  ForMembers(errors, kStatuses, element, [&](std::string_view key, const Element& value) {
    if (key == "terminated") {
      out.state = api::ContainerState::kTerminated;
      ReadTerminated(errors, value, out);
    } else if (key == "running" || key == "waiting") {
      out.state = key == "running" ? api::ContainerState::kRunning : api::ContainerState::kWaiting;
      ForMembers(errors, kStatuses, value, [&](std::string_view name, const Element& part) {
        if (name == "startedAt") Read(errors, kStatuses, part, out.started);
        if (name == "reason") Read(errors, kStatuses, part, out.reason);
      });
    }
  });
}

void ReadContainerStatus(Errors& errors, const Element& element, ContainerStatus& out) {
  ContainerStatus last;
  ForMembers(errors, kStatuses, element, [&](std::string_view key, const Element& value) {
    if (key == "name") {
      Read(errors, kStatuses, value, out.name);
    } else if (key == "state") {
      ReadState(errors, value, out);
    } else if (key == "lastState") {
      ReadState(errors, value, last);
    } else if (key == "ready") {
      Read(errors, kStatuses, value, out.ready);
    } else if (key == "restartCount") {
      Read(errors, kStatuses, value, out.restart_count);
    } else if (key == "allocatedResources") {
      Read(errors, "status.containerStatuses.allocatedResources", value, out.allocated);
    } else if (key == "resources") {
      // There without requests says that nothing is held, which is not the same as absent.
      api::ResourceList limits;
      if (!value.is_null()) out.actual.emplace();
      ReadResources(errors, kStatuses, value, out.actual, limits);
    }
  });
  if (out.state == api::ContainerState::kWaiting &&
      last.state == api::ContainerState::kTerminated) {
    out.finished = last.finished;
    out.exit_code = last.exit_code;
  }
}

// All but the first, which stands alone as well.
void ReadPodIps(Errors& errors, const Element& element, std::vector<std::string>& out) {
  constexpr std::string_view kField = "status.podIPs";
  bool first = true;
  ForItems(errors, kField, element, [&](const Element& item) {
    if (std::exchange(first, false)) return;
    ForMembers(errors, kField, item, [&](std::string_view key, const Element& value) {
      if (key == "ip") Read(errors, kField, value, out.emplace_back());
    });
  });
}

void ReadStatus(Errors& errors, const Element& element, Pod& out) {
  const auto statuses = [&](const Element& value, std::vector<ContainerStatus>& list) {
    ForItems(errors, kStatuses, value,
             [&](const Element& item) { ReadContainerStatus(errors, item, list.emplace_back()); });
  };
  ForMembers(errors, "status", element, [&](std::string_view key, const Element& value) {
    if (key == "phase") {
      Read(errors, "status.phase", value, out.phase);
    } else if (key == "reason") {
      Read(errors, "status.reason", value, out.status_reason);
    } else if (key == "podIP") {
      Read(errors, "status.podIP", value, out.pod_ip);
    } else if (key == "podIPs") {
      ReadPodIps(errors, value, out.other_pod_ips);
    } else if (key == "nominatedNodeName") {
      Read(errors, "status.nominatedNodeName", value, out.nominated_node_name);
    } else if (key == "startTime") {
      Read(errors, "status.startTime", value, out.start_time);
    } else if (key == "conditions") {
      Array list;
      if (value.get(list) == simdjson::SUCCESS) out.conditions.reserve(list.size());
      ForItems(errors, "status.conditions", value, [&](const Element& item) {
        ReadCondition(errors, item, out.conditions.emplace_back());
      });
    } else if (key == "containerStatuses") {
      statuses(value, out.container_statuses);
    } else if (key == "initContainerStatuses") {
      statuses(value, out.init_container_statuses);
    } else if (key == "allocatedResources") {
      Read(errors, "status.allocatedResources", value, out.pod_allocated);
    } else if (key == "resources") {
      api::ResourceList limits;
      if (!value.is_null()) out.pod_actual.emplace();
      ReadResources(errors, "status.resources", value, out.pod_actual, limits);
    }
  });
  for (const api::PodCondition& condition : out.conditions) {
    if (condition.type == "PodResizePending" && condition.status == "True") {
      out.resize = condition.reason;
    }
  }
}

}  // namespace

// Of templates, which nobody gave defaults: a pod asks for what it may use as a whole where neither
// it nor one of its containers says more.
void RequestPodLimits(PodSpec& out) {
  for (const api::ResourceAmount& limit : out.pod_limits) {
    const auto names_it = [&](const Container& container) {
      return api::Find(container.requests, limit.name) || api::Find(container.limits, limit.name);
    };
    if (std::ranges::any_of(out.containers, names_it) ||
        std::ranges::any_of(out.init_containers, names_it) ||
        (out.pod_requests && api::Find(*out.pod_requests, limit.name))) {
      continue;
    }
    if (!out.pod_requests) out.pod_requests.emplace();
    out.pod_requests->push_back(limit);
    std::ranges::sort(*out.pod_requests, {}, &api::ResourceAmount::name);
  }
}

void ReadPodSpec(Errors& errors, const Element& element, Pod& pod) {
  PodSpec& out = pod.spec.Edit();
  ForMembers(errors, "spec", element, [&](std::string_view key, const Element& value) {
    if (key == "nodeName") {
      Read(errors, "spec.nodeName", value, pod.node_name);
    } else if (key == "containers") {
      ForItems(errors, "spec.containers", value, [&](const Element& item) {
        ReadContainer(errors, "spec.containers", item, out.containers.emplace_back());
      });
    } else if (key == "initContainers") {
      ForItems(errors, "spec.initContainers", value, [&](const Element& item) {
        ReadContainer(errors, "spec.initContainers", item, out.init_containers.emplace_back());
      });
    } else if (key == "tolerations") {
      Read(errors, "spec.tolerations", value, out.tolerations);
    } else if (key == "affinity") {
      ReadAffinity(errors, value, out);
    } else if (key == "topologySpreadConstraints") {
      ReadSpread(errors, value, out);
    } else if (key == "volumes") {
      ReadVolumes(errors, value, out);
    } else if (key == "resourceClaims") {
      if (!IsEmptyArray(value)) AddUnsupported(out, "spec.resourceClaims");
    } else if (key == "overhead") {
      Read(errors, "spec.overhead", value, out.overhead);
    } else if (key == "resources") {
      ReadResources(errors, "spec.resources", value, out.pod_requests, out.pod_limits);
    } else {
      ReadSpecNames(errors, key, value, out);
    }
  });
  RequestPodLimits(out);
}

void ReadPod(Errors& errors, const Element& element, Pod& out) {
  ForMembers(errors, "pod", element, [&](std::string_view key, const Element& value) {
    if (key == "metadata") {
      Read(errors, key, value, out.meta);
    } else if (key == "spec") {
      ReadPodSpec(errors, value, out);
    } else if (key == "status") {
      ReadStatus(errors, value, out);
    }
  });
}

namespace {

void ReadNodeImage(Errors& errors, const Element& element, api::NodeImage& out) {
  constexpr std::string_view kField = "status.images";
  ForMembers(errors, kField, element, [&](std::string_view key, const Element& value) {
    if (key == "names") {
      Read(errors, kField, value, out.names);
    } else if (key == "sizeBytes") {
      Read(errors, kField, value, out.size);
    }
  });
}

void ReadNodeCondition(Errors& errors, const Element& element, api::NodeCondition& out) {
  constexpr std::string_view kField = "status.conditions";
  ForMembers(errors, kField, element, [&](std::string_view key, const Element& value) {
    if (key == "type") {
      Read(errors, kField, value, out.type);
    } else if (key == "status") {
      Read(errors, kField, value, out.status);
    } else if (key == "reason") {
      Read(errors, kField, value, out.reason);
    } else if (key == "lastHeartbeatTime") {
      Read(errors, kField, value, out.heartbeat);
    } else if (key == "lastTransitionTime") {
      Read(errors, kField, value, out.transition);
    }
  });
}

}  // namespace

void ReadNode(Errors& errors, const Element& element, api::Node& out) {
  const auto spec = [&](std::string_view key, const Element& value) {
    if (key == "unschedulable") {
      Read(errors, "spec.unschedulable", value, out.unschedulable);
    } else if (key == "podCIDR") {
      Read(errors, "spec.podCIDR", value, out.pod_cidr);
    } else if (key == "taints") {
      Read(errors, "spec.taints", value, out.taints);
    }
  };
  const auto status = [&](std::string_view key, const Element& value) {
    if (key == "capacity") {
      Read(errors, "status.capacity", value, out.capacity);
    } else if (key == "allocatable") {
      Read(errors, "status.allocatable", value, out.allocatable);
    } else if (key == "conditions") {
      ForItems(errors, "status.conditions", value, [&](const Element& item) {
        ReadNodeCondition(errors, item, out.conditions.emplace_back());
      });
    } else if (key == "declaredFeatures") {
      Read(errors, "status.declaredFeatures", value, out.declared_features);
    } else if (key == "images") {
      ForItems(errors, "status.images", value, [&](const Element& item) {
        ReadNodeImage(errors, item, out.images.emplace_back());
      });
    }
  };
  ForMembers(errors, "node", element, [&](std::string_view key, const Element& value) {
    if (key == "metadata") {
      Read(errors, key, value, out.meta);
    } else if (key == "spec") {
      ForMembers(errors, "spec", value, spec);
    } else if (key == "status") {
      ForMembers(errors, "status", value, status);
    }
  });
}

}  // namespace berth::codec::reader
