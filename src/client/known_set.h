#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "client/identity.h"

namespace berth::client {

// A resourceVersion as it is kept and compared. Kubernetes documents versions of one resource as
// comparable decimal numbers (KEP-5504, 1.35); a version that is none is only ever tested for
// equality.
struct Version {
  uint64_t value = 0;
  bool numeric = false;

  static Version Parse(std::string_view text);
  // Known to be older. False when either is not a number.
  [[nodiscard]] bool OlderThan(const Version& other) const {
    return numeric && other.numeric && value < other.value;
  }
  bool operator==(const Version&) const = default;
};

// What a list-watch knows to exist: per object its key, uid and version, so that a relist can tell
// what appeared, changed and went during a gap, and that a name's second life is told from its
// first (D18).
//
// About 200 bytes an object (map node, key, uid). Every operation is O(log n) but BeginList (O(1))
// and EndList (O(n)). A copyable value; iteration is by key.
class KnownSet {
 public:
  enum class Seen : uint8_t {
    kAdded,      // Not known before.
    kChanged,    // Known with another version.
    kRecreated,  // Known under this name with another uid: the old one is gone.
    kSame,       // Known with this uid and version: nothing to tell.
    kStale,      // Older than what is known: a replay.
  };
  struct Result {
    Seen seen = Seen::kSame;
    std::string old_uid;  // For kRecreated.
  };
  struct Object {
    std::string key;
    std::string uid;
  };

  // "namespace/name", or "name" of a cluster-scoped object.
  static std::string Key(std::string_view namespace_name, std::string_view name);

  // An object that a list, a watch or a read showed. What a list shows is the truth even if it is
  // older (the server was restored), unless the object was shown since the list began: then the
  // list's answer was on its way, and the watch from there on will tell the rest.
  Result Observe(const Identity& identity, bool from_list);

  // A list shows this object: with the uid and version that are known? Then there is nothing to
  // tell, and it is not gone when the list ends. Else nothing has changed.
  bool Confirm(const Identity& identity);

  // An object that a watch says is deleted. False when it isn't known with that uid: nothing to
  // tell.
  bool Remove(const Identity& identity);

  // A list is to be read from its start: what it does not show until EndList is gone by then.
  void BeginList() { ++generation_; }
  // The objects that the list, which is of `version`, did not show, by key; they are no longer
  // known. What was read since the list began is kept if it is newer than the list.
  std::vector<Object> EndList(const Version& version);

  [[nodiscard]] size_t size() const { return known_.size(); }
  [[nodiscard]] bool Contains(std::string_view key, std::string_view uid) const;
  void AddTo(Hasher& hasher) const;

 private:
  struct Known {
    std::string uid;
    Version version;
    uint32_t generation = 0;  // Of the list during or after which it was shown last, by anything.
    uint32_t listed = 0;      // Of the list that showed it last; 0: none.
  };

  std::map<std::string, Known, std::less<>> known_;
  uint32_t generation_ = 1;
};

}  // namespace berth::client
