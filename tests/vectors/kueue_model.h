#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "api/quantity.h"
#include "base/hash.h"
#include "codec/decode.h"
#include "codec/json.h"
#include "model/audit.h"
#include "model/state.h"
#include "reading.h"
#include "translate/quota_facts.h"

// What the tables of Kueue's vectors share: a case, its objects as facts of the model, its usage as
// claims of the ledger.
namespace berth::kueue {

using api::Json;
using api::JsonArray;
using api::JsonObject;
using model::QueueKind;
using model::QuotaView;

struct Case {
  JsonObject fixtures;
  JsonObject input;
  JsonArray steps;
  JsonObject want;
  JsonObject options;
  JsonObject gates;
  std::string now;
};

// What berth is not asked to do: what() is that.
struct NotApplicable : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// What it is asked to, and lacks.
struct NotBuilt : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Flavor -> resource -> amount, without zeros: an absent amount is none.
using Amounts = std::map<std::string, std::map<std::string, int64_t>>;

inline Amounts AmountsIn(const JsonObject& object) {
  Amounts out;
  for (const auto& flavor : object) {
    for (const auto& resource : flavor.value().as_object()) {
      const Json& amount = resource.value();
      const int64_t value = amount.is_string() ? model::kUnlimited : amount.to_number<int64_t>();
      if (value != 0) out[std::string(flavor.key())][std::string(resource.key())] = value;
    }
  }
  return out;
}

inline std::string Text(const Amounts& amounts) {
  std::string text;
  for (const auto& [flavor, resources] : amounts) {
    for (const auto& [resource, amount] : resources)
      text += fmt::format("{}/{}={} ", flavor, resource, amount);
  }
  return text;
}

inline int64_t AmountOf(std::string_view resource, const Json& quantity) {
  const std::string text = quantity.is_string() ? std::string(quantity.as_string())
                                                : std::to_string(quantity.to_number<int64_t>());
  const auto parsed = api::ParseScaled(text, resource == "cpu" ? -3 : 0);
  if (!parsed) throw std::runtime_error(parsed.error().message);
  return *parsed;
}

struct Mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void Expect(std::string_view what, const Amounts& got, const Amounts& want) {
  if (got == want) return;
  throw Mismatch(fmt::format("{}\n  want {}\n  got  {}", what, Text(want), Text(got)));
}

inline void ExpectSame(std::string_view what, int64_t got, int64_t want) {
  if (got != want) throw Mismatch(fmt::format("{}: want {}, got {}", what, want, got));
}

// In order.
inline api::StringMap LabelsOf(const JsonObject& meta) {
  api::StringMap labels;
  for (const auto& label : ObjectAt(meta, "labels"))
    labels.emplace_back(label.key(), label.value().as_string());
  std::ranges::sort(labels);
  return labels;
}

// A view of an object as the cases give it: names stand for uids.
template <typename View>
View ViewOf(Result<View> (codec::Decoder::*read)(std::string_view), const JsonObject& object) {
  codec::Decoder decoder;
  Result<View> view = (decoder.*read)(codec::PrintJson(object));
  if (!view) throw std::runtime_error(view.error().message);
  if (view->meta.uid.empty()) view->meta.uid = "u-" + view->meta.name;
  return *view;
}

// A ClusterQueue that has nothing but this in its spec.
inline model::QueueUpsert QueueWith(std::string_view member, const Json& value) {
  model::Vocabulary vocabulary;
  return translate::QueueFacts(ViewOf(&codec::Decoder::ClusterQueue, {{"spec", {{member, value}}}}),
                               vocabulary);
}

// ---- The model of a case -----------------------------------------------------------------------

class Cluster {
 public:
  void Put(QueueKind kind, const JsonObject& object) {
    model::Vocabulary& vocabulary = state_.vocabulary();
    if (kind == QueueKind::kCohort) {
      state_.Apply(translate::QueueFacts(ViewOf(&codec::Decoder::Cohort, object), vocabulary));
    } else {
      state_.Apply(
          translate::QueueFacts(ViewOf(&codec::Decoder::ClusterQueue, object), vocabulary));
    }
  }
  void PutAll(const JsonArray& cluster_queues, const JsonArray& cohorts) {
    for (const Json& q : cluster_queues) Put(QueueKind::kClusterQueue, q.as_object());
    for (const Json& cohort : cohorts) Put(QueueKind::kCohort, cohort.as_object());
  }
  void Delete(QueueKind kind, const std::string& name) {
    state_.Apply(model::QueueRemove{.kind = kind, .name = name});
  }

  [[nodiscard]] bool Active(QueueKind kind, const JsonObject& object) const {
    return state_.queues().active(
        state_.FindQueue(kind, StringAt(object.at("metadata").as_object(), "name")));
  }

