#include "translate/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "api/job_owner.h"
#include "api/quantity.h"
#include "api/quota.h"
#include "api/requests.h"
#include "api/well_known.h"
#include "base/check.h"
#include "base/limits.h"
#include "model/reason.h"
#include "translate/bounds.h"
#include "translate/lists.h"

namespace berth::translate {
namespace {

using model::NameId;

constexpr std::string_view kPodsName = "pods";
constexpr std::string_view kNameField = "metadata.name";

// Policies of topology spread constraints.
constexpr std::string_view kHonor = "Honor";
constexpr std::string_view kIgnore = "Ignore";

constexpr std::string_view kNeverPreempts = "Never";
constexpr std::string_view kDisruptionCondition = "DisruptionTarget";
constexpr std::string_view kPreemptedReason = "PreemptionByScheduler";

// What a pod's spec needs of a kubelet in 1.36
// (https://kubernetes.io/docs/concepts/scheduling-eviction/node-declared-features/).
constexpr std::string_view kRestartAllFeature = "RestartAllContainersOnContainerExits";
constexpr std::string_view kUserNamespaceHostNetworkFeature = "UserNamespacesHostNetworkSupport";

std::string KeyOf(const api::ObjectMeta& meta) { return meta.namespace_name + "/" + meta.name; }

model::NameListId InternNames(std::vector<NameId> names, model::Vocabulary& vocabulary) {
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  return vocabulary.name_lists.Intern(names);
}

// ---- Amounts -------------------------------------------------------------------------------

// What of a pod's requests the model can hold, decided before anything is interned: what is refused
// leaves no trace.
class Holdable {
 public:
  Holdable(const model::ResourceTable& resources, std::vector<std::string>* left_out)
      : resources_(resources), left_out_(left_out) {}

  // Without zeros, and without the pod's own place. What does not fit is left out when the pod
  // stands on a node: the rest of it must be charged there. Else it fails with kTooLarge.
  Result<api::ResourceList> Of(api::ResourceList list, bool bound) {
    std::erase_if(
        list, [](const api::ResourceAmount& a) { return a.amount <= 0 || a.name == kPodsName; });
    const size_t most = model::kBundleAmountsMax - 1;
    if (list.size() > most && !bound) {
      return Fail(ErrorCode::kTooLarge,
                  fmt::format("requests {} kinds of resource, more than {}", list.size(), most));
    }
    std::ranges::stable_partition(
        list, [&](const api::ResourceAmount& a) { return resources_.Find(a.name).valid(); });
    api::ResourceList held;
    for (api::ResourceAmount& a : list) {
      if (held.size() < most && Admit(a.name)) {
        held.push_back(std::move(a));
        continue;
      }
      if (!bound) {
        return Fail(ErrorCode::kTooLarge,
                    fmt::format("requests {}, which no node offers: pods may not name more than {} "
                                "kinds of resource",
                                a.name, limits::kResourceKindsOfPodsMax));
      }
      if (left_out_ != nullptr) left_out_->push_back(std::move(a.name));
    }
    return held;
  }

 private:
  bool Admit(const std::string& name) {
    if (resources_.Find(name).valid() || fresh_.contains(name)) return true;
    if (resources_.size() + fresh_.size() >= limits::kResourceKindsOfPodsMax) return false;
    fresh_.insert(name);
    return true;
  }

  const model::ResourceTable& resources_;
  std::vector<std::string>* left_out_;
  std::set<std::string> fresh_;  // Names that interning will add.
};

// Whether the amount is compared with a node's. Devices are no plugin's.
bool Asks(const PodProfile& rules, const std::string& resource) {
  if (resource == kGpuMilliResource) return true;
  if (!rules.asks_amounts) return false;
  if (rules.ignored_resources.empty() && rules.ignored_groups.empty()) return true;
  const auto among = [](const std::vector<std::string>& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  const std::string_view group = std::string_view(resource).substr(0, resource.find('/'));
  const bool extended = resource.contains('/') && !resource.contains("kubernetes.io/");
  return !extended ||
         (!among(rules.ignored_resources, resource) && !among(rules.ignored_groups, group));
}

// Requests with the pod itself, which takes one of the node's places, and its host ports. REQUIRES:
// Holdable.
model::BundleId InternRequests(const api::ResourceList& list,
                               std::span<const model::HostPort> ports, const PodProfile& rules,
                               model::Vocabulary& vocabulary) {
  std::vector<model::ResourceAmount> amounts;
  amounts.reserve(list.size() + 1);
  std::vector<model::ResourceAmount> asked;
  const auto add = [&](model::ResourceAmount amount, bool asks) {
    amounts.push_back(amount);
    if (asks) asked.push_back(amount);
  };
  for (const api::ResourceAmount& a : list) {
    const Result<model::ResourceId> id = vocabulary.resources.Intern(a.name);
    CHECK(id.has_value());
    add({*id, std::clamp(a.amount, int64_t{0}, limits::kAmountMax)}, Asks(rules, a.name));
  }
  add({model::kPods, 1}, rules.asks_amounts);
  const bool asks_all = asked.size() == amounts.size() && (rules.asks_ports || ports.empty());
  if (asks_all) return vocabulary.bundles.Intern(amounts, ports);
  const auto its_ports = rules.asks_ports ? ports : std::span<const model::HostPort>();
  return vocabulary.bundles.Intern(amounts, ports, vocabulary.bundles.Intern(asked, its_ports));
}

// One below what requests are clamped to: a request that was clamped fits nowhere, rather than on
// every node that was.
std::vector<model::ResourceAmount> InternOffers(const api::ResourceList& list,
                                                model::Vocabulary& vocabulary,
                                                std::vector<std::string>* left_out) {
  std::vector<model::ResourceAmount> amounts;
  amounts.reserve(list.size());
  for (const api::ResourceAmount& a : list) {
    const Result<model::ResourceId> id = vocabulary.resources.Intern(a.name);
    if (id) {
      amounts.push_back({*id, std::clamp(a.amount, int64_t{0}, limits::kAmountMax - 1)});
    } else if (left_out != nullptr) {
      left_out->push_back(a.name);
    }
  }
  return amounts;
}

model::BundleId InternScoring(const api::ResourceList& list, model::Vocabulary& vocabulary) {
  const model::ResourceAmount amounts[] = {
      {model::kCpu, api::Find(list, api::kCpuName).value_or(0)},
      {model::kMemory, api::Find(list, api::kMemoryName).value_or(0)},
  };
  return vocabulary.bundles.Intern(amounts);
}

Result<model::GpuDemand> GpuDemandOf(const api::ResourceList& requests) {
  const int64_t milli = std::max<int64_t>(api::Find(requests, kGpuMilliResource).value_or(0), 0);
  if (milli < model::kDeviceMilli) {
    return model::GpuDemand{.share_milli = static_cast<uint32_t>(milli)};
  }
  if (milli % model::kDeviceMilli != 0) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{} is {}: must be less than {} or a multiple of it", kGpuMilliResource,
                            milli, model::kDeviceMilli));
  }
  const int64_t devices =
      std::min<int64_t>(milli / model::kDeviceMilli, std::numeric_limits<uint32_t>::max() / 2);
  return model::GpuDemand{.devices_count = static_cast<uint32_t>(devices)};
}

