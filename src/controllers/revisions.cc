#include "controllers/revisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "api/selector.h"
#include "base/hash.h"

namespace berth::controllers {
namespace {

void Reown(const RevisionRef& ref, const std::vector<api::OwnerReference>& owners, Writes& writes) {
  Write patch = PatchOf(*ref.head);
  patch.metadata = R"("ownerReferences":)" + OwnersText(owners);
  writes.push_back(std::move(patch));
}

// Those of the owner after adoption and release, by number.
std::vector<RevisionRef> Claim(const RevisionOwner& owner, const RevisionFacts& facts,
                               Writes& writes) {
  std::vector<RevisionRef> claimed;
  const Result<api::LabelQuery> query = api::QueryOf(owner.selector);
  for (const RevisionRef& ref : facts.owned) {
    if (!query || query->Matches(ref.head->labels)) {
      claimed.push_back(ref);
      continue;
    }
    std::vector<api::OwnerReference> owners = ref.head->owners;
    std::erase_if(owners, [&](const auto& known) { return known.uid == owner.head.uid; });
    Reown(ref, owners, writes);
  }
  const bool adopts = query && !query->empty() && !owner.head.deletion.has_value();
  for (const RevisionRef& ref : facts.orphans) {
    if (!adopts || ref.head->deletion.has_value() || !query->Matches(ref.head->labels)) continue;
    std::vector<api::OwnerReference> owners = ref.head->owners;
    owners.push_back(ControllerReference(owner.head));
    Reown(ref, owners, writes);
    claimed.push_back(ref);
  }
  std::ranges::sort(claimed, {}, [](const RevisionRef& ref) {
    return std::tuple(ref.revision->revision, ref.head->creation, std::string_view(ref.head->name));
  });
  return claimed;
}

Write Creation(const RevisionOwner& owner, int64_t number) {
  const std::string hash = TemplateHash(owner.pod_template, owner.collisions);
  Write create = CreateOf(api::KindId::kControllerRevision, owner.head.namespace_name,
                          owner.head.name + "-" + hash);
  api::StringMap labels = owner.pod_template.labels;
  Put(labels, owner.hash_label, hash);
  create.metadata = R"("labels":)" + MapText(labels);
  if (!owner.annotations.empty())
    create.metadata += R"(,"annotations":)" + MapText(owner.annotations);
  create.metadata += R"(,"ownerReferences":)" + OwnersText({ControllerReference(owner.head)});
  // As a patch of the owner: whoever applies it has the template back.
  const std::string_view canonical = owner.pod_template.canonical.view();
  create.body =
      fmt::format(R"("data":{{"spec":{{"template":{{"$patch":"replace",{}}}}},"revision":{})",
                  canonical.substr(1), number);
  return create;
}

}  // namespace

RevisionRef Revisions::Named(std::string_view name) const {
  const auto at =
      std::ranges::find(all, name, [](const RevisionRef& ref) { return ref.head->name; });
  return at == all.end() ? RevisionRef{} : *at;
}

Revisions PlanRevisions(const RevisionOwner& owner, const RevisionFacts& facts, Writes& writes) {
  Revisions result{.all = Claim(owner, facts, writes)};
  const auto equal =
      std::find_if(result.all.rbegin(), result.all.rend(), [&](const RevisionRef& ref) {
        return ref.revision->pod_template.canonical == owner.pod_template.canonical &&
               !ref.head->deletion.has_value();
      });
  const int64_t next = result.all.empty() ? 1 : result.all.back().revision->revision + 1;
  if (equal != result.all.rend()) {
    result.update = *equal;
    if (equal != result.all.rbegin() && !owner.head.deletion.has_value()) {
      Write renumber = PatchOf(*result.update.head);
      renumber.body = fmt::format(R"("revision":{})", next);
      writes.push_back(std::move(renumber));
    }
    return result;
  }
  result.collided = facts.name_taken;
  if (owner.head.deletion.has_value() || facts.name_taken) return result;
  writes.push_back(Creation(owner, next));
  return result;
}

void PlanHistory(const std::vector<RevisionRef>& revisions, const std::set<std::string>& live,
                 int64_t limit, Writes& writes) {
  std::vector<RevisionRef> old;
  for (const RevisionRef& ref : revisions) {
    if (!live.contains(ref.head->name) && !ref.head->deletion.has_value()) old.push_back(ref);
  }
  const auto surplus = static_cast<int64_t>(old.size()) - limit;
  for (int64_t i = 0; i < surplus; ++i)
    writes.push_back(DeleteOf(*old[static_cast<size_t>(i)].head));
}

std::string TemplateHash(const api::PodTemplate& pod_template, int64_t collisions) {
  // Letters that spell no words, as Kubernetes' generated names.
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  constexpr int kLength = 10;
  uint64_t hash = Hasher().Add(pod_template.canonical.view()).Add(collisions).value();
  std::string text;
  for (int i = 0; i < kLength; ++i) {
    text += kLetters[hash % kLetters.size()];
    hash /= kLetters.size();
  }
  return text;
}

std::string RevisionName(const Head& owner, const api::PodTemplate& pod_template,
                         int64_t collisions) {
  return owner.name + "-" + TemplateHash(pod_template, collisions);
}

}  // namespace berth::controllers
