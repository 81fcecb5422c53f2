#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/types.h"
#include "base/hash.h"
#include "client/client.h"
#include "codec/decode.h"
#include "translate/default_spread.h"

namespace berth::control {

// Follows Services and the owners of pods, for the topology spread constraints that pods have by
// default (translate::DefaultSpread). A pod that waits is read again when what selects its like is
// another. A copyable value.
class SpreadDefaults {
 public:
  explicit SpreadDefaults(client::Client& client);

  [[nodiscard]] bool Watches(client::WatchId watch) const;
  // Takes a Service or owner for what is seen. The pods that are to be read again. What can't be
  // read selects nobody.
  [[nodiscard]] std::vector<client::ObjectEvent> Observe(const client::ObjectEvent& event,
                                                         codec::Decoder& decoder);
  // Of a pod that waits and has no constraints of its own: by which pods it is spread. It is kept
  // until it is told of otherwise.
  [[nodiscard]] std::optional<api::LabelSelector> SelectorFor(const client::ObjectEvent& event,
                                                              const api::Pod& pod);
  // The pod is gone, or waits no more.
  void Forget(const client::ObjectEvent& pod);

  void AddTo(Hasher& hasher) const;

 private:
  using Owner = std::pair<translate::SpreadOwner, std::string>;
  struct Pod {
    client::ObjectEvent event;
    std::optional<Owner> owner;
  };
  [[nodiscard]] std::vector<client::ObjectEvent> PodsOf(const std::string& namespace_name) const;
  [[nodiscard]] std::vector<client::ObjectEvent> PodsOf(const Owner& owner) const;

  client::WatchId services_watch_;  // Immutable after construction, as the three below.
  client::WatchId controllers_watch_;
  client::WatchId replica_sets_watch_;
  client::WatchId stateful_sets_watch_;
  translate::DefaultSpread rules_;
  std::map<std::string, Pod, std::less<>> pods_;     // By namespace/name.
  std::map<Owner, std::set<std::string>> by_owner_;  // Keys of pods.
};

}  // namespace berth::control