// ---- Selectors -----------------------------------------------------------------------------

bool IsInteger(std::string_view text) {
  int64_t value = 0;
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::optional<model::SelectorOp> OpOf(std::string_view op) {
  if (op == "In") return model::SelectorOp::kIn;
  if (op == "NotIn") return model::SelectorOp::kNotIn;
  if (op == "Exists") return model::SelectorOp::kExists;
  if (op == "DoesNotExist") return model::SelectorOp::kDoesNotExist;
  if (op == "Gt") return model::SelectorOp::kGt;
  if (op == "Lt") return model::SelectorOp::kLt;
  return std::nullopt;
}

// Whether upstream can make a matcher of it; a term with one that it can't matches nothing.
bool Valid(const api::Requirement& r, model::SelectorOp op) {
  switch (op) {
    case model::SelectorOp::kIn:
    case model::SelectorOp::kNotIn:
      return !r.values.empty();
    case model::SelectorOp::kExists:
    case model::SelectorOp::kDoesNotExist:
      return r.values.empty();
    case model::SelectorOp::kGt:
    case model::SelectorOp::kLt:
      return r.values.size() == 1 && IsInteger(r.values[0]);
  }
  return false;
}

bool ValidField(const api::Requirement& r, model::SelectorOp op) {
  const bool listed = op == model::SelectorOp::kIn || op == model::SelectorOp::kNotIn;
  return r.key == kNameField && listed && r.values.size() == 1;
}

class Selectors {
 public:
  explicit Selectors(model::Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  [[nodiscard]] model::SelectorTerm Term(const api::NodeSelectorTerm& term) const {
    model::SelectorTerm out;
    for (const api::Requirement& r : term.match_expressions) {
      const auto op = OpOf(r.op);
      out.never = out.never || !op.has_value() || !Valid(r, *op);
      out.requirements.push_back(Requirement(r, op.value_or(model::SelectorOp::kIn), false));
    }
    for (const api::Requirement& r : term.match_fields) {
      const auto op = OpOf(r.op);
      out.never = out.never || !op.has_value() || !ValidField(r, *op);
      out.requirements.push_back(Requirement(r, op.value_or(model::SelectorOp::kIn), true));
    }
    return out;
  }

  [[nodiscard]] model::Requirement Equals(const std::pair<std::string, std::string>& label) const {
    return {.key = Name(label.first), .values = {Name(label.second)}};
  }

  [[nodiscard]] NameId Name(std::string_view text) const { return vocabulary_.names.Intern(text); }

 private:
  [[nodiscard]] model::Requirement Requirement(const api::Requirement& r, model::SelectorOp op,
                                               bool field) const {
    model::Requirement out{.key = field ? NameId{} : Name(r.key), .op = op, .field = field};
    for (const std::string& value : r.values) out.values.push_back(Name(value));
    std::ranges::sort(out.values);
    return out;
  }

  model::Vocabulary& vocabulary_;
};

// The node names that one term allows by metadata.name In [...]; nothing when it names none.
std::optional<std::set<std::string>> NamesOf(const api::NodeSelectorTerm& term) {
  std::optional<std::set<std::string>> names;
  for (const api::Requirement& r : term.match_fields) {
    if (r.key != kNameField || r.op != "In") continue;
    const std::set<std::string> listed(r.values.begin(), r.values.end());
    if (!names.has_value()) {
      names = listed;
    } else {
      std::erase_if(*names, [&](const std::string& name) { return !listed.contains(name); });
    }
  }
  return names;
}

// The names that all terms together leave in the race; nothing when some term names none.
std::optional<std::set<std::string>> NamesOf(std::span<const api::NodeSelectorTerm> terms) {
  std::set<std::string> all;
  for (const api::NodeSelectorTerm& term : terms) {
    std::optional<std::set<std::string>> names = NamesOf(term);
    if (!names.has_value()) return std::nullopt;
    all.merge(*names);
  }
  if (terms.empty()) return std::nullopt;
  return all;
}

// What is left of required terms on the one node they name: without the name. Nothing when no more
// is asked of it.
std::optional<std::vector<api::NodeSelectorTerm>> WithoutName(
    std::span<const api::NodeSelectorTerm> terms) {
  std::vector<api::NodeSelectorTerm> rest;
  for (const api::NodeSelectorTerm& term : terms) {
    if (NamesOf(term)->empty()) continue;  // Names that exclude each other: never true.
    api::NodeSelectorTerm without = term;
    std::erase_if(without.match_fields, [](const api::Requirement& r) {
      return r.key == kNameField && r.op == "In" && r.values.size() == 1;
    });
    if (without.match_fields.empty() && without.match_expressions.empty()) return std::nullopt;
    rest.push_back(std::move(without));
  }
  return rest;
}

// The models that the selector allows, where it is plain to see: a nodeSelector entry, or an In of
// the only term.
std::optional<std::vector<std::string>> ModelsOf(const api::Pod& pod) {
  if (const auto model = api::Find(pod.spec->node_selector, kGpuModelLabel)) {
    return std::vector<std::string>{std::string(*model)};
  }
  if (!pod.spec->required_node_affinity.has_value() ||
      pod.spec->required_node_affinity->size() != 1) {
    return std::nullopt;
  }
  for (const api::Requirement& r : pod.spec->required_node_affinity->front().match_expressions) {
    if (r.key == kGpuModelLabel && r.op == "In") return r.values;
  }
  return std::nullopt;
}

// Which nodes count for topology spread constraints hangs on the names in node affinity, too.
bool SpreadsByNames(const api::Pod& pod, const PodProfile& rules) {
  const auto honors = [](const api::TopologySpreadConstraint& one) {
    return one.node_affinity_policy != kIgnore;
  };
  const auto keeps_apart = [&](const api::TopologySpreadConstraint& one) {
    return one.hard() && honors(one);
  };
  return std::ranges::any_of(pod.spec->spread_constraints, honors) ||
         (rules.default_constraints &&
          std::ranges::any_of(*rules.default_constraints, keeps_apart));
}

// Selector, node names and pin of a pod.
void Select(const api::Pod& pod, const PodProfile& rules, model::Vocabulary& vocabulary,
            model::ClassSpec& spec, model::Pin& pin) {
  const Selectors selectors(vocabulary);
  model::SelectorSpec selector;
  for (const auto& label : pod.spec->node_selector) selector.all.push_back(selectors.Equals(label));
  std::optional<std::vector<api::NodeSelectorTerm>> terms = pod.spec->required_node_affinity;
  if (terms.has_value()) {
    const std::optional<std::set<std::string>> names = NamesOf(*terms);
    if (names.has_value() && names->size() == 1 && rules.asks_affinity &&
        !SpreadsByNames(pod, rules)) {
      pin.kind = model::PinKind::kAffinity;
      pin.node = selectors.Name(*names->begin());
      terms = WithoutName(*terms);
    } else if (names.has_value()) {
      std::vector<NameId> ids;
      for (const std::string& name : *names) ids.push_back(selectors.Name(name));
      spec.names = InternNames(std::move(ids), vocabulary);
    }
  }
  if (terms.has_value()) {
    selector.has_terms = true;
    for (const api::NodeSelectorTerm& term : *terms) selector.terms.push_back(selectors.Term(term));
  }
  if (!selector.all.empty() || selector.has_terms) {
    spec.selector = vocabulary.selectors.Intern(selector);
  }
  if (rules.asks_affinity && rules.added_terms) {
    model::SelectorSpec added{.has_terms = true};
    for (const api::NodeSelectorTerm& term : *rules.added_terms)
      added.terms.push_back(selectors.Term(term));
    spec.added = vocabulary.selectors.Intern(added);
  }
  std::vector<model::Preference> preferences;
  const auto prefer = [&](const std::vector<api::PreferredTerm>& terms_of) {
    for (const api::PreferredTerm& p : terms_of) {
      const bool empty = p.term.match_expressions.empty() && p.term.match_fields.empty();
      if (p.weight == 0 || empty) continue;
      const model::SelectorSpec term{.has_terms = true, .terms = {selectors.Term(p.term)}};
      preferences.push_back(
          {.term = vocabulary.selectors.Intern(term),
           .weight = static_cast<uint32_t>(std::clamp<int64_t>(p.weight, 0, 100))});
    }
  };
  prefer(pod.spec->preferred_node_affinity);
  prefer(rules.added_preferences);
  if (!preferences.empty()) spec.preferences = vocabulary.preferences.Intern(preferences);
}

// ---- Topology spread -----------------------------------------------------------------------

// Nothing of one that can't be understood: it selects no pod, as upstream.
std::optional<std::vector<model::PodRequirement>> PodRequirementsOf(
    const api::LabelSelector& selector) {
  std::vector<model::PodRequirement> requirements;
  for (const auto& [key, value] : selector.match_labels)
    requirements.push_back({.key = key, .values = {value}});
  for (const api::Requirement& r : selector.match_expressions) {
    const auto op = OpOf(r.op);
    const bool of_labels = op.has_value() && *op != model::SelectorOp::kGt &&
                           *op != model::SelectorOp::kLt && Valid(r, *op);
    if (!of_labels) return std::nullopt;
    requirements.push_back({.key = r.key, .op = *op, .values = r.values});
  }
  return requirements;
}

void Sort(std::vector<model::PodRequirement>& requirements) {
  std::ranges::sort(requirements, {},
                    [](const model::PodRequirement& r) { return std::tie(r.key, r.op, r.values); });
}

// With the pod's own values of matchLabelKeys, which the API server has put into the selector
// already if it is of 1.34 or later.
model::SpreadConstraint SpreadOf(const api::Pod& pod, const api::TopologySpreadConstraint& one,
                                 model::Vocabulary& vocabulary) {
  model::SpreadConstraint out{
      .key = vocabulary.names.Intern(one.topology_key),
      .max_skew = static_cast<uint32_t>(std::clamp<int64_t>(one.max_skew, 1, INT32_MAX)),
      .min_domains =
          static_cast<uint32_t>(std::clamp<int64_t>(one.min_domains.value_or(1), 1, INT32_MAX)),
      .hard = one.hard() ? 1u : 0u,
      .honors_affinity = one.node_affinity_policy != kIgnore ? 1u : 0u,
      .honors_taints = one.node_taints_policy == kHonor ? 1u : 0u};
  if (!one.label_selector.has_value()) return out;
  auto requirements = PodRequirementsOf(*one.label_selector);
  if (!requirements.has_value()) return out;
  for (const std::string& key : one.match_label_keys) {
    if (const auto value = api::Find(pod.meta.labels, key))
      requirements->push_back({.key = key, .values = {std::string(*value)}});
  }
  Sort(*requirements);
  const model::PodSelector selector{.namespaces = {pod.meta.namespace_name},
                                    .requirements = *std::move(requirements)};
  out.selector = vocabulary.pod_selectors.Intern(model::PodSelectorText(selector));
  out.selects_itself =
      selector.Selects(model::PodLabelsText(pod.meta.namespace_name, pod.meta.labels)) ? 1 : 0;
  return out;
}

// Those for which nothing acts are left out.
model::SpreadListId InternSpread(std::vector<model::SpreadConstraint> constraints,
                                 const PodProfile& rules, model::Vocabulary& vocabulary) {
  std::erase_if(constraints, [&](const model::SpreadConstraint& one) {
    return one.hard != 0 ? !rules.asks_spread : !rules.scores_spread;
  });
  return constraints.empty() ? model::SpreadListId{} : vocabulary.spreads.Intern(constraints);
}

model::SpreadListId InternSpread(const api::Pod& pod, const PodProfile& rules,
                                 model::Vocabulary& vocabulary) {
  // The class of a bound pod decides nothing any more.
  if (pod.spec->spread_constraints.empty() || !pod.node_name.empty()) return {};
  std::vector<model::SpreadConstraint> constraints;
  for (const api::TopologySpreadConstraint& one : pod.spec->spread_constraints)
    constraints.push_back(SpreadOf(pod, one, vocabulary));
  return InternSpread(std::move(constraints), rules, vocabulary);
}

// ---- Pod affinity ----------------------------------------------------------------------------

// The pods that a term selects; nothing: none, as of one without a selector, or that can't be
// understood.
std::optional<model::PodSelector> SelectorOf(const api::Pod& pod,
                                             const api::PodAffinityTerm& term) {
  if (!term.label_selector.has_value()) return std::nullopt;
  auto requirements = PodRequirementsOf(*term.label_selector);
  if (!requirements.has_value()) return std::nullopt;
  Sort(*requirements);
  model::PodSelector selector{.namespaces = term.namespaces,
                              .requirements = *std::move(requirements)};
  if (term.namespace_selector.has_value()) {
    selector.of_namespace = PodRequirementsOf(*term.namespace_selector);
    if (!selector.of_namespace.has_value()) return std::nullopt;
    Sort(*selector.of_namespace);
  } else if (term.namespaces.empty()) {
    selector.namespaces = {pod.meta.namespace_name};
  }
  std::ranges::sort(selector.namespaces);
  const auto repeated = std::ranges::unique(selector.namespaces);
  selector.namespaces.erase(repeated.begin(), repeated.end());
  return selector;
}

// The pods that a term selects while the pod itself comes. As upstream, which asks their namespaces
// for no labels then: all that the selector of namespaces takes without any.
void AsOfIncoming(std::optional<model::PodSelector>& selector) {
  if (selector.has_value() && selector->of_namespace.has_value() &&
      model::MeetsAll(*selector->of_namespace, {}))
    selector->of_namespace->clear();
}

model::AffinityListId InternAffinity(const api::Pod& pod, model::Vocabulary& vocabulary) {
  using enum model::AffinityKind;
  const api::PodAffinity& with = pod.spec->pod_affinity;
  const api::PodAffinity& against = pod.spec->pod_anti_affinity;
  if (with.empty() && against.empty()) return {};
  std::vector<model::AffinityTerm> terms;
  const auto intern = [&](const std::optional<model::PodSelector>& selector) {
    return selector.has_value() ? vocabulary.pod_selectors.Intern(model::PodSelectorText(*selector))
                                : model::PodSelectorId{};
  };
  const auto add = [&](const api::PodAffinityTerm& term, model::AffinityKind kind, int64_t weight) {
    std::optional<model::PodSelector> selector = SelectorOf(pod, term);
    terms.push_back({.selector = intern(selector),
                     .key = vocabulary.names.Intern(term.topology_key),
                     .kind = kind,
                     .weight = static_cast<uint32_t>(std::clamp<int64_t>(weight, 0, 100))});
    // Of required ones all count together.
    if (kind == kRequired) return;
    AsOfIncoming(selector);
    terms.back().counted = intern(selector);
  };
  for (const api::PodAffinityTerm& term : with.required) add(term, kRequired, 0);
  for (const api::PodAffinityTerm& term : against.required) add(term, kRequiredAnti, 0);
  for (const auto& [weight, term] : with.preferred) add(term, kPreferred, weight);
  for (const auto& [weight, term] : against.preferred) add(term, kPreferredAnti, weight);
  if (with.required.empty()) return vocabulary.affinities.Intern(terms);
  std::optional<model::PodSelector> all = SelectorOf(pod, with.required.front());
  AsOfIncoming(all);
  std::set<std::string> met;
  if (all.has_value()) met.insert(model::PodSelectorText(*all));
  for (size_t i = 1; i < with.required.size() && all.has_value(); ++i) {
    std::optional<model::PodSelector> other = SelectorOf(pod, with.required[i]);
    AsOfIncoming(other);
    if (!other.has_value()) {
      all.reset();
    } else if (met.insert(model::PodSelectorText(*other)).second) {
      all->also.push_back(*std::move(other));
    }
  }
  terms.push_back({.selector = intern(all), .key = {}, .kind = kAllRequired, .weight = 0});
  return vocabulary.affinities.Intern(terms);
}

// ---- Images --------------------------------------------------------------------------------

// As nodes call it: with a tag.
std::string WithTag(const std::string& image) {
  const size_t colon = image.rfind(':');
  const size_t slash = image.rfind('/');
  const bool tagged = colon != std::string::npos && (slash == std::string::npos || colon > slash);
  return tagged ? image : image + ":latest";
}

void InternImages(const api::PodSpec& pod, model::Vocabulary& vocabulary, model::ClassSpec& spec) {
  std::vector<NameId> images;
  const auto add = [&](const std::string& image) {
    if (!image.empty()) images.push_back(vocabulary.names.Intern(WithTag(image)));
  };
  for (const api::Container& container : pod.init_containers) add(container.image);
  for (const api::Container& container : pod.containers) add(container.image);
  for (const std::string& image : pod.image_volumes) add(image);
  if (images.empty()) return;
  std::ranges::sort(images);
  spec.images = vocabulary.name_lists.Intern(images);
  spec.containers_count = static_cast<uint32_t>(
      std::max<size_t>(pod.init_containers.size() + pod.containers.size(), 1));
}

// ---- Volumes -------------------------------------------------------------------------------

// A disk of several monitors stands once for each: two are one where they share one.
void AddDisk(const api::PodVolume& volume, model::Vocabulary& vocabulary,
             std::vector<model::PodVolume>& out) {
  model::PodVolume item{.read_only = volume.read_only ? 1u : 0u};
  if (volume.source == "gcePersistentDisk") item.kind = model::VolumeKind::kGcePd;
  if (volume.source == "awsElasticBlockStore") item.kind = model::VolumeKind::kEbs;
  if (volume.source == "iscsi") item.kind = model::VolumeKind::kIscsi;
  if (volume.source == "rbd") item.kind = model::VolumeKind::kRbd;
  if (item.kind != model::VolumeKind::kRbd) {
    item.name = vocabulary.names.Intern(volume.id);
    out.push_back(item);
    return;
  }
  item.name = vocabulary.names.Intern(volume.id);
  for (const std::string& monitor : volume.monitors) {
    item.volume = vocabulary.names.Intern(monitor);
    out.push_back(item);
  }
}

model::VolumeListId InternVolumes(const api::Pod& pod, model::Vocabulary& vocabulary) {
  std::vector<model::PodVolume> volumes;
  for (const api::PodVolume& volume : pod.spec->volumes) {
    const bool own = volume.source == "ephemeral";
    if (!own && volume.source != "persistentVolumeClaim") {
      AddDisk(volume, vocabulary, volumes);
      continue;
    }
    const std::string claim = own ? fmt::format("{}-{}", pod.meta.name, volume.name) : volume.id;
    model::PodVolume& item = volumes.emplace_back();
    item.name = vocabulary.names.Intern(fmt::format("{}/{}", pod.meta.namespace_name, claim));
    if (!own) continue;
    item.kind = model::VolumeKind::kOwnClaim;
    item.volume = vocabulary.names.Intern(volume.name);
    item.pod = vocabulary.names.Intern(pod.meta.uid);
  }
  return volumes.empty() ? model::VolumeListId{} : vocabulary.volume_lists.Intern(volumes);
}

// ---- Features ------------------------------------------------------------------------------

model::NameListId InternFeatures(const api::Pod& pod, model::Vocabulary& vocabulary) {
  std::vector<NameId> features;
  const auto restarts_all = [](const api::Container& c) { return c.restarts_all; };
  if (std::ranges::any_of(pod.spec->containers, restarts_all) ||
      std::ranges::any_of(pod.spec->init_containers, restarts_all)) {
    features.push_back(vocabulary.names.Intern(kRestartAllFeature));
  }
  if (pod.spec->host_network && pod.spec->host_users == false) {
    features.push_back(vocabulary.names.Intern(kUserNamespaceHostNetworkFeature));
  }
  return features.empty() ? model::NameListId{} : InternNames(std::move(features), vocabulary);
}

// ---- Devices -------------------------------------------------------------------------------

// The devices of a bound pod. An annotation that can't be read says nothing: the pod's milli are
// charged without devices.
model::DeviceSlots DevicesOf(const api::Pod& pod, const model::GpuDemand& gpu) {
  if (gpu.none()) return {};
  const auto text = api::Find(pod.meta.annotations, kGpuIndexAnnotation);
  const uint16_t mask = text.has_value() ? ParseDevices(*text).value_or(0) : uint16_t{0};
  if (mask == 0) return {};
  const uint32_t each = gpu.share_milli > 0 ? gpu.share_milli : uint32_t{model::kDeviceMilli};
  return {.mask = mask, .milli_each = static_cast<uint16_t>(each)};
}

struct ClassAndPin {
  model::ClassSpec spec;
  model::Pin pin;
};

struct Demands {
  api::ResourceList pending;
  api::ResourceList charge;
  model::GpuDemand gpu;
};

// All that may fail about a pod; interns nothing.
Result<Demands> DemandsOf(const api::Pod& pod, const model::Vocabulary& vocabulary,
                          std::vector<std::string>* left_out) {
  const bool bound = !pod.node_name.empty();
  if (!bound) {
    if (std::string why = WhyBeyond(*pod.spec); !why.empty())
      return Fail(ErrorCode::kTooLarge, std::move(why));
  }
  const api::ResourceList requests = api::PendingRequests(pod);
  const Result<model::GpuDemand> gpu = GpuDemandOf(requests);
  if (!gpu) return std::unexpected(gpu.error());
  // The class of a bound pod decides nothing any more: what its charge lacks is enough to tell.
  Holdable holdable(vocabulary.resources, left_out);
  Result<api::ResourceList> charge = holdable.Of(api::BoundRequests(pod), bound);
  if (!charge) return std::unexpected(charge.error());
  Result<api::ResourceList> pending = holdable.Of(requests, bound);
  if (!pending) return std::unexpected(pending.error());
  return Demands{.pending = std::move(*pending), .charge = std::move(*charge), .gpu = *gpu};
}

ClassAndPin Classify(const api::Pod& pod, const Demands& demands, const PodProfile& rules,
                     model::Vocabulary& vocabulary) {
  ClassAndPin out;
  model::ClassSpec& spec = out.spec;
  spec.gpu = demands.gpu;
  spec.requests =
      InternRequests(demands.pending, HostPortsOf(*pod.spec, vocabulary), rules, vocabulary);
  spec.scoring = InternScoring(api::PendingScoring(pod), vocabulary);
  Select(pod, rules, vocabulary, spec, out.pin);
  spec.tolerations = InternTolerations(pod.spec->tolerations, vocabulary);
  spec.spread = InternSpread(pod, rules, vocabulary);
  spec.affinity = InternAffinity(pod, vocabulary);
  if (rules.asks_features) spec.features = InternFeatures(pod, vocabulary);
  InternImages(*pod.spec, vocabulary, spec);
  out.pin.volumes = InternVolumes(pod, vocabulary);
  if (const auto models = ModelsOf(pod); models.has_value() && !spec.gpu.none()) {
    std::vector<NameId> ids;
    for (const std::string& name : *models) ids.push_back(vocabulary.names.Intern(name));
    spec.models = InternNames(std::move(ids), vocabulary);
  }
  spec.profile = vocabulary.names.Intern(pod.spec->scheduler_name);
  return out;
}

Result<SpecFacts> SpecFactsOf(const api::Pod& pod, const PodProfile& rules,
                              model::Vocabulary& vocabulary, std::vector<std::string>* left_out) {
  if (!pod.node_name.empty() && !WhyBeyond(*pod.spec).empty()) {
    api::Pod within = pod;
    within.spec = Shared(Within(*pod.spec));
    return SpecFactsOf(within, rules, vocabulary, left_out);
  }
  const Result<Demands> demands = DemandsOf(pod, vocabulary, left_out);
  if (!demands) return std::unexpected(demands.error());
  const ClassAndPin classified = Classify(pod, *demands, rules, vocabulary);
  return SpecFacts{
      .class_id = vocabulary.classes.Intern(classified.spec),
      .charge =
          InternRequests(demands->charge, HostPortsOf(*pod.spec, vocabulary), rules, vocabulary),
      .charge_scoring = InternScoring(api::BoundScoring(pod), vocabulary),
      .pin = classified.pin,
      .gpu = classified.spec.gpu,
  };
}

// Whether the spec says all: no container says what it has in truth, which counts beside what it
// asks for, and nothing hangs on the pod's own labels or name.
bool FollowFromSpec(const api::Pod& pod) {
  const bool by_labels = !pod.spec->spread_constraints.empty() || !pod.spec->pod_affinity.empty() ||
                         !pod.spec->pod_anti_affinity.empty();
  if (by_labels) return false;
  // Claims are of the pod's namespace, or its own.
  if (!pod.spec->claims.empty() || !pod.spec->ephemeral_volumes.empty()) return false;
  const auto says = [](const api::ContainerStatus& status) { return status.actual.has_value(); };
  return !pod.pod_actual.has_value() && std::ranges::none_of(pod.container_statuses, says) &&
         std::ranges::none_of(pod.init_container_statuses, says);
}

bool IsPreempted(const api::PodCondition& c) {
  return c.type == kDisruptionCondition && c.status == "True" && c.reason == kPreemptedReason;
}

// Groups are of the pod's namespace.
std::string GroupKeyOf(const api::Pod& pod) {
  const std::string name = api::GroupOf(pod);
  return name.empty() ? name : fmt::format("{}/{}", pod.meta.namespace_name, name);
}

NameId PodSetOf(const api::ObjectMeta& meta, model::Vocabulary& vocabulary) {
  const auto name = api::Find(meta.labels, api::kPodSetLabel);
  return name && !name->empty() ? vocabulary.names.Intern(*name) : NameId{};
}

}  // namespace

model::SelectorTerm SelectorTermOf(const api::NodeSelectorTerm& term,
                                   model::Vocabulary& vocabulary) {
  return Selectors(vocabulary).Term(term);
}

int32_t PriorityOf(int64_t priority) {
  return static_cast<int32_t>(std::clamp<int64_t>(priority, std::numeric_limits<int32_t>::min(),
                                                  std::numeric_limits<int32_t>::max()));
}

bool Preempts(const api::PodSpec& spec) { return spec.preemption_policy != kNeverPreempts; }

namespace {

model::PodUpsert WithSpec(const api::Pod& pod, const SpecFacts& facts,
                          model::Vocabulary& vocabulary) {
  return {
      .uid = pod.meta.uid,
      .key = KeyOf(pod.meta),
      .class_id = facts.class_id,
      .charge = facts.charge,
      .charge_scoring = facts.charge_scoring,
      .pin = facts.pin,
      .node = pod.node_name,
      .nominated = pod.nominated_node_name,
      .labels = model::PodLabelsText(pod.meta.namespace_name, pod.meta.labels),
      .group = GroupKeyOf(pod),
      .role = RoleOf(pod.meta.annotations, pod.meta.labels, vocabulary),
      .job = JobOf(pod.meta),
      .pod_set = PodSetOf(pod.meta, vocabulary),
      .creation = pod.meta.creation_time,
      .start = pod.start_time,
      .deletion_deadline = pod.meta.deletion_time.value_or(Instant{}),
      .priority = PriorityOf(pod.spec->priority),
      .devices = pod.node_name.empty() ? model::DeviceSlots{} : DevicesOf(pod, facts.gpu),
      .gated = !pod.spec->scheduling_gates.empty(),
      .terminating = pod.meta.deletion_time.has_value(),
      .terminal = pod.phase == "Succeeded" || pod.phase == "Failed",
      .succeeded = pod.phase == "Succeeded",
      .preempts = Preempts(*pod.spec),
      .disrupted = std::ranges::any_of(pod.conditions, IsPreempted),
  };
}

}  // namespace

namespace {

Result<int64_t> MinResource(std::string_view name, std::string_view text) {
  return api::ParseScaled(text, name == api::kCpuName ? -3 : 0);
}

// What is no amount asks for nothing, nor do kinds that there is no more room for.
model::BundleId MinResourcesOf(const api::PodGroup& group, model::Vocabulary& vocabulary) {
  std::vector<model::ResourceAmount> amounts;
  for (const auto& [name, text] : group.min_resources) {
    const Result<int64_t> amount = MinResource(name, text);
    const bool room = vocabulary.resources.Find(name).valid() ||
                      vocabulary.resources.size() < limits::kResourceKindsOfPodsMax;
    if (!amount || !room) continue;
    amounts.push_back(
        {*vocabulary.resources.Intern(name), std::clamp(*amount, int64_t{0}, limits::kAmountMax)});
  }
  return amounts.empty() ? model::BundleId{} : vocabulary.bundles.Intern(amounts);
}

}  // namespace

api::StringMap BeyondBounds(const api::PodGroup& group) {
  api::StringMap beyond;
  for (const auto& [name, text] : group.min_resources) {
    const Result<int64_t> amount = MinResource(name, text);
    if (amount && *amount > limits::kAmountMax) beyond.emplace_back(name, text);
  }
  return beyond;
}

model::GroupUpsert GroupFacts(const api::PodGroup& group, std::optional<int32_t> priority,
                              model::Vocabulary& vocabulary) {
  const auto count = [](int64_t n) {
    return static_cast<int32_t>(std::clamp<int64_t>(n, 0, INT32_MAX));
  };
  model::GroupUpsert facts{.uid = group.meta.uid,
                           .key = KeyOf(group.meta),
                           .min_member = count(group.min_member),
                           .priority = priority,
                           .creation = group.meta.creation_time,
                           .min_resources = MinResourcesOf(group, vocabulary)};
  facts.queue = QueueOf(group);
  for (const auto& [role, needed] : group.min_task_member) {
    if (needed <= 0) continue;
    // That of members that say none.
    const NameId name = role.empty() ? NameId{} : vocabulary.names.Intern(role);
    facts.min_of_roles.push_back({.role = name, .count = count(needed)});
  }
  for (const model::GroupPhase phase :
       {model::GroupPhase::kInqueue, model::GroupPhase::kRunning, model::GroupPhase::kUnknown,
        model::GroupPhase::kCompleted}) {
    if (group.phase == model::ToString(phase)) facts.phase = phase;
  }
  return facts;
}

std::string JobOf(const api::ObjectMeta& meta) {
  const std::string_view uid = api::JobUidOf(meta.owners, meta.labels);
  return uid.empty() ? std::string() : fmt::format("{}/{}", meta.namespace_name, uid);
}

std::optional<uint16_t> ParseDevices(std::string_view text) {
  uint16_t mask = 0;
  while (!text.empty()) {
    uint32_t device = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), device);
    if (error != std::errc() || device >= model::kDevicesMax) return std::nullopt;
    mask = static_cast<uint16_t>(mask | (1u << device));
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty()) break;
    if (text.front() != ',' || text.size() == 1) return std::nullopt;
    text.remove_prefix(1);
  }
  return mask;
}

