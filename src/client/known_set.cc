#include "client/known_set.h"

#include <charconv>

#include "base/check.h"

namespace berth::client {

Version Version::Parse(std::string_view text) {
  Version version;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version.value);
  // A number that is written otherwise than numbers are ("007") is an opaque version.
  if (error == std::errc() && end == text.data() + text.size() &&
      (text.size() == 1 || text.front() != '0')) {
    version.numeric = true;
    return version;
  }
  return Version{.value = HashOf(text), .numeric = false};
}

std::string KnownSet::Key(std::string_view namespace_name, std::string_view name) {
  if (namespace_name.empty()) return std::string(name);
  std::string key;
  key.reserve(namespace_name.size() + 1 + name.size());
  key.append(namespace_name).append(1, '/').append(name);
  return key;
}

KnownSet::Result KnownSet::Observe(const Identity& identity, bool from_list) {
  const Version version = Version::Parse(identity.resource_version);
  const auto [it, inserted] = known_.try_emplace(Key(identity.namespace_name, identity.name));
  Known& known = it->second;
  if (from_list) known.listed = generation_;
  if (inserted) {
    known.uid = identity.uid;
    known.version = version;
    known.generation = generation_;
    return {.seen = Seen::kAdded, .old_uid = {}};
  }
  const bool read_since = known.generation == generation_;  // And not before the list began.
  if (version.OlderThan(known.version) && (!from_list || read_since)) {
    return {.seen = Seen::kStale, .old_uid = {}};
  }
  known.generation = generation_;
  if (known.uid != identity.uid) {
    Result result{.seen = Seen::kRecreated, .old_uid = std::move(known.uid)};
    known.uid = identity.uid;
    known.version = version;
    return result;
  }
  if (known.version == version) return {.seen = Seen::kSame, .old_uid = {}};
  known.version = version;
  return {.seen = Seen::kChanged, .old_uid = {}};
}

bool KnownSet::Confirm(const Identity& identity) {
  const auto it = known_.find(Key(identity.namespace_name, identity.name));
  if (it == known_.end()) return false;
  Known& known = it->second;
  if (known.uid != identity.uid) return false;
  if (known.version != Version::Parse(identity.resource_version)) return false;
  known.generation = generation_;
  known.listed = generation_;
  return true;
}

bool KnownSet::Remove(const Identity& identity) {
  const auto it = known_.find(Key(identity.namespace_name, identity.name));
  if (it == known_.end() || it->second.uid != identity.uid) return false;
  known_.erase(it);
  return true;
}

std::vector<KnownSet::Object> KnownSet::EndList(const Version& version) {
  std::vector<Object> gone;
  for (auto it = known_.begin(); it != known_.end();) {
    const Known& known = it->second;
    const bool listed = known.listed == generation_;
    // A read may have been answered before a deletion that the list knows.
    const bool read_after = known.generation == generation_ && version.OlderThan(known.version);
    if (listed || read_after) {
      ++it;
      continue;
    }
    gone.push_back({.key = it->first, .uid = std::move(it->second.uid)});
    it = known_.erase(it);
  }
  return gone;
}

bool KnownSet::Contains(std::string_view key, std::string_view uid) const {
  const auto it = known_.find(key);
  return it != known_.end() && it->second.uid == uid;
}

void KnownSet::AddTo(Hasher& hasher) const {
  hasher.Add(known_.size()).Add(generation_);
  for (const auto& [key, known] : known_) {
    hasher.Add(key).Add(known.uid);
    known.version.numeric ? hasher.AddVersion(known.version.value)
                          : hasher.Add(known.version.value);
    hasher.Add(known.version.numeric);
    hasher.Add(known.generation).Add(known.listed);
  }
}

}  // namespace berth::client
