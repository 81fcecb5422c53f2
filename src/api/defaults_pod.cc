#include "api/defaults_pod.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "api/object.h"
#include "api/quantity.h"

namespace berth::api {
namespace {

// Calls `visit` for each object of a list member.
template <typename Visit>
void ForObjects(JsonObject& owner, std::string_view key, Visit visit) {
  Json* list = owner.if_contains(key);
  if (list == nullptr || !list->is_array()) return;
  for (Json& item : list->get_array()) {
    if (item.is_object()) visit(item.get_object());
  }
}

// The member as an object, or null.
JsonObject* ObjectIn(JsonObject& owner, std::string_view key) {
  Json* member = owner.if_contains(key);
  return member == nullptr ? nullptr : member->if_object();
}

void DefaultText(JsonObject& object, std::string_view key, std::string_view value) {
  Json& member = object[key];
  const bool unset = member.is_null() || (member.is_string() && member.get_string().empty());
  if (unset) member = value;
}

void DefaultNumber(JsonObject& object, std::string_view key, int64_t value) {
  Json& member = object[key];
  if (member.is_null() || (member.is_int64() && member.get_int64() == 0)) member = value;
}

void DefaultHttpGet(JsonObject& owner) {
  JsonObject* action = ObjectIn(owner, "httpGet");
  if (action == nullptr) return;
  DefaultText(*action, "path", "/");
  DefaultText(*action, "scheme", "HTTP");
}

void DefaultProbe(JsonObject& container, std::string_view key) {
  JsonObject* probe = ObjectIn(container, key);
  if (probe == nullptr) return;
  DefaultNumber(*probe, "timeoutSeconds", 1);
  DefaultNumber(*probe, "periodSeconds", 10);
  DefaultNumber(*probe, "successThreshold", 1);
  DefaultNumber(*probe, "failureThreshold", 3);
  DefaultHttpGet(*probe);
  if (JsonObject* grpc = ObjectIn(*probe, "grpc"); grpc != nullptr)
    SetDefault(*grpc, "service", "");
}

void DefaultFieldRef(JsonObject& owner) {
  if (JsonObject* reference = ObjectIn(owner, "fieldRef"); reference != nullptr) {
    DefaultText(*reference, "apiVersion", "v1");
  }
  if (JsonObject* reference = ObjectIn(owner, "resourceFieldRef"); reference != nullptr) {
    SetDefault(*reference, "divisor", "0");
  }
}

void DefaultResources(JsonObject& container, bool requests_from_limits) {
  JsonObject* resources = ObjectIn(container, "resources");
  if (resources == nullptr) return;
  JsonObject* limits = ObjectIn(*resources, "limits");
  JsonObject* requests = ObjectIn(*resources, "requests");
  if (limits != nullptr) RoundResources(*limits);
  if (requests != nullptr) RoundResources(*requests);
  if (!requests_from_limits || limits == nullptr || limits->empty()) return;
  // Sorted by name, as every map of a stored document.
  std::vector<std::pair<std::string, Json>> members;
  if (requests != nullptr) {
    for (const auto& [name, amount] : *requests) members.emplace_back(name, amount);
  }
  for (const auto& [name, amount] : *limits) {
    if (requests == nullptr || !requests->contains(name)) members.emplace_back(name, amount);
  }
  std::ranges::sort(members, {}, [](const auto& item) -> const std::string& { return item.first; });
  JsonObject merged;
  for (auto& [name, amount] : members) merged.emplace(name, std::move(amount));
  (*resources)["requests"] = std::move(merged);
}

void DefaultContainer(JsonObject& container, bool requests_from_limits) {
  const Json* image = FindMember(std::as_const(container), "image");
  const bool latest = image != nullptr && image->is_string() && IsLatestImage(image->get_string());
  DefaultText(container, "imagePullPolicy", latest ? "Always" : "IfNotPresent");
  DefaultText(container, "terminationMessagePath", "/dev/termination-log");
  DefaultText(container, "terminationMessagePolicy", "File");
  ForObjects(container, "ports", [](JsonObject& port) { DefaultText(port, "protocol", "TCP"); });
  ForObjects(container, "env", [](JsonObject& variable) {
    if (JsonObject* source = ObjectIn(variable, "valueFrom"); source != nullptr) {
      DefaultFieldRef(*source);
      if (JsonObject* file = ObjectIn(*source, "fileKeyRef"); file != nullptr) {
        SetDefault(*file, "optional", false);
      }
    }
  });
  for (const std::string_view probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    DefaultProbe(container, probe);
  }
  if (JsonObject* lifecycle = ObjectIn(container, "lifecycle"); lifecycle != nullptr) {
    for (const std::string_view hook : {"postStart", "preStop"}) {
      if (JsonObject* handler = ObjectIn(*lifecycle, hook); handler != nullptr) {
        DefaultHttpGet(*handler);
      }
    }
  }
  if (JsonObject* security = ObjectIn(container, "securityContext"); security != nullptr) {
    if (const Json* mount = security->if_contains("procMount"); mount != nullptr) {
      if (mount->is_null()) (*security)["procMount"] = "Default";
    }
  }
  DefaultResources(container, requests_from_limits);
}

void DefaultProjected(JsonObject& projected) {
  SetDefault(projected, "defaultMode", 420);
  ForObjects(projected, "sources", [](JsonObject& source) {
    if (JsonObject* token = ObjectIn(source, "serviceAccountToken"); token != nullptr) {
      SetDefault(*token, "expirationSeconds", 3600);
    }
    if (JsonObject* downward = ObjectIn(source, "downwardAPI"); downward != nullptr) {
      ForObjects(*downward, "items", DefaultFieldRef);
    }
  });
}

struct TextDefault {
  std::string_view source, field, value;
};
constexpr std::array<TextDefault, 10> kVolumeDefaults = {{
    {"azureDisk", "cachingMode", "ReadWrite"},
    {"azureDisk", "fsType", "ext4"},
    {"azureDisk", "kind", "Shared"},
    {"iscsi", "iscsiInterface", "default"},
    {"rbd", "keyring", "/etc/ceph/keyring"},
    {"rbd", "pool", "rbd"},
    {"rbd", "user", "admin"},
    {"scaleIO", "fsType", "xfs"},
    {"scaleIO", "storageMode", "ThinProvisioned"},
    {"hostPath", "type", ""},
}};

// What a term asks of the pod's own labels becomes a part of its selector.
void MergeLabelKeys(Json& term, const JsonObject& labels) {
  if (FindMember(term, "labelSelector") == nullptr) return;
  const auto merge = [&](std::string_view member, std::string_view how) {
    for (const Json& key : ArrayAt(std::as_const(term), member)) {
      const Json* value = FindMember(labels, TextOf(key));
      if (value == nullptr) continue;
      JsonObject& selector = MemberObject(term.get_object(), "labelSelector");
      Json& list = Member(selector, "matchExpressions");
      if (!list.is_array()) list.emplace_array();
      list.get_array().push_back(JsonObject(
          {{"key", key}, {"operator", how}, {"values", JsonArray({*value})}}, list.storage()));
    }
  };
  merge("matchLabelKeys", "In");
  merge("mismatchLabelKeys", "NotIn");
}

}  // namespace

void DefaultSources(JsonObject& owner) {
  for (const TextDefault& entry : kVolumeDefaults) {
    if (JsonObject* body = ObjectIn(owner, entry.source); body != nullptr) {
      SetDefault(*body, entry.field, Json(entry.value));
    }
  }
}

namespace {

void DefaultVolume(JsonObject& volume) {
  const bool has_source = std::ranges::any_of(volume, [](const auto& member) {
    return std::string_view(member.key()) != "name" && !member.value().is_null();
  });
  if (!has_source) volume["emptyDir"].emplace_object();
  for (const std::string_view source : {"secret", "configMap", "downwardAPI"}) {
    if (JsonObject* body = ObjectIn(volume, source); body != nullptr) {
      SetDefault(*body, "defaultMode", 420);
      ForObjects(*body, "items", DefaultFieldRef);
    }
  }
  JsonObject* made = ObjectIn(volume, "ephemeral");
  JsonObject* claim = made == nullptr ? nullptr : ObjectIn(*made, "volumeClaimTemplate");
  JsonObject* claim_spec = claim == nullptr ? nullptr : ObjectIn(*claim, "spec");
  if (claim_spec != nullptr) SetDefault(*claim_spec, "volumeMode", "Filesystem");
  if (JsonObject* projected = ObjectIn(volume, "projected"); projected != nullptr) {
    DefaultProjected(*projected);
  }
  DefaultSources(volume);
  if (JsonObject* image = ObjectIn(volume, "image"); image != nullptr) {
    const Json* name = FindMember(std::as_const(*image), "reference");
    const bool latest = name != nullptr && name->is_string() && IsLatestImage(name->get_string());
    DefaultText(*image, "pullPolicy", latest ? "Always" : "IfNotPresent");
  }
}

void DefaultHostPorts(JsonObject& spec, std::string_view list) {
  ForObjects(spec, list, [](JsonObject& container) {
    ForObjects(container, "ports", [](JsonObject& port) {
      const Json* inside = FindMember(std::as_const(port), "containerPort");
      if (inside != nullptr && inside->is_int64()) {
        DefaultNumber(port, "hostPort", inside->get_int64());
      }
    });
  });
}

bool IsPodLevelResource(std::string_view name) {
  return name == "cpu" || name == "memory" || name.starts_with("hugepages-");
}

// The sum of one resource over a pod's containers, with init containers as they overlap them:
// sidecars add up, the others need what they and the sidecars before them need.
std::optional<Quantity> ContainersNeed(const JsonObject& spec, std::string_view name) {
  const auto request = [&](const Json& container) {
    const Json* resources = FindPath(container, "resources.requests");
    const Json* amount = resources == nullptr ? nullptr : FindMember(*resources, name);
    if (amount == nullptr || !amount->is_string()) return std::optional<Quantity>();
    const Result<Quantity> parsed = ParseQuantity(amount->get_string());
    return parsed ? std::optional(*parsed) : std::nullopt;
  };
  const auto sum = [](std::optional<Quantity> a, const std::optional<Quantity>& b) {
    if (!a || !b) return a ? a : b;
    return std::optional(Add(*a, *b).value_or(*a));
  };
  const auto list = [&](std::string_view key) -> const JsonArray& {
    static const JsonArray kNone;
    const Json* member = spec.if_contains(key);
    return member != nullptr && member->is_array() ? member->get_array() : kNone;
  };
  std::optional<Quantity> total;
  for (const Json& container : list("containers")) total = sum(total, request(container));
  std::optional<Quantity> sidecars;
  std::optional<Quantity> start_up;
  for (const Json& container : list("initContainers")) {
    if (TextAt(container, "restartPolicy") == "Always") {
      sidecars = sum(sidecars, request(container));
      total = sum(total, request(container));
      continue;
    }
    const std::optional<Quantity> need = sum(sidecars, request(container));
    if (need && (!start_up || Compare(*start_up, *need) < 0)) start_up = need;
  }
  if (start_up && (!total || Compare(*total, *start_up) < 0)) return start_up;
  return total;
}

// Pod-level requests that are missing come from the containers, else from the pod's limits.
void DefaultPodLevel(JsonObject& spec) {
  JsonObject* resources = ObjectIn(spec, "resources");
  if (resources == nullptr) return;
  JsonObject* limits = ObjectIn(*resources, "limits");
  if (limits == nullptr || limits->empty()) return;
  std::vector<std::pair<std::string, Json>> requests;
  if (const JsonObject* stated = ObjectIn(*resources, "requests"); stated != nullptr) {
    for (const auto& [name, amount] : *stated) requests.emplace_back(name, amount);
  }
  const auto stated = [&](std::string_view name) {
    return std::ranges::find(requests, name, &std::pair<std::string, Json>::first) !=
           requests.end();
  };
  for (const std::string_view name : {"cpu", "memory"}) {
    if (stated(name)) continue;
    const std::optional<Quantity> need = ContainersNeed(spec, name);
    if (need) requests.emplace_back(name, ToString(*need));
  }
  for (const auto& [name, amount] : *limits) {
    if (!stated(name) && IsPodLevelResource(name)) requests.emplace_back(name, amount);
  }
  std::ranges::sort(requests, {}, &std::pair<std::string, Json>::first);
  JsonObject merged;
  for (auto& [name, amount] : requests) merged.emplace(name, std::move(amount));
  if (!merged.empty()) (*resources)["requests"] = std::move(merged);
}

}  // namespace

bool IsLatestImage(std::string_view image) {
  if (image.empty()) return false;
  const size_t digest = image.find('@');
  std::string_view name = image.substr(0, digest);
  const size_t slash = name.rfind('/');
  std::string_view last = slash == std::string_view::npos ? name : name.substr(slash + 1);
  const size_t colon = last.find(':');
  const std::string_view repository = last.substr(0, colon);
  // A name that is no image reference has no tag for upstream.
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  };
  if (repository.empty() || !std::ranges::all_of(repository, is_part)) return false;
  if (colon != std::string_view::npos) return last.substr(colon + 1) == "latest";
  return digest == std::string_view::npos;
}