Result<model::ClassSpec> ClassOf(const api::Pod& pod, model::Vocabulary& vocabulary) {
  const Result<Demands> demands = DemandsOf(pod, vocabulary, nullptr);
  if (!demands) return std::unexpected(demands.error());
  return Classify(pod, *demands, {}, vocabulary).spec;
}

Result<model::PodUpsert> PodFacts(const api::Pod& pod, model::Vocabulary& vocabulary,
                                  std::vector<std::string>* left_out, const PodProfile& rules) {
  const Result<SpecFacts> facts = SpecFactsOf(pod, rules, vocabulary, left_out);
  if (!facts) return std::unexpected(facts.error());
  return WithSpec(pod, *facts, vocabulary);
}

PodTranslator& PodTranslator::operator=(const PodTranslator& other) {
  if (this == &other) return *this;
  rules_ = other.rules_;
  known_.clear();
  oldest_ = 0;
  return *this;
}

const PodProfile& PodTranslator::RulesOf(const api::Pod& pod) const {
  if (rules_.empty()) return usual_;
  const auto at = rules_.find(pod.spec->scheduler_name);
  return at != rules_.end() ? at->second : usual_;
}

namespace {

void GiveSpread(std::vector<model::SpreadConstraint> constraints, const PodProfile& rules,
                model::Vocabulary& vocabulary, model::PodUpsert& facts) {
  model::ClassSpec spec = vocabulary.classes.at(facts.class_id);
  spec.spread = InternSpread(std::move(constraints), rules, vocabulary);
  facts.class_id = vocabulary.classes.Intern(spec);
}

}  // namespace

