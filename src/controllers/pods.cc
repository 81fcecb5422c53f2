#include "controllers/pods.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "api/well_known.h"
#include "base/check.h"

namespace berth::controllers {
namespace {

int PhaseRank(PodPhase phase) {
  switch (phase) {
    case PodPhase::kPending:
      return 0;
    case PodPhase::kUnknown:
      return 1;
    default:
      return 2;
  }
}

// The magnitude of an age in seconds.
int Magnitude(Instant since, Instant now) {
  const int64_t seconds = std::max<int64_t>(0, (now - since).seconds());
  return static_cast<int>(std::bit_width(static_cast<uint64_t>(seconds)));
}

}  // namespace

Instant AvailableAt(const PodRef& pod, int64_t min_ready_seconds, Instant now) {
  if (!pod.facts->ready || min_ready_seconds == 0) return Instant::Never();
  const Instant at = pod.facts->ready_since + Duration::Seconds(min_ready_seconds);
  return at <= now ? Instant::Never() : at;
}

bool IsLivePod(const Objects& objects, Slot slot) {
  const PodFacts* pod = objects.pod(slot);
  return pod != nullptr && !pod->terminal();
}

bool HasLivePods(const Objects& objects, std::string_view namespace_name,
                 std::string_view job_uid) {
  const auto lives = [&](Slot slot) {
    return IsLivePod(objects, slot) && objects.head(slot).namespace_name == namespace_name;
  };
  const api::LabelSelector its{
      .match_labels = {{std::string(api::kControllerUidLabel), std::string(job_uid)}}};
  return std::ranges::any_of(objects.DependentsOf(job_uid), lives) ||
         std::ranges::any_of(objects.OrphanPods(namespace_name, its), lives);
}

bool IsAvailable(const PodRef& pod, int64_t min_ready_seconds, Instant now) {
  return pod.facts->ready && AvailableAt(pod, min_ready_seconds, now) == Instant::Never();
}

void SortForDeletion(std::vector<PodRef>& pods, int64_t count, const CountOnNode& count_on_node,
                     Instant now) {
  struct Rank {
    std::tuple<bool, int, bool, int64_t, int64_t, int, int64_t, int> key;
    std::string_view uid;
    PodRef pod;
  };
  std::vector<Rank> ranks;
  ranks.reserve(pods.size());
  for (const PodRef& pod : pods) {
    const PodFacts& facts = *pod.facts;
    const bool assigned = !facts.node.empty();
    ranks.push_back({.key = {assigned, PhaseRank(facts.phase), facts.ready, facts.deletion_cost,
                             assigned ? -count_on_node(facts.node) : 0,
                             facts.ready ? Magnitude(facts.ready_since, now) : 0, -facts.restarts,
                             Magnitude(pod.head->creation, now)},
                     .uid = pod.head->uid,
                     .pod = pod});
  }
  CHECK(count >= 0);
  CHECK(count <= static_cast<int64_t>(ranks.size()));
  const auto before = [](const Rank& a, const Rank& b) {
    return std::tie(a.key, a.uid) < std::tie(b.key, b.uid);
  };
  const auto end = ranks.begin() + count;
  if (end != ranks.end()) std::ranges::nth_element(ranks, end, before);
  std::sort(ranks.begin(), end, before);
  for (size_t i = 0; i < ranks.size(); ++i) pods[i] = ranks[i].pod;
}

}  // namespace berth::controllers
