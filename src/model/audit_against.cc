#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <tuple>

#include "model/audit.h"
#include "model/state.h"

namespace berth::model {
namespace {

// What one state believes, in words that don't depend on its ids: names in place of them, and lists
// whose order means nothing in the order of their words.
class Teller {
 public:
  explicit Teller(const State& state)
      : state_(state), classes_(state.vocabulary().classes.size()) {}

  [[nodiscard]] std::string NodeText(NodeId n) const {
    std::vector<std::string> parts;
    for (uint32_t i = 0; i < state_.ledger().nodes().resources(); ++i) {
      const Amount capacity = state_.ledger().nodes().capacity(ResourceId{i}, n.value);
      if (capacity == 0) continue;
      parts.push_back(
          fmt::format("{}={}", state_.vocabulary().resources.Name(ResourceId{i}), capacity));
    }
    for (const Label& label : state_.labels().View(state_.nodes().labels(n))) {
      parts.push_back(fmt::format("label {}={}", Name(label.key), Name(label.value)));
    }
    for (const NameId feature : state_.vocabulary().name_lists.View(state_.nodes().features(n))) {
      parts.push_back(fmt::format("feature {}", Name(feature)));
    }
    for (const NodeImage& image : state_.images().Of(n))
      parts.push_back(fmt::format("image {}={}", Name(image.name), image.size));
    std::ranges::sort(parts);
    parts.push_back(fmt::format("taints [{}]", Taints(state_.nodes().taints(n))));
    return fmt::format("uid {}, unschedulable {}, ready {}, model '{}', {}",
                       state_.UidOf(state_.nodes().uid(n)), state_.nodes().unschedulable(n),
                       state_.nodes().ready(n), Name(state_.nodes().gpu_model(n)),
                       fmt::join(parts, ", "));
  }

  // Beside its claim.
  [[nodiscard]] std::string PodText(PodId id) {
    const Pod& pod = state_.pods().at(id);
    return fmt::format(
        "{} on '{}', created {}, nominated to '{}', pinned {} to '{}', volumes ({}), priority {}, "
        "ours {}, gated "
        "{}, terminating {} until {}, terminal {}, preempts {}, disrupted {}, started {}, labels "
        "({}), "
        "of group '{}' as '{}', succeeded {}, charges {}, scored as {}, {}",
        state_.KeyOf(pod.key), Name(pod.node), pod.creation.ns, Name(pod.nominated),
        static_cast<int>(pod.pin.kind), Name(pod.pin.node), Volumes(pod.pin.volumes), pod.priority,
        pod.ours, pod.gated, pod.terminating, pod.deletion_deadline.ns, pod.terminal, pod.preempts,
        pod.disrupted, pod.start.ns, Labels(pod.labels),
        pod.group.valid() ? state_.KeyOf(pod.group) : "", Name(pod.role), pod.succeeded,
        Amounts(pod.charge), Amounts(pod.charge_scoring), ClassText(pod.class_id));
  }

  [[nodiscard]] std::string Volumes(VolumeListId list) const {
    std::string text;
    if (!list.valid()) return text;
    for (const PodVolume& volume : state_.vocabulary().volume_lists.View(list)) {
      text += fmt::format("{} {}{};", static_cast<int>(volume.kind), Name(volume.name),
                          volume.read_only != 0 ? " read-only" : "");
    }
    return text;
  }

  [[nodiscard]] std::string Charges(PodId id) const {
    const ClaimId claim_id = state_.ClaimOf(id);
    if (!claim_id.valid()) return "nothing";
    const Claim& claim = state_.ledger().claim(claim_id);
    std::string text =
        fmt::format("{} on {}: {}", static_cast<int>(claim.state),
                    Name(state_.nodes().name(claim.account.node())), Amounts(claim.bundle));
    // Which devices were promised is not to be seen in the object.
    if (!claim.devices.none() && claim.state != ClaimState::kReserved) {
      text += fmt::format(" devices {:x} of {}", claim.devices.mask, claim.devices.milli_each);
    }
    return text;
  }