void SpreadByDefault(const api::Pod& pod, const api::LabelSelector& selector,
                     model::Vocabulary& vocabulary, model::PodUpsert& facts,
                     const PodProfile& rules) {
  constexpr std::pair<std::string_view, int64_t> kSkews[] = {{"kubernetes.io/hostname", 3},
                                                             {"topology.kubernetes.io/zone", 5}};
  std::vector<model::SpreadConstraint> constraints;
  if (rules.default_constraints) {
    for (api::TopologySpreadConstraint one : *rules.default_constraints) {
      one.label_selector = selector;
      // As upstream, where the selector takes their place.
      one.match_label_keys.clear();
      constraints.push_back(SpreadOf(pod, one, vocabulary));
    }
    return GiveSpread(std::move(constraints), rules, vocabulary, facts);
  }
  for (const auto& [key, skew] : kSkews) {
    constraints.push_back(SpreadOf(pod,
                                   {.max_skew = skew,
                                    .topology_key = std::string(key),
                                    .when_unsatisfiable = "ScheduleAnyway",
                                    .label_selector = selector},
                                   vocabulary));
    constraints.back().by_default = 1;
  }
  GiveSpread(std::move(constraints), rules, vocabulary, facts);
}

Result<model::PodUpsert> PodTranslator::Facts(const api::Pod& pod, model::Vocabulary& vocabulary,
                                              std::vector<std::string>* left_out) {
  const PodProfile& rules = RulesOf(pod);
  if (!FollowFromSpec(pod)) return PodFacts(pod, vocabulary, left_out, rules);
  const auto known =
      std::ranges::find_if(known_, [&](const auto& entry) { return entry.first.Is(pod.spec); });
  if (known != known_.end()) return WithSpec(pod, known->second, vocabulary);
  std::vector<std::string> left;
  const Result<SpecFacts> facts = SpecFactsOf(pod, rules, vocabulary, &left);
  if (!facts) return std::unexpected(facts.error());
  if (!left.empty()) {
    // A pod of the same spec that has no node yet would be refused.
    if (left_out != nullptr) left_out->insert(left_out->end(), left.begin(), left.end());
  } else if (known_.size() < kSpecsMax) {
    known_.emplace_back(pod.spec, *facts);
  } else {
    known_[oldest_] = {pod.spec, *facts};
    oldest_ = (oldest_ + 1) % kSpecsMax;
  }
  return WithSpec(pod, *facts, vocabulary);
}