void RoundResources(JsonObject& list) {
  for (auto& [name, amount] : list) {
    if (!amount.is_string()) continue;
    const Result<Quantity> quantity = ParseQuantity(amount.get_string());
    if (!quantity || quantity->exponent >= -3) continue;
    Quantity rounded = QuantityOf(quantity->milli());
    if (rounded.mantissa != 0) rounded.exponent -= 3;
    rounded.format = quantity->format;
    amount = ToString(rounded);
  }
}

void DefaultPodSpec(JsonObject& spec, bool is_pod) {
  for (const std::string_view list : {"containers", "initContainers"}) {
    ForObjects(spec, list, [&](JsonObject& container) { DefaultContainer(container, is_pod); });
  }
  ForObjects(spec, "ephemeralContainers",
             [](JsonObject& container) { DefaultContainer(container, false); });
  ForObjects(spec, "volumes", DefaultVolume);
  if (JsonObject* overhead = ObjectIn(spec, "overhead"); overhead != nullptr) {
    RoundResources(*overhead);
  }
  DefaultText(spec, "dnsPolicy", "ClusterFirst");
  DefaultText(spec, "restartPolicy", "Always");
  SetDefault(spec, "securityContext", JsonObject());
  SetDefault(spec, "terminationGracePeriodSeconds", 30);
  // Upstream reads a negative grace period of a pod as one second.
  const Json* grace = FindMember(std::as_const(spec), "terminationGracePeriodSeconds");
  if (is_pod && grace != nullptr && grace->is_int64() && grace->get_int64() < 0) {
    spec["terminationGracePeriodSeconds"] = 1;
  }
  DefaultText(spec, "schedulerName", "default-scheduler");
  // One field under two names: the old one follows the new.
  if (const Json* account = FindMember(std::as_const(spec), "serviceAccountName")) {
    spec["serviceAccount"] = Json(*account);
  } else if (const Json* old = FindMember(std::as_const(spec), "serviceAccount")) {
    spec["serviceAccountName"] = Json(*old);
  }
  const Json* host = FindMember(std::as_const(spec), "hostNetwork");
  if (host != nullptr && host->is_bool() && host->get_bool()) {
    DefaultHostPorts(spec, "containers");
    DefaultHostPorts(spec, "initContainers");
  }
  if (!is_pod) return;
  DefaultPodLevel(spec);
  SetDefault(spec, "enableServiceLinks", true);
}

void MergeLabelKeys(Json& pod) {
  JsonObject* spec = ObjectIn(pod.get_object(), "spec");
  if (spec == nullptr) return;
  const JsonObject& labels = ObjectAt(std::as_const(pod), "metadata.labels");
  const auto each = [&](JsonObject& owner, std::string_view member, std::string_view within) {
    Json* list = owner.if_contains(member);
    if (list == nullptr || !list->is_array()) return;
    for (Json& item : list->get_array()) {
      if (!item.is_object()) continue;
      Json* term = within.empty() ? &item : item.get_object().if_contains(within);
      if (term != nullptr && term->is_object()) MergeLabelKeys(*term, labels);
    }
  };
  each(*spec, "topologySpreadConstraints", "");
  JsonObject* affinity = ObjectIn(*spec, "affinity");
  if (affinity == nullptr) return;
  for (const std::string_view which : {"podAffinity", "podAntiAffinity"}) {
    JsonObject* terms = ObjectIn(*affinity, which);
    if (terms == nullptr) continue;
    each(*terms, "preferredDuringSchedulingIgnoredDuringExecution", "podAffinityTerm");
    each(*terms, "requiredDuringSchedulingIgnoredDuringExecution", "");
  }
}

}  // namespace berth::api
