#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/custom_definition.h"
#include "api/json.h"
#include "api/kinds.h"
#include "base/time.h"
#include "env/actor.h"
#include "store/store.h"

namespace berth::apiserver {

// The kinds that users define (docs/design/0017-custom-resources.md): what the durable
// CustomResourceDefinitions come to, and the server's own work on them. A value: copies share
// definitions, which never change. Kinds live as long as the definition that they are of is served.
// Source: k8s.io/apiextensions-apiserver pkg/controller (status, establish, finalizer).
class Definitions {
 public:
  // The served kind, or null.
  [[nodiscard]] const api::Kind* FindResource(std::string_view group, std::string_view version,
                                              std::string_view plural) const;
  [[nodiscard]] bool KnowsGroup(std::string_view group, std::string_view version) const;
  // All of them, with the kinds of the table before them: what is discovered.
  [[nodiscard]] std::vector<const api::Kind*> AllKinds() const;
  // Whether its definition is being deleted: nothing more is created. REQUIRES: a user's kind.
  [[nodiscard]] bool IsEnding(const api::Kind& kind) const;
  // Whether objects of a table keep a definition from its end.
  [[nodiscard]] bool HoldsEnd(store::Table table) const;

  // Writes what definitions lack: conditions, accepted names; of those that are
  // being deleted the objects' ends, and their own. Idempotent. Cost: some 100 ns a definition;
  // those that were written since are read, and compared with all others as are those whose names
  // others have; and the objects that end.
  void Review(Instant now, store::Store& store);
  // Takes over what is durable. Returns the tables whose kinds changed or went: watches of them
  // must have ended before the next request. Cost: O(definitions), and to read those that changed.
  [[nodiscard]] std::vector<store::Table> Refresh(store::Store& store);

 private:
  struct Entry {
    std::shared_ptr<const api::CustomDefinition> definition;
    std::string uid;
    int64_t generation = 0;
    store::Table table = 0;
    bool ending = false;
    std::string problems = {};  // What of its schemas can't be enforced.
  };
  [[nodiscard]] std::string ProblemsOf(const store::StoredObject& stored,
                                       const api::Json& object) const;
  using Outline = std::shared_ptr<const api::Json>;
  // What was learned of a version of a definition.
  struct Known {
    store::ObjectRef stored;
    Outline outline;       // What it says beside its schemas, which are most of it.
    std::string problems;  // Entry::problems that it was reviewed with.
    bool settled = false;  // Nothing was to be written of it.
  };
  Known& KnownOf(const store::ObjectRef& stored);
  // Those of versions that nobody reads any more.
  void ForgetKnown(const store::Store& store, const std::vector<store::ObjectRef>& durable);

  std::vector<Entry> entries_;       // In order of name.
  std::map<uint64_t, Known> known_;  // A cache, by revision.
};

// Marks a definition whose deletion begins, which its objects hold up.
void BeginEnd(Instant now, api::Json& object);

// Names of the tables that a journal's definitions need, beside those of the kinds' table.
[[nodiscard]] std::vector<std::string> DefinedTables(const env::JournalContent& content);

}  // namespace berth::apiserver