model::NodeUpsert NodeFacts(const api::Node& node, model::Vocabulary& vocabulary,
                            std::vector<std::string>* left_out) {
  model::NodeUpsert facts{.name = node.meta.name,
                          .uid = node.meta.uid,
                          .allocatable = InternOffers(node.allocatable, vocabulary, left_out),
                          .labels = LabelsOf(node.meta.labels, vocabulary),
                          .taints = TaintsOf(node.taints, vocabulary),
                          .unschedulable = node.unschedulable};
  facts.ready = std::ranges::none_of(node.conditions, [](const api::NodeCondition& condition) {
    return condition.type == "Ready" && condition.status != "True";
  });
  for (const std::string& feature : node.declared_features) {
    facts.features.push_back(vocabulary.names.Intern(feature));
  }
  for (const api::NodeImage& image : node.images) {
    const auto size = std::clamp(image.size, -limits::kAmountMax, limits::kAmountMax);
    for (const std::string& name : image.names) {
      if (facts.images.size() == limits::kNodeImagesMax) break;
      facts.images.push_back({.name = vocabulary.names.Intern(name), .size = size});
    }
  }
  if (const auto model = api::Find(node.meta.labels, kGpuModelLabel)) {
    facts.gpu_model = vocabulary.names.Intern(*model);
  }
  return facts;
}

model::BudgetUpsert BudgetFacts(const api::PodDisruptionBudget& budget) {
  model::BudgetUpsert facts{
      .key = KeyOf(budget.meta), .uid = budget.meta.uid, .allowed = budget.disruptions_allowed};
  for (const api::DisruptedPod& pod : budget.disrupted_pods) facts.disrupted.push_back(pod.name);
  if (!budget.selector.has_value()) return facts;
  facts.selector = PodRequirementsOf(*budget.selector).value_or(decltype(facts.selector)());
  // To be safe, all pods of its namespace: none has a label without a key.
  if (IsBeyond(*budget.selector))
    facts.selector = {{.key = "", .op = model::SelectorOp::kDoesNotExist}};
  return facts;
}

NameId RoleOf(const api::StringMap& annotations, const api::StringMap& labels,
              model::Vocabulary& vocabulary) {
  auto role = api::Find(annotations, kRoleKey);
  if (!role) role = api::Find(labels, kRoleKey);
  return role && !role->empty() ? vocabulary.names.Intern(*role) : NameId{};
}

}  // namespace berth::translate