  [[nodiscard]] std::string_view Name(NameId id) const {
    return id.valid() ? state_.NameOf(id) : std::string_view();
  }

  // In their order.
  [[nodiscard]] std::string List(std::span<const NameId> names) const {
    std::vector<std::string_view> parts;
    for (const NameId name : names) parts.push_back(Name(name));
    return fmt::format("[{}]", fmt::join(parts, " "));
  }

  [[nodiscard]] std::string FlavorText(const Flavor& flavor) const {
    std::vector<std::string> labels;
    for (const Label& label : flavor.labels)
      labels.push_back(fmt::format("{}={}", Name(label.key), Name(label.value)));
    std::ranges::sort(labels);
    return fmt::format("uid {}, labels [{}], taints [{}], tolerates ({}), topology '{}'",
                       flavor.uid, fmt::join(labels, " "), Taints(flavor.taints),
                       Tolerations(flavor.tolerations), Name(flavor.topology));
  }

  // What its object tells.
  [[nodiscard]] std::string WorkloadText(const Workload& row) {
    const WorkloadStatus& s = row.status;
    return fmt::format(
        "{} in {}, job '{}', generation {}, priority {} of '{}', created {}, active {}, finished "
        "{}, reserved {} at {}, "
        "admitted {}, on hold {}, evicted for {} at {}, held back {} until {}, checks [{}] ready "
        "{} "
        "pending {}, awaits topology {}, unhealthy {} ({}), asks [{}], has [{}]",
        state_.KeyOf(row.key), state_.KeyOf(row.local_queue),
        row.job.valid() ? state_.UidOf(row.job) : "", row.generation, row.priority,
        Name(row.priority_class), s.created.ns, s.active, s.finished, s.reserved,
        s.reserved ? s.reserved_at.ns : 0, s.admitted, s.on_hold, static_cast<int>(s.evicted_for),
        s.evicted_at.ns, s.held_back, s.requeue_at.ns, List(row.checks), s.checks_ready,
        row.checks_pending, s.awaits_topology, List(row.unhealthy), s.on_unhealthy_node,
        SlotsText(row), ReservationText(row.reserved));
  }

