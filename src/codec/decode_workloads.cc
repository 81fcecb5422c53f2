#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "codec/decode_reader.h"
#include "codec/json.h"

// The kinds that make pods of a template.
namespace berth::codec::reader {
namespace {

bool IsEmpty(const Element& element) {
  reader::Object object;
  if (element.get(object) == simdjson::SUCCESS) return object.size() == 0;
  reader::Array array;
  if (element.get(array) == simdjson::SUCCESS) return array.size() == 0;
  return element.is_null();
}

// The template's metadata with sorted keys, without what means nothing: nulls, empty lists and
// maps, pod-template-hash.
void AppendCanonicalMeta(Errors& errors, const Element& element, std::string& out) {
  std::vector<std::pair<std::string_view, std::string>> members;
  ForMembers(
      errors, "spec.template.metadata", element, [&](std::string_view key, const Element& value) {
        if (IsEmpty(value)) return;
        std::string text;
        if (key == "labels") {
          api::StringMap labels;
          Read(errors, "spec.template.metadata.labels", value, labels);
          std::erase_if(labels, [](const auto& item) { return item.first == "pod-template-hash"; });
          if (labels.empty()) return;
          for (const auto& [name, label] : labels) {
            text += text.empty() ? '{' : ',';
            AppendJsonString(name, text);
            text += ':';
            AppendJsonString(label, text);
          }
          text += '}';
        } else {
          AppendText(value, true, text);
        }
        members.emplace_back(key, std::move(text));
      });
  std::ranges::sort(members);
  out += '{';
  for (size_t i = 0; i < members.size(); ++i) {
    if (i > 0) out += ',';
    AppendJsonString(members[i].first, out);
    out += ':';
    out += members[i].second;
  }
  out += '}';
}

void ReadTemplate(Errors& errors, const Element& element, api::PodTemplate& out) {
  std::string canonical = "{\"metadata\":{}";
  std::string canonical_spec = "{}";
  ForMembers(errors, "spec.template", element, [&](std::string_view key, const Element& value) {
    if (key == "metadata") {
      api::ObjectMeta meta;
      Read(errors, "spec.template.metadata", value, meta);
      out.labels = std::move(meta.labels);
      out.annotations = std::move(meta.annotations);
      out.finalizers = std::move(meta.finalizers);
      canonical = "{\"metadata\":";
      AppendCanonicalMeta(errors, value, canonical);
    } else if (key == "spec") {
      std::string text;
      AppendText(value, false, text);
      out.spec = Bytes(std::move(text));
      canonical_spec.clear();
      AppendText(value, true, canonical_spec);
      ForMembers(errors, "spec.template.spec", value,
                 [&](std::string_view name, const Element& part) {
                   if (name == "restartPolicy") {
                     Read(errors, "spec.template.spec.restartPolicy", part, out.restart_policy);
                   }
                 });
    }
  });
  out.canonical = Bytes(canonical + ",\"spec\":" + canonical_spec + "}");
}

void ReadStrategy(Errors& errors, const Element& element, api::Deployment& out) {
  ForMembers(errors, "spec.strategy", element, [&](std::string_view key, const Element& value) {
    if (key == "type") {
      std::string type;
      Read(errors, "spec.strategy.type", value, type);
      out.recreate = type == "Recreate";
    } else if (key == "rollingUpdate") {
      ForMembers(errors, "spec.strategy.rollingUpdate", value,
                 [&](std::string_view name, const Element& part) {
                   if (name == "maxSurge") {
                     Read(errors, "spec.strategy.rollingUpdate.maxSurge", part, out.max_surge);
                   } else if (name == "maxUnavailable") {
                     Read(errors, "spec.strategy.rollingUpdate.maxUnavailable", part,
                          out.max_unavailable);
                   }
                 });
    }
  });
}

api::FailureAction FailureActionOf(std::string_view text) {
  if (text == "FailJob") return api::FailureAction::kFailJob;
  if (text == "FailIndex") return api::FailureAction::kFailIndex;
  if (text == "Ignore") return api::FailureAction::kIgnore;
  return api::FailureAction::kCount;
}

void ReadFailureRule(Errors& errors, const Element& element, api::FailureRule& out) {
  constexpr std::string_view kField = "spec.podFailurePolicy.rules";
  ForMembers(errors, kField, element, [&](std::string_view key, const Element& value) {
    if (key == "action") {
      std::string action;
      Read(errors, kField, value, action);
      out.action = FailureActionOf(action);
    } else if (key == "onExitCodes") {
      out.on_exit_codes = true;
      ForMembers(errors, kField, value, [&](std::string_view name, const Element& part) {
        std::string op;
        if (name == "containerName") Read(errors, kField, part, out.container);
        if (name == "operator") Read(errors, kField, part, op);
        if (name == "values") Read(errors, kField, part, out.exit_codes);
        out.not_in = out.not_in || op == "NotIn";
      });
    } else if (key == "onPodConditions") {
      ForItems(errors, kField, value, [&](const Element& item) {
        auto& [type, status] = out.conditions.emplace_back("", "True");
        ForMembers(errors, kField, item, [&](std::string_view name, const Element& part) {
          if (name == "type") Read(errors, kField, part, type);
          if (name == "status") Read(errors, kField, part, status);
        });
      });
    }
  });
}

void ReadSuccessRule(Errors& errors, const Element& element, api::SuccessRule& out) {
  constexpr std::string_view kField = "spec.successPolicy.rules";
  ForMembers(errors, kField, element, [&](std::string_view key, const Element& value) {
    if (key == "succeededIndexes") Read(errors, kField, value, out.indexes);
    if (key == "succeededCount") Read(errors, kField, value, out.count);
  });
}

void ReadJobPolicies(Errors& errors, std::string_view key, const Element& value, api::Job& out) {
  const auto rules = [&](std::string_view field, auto read) {
    ForMembers(errors, field, value, [&](std::string_view name, const Element& list) {
      if (name == "rules") ForItems(errors, field, list, read);
    });
  };
  if (key == "podFailurePolicy") {
    rules("spec.podFailurePolicy", [&](const Element& item) {
      ReadFailureRule(errors, item, out.failure_rules.emplace_back());
    });
  } else if (key == "successPolicy") {
    out.success_rules.emplace();
    rules("spec.successPolicy", [&](const Element& item) {
      ReadSuccessRule(errors, item, out.success_rules->emplace_back());
    });
  } else if (key == "backoffLimitPerIndex") {
    Read(errors, "spec.backoffLimitPerIndex", value, out.backoff_limit_per_index);
  } else if (key == "maxFailedIndexes") {
    Read(errors, "spec.maxFailedIndexes", value, out.max_failed_indexes);
  }
}

void ReadJobSpec(Errors& errors, std::string_view key, const Element& value, api::Job& out) {
  if (key == "parallelism") {
    Read(errors, "spec.parallelism", value, out.parallelism);
  } else if (key == "completions") {
    Read(errors, "spec.completions", value, out.completions);
  } else if (key == "backoffLimit") {
    Read(errors, "spec.backoffLimit", value, out.backoff_limit);
  } else if (key == "suspend") {
    Read(errors, "spec.suspend", value, out.suspend);
  } else if (key == "completionMode") {
    std::string mode;
    Read(errors, "spec.completionMode", value, mode);
    out.indexed = mode == "Indexed";
  } else if (key == "ttlSecondsAfterFinished") {
    Read(errors, "spec.ttlSecondsAfterFinished", value, out.ttl_seconds_after_finished);
  } else if (key == "activeDeadlineSeconds") {
    Read(errors, "spec.activeDeadlineSeconds", value, out.active_deadline_seconds);
  } else if (key == "podReplacementPolicy") {
    std::string policy;
    Read(errors, "spec.podReplacementPolicy", value, policy);
    out.replace_failed_only = policy == "Failed";
  } else if (key == "managedBy") {
    Read(errors, "spec.managedBy", value, out.managed_by);
  } else if (key == "selector") {
    Read(errors, "spec.selector", value, out.selector);
  } else if (key == "template") {
    ReadTemplate(errors, value, out.pod_template);
  } else {
    ReadJobPolicies(errors, key, value, out);
  }
}

void ReadJobStatus(Errors& errors, std::string_view key, const Element& value, api::Job& out) {
  if (key == "active") {
    Read(errors, "status.active", value, out.active);
  } else if (key == "ready") {
    Read(errors, "status.ready", value, out.ready);
  } else if (key == "succeeded") {
    Read(errors, "status.succeeded", value, out.succeeded);
  } else if (key == "failed") {
    Read(errors, "status.failed", value, out.failed);
  } else if (key == "terminating") {
    Read(errors, "status.terminating", value, out.terminating);
  } else if (key == "startTime") {
    Read(errors, "status.startTime", value, out.start_time);
  } else if (key == "completionTime") {
    Read(errors, "status.completionTime", value, out.completion_time);
  } else if (key == "completedIndexes") {
    Read(errors, "status.completedIndexes", value, out.completed_indexes);
  } else if (key == "failedIndexes") {
    Read(errors, "status.failedIndexes", value, out.failed_indexes);
  } else if (key == "conditions") {
    Read(errors, "status.conditions", value, out.conditions);
  } else if (key == "uncountedTerminatedPods") {
    ForMembers(
        errors, "status.uncountedTerminatedPods", value,
        [&](std::string_view name, const Element& uids) {
          if (name == "succeeded") {
            Read(errors, "status.uncountedTerminatedPods.succeeded", uids, out.uncounted_succeeded);
          } else if (name == "failed") {
            Read(errors, "status.uncountedTerminatedPods.failed", uids, out.uncounted_failed);
          }
        });
  }
}

void ReadReplicas(Errors& errors, const Element& root, bool plain_selector, api::ReplicaSet& out) {
  const auto spec = [&](std::string_view key, const Element& value) {
    if (key == "replicas") {
      Read(errors, "spec.replicas", value, out.replicas);
    } else if (key == "minReadySeconds") {
      Read(errors, "spec.minReadySeconds", value, out.min_ready_seconds);
    } else if (key == "selector" && plain_selector) {
      Read(errors, "spec.selector", value, out.selector.match_labels);
    } else if (key == "selector") {
      Read(errors, "spec.selector", value, out.selector);
    } else if (key == "template") {
      ReadTemplate(errors, value, out.pod_template);
    }
  };
  const auto status = [&](std::string_view key, const Element& value) {
    if (key == "replicas") {
      Read(errors, "status.replicas", value, out.status_replicas);
    } else if (key == "fullyLabeledReplicas") {
      Read(errors, "status.fullyLabeledReplicas", value, out.fully_labeled_replicas);
    } else if (key == "readyReplicas") {
      Read(errors, "status.readyReplicas", value, out.ready_replicas);
    } else if (key == "availableReplicas") {
      Read(errors, "status.availableReplicas", value, out.available_replicas);
    } else if (key == "terminatingReplicas") {
      Read(errors, "status.terminatingReplicas", value, out.terminating_replicas);
    } else if (key == "observedGeneration") {
      Read(errors, "status.observedGeneration", value, out.observed_generation);
    } else if (key == "conditions") {
      Read(errors, "status.conditions", value, out.conditions);
    }
  };
  ReadObject(errors, root, out.meta, spec, status);
}

void ReadClaimTemplate(Errors& errors, const Element& element, api::ClaimTemplate& out) {
  constexpr std::string_view kField = "spec.volumeClaimTemplates";
  ForMembers(errors, kField, element, [&](std::string_view key, const Element& value) {
    if (key == "metadata") {
      api::ObjectMeta meta;
      Read(errors, kField, value, meta);
      out.name = std::move(meta.name);
      out.labels = std::move(meta.labels);
      out.annotations = std::move(meta.annotations);
    } else if (key == "spec") {
      std::string text;
      AppendText(value, false, text);
      out.spec = Bytes(std::move(text));
    }
  });
}

// Whether the text of a member is `wanted`.
bool Says(Errors& errors, std::string_view field, const Element& element, std::string_view wanted) {
  std::string text;
  Read(errors, field, element, text);
  return text == wanted;
}

void ReadStatefulStrategy(Errors& errors, const Element& element, api::StatefulSet& out) {
  constexpr std::string_view kField = "spec.updateStrategy";
  ForMembers(errors, kField, element, [&](std::string_view key, const Element& value) {
    if (key == "type") out.on_delete = Says(errors, kField, value, "OnDelete");
    if (key != "rollingUpdate") return;
    out.partition = 0;
    ForMembers(errors, kField, value, [&](std::string_view name, const Element& part) {
      if (name == "partition") Read(errors, kField, part, out.partition);
    });
  });
}

void ReadStatefulSpec(Errors& errors, std::string_view key, const Element& value,
                      api::StatefulSet& out) {
  if (key == "replicas") {
    Read(errors, "spec.replicas", value, out.replicas);
  } else if (key == "minReadySeconds") {
    Read(errors, "spec.minReadySeconds", value, out.min_ready_seconds);
  } else if (key == "ordinals") {
    ForMembers(errors, "spec.ordinals", value, [&](std::string_view name, const Element& part) {
      if (name == "start") Read(errors, "spec.ordinals.start", part, out.first_ordinal);
    });
  } else if (key == "serviceName") {
    Read(errors, "spec.serviceName", value, out.service_name);
  } else if (key == "selector") {
    Read(errors, "spec.selector", value, out.selector);
  } else if (key == "template") {
    ReadTemplate(errors, value, out.pod_template);
  } else if (key == "volumeClaimTemplates") {
    ForItems(errors, "spec.volumeClaimTemplates", value, [&](const Element& item) {
      ReadClaimTemplate(errors, item, out.claim_templates.emplace_back());
    });
  } else if (key == "podManagementPolicy") {
    out.parallel = Says(errors, "spec.podManagementPolicy", value, "Parallel");
  } else if (key == "updateStrategy") {
    ReadStatefulStrategy(errors, value, out);
  } else if (key == "persistentVolumeClaimRetentionPolicy") {
    constexpr std::string_view kField = "spec.persistentVolumeClaimRetentionPolicy";
    ForMembers(errors, kField, value, [&](std::string_view name, const Element& part) {
      const bool deletes = Says(errors, kField, part, "Delete");
      if (name == "whenDeleted") out.delete_claims_with_set = deletes;
      if (name == "whenScaled") out.delete_claims_when_scaled = deletes;
    });
  } else if (key == "revisionHistoryLimit") {
    Read(errors, "spec.revisionHistoryLimit", value, out.revision_history_limit);
  }
}

void ReadStatefulStatus(Errors& errors, std::string_view key, const Element& value,
                        api::StatefulSet& out) {
  if (key == "replicas") {
    Read(errors, "status.replicas", value, out.status_replicas);
  } else if (key == "readyReplicas") {
    Read(errors, "status.readyReplicas", value, out.ready_replicas);
  } else if (key == "availableReplicas") {
    Read(errors, "status.availableReplicas", value, out.available_replicas);
  } else if (key == "currentReplicas") {
    Read(errors, "status.currentReplicas", value, out.current_replicas);
  } else if (key == "updatedReplicas") {
    Read(errors, "status.updatedReplicas", value, out.updated_replicas);
  } else if (key == "observedGeneration") {
    Read(errors, "status.observedGeneration", value, out.observed_generation);
  } else if (key == "collisionCount") {
    Read(errors, "status.collisionCount", value, out.collision_count);
  } else if (key == "currentRevision") {
    Read(errors, "status.currentRevision", value, out.current_revision);
  } else if (key == "updateRevision") {
    Read(errors, "status.updateRevision", value, out.update_revision);
  }
}

void ReadDaemonSpec(Errors& errors, std::string_view key, const Element& value,
                    api::DaemonSet& out) {
  if (key == "minReadySeconds") {
    Read(errors, "spec.minReadySeconds", value, out.min_ready_seconds);
  } else if (key == "selector") {
    Read(errors, "spec.selector", value, out.selector);
  } else if (key == "template") {
    ReadTemplate(errors, value, out.pod_template);
  } else if (key == "revisionHistoryLimit") {
    Read(errors, "spec.revisionHistoryLimit", value, out.revision_history_limit);
  } else if (key == "updateStrategy") {
    constexpr std::string_view kField = "spec.updateStrategy";
    ForMembers(errors, kField, value, [&](std::string_view name, const Element& part) {
      if (name == "type") out.on_delete = Says(errors, kField, part, "OnDelete");
      if (name != "rollingUpdate") return;
      ForMembers(errors, kField, part, [&](std::string_view number, const Element& item) {
        if (number == "maxUnavailable") Read(errors, kField, item, out.max_unavailable);
        if (number == "maxSurge") Read(errors, kField, item, out.max_surge);
      });
    });
  }
}

void ReadDaemonStatus(Errors& errors, std::string_view key, const Element& value,
                      api::DaemonSet& out) {
  if (key == "currentNumberScheduled") {
    Read(errors, "status.currentNumberScheduled", value, out.current_scheduled);
  } else if (key == "desiredNumberScheduled") {
    Read(errors, "status.desiredNumberScheduled", value, out.desired_scheduled);
  } else if (key == "numberMisscheduled") {
    Read(errors, "status.numberMisscheduled", value, out.misscheduled);
  } else if (key == "numberReady") {
    Read(errors, "status.numberReady", value, out.ready);
  } else if (key == "updatedNumberScheduled") {
    Read(errors, "status.updatedNumberScheduled", value, out.updated_scheduled);
  } else if (key == "numberAvailable") {
    Read(errors, "status.numberAvailable", value, out.available);
  } else if (key == "numberUnavailable") {
    Read(errors, "status.numberUnavailable", value, out.unavailable);
  } else if (key == "observedGeneration") {
    Read(errors, "status.observedGeneration", value, out.observed_generation);
  } else if (key == "collisionCount") {
    Read(errors, "status.collisionCount", value, out.collision_count);
  }
}

void ReadCronSpec(Errors& errors, std::string_view key, const Element& value, api::CronJob& out) {
  if (key == "schedule") {
    Read(errors, "spec.schedule", value, out.schedule);
  } else if (key == "timeZone") {
    Read(errors, "spec.timeZone", value, out.time_zone);
  } else if (key == "startingDeadlineSeconds") {
    Read(errors, "spec.startingDeadlineSeconds", value, out.starting_deadline_seconds);
  } else if (key == "concurrencyPolicy") {
    std::string policy;
    Read(errors, "spec.concurrencyPolicy", value, policy);
    if (policy == "Forbid") out.concurrency = api::Concurrency::kForbid;
    if (policy == "Replace") out.concurrency = api::Concurrency::kReplace;
  } else if (key == "suspend") {
    Read(errors, "spec.suspend", value, out.suspend);
  } else if (key == "successfulJobsHistoryLimit") {
    Read(errors, "spec.successfulJobsHistoryLimit", value, out.successful_history_limit);
  } else if (key == "failedJobsHistoryLimit") {
    Read(errors, "spec.failedJobsHistoryLimit", value, out.failed_history_limit);
  } else if (key == "jobTemplate") {
    ForMembers(errors, "spec.jobTemplate", value, [&](std::string_view name, const Element& part) {
      if (name == "metadata") {
        api::ObjectMeta meta;
        Read(errors, "spec.jobTemplate.metadata", part, meta);
        out.job_labels = std::move(meta.labels);
        out.job_annotations = std::move(meta.annotations);
      } else if (name == "spec") {
        std::string text;
        AppendText(part, false, text);
        out.job_spec = Bytes(std::move(text));
      }
    });
  }
}

void ReadCronStatus(Errors& errors, std::string_view key, const Element& value, api::CronJob& out) {
  if (key == "active") {
    ForItems(errors, "status.active", value, [&](const Element& item) {
      api::ActiveJob& job = out.active.emplace_back();
      ForMembers(errors, "status.active", item, [&](std::string_view name, const Element& part) {
        if (name == "name") Read(errors, "status.active", part, job.name);
        if (name == "uid") Read(errors, "status.active", part, job.uid);
      });
    });
  } else if (key == "lastScheduleTime") {
    Read(errors, "status.lastScheduleTime", value, out.last_schedule);
  } else if (key == "lastSuccessfulTime") {
    Read(errors, "status.lastSuccessfulTime", value, out.last_success);
  }
}

}  // namespace

void ReadDeployment(Errors& errors, const Element& root, api::Deployment& out) {
  const auto spec = [&](std::string_view key, const Element& value) {
    if (key == "replicas") {
      Read(errors, "spec.replicas", value, out.replicas);
    } else if (key == "minReadySeconds") {
      Read(errors, "spec.minReadySeconds", value, out.min_ready_seconds);
    } else if (key == "selector") {
      Read(errors, "spec.selector", value, out.selector);
    } else if (key == "template") {
      ReadTemplate(errors, value, out.pod_template);
    } else if (key == "strategy") {
      ReadStrategy(errors, value, out);
    } else if (key == "revisionHistoryLimit") {
      Read(errors, "spec.revisionHistoryLimit", value, out.revision_history_limit);
    } else if (key == "progressDeadlineSeconds") {
      Read(errors, "spec.progressDeadlineSeconds", value, out.progress_deadline_seconds);
      if (out.progress_deadline_seconds == std::numeric_limits<int32_t>::max())
        out.progress_deadline_seconds.reset();
    } else if (key == "paused") {
      Read(errors, "spec.paused", value, out.paused);
    }
  };
  const auto status = [&](std::string_view key, const Element& value) {
    if (key == "replicas") {
      Read(errors, "status.replicas", value, out.status_replicas);
    } else if (key == "updatedReplicas") {
      Read(errors, "status.updatedReplicas", value, out.updated_replicas);
    } else if (key == "readyReplicas") {
      Read(errors, "status.readyReplicas", value, out.ready_replicas);
    } else if (key == "availableReplicas") {
      Read(errors, "status.availableReplicas", value, out.available_replicas);
    } else if (key == "unavailableReplicas") {
      Read(errors, "status.unavailableReplicas", value, out.unavailable_replicas);
    } else if (key == "terminatingReplicas") {
      Read(errors, "status.terminatingReplicas", value, out.terminating_replicas);
    } else if (key == "observedGeneration") {
      Read(errors, "status.observedGeneration", value, out.observed_generation);
    } else if (key == "collisionCount") {
      Read(errors, "status.collisionCount", value, out.collision_count);
    } else if (key == "conditions") {
      Read(errors, "status.conditions", value, out.conditions);
    }
  };
  ReadObject(errors, root, out.meta, spec, status);
}

void ReadReplicaSet(Errors& errors, const Element& root, api::ReplicaSet& out) {
  ReadReplicas(errors, root, false, out);
}

void ReadJob(Errors& errors, const Element& root, api::Job& out) {
  ReadObject(
      errors, root, out.meta,
      [&](std::string_view key, const Element& value) { ReadJobSpec(errors, key, value, out); },
      [&](std::string_view key, const Element& value) { ReadJobStatus(errors, key, value, out); });
}

void ReadReplicationController(Errors& errors, const Element& root,
                               api::ReplicationController& out) {
  ReadReplicas(errors, root, true, out);
}

void ReadStatefulSet(Errors& errors, const Element& root, api::StatefulSet& out) {
  ReadObject(
      errors, root, out.meta,
      [&](std::string_view key, const Element& value) {
        ReadStatefulSpec(errors, key, value, out);
      },
      [&](std::string_view key, const Element& value) {
        ReadStatefulStatus(errors, key, value, out);
      });
}

void ReadControllerRevision(Errors& errors, const Element& root, api::ControllerRevision& out) {
  ForMembers(errors, "object", root, [&](std::string_view key, const Element& value) {
    if (key == "metadata") {
      Read(errors, key, value, out.meta);
    } else if (key == "revision") {
      Read(errors, key, value, out.revision);
    } else if (key == "data") {
      // What stands there is anyone's, and a template only of the kinds that berth knows.
      Errors of_data;
      ForMembers(of_data, key, value, [&](std::string_view name, const Element& spec) {
        if (name != "spec") return;
        ForMembers(of_data, "data.spec", spec, [&](std::string_view part, const Element& pods) {
          if (part == "template") ReadTemplate(of_data, pods, out.pod_template);
        });
      });
      if (of_data.first) out.pod_template = {};
    }
  });
}

void ReadDaemonSet(Errors& errors, const Element& root, api::DaemonSet& out) {
  ReadObject(
      errors, root, out.meta,
      [&](std::string_view key, const Element& value) { ReadDaemonSpec(errors, key, value, out); },
      [&](std::string_view key, const Element& value) {
        ReadDaemonStatus(errors, key, value, out);
      });
}

void ReadCronJob(Errors& errors, const Element& root, api::CronJob& out) {
  ReadObject(
      errors, root, out.meta,
      [&](std::string_view key, const Element& value) { ReadCronSpec(errors, key, value, out); },
      [&](std::string_view key, const Element& value) { ReadCronStatus(errors, key, value, out); });
}

}  // namespace berth::codec::reader