  // Charges the ClusterQueue, for whoever is to be named when it ends.
  void Charge(const std::string& owner, const std::string& queue, const Amounts& amounts) {
    const model::QueueId q = state_.FindQueue(QueueKind::kClusterQueue, queue);
    if (!q.valid()) throw std::runtime_error("no ClusterQueue " + queue);
    model::Transaction t = state_.Begin();
    for (const auto& [flavor, resources] : amounts) {
      std::vector<model::ResourceAmount> bundle;
      for (const auto& [resource, amount] : resources)
        bundle.push_back({Resource(resource), amount});
      t.Add({.owner = OwnerOf(owner),
             .account = state_.AccountFor(q, state_.vocabulary().names.Intern(flavor)),
             .bundle = state_.vocabulary().bundles.Intern(bundle),
             .why = model::ClaimWhy::kAdmitted});
    }
    t.Commit(model::Cause::kObserved);
    CheckAudit();
  }
  void Discharge(const std::string& owner) {
    model::Transaction t = state_.Begin();
    while (state_.ledger().first_of_owner(OwnerOf(owner)).valid())
      t.End(state_.ledger().first_of_owner(OwnerOf(owner)));
    t.Commit(model::Cause::kOwnerDeleted);
    CheckAudit();
  }

  using Ask = std::function<int64_t(const model::QuotaTree&, model::ResourceId, uint32_t)>;
  // Of each flavor and resource: those that the queue itself has quota of, or all.
  [[nodiscard]] Amounts Of(QueueKind kind, std::string_view name, bool own_only,
                           const Ask& ask) const {
    Amounts out;
    const model::QueueId q = state_.FindQueue(kind, name);
    if (!q.valid()) return out;
    const model::QuotaTree& tree = state_.ledger().quota();
    for (uint32_t a = state_.queues().at(q).first_account; a != model::Queue::kNoAccount;
         a = state_.queues().account(a).next) {
      for (uint32_t i = 0; i < tree.resources(); ++i) {
        const model::ResourceId r{i};
        if (own_only && !tree.defined(r, a)) continue;
        const int64_t amount = ask(tree, r, a);
        if (amount == 0) continue;
        out[std::string(state_.NameOf(state_.queues().account(a).flavor))]
           [std::string(state_.vocabulary().resources.Name(r))] = amount;
      }
    }
    return out;
  }
  // Only the audit of queues: who is charged here are no pods.
  void CheckAudit() const {
    for (const std::string& found : model::AuditQueues(state_)) throw Mismatch("audit: " + found);
  }
  [[nodiscard]] model::State& state() { return state_; }
  // Of whom Charge was told.
  model::OwnerId OwnerOf(const std::string& name) {
    const auto next = static_cast<uint32_t>(owners_.size());
    return model::OwnerId{owners_.try_emplace(name, next).first->second};
  }
  model::NameId Name(std::string_view name) { return state_.vocabulary().names.Intern(name); }
  model::ResourceId Resource(std::string_view name) {
    return state_.vocabulary().resources.Intern(name).value();
  }

 private:
  model::State state_;
  std::map<std::string, uint32_t> owners_;
};

inline uint64_t HashOfLedger(Cluster& c) {
  Hasher hasher;
  c.state().ledger().AddTo(hasher);
  return hasher.value();
}

// What a workload that has quota is charged.
inline Amounts ChargeOf(const JsonObject& admission) {
  Amounts out;
  for (const Json& pod_set : ArrayAt(admission, "podSetAssignments")) {
    for (const auto& used : ObjectAt(pod_set.as_object(), "resourceUsage")) {
      const std::string flavor =
          StringAt(ObjectAt(pod_set.as_object(), "flavors"), std::string_view(used.key()));
      out[flavor][std::string(used.key())] += AmountOf(used.key(), used.value());
    }
  }
  return out;
}

inline bool HasCondition(const JsonObject& workload, std::string_view type) {
  return std::ranges::any_of(ArrayAt(ObjectAt(workload, "status"), "conditions"),
                             [&](const Json& condition) {
                               return StringAt(condition.as_object(), "type") == type &&
                                      StringAt(condition.as_object(), "status") == "True";
                             });
}

inline std::string KeyOf(const JsonObject& workload) {
  const JsonObject& meta = workload.at("metadata").as_object();
  return StringAt(meta, "namespace") + "/" + StringAt(meta, "name");
}

inline void ChargeWorkload(Cluster& c, const JsonObject& workload) {
  if (!HasCondition(workload, "QuotaReserved")) return;
  const JsonObject& admission = ObjectAt(ObjectAt(workload, "status"), "admission");
  c.Charge(KeyOf(workload), StringAt(admission, "clusterQueue"), ChargeOf(admission));
}

}  // namespace berth::kueue