 private:
  [[nodiscard]] std::string Taints(TaintListId list) const {
    std::vector<std::string> parts;
    if (!list.valid()) return "";
    for (const Taint& taint : state_.vocabulary().taints.View(list)) {
      parts.push_back(fmt::format("{}={}:{}", Name(taint.key), Name(taint.value),
                                  static_cast<int>(taint.effect)));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  [[nodiscard]] std::string SlotsText(const Workload& row) {
    std::vector<std::string> parts;
    for (const WorkloadSlots& set : row.slots) {
      const TopologyWish& wish = set.topology;
      std::vector<std::string> slices;
      for (const SliceWish& slice : wish.slices)
        slices.push_back(fmt::format("{}:{}", Name(slice.level), slice.size));
      parts.push_back(fmt::format(
          "{}: {} less {}, {} done, ours {}, priority {}, preempts {}, unsupported '{}', in '{}' "
          "as '{}', "
          "topology {} '{}' "
          "'{}' '{}' ({}), {}",
          Name(set.name), set.count, set.missing_max, set.done, set.ours, set.priority,
          set.preempts, Name(set.unsupported), Name(set.gang), Name(set.role), wish.asked,
          Name(wish.required), Name(wish.preferred), Name(wish.group), fmt::join(slices, " "),
          ClassText(set.class_id)));
    }
    return fmt::format("{}", fmt::join(parts, "; "));
  }

  [[nodiscard]] std::string ReservationText(const Reservation& has) const {
    std::vector<std::string> parts = {fmt::format("of '{}'", Name(has.cluster_queue))};
    for (const QuotaCharge& charge : has.charges) {
      parts.push_back(fmt::format("{}: {} of {} by {}", charge.pod_set, charge.count,
                                  Name(charge.flavor), Amounts(charge.amounts)));
    }
    for (const uint32_t count : has.counts) parts.push_back(fmt::format("{} pods", count));
    for (const Slot& slot : has.slots) {
      parts.push_back(
          fmt::format("{} on {} with {:x}", slot.pod_set, Name(slot.node), slot.devices.mask));
    }
    for (const TopologyPlaces& places : has.topologies) {
      std::string text = fmt::format("{} by {}:", places.pod_set, List(places.levels));
      for (const TopologyShare& share : places.shares)
        text += fmt::format(" {} in {}", share.count, List(share.values));
      parts.push_back(std::move(text));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  [[nodiscard]] std::string Amounts(BundleId bundle) const {
    if (!bundle.valid()) return "nothing";
    std::vector<std::string> parts;
    for (const ResourceAmount& a : state_.vocabulary().bundles.View(bundle)) {
      parts.push_back(
          fmt::format("{}={}", state_.vocabulary().resources.Name(a.resource), a.amount));
    }
    std::ranges::sort(parts);
    return fmt::format("{}", fmt::join(parts, " "));
  }

  [[nodiscard]] std::string Labels(PodLabelsId labels) const {
    std::string text(state_.budgets().LabelsText(labels));
    std::ranges::replace(text, '\0', ' ');
    return text;
  }

  // "any" for an invalid list, which is not the same as an empty one.
  [[nodiscard]] std::string Names(NameListId list) const {
    if (!list.valid()) return "any";
    std::vector<std::string_view> parts;
    for (const NameId name : state_.vocabulary().name_lists.View(list)) parts.push_back(Name(name));
    std::ranges::sort(parts);
    return fmt::format("[{}]", fmt::join(parts, " "));
  }

  [[nodiscard]] std::string Requirements(const std::vector<Requirement>& list) const {
    std::vector<std::string> parts;
    for (const Requirement& r : list) {
      std::vector<std::string_view> values;
      for (const NameId value : r.values) values.push_back(Name(value));
      std::ranges::sort(values);
      parts.push_back(fmt::format("{} {} ({})", r.field ? "metadata.name" : Name(r.key),
                                  static_cast<int>(r.op), fmt::join(values, " ")));
    }
    std::ranges::sort(parts);
    return fmt::format("{}", fmt::join(parts, " and "));
  }

  [[nodiscard]] std::string Selector(SelectorId id) const {
    if (!id.valid()) return "any";
    const SelectorSpec spec = state_.vocabulary().selectors.At(id);
    std::vector<std::string> terms;
    for (const SelectorTerm& term : spec.terms) {
      terms.push_back((term.never ? "never " : "") + Requirements(term.requirements));
    }
    return fmt::format("[{}]{} [{}]", Requirements(spec.all), spec.has_terms ? " and one of" : "",
                       fmt::join(terms, " or "));
  }

  [[nodiscard]] std::string Tolerations(TolerationListId id) const {
    std::vector<std::string> parts;
    if (!id.valid()) return "";
    for (const Toleration& t : state_.vocabulary().tolerations.View(id)) {
      parts.push_back(fmt::format("'{}' {} '{}':{}", t.key.valid() ? Name(t.key) : "*",
                                  static_cast<int>(t.op), Name(t.value), t.effect));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  [[nodiscard]] std::string Preferences(PreferenceListId id) const {
    std::vector<std::string> parts;
    if (!id.valid()) return "";
    for (const Preference& p : state_.vocabulary().preferences.View(id)) {
      parts.push_back(fmt::format("{} for {}", p.weight, Selector(p.term)));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  // Many pods are of one class.
  const std::string& ClassText(ClassId id) {
    std::string& text = classes_[id.value];
    if (!text.empty()) return text;
    const ClassSpec& spec = state_.vocabulary().classes.at(id);
    text = fmt::format(
        "asks {}, scored {}, on {}, of names {}, of models {}, with features {}, tolerates ({}), "
        "prefers ({}), of images {} in {} containers, {} devices and {} milli, for '{}' on {} at "
        "least {}",
        Amounts(spec.requests), Amounts(spec.scoring), Selector(spec.selector), Names(spec.names),
        Names(spec.models), Names(spec.features), Tolerations(spec.tolerations),
        Preferences(spec.preferences), Names(spec.images), spec.containers_count,
        spec.gpu.devices_count, spec.gpu.share_milli, Name(spec.profile), Selector(spec.added),
        Amounts(state_.vocabulary().bundles.Asked(spec.requests)));
    return text;
  }

  const State& state_;
  std::vector<std::string> classes_;  // By ClassId; empty until asked for.
};

std::map<std::string_view, PodId> PodsByUid(const State& state) {
  std::map<std::string_view, PodId> map;
  for (uint32_t i = 0; i < state.pods().size(); ++i) {
    if (state.pods().used(PodId{i})) map[state.UidOf(state.pods().at(PodId{i}).uid)] = PodId{i};
  }
  return map;
}

void ComparePods(const State& live, const State& rebuilt, std::vector<std::string>& found) {
  Teller here(live);
  Teller there(rebuilt);
  const auto live_pods = PodsByUid(live);
  const auto rebuilt_pods = PodsByUid(rebuilt);
  for (const auto& [uid, id] : live_pods) {
    const auto other = rebuilt_pods.find(uid);
    if (other == rebuilt_pods.end()) {
      found.push_back(fmt::format("pod {}: known, but there is no such object", uid));
      continue;
    }
    const Pod& pod = live.pods().at(id);
    const bool decided = pod.write != WriteStage::kNone && !pod.node.valid();
    const std::string kept = here.Charges(id);
    const std::string told = there.Charges(other->second);
    // What a preemption decided is not to be seen in the objects yet; that a nomination is void
    // never is. Of a place that its workload has, the workload's object tells.
    const bool remembered = pod.void_node.valid() || pod.promised.valid() || pod.slot.valid() ||
                            live.IsToLeave(id) || pod.overdue;
    if (!decided && !remembered && kept != told)
      found.push_back(fmt::format("pod {}: charges {}, its object {}", uid, kept, told));
    const std::string known = here.PodText(id);
    const std::string object = there.PodText(other->second);
    if (known != object)
      found.push_back(fmt::format("pod {}: known as {}; its object says {}", uid, known, object));
  }
  for (const auto& [uid, id] : rebuilt_pods) {
    if (!live_pods.contains(uid))
      found.push_back(fmt::format("pod {}: an object that is not known", uid));
  }
}

void CompareNodes(const State& live, const State& rebuilt, std::vector<std::string>& found) {
  const Teller here(live);
  const Teller there(rebuilt);
  for (const auto& [a, b, what] :
       {std::tuple(&live, &rebuilt, "known, but there is no such object"),
        std::tuple(&rebuilt, &live, "an object that is not known")}) {
    for (uint32_t row = 0; row < a->nodes().size(); ++row) {
      const NodeId n{row};
      if (!a->nodes().used(n) || !a->nodes().present(n)) continue;
      const std::string_view name = a->NameOf(a->nodes().name(n));
      const NodeId other = b->FindNode(name);
      if (!other.valid() || !b->nodes().present(other) ||
          b->UidOf(b->nodes().uid(other)) != a->UidOf(a->nodes().uid(n))) {
        found.push_back(fmt::format("node {}: {}", name, what));
      } else if (a == &live && here.NodeText(n) != there.NodeText(other)) {
        found.push_back(fmt::format("node {}: known as {}; its object says {}", name,
                                    here.NodeText(n), there.NodeText(other)));
      }
    }
  }
}

std::string BudgetText(const BudgetUpsert& budget) {
  std::string text = fmt::format("uid {}, allows {}, disrupted [{}], covers", budget.uid,
                                 budget.allowed, fmt::join(budget.disrupted, " "));
  for (const PodRequirement& r : budget.selector) {
    text += fmt::format(" {} {} ({})", r.key, static_cast<int>(r.op), fmt::join(r.values, " "));
  }
  return text;
}

// What is charged to them is ours to know.
void CompareBudgets(const State& live, const State& rebuilt, std::vector<std::string>& found) {
  for (const BudgetId id : live.budgets().by_key()) {
    const BudgetUpsert& known = live.budgets().at(id).facts;
    const BudgetId other = rebuilt.budgets().Find(known.key);
    if (!other.valid()) {
      found.push_back(fmt::format("budget {}: known, but there is no such object", known.key));
    } else if (const BudgetUpsert& object = rebuilt.budgets().at(other).facts; known != object) {
      found.push_back(fmt::format("budget {}: known as {}; its object says {}", known.key,
                                  BudgetText(known), BudgetText(object)));
    }
  }
  for (const BudgetId id : rebuilt.budgets().by_key()) {
    const std::string& key = rebuilt.budgets().at(id).facts.key;
    if (!live.budgets().Find(key).valid())
      found.push_back(fmt::format("budget {}: an object that is not known", key));
  }
}

// What was tried of it is ours to know.
std::string GroupText(const State& state, const Group& group) {
  std::vector<std::string> roles;
  for (const RoleMinimum& m : group.min_of_roles)
    roles.push_back(fmt::format("{} of '{}'", m.count, m.role.valid() ? state.NameOf(m.role) : ""));
  std::ranges::sort(roles);
  std::vector<std::string> resources;
  for (const ResourceAmount& a : state.vocabulary().bundles.View(group.min_resources))
    resources.push_back(
        fmt::format("{}={}", state.vocabulary().resources.Name(a.resource), a.amount));
  std::ranges::sort(resources);
  return fmt::format("{}, needs {}, {}, priority {}, created {}, {}, queue {} with {}",
                     state.KeyOf(group.key), group.min_member, fmt::join(roles, ", "),
                     group.priority ? fmt::format("{}", *group.priority) : "of its members",
                     group.creation.ns, ToString(group.phase), state.NameOf(group.queue),
                     fmt::join(resources, " "));
}

// By whatever names them.
using Texts = std::map<std::string, std::string>;

void CompareTexts(std::string_view what, const Texts& here, const Texts& there,
                  std::vector<std::string>& found) {
  for (const auto& [name, known] : here) {
    const auto other = there.find(name);
    if (other == there.end()) {
      found.push_back(fmt::format("{} {}: known, but there is no such object", what, name));
    } else if (known != other->second) {
      found.push_back(
          fmt::format("{} {}: known as {}; its object says {}", what, name, known, other->second));
    }
  }
  for (const auto& [name, object] : there) {
    if (!here.contains(name))
      found.push_back(fmt::format("{} {}: an object that is not known", what, name));
  }
}

Texts GroupTexts(const State& state) {
  Texts by_uid;
  for (uint32_t row = 0; row < state.groups().size(); ++row) {
    const GroupId id{row};
    if (!state.groups().used(id)) continue;
    const Group& group = state.groups().at(id);
    by_uid.emplace(state.UidOf(group.uid), GroupText(state, group));
  }
  return by_uid;
}

std::string QueueText(const State& state, QueueId q) {
  const Queue& row = state.queues().at(q);
  const QuotaTree& tree = state.ledger().quota();
  std::vector<std::string> quotas;
  for (uint32_t a = row.first_account; a != Queue::kNoAccount; a = state.queues().account(a).next) {
    const NameId flavor = state.queues().account(a).flavor;
    for (uint32_t i = 0; i < tree.resources(); ++i) {
      if (!tree.defined(ResourceId{i}, a)) continue;
      const Quota& quota = tree.quota(ResourceId{i}, a);
      quotas.push_back(fmt::format("{}/{}={} borrows {} lends {}",
                                   flavor.valid() ? state.NameOf(flavor) : "",
                                   state.vocabulary().resources.Name(ResourceId{i}), quota.nominal,
                                   quota.borrowing_limit, quota.lending_limit));
    }
  }
  std::ranges::sort(quotas);
  return fmt::format(
      "kind {} {}, uid {}, under '{}', in a cycle {}, closed {}, evicts {} {} {} {}, {}",
      static_cast<int>(row.kind), state.NameOf(row.name), state.UidOf(row.uid),
      row.parent.valid() ? state.NameOf(state.queues().at(row.parent).name) : "", row.in_cycle,
      row.stopped, static_cast<int>(row.preemption.within_queue),
      static_cast<int>(row.preemption.reclaim), row.preemption.borrows,
      row.preemption.borrows_from_priority_max, fmt::join(quotas, ", "));
}

std::vector<std::string> QueueTexts(const State& state) {
  std::vector<std::string> texts;
  for (uint32_t i = 0; i < state.queues().size(); ++i) {
    const QueueId q{i};
    if (state.queues().used(q) && state.queues().at(q).uid.valid())
      texts.push_back(QueueText(state, q));
  }
  std::ranges::sort(texts);
  return texts;
}

Texts LocalQueueTexts(const State& state) {
  Texts by_key;
  for (uint32_t row = 0; row < state.local_queues().size(); ++row) {
    const LocalQueueId id{row};
    if (!state.local_queues().used(id)) continue;
    const LocalQueue& queue = state.local_queues().at(id);
    by_key.emplace(state.KeyOf(queue.key),
                   fmt::format("uid {}, of {}, barred {}", state.UidOf(queue.uid),
                               state.NameOf(queue.cluster_queue), static_cast<int>(queue.bar)));
  }
  return by_key;
}

// Of flavors and of topologies.
Texts FlavorTexts(const State& state) {
  const Teller teller(state);
  Texts by_name;
  for (const Flavor& flavor : state.flavors().flavors())
    by_name.emplace(teller.Name(flavor.name), teller.FlavorText(flavor));
  for (const Topology& topology : state.flavors().topologies()) {
    by_name.emplace(fmt::format("topology {}", teller.Name(topology.name)),
                    fmt::format("uid {}, levels {}, by node {}", topology.uid,
                                teller.List(topology.levels), topology.by_node));
  }
  return by_name;
}

void CompareWorkloads(const State& live, const State& rebuilt, std::vector<std::string>& found) {
  Teller here(live);
  Teller there(rebuilt);
  Texts known;
  Texts objects;
  const auto each = [](const State& state, auto visit) {
    for (uint32_t row = 0; row < state.workloads().size(); ++row) {
      const WorkloadId id{row};
      if (state.workloads().used(id)) visit(state.workloads().at(id));
    }
  };
  // Of who is written to some may be written, and not told of yet.
  std::set<std::string_view> written;
  each(live, [&](const Workload& row) {
    const std::string_view uid = live.UidOf(row.uid);
    if (row.write != WriteStage::kNone) written.insert(uid);
    known.emplace(uid, row.write == WriteStage::kNone ? here.WorkloadText(row) : "");
  });
  each(rebuilt, [&](const Workload& row) {
    const std::string_view uid = rebuilt.UidOf(row.uid);
    objects.emplace(uid, written.contains(uid) ? "" : there.WorkloadText(row));
  });
  CompareTexts("workload", known, objects, found);
}

void CompareQueues(const State& live, const State& rebuilt, std::vector<std::string>& found) {
  const std::vector<std::string> known = QueueTexts(live);
  const std::vector<std::string> objects = QueueTexts(rebuilt);
  std::vector<std::string> differ;
  std::ranges::set_difference(known, objects, std::back_inserter(differ));
  for (const std::string& text : differ)
    found.push_back(fmt::format("queue: known as {}; no object says so", text));
  differ.clear();
  std::ranges::set_difference(objects, known, std::back_inserter(differ));
  for (const std::string& text : differ)
    found.push_back(fmt::format("queue: an object says {}, which is not known", text));
}

}  // namespace

std::vector<std::string> AuditAgainst(const State& live, const State& rebuilt) {
  std::vector<std::string> found;
  ComparePods(live, rebuilt, found);
  CompareNodes(live, rebuilt, found);
  CompareBudgets(live, rebuilt, found);
  CompareTexts("group", GroupTexts(live), GroupTexts(rebuilt), found);
  CompareQueues(live, rebuilt, found);
  CompareTexts("local queue", LocalQueueTexts(live), LocalQueueTexts(rebuilt), found);
  CompareTexts("flavor", FlavorTexts(live), FlavorTexts(rebuilt), found);
  CompareWorkloads(live, rebuilt, found);
  std::ranges::sort(found);
  return found;
}

}  // namespace berth::model
