#include "topo/place.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace berth::topo {
namespace {

// What a domain holds: pods, and slices from their level on upwards; and that beside a leader.
struct Hold {
  int64_t pods = 0;
  int64_t slices = 0;
  int64_t pods_beside = 0;
  int64_t slices_beside = 0;
  bool leader = false;
};

// A domain and what it is to hold.
struct Taken {
  DomainId domain;
  int64_t units = 0;
  bool leader = false;
};

class Placer {
 public:
  Placer(const Tree& tree, std::span<const Room> rooms, const Request& request)
      : tree_(tree),
        request_(request),
        outer_(request.slices.empty() ? Slice{.level = tree.lowest(), .size = 1}
                                      : request.slices.front()),
        holds_(tree.levels()),
        misfit_{.kind = Misfit::Kind::kNoDomains, .fills = {}} {
    for (uint32_t level = 0; level < tree.levels(); ++level) holds_[level].resize(tree.size(level));
    for (uint32_t i = 0; i < rooms.size(); ++i) {
      Hold& hold = holds_[tree.lowest()][i];
      hold.pods = rooms[i].pods;
      hold.leader = request.leader && rooms[i].leader;
      hold.pods_beside = hold.leader ? rooms[i].beside_leader : hold.pods;
    }
    for (uint32_t level = tree.levels(); level-- > 0;) {
      for (uint32_t i = 0; i < tree.size(level); ++i) Sum({level, i});
    }
  }

  std::expected<Placement, Misfit> Run();

 private:
  enum class Unit : uint8_t { kPods, kSlices };

  void Sum(DomainId d);
  [[nodiscard]] int64_t Rounded(uint32_t level, int64_t pods) const;
  [[nodiscard]] const Hold& hold(DomainId d) const { return holds_[d.level][d.index]; }
  [[nodiscard]] int64_t Units(DomainId d, Unit unit, bool beside) const {
    const Hold& h = hold(d);
    if (unit == Unit::kPods) return Rounded(d.level, beside ? h.pods_beside : h.pods);
    return beside ? h.slices_beside : h.slices;
  }
  [[nodiscard]] bool tightest_first() const { return request_.reach == Reach::kUnconstrained; }
  void Sort(std::span<DomainId> domains, Unit unit, int64_t units, bool leader) const;
  [[nodiscard]] size_t Pick(std::span<const DomainId> domains, Unit unit, int64_t units,
                            bool leader) const;
  int64_t FillFrom(std::vector<DomainId> domains, Unit unit, int64_t units, bool leader,
                   std::vector<Taken>& out) const;
  [[nodiscard]] std::optional<std::vector<Taken>> Choose(uint32_t level);
  [[nodiscard]] std::optional<std::vector<Taken>> Descend(std::vector<Taken> from) const;
  [[nodiscard]] Misfit TooFew(std::optional<DomainId> in, int64_t fits) const;

  const Tree& tree_;
  const Request& request_;
  const Slice outer_;
  std::vector<std::vector<Hold>> holds_;
  Misfit misfit_;
};

// Of the slices within, whose pods a domain of their level holds in whole ones only.
int64_t Placer::Rounded(uint32_t level, int64_t pods) const {
  for (const Slice& slice : request_.slices) {
    if (slice.level == level && level != outer_.level) pods -= pods % slice.size;
  }
  return pods;
}

void Placer::Sum(DomainId d) {
  Hold& h = holds_[d.level][d.index];
  std::optional<int64_t> lost_pods;  // To a leader, where that costs the least.
  std::optional<int64_t> lost_slices;
  for (uint32_t i = tree_.first_child(d); i < tree_.end_child(d); ++i) {
    const Hold& child = hold({d.level + 1, i});
    const int64_t pods = Rounded(d.level + 1, child.pods);
    h.pods += pods;
    h.slices += child.slices;
    if (!child.leader) continue;
    h.leader = true;
    const int64_t fewer = pods - Rounded(d.level + 1, child.pods_beside);
    lost_pods = std::min(fewer, lost_pods.value_or(fewer));
    const int64_t fewer_slices = child.slices - child.slices_beside;
    lost_slices = std::min(fewer_slices, lost_slices.value_or(fewer_slices));
  }
  if (d.level != tree_.lowest()) h.pods_beside = h.pods - lost_pods.value_or(0);
  if (d.level == outer_.level) {
    h.slices = h.pods / outer_.size;
    h.slices_beside = h.pods_beside / outer_.size;
  } else {
    h.slices_beside = h.slices - lost_slices.value_or(0);
  }
}

// Of a leader's domain: where the others fit still, if they fit beside it anywhere.
void Placer::Sort(std::span<DomainId> domains, Unit unit, int64_t units, bool leader) const {
  int64_t all = 0;
  for (const DomainId d : domains) all += Units(d, unit, false);
  const auto key = [&](DomainId d) {
    const int64_t has = Units(d, unit, leader);
    const bool too_costly = leader && all - (Units(d, unit, false) - has) < units;
    const bool fullest_first = tightest_first() || unit == Unit::kPods;
    return std::tuple(leader && !hold(d).leader, too_costly, fullest_first ? has : -has,
                      leader ? hold(d).pods_beside : hold(d).pods, d);
  };
  std::ranges::sort(domains, {}, key);
}

// The first of the sorted; but if that holds all, of those that do the one that holds the fewest.
size_t Placer::Pick(std::span<const DomainId> domains, Unit unit, int64_t units,
                    bool leader) const {
  size_t best = 0;
  if (tightest_first() || Units(domains[0], unit, leader) < units) return best;
  for (size_t i = 1; i < domains.size(); ++i) {
    const int64_t has = Units(domains[i], unit, leader);
    const bool able = has >= units && (!leader || hold(domains[i]).leader);
    if (able && has < Units(domains[best], unit, leader)) best = i;
  }
  return best;
}

// What is left over is told.
int64_t Placer::FillFrom(std::vector<DomainId> domains, Unit unit, int64_t units, bool leader,
                         std::vector<Taken>& out) const {
  bool sorted = false;
  for (size_t next = 0; next < domains.size() && (leader || units > 0); ++next) {
    const std::span<DomainId> rest = std::span(domains).subspan(next);
    if (!sorted) Sort(rest, unit, units, leader);
    if (leader && !hold(rest[0]).leader) break;
    // The others stay in their order.
    const size_t at = Pick(rest, unit, units, leader);
    std::rotate(rest.begin(), rest.begin() + static_cast<ptrdiff_t>(at),
                rest.begin() + static_cast<ptrdiff_t>(at) + 1);
    const int64_t taken = std::min(units, Units(rest[0], unit, leader));
    if (taken > 0 || leader) out.push_back({.domain = rest[0], .units = taken, .leader = leader});
    units -= taken;
    sorted = !std::exchange(leader, false);
  }
  return leader ? std::max<int64_t>(units, 1) : units;
}

// Of a domain of the level, or above, that holds all; of several, where that may be. Nothing: too
// few.
std::optional<std::vector<Taken>> Placer::Choose(uint32_t level) {
  const int64_t wanted = request_.count / outer_.size;
  const auto holds_all = [&](DomainId d) {
    return Units(d, Unit::kSlices, request_.leader) >= wanted &&
           (!request_.leader || hold(d).leader);
  };
  std::vector<DomainId> domains;
  for (;; --level) {
    domains.clear();
    for (uint32_t i = 0; i < tree_.size(level); ++i) domains.push_back({level, i});
    if (domains.empty()) return std::nullopt;
    Sort(domains, Unit::kSlices, wanted, request_.leader);
    const auto first = std::ranges::find_if(domains, holds_all);
    if (first != domains.end()) {
      const std::span<const DomainId> rest(first, domains.end());
      const DomainId chosen = rest[Pick(rest, Unit::kSlices, wanted, request_.leader)];
      return std::vector<Taken>{{.domain = chosen, .units = wanted, .leader = request_.leader}};
    }
    if (request_.reach != Reach::kPreferred || level == 0) break;
  }
  if (request_.reach == Reach::kRequired) {
    misfit_ = TooFew(domains.front(), hold(domains.front()).slices);
    return std::nullopt;
  }
  std::vector<Taken> taken;
  const int64_t missing = FillFrom(domains, Unit::kSlices, wanted, request_.leader, taken);
  if (missing == 0) return taken;
  misfit_ = TooFew(std::nullopt, wanted - missing);
  return std::nullopt;
}

// `in`: what is within it counts; all, where it is nothing.
Misfit Placer::TooFew(std::optional<DomainId> in, int64_t fits) const {
  const int64_t wanted = request_.count / outer_.size;
  Misfit misfit{
      .kind = outer_.size == 1 ? Misfit::Kind::kPods : Misfit::Kind::kSlices,
      .fills = {{.level = outer_.level, .fits = std::min(fits, wanted), .wanted = wanted}}};
  if (request_.slices.size() < 2) return misfit;
  misfit.kind = Misfit::Kind::kLayers;
  for (const Slice& slice : request_.slices.subspan(1)) {
    Fill& fill = misfit.fills.emplace_back(
        Fill{.level = slice.level, .fits = 0, .wanted = request_.count / slice.size});
    for (uint32_t i = 0; i < tree_.size(slice.level); ++i) {
      const DomainId d{slice.level, i};
      if (!in || tree_.Above(d, in->level) == *in) fill.fits += hold(d).pods / slice.size;
    }
  }
  return misfit;
}

// What the domains are to hold, in theirs of the next level. Slices may go to any of these; pods
// stay in the domains that hold their slices.
std::optional<std::vector<Taken>> Placer::Descend(std::vector<Taken> from) const {
  const uint32_t level = from.front().domain.level;
  const bool as_slices = level < outer_.level;
  std::vector<Taken> out;
  const auto fill = [&](std::span<const Taken> domains, Unit unit) {
    std::vector<DomainId> children;
    int64_t units = 0;
    bool leader = false;
    for (const Taken& taken : domains) {
      units += taken.units;
      leader = leader || taken.leader;
      for (uint32_t i = tree_.first_child(taken.domain); i < tree_.end_child(taken.domain); ++i)
        children.push_back({level + 1, i});
    }
    return FillFrom(std::move(children), unit, units, leader, out) == 0;
  };
  if (as_slices) return fill(from, Unit::kSlices) ? std::optional(out) : std::nullopt;
  for (Taken& taken : from) {
    if (level == outer_.level) taken.units *= outer_.size;
    if (!fill(std::span(&taken, 1), Unit::kPods)) return std::nullopt;
  }
  return out;
}

std::expected<Placement, Misfit> Placer::Run() {
  std::optional<std::vector<Taken>> taken = Choose(request_.level);
  // Where the leader leaves too little to the others in what was chosen.
  if (taken) misfit_ = TooFew(std::nullopt, request_.count / outer_.size);
  while (taken && !taken->empty() && taken->front().domain.level < tree_.lowest())
    taken = Descend(*std::move(taken));
  if (!taken) return std::unexpected(misfit_);
  Placement placement;
  for (const Taken& t : *taken) {
    const int64_t size = outer_.level == tree_.lowest() ? outer_.size : 1;
    if (t.leader) placement.leader = t.domain.index;
    if (t.units > 0) {
      placement.pods.push_back(
          {.leaf = t.domain.index, .count = static_cast<uint32_t>(t.units * size)});
    }
  }
  std::ranges::sort(placement.pods, {}, &Share::leaf);
  return placement;
}

}  // namespace

std::expected<Placement, Misfit> Place(const Tree& tree, std::span<const Room> rooms,
                                       const Request& request) {
  CHECK_EQ(rooms.size(), tree.size(tree.lowest()));
  CHECK_LT(request.level, tree.levels());
  return Placer(tree, rooms, request).Run();
}

}  // namespace berth::topo
