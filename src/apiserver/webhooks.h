#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/json.h"
#include "api/kinds.h"
#include "api/selector.h"
#include "apiserver/request.h"
#include "base/time.h"
#include "store/store.h"

namespace berth::apiserver {

// One webhook of a configuration (docs/design/0022-webhooks.md). Immutable.
struct Webhook {
  struct Rule {
    std::vector<std::string> groups, versions, operations;
    std::vector<std::pair<std::string, std::string>> resources;  // With the subresource.
    std::string scope;                                           // "*", "Cluster", "Namespaced".
  };

  std::string name;
  // What it is and stands in, at which version: "configuration/3/17".
  std::string key;
  bool mutates = false;
  std::vector<Rule> rules;
  bool equivalent = true;  // Also asked about requests that are told in another version.
  bool ignores_failures = false;
  bool reinvoked = false;       // IfNeeded.
  bool has_conditions = false;  // Expressions, which nobody evaluates.
  bool fit_for_dry_run = true;
  bool selects = true;  // Its selectors can be read.
  api::LabelQuery namespaces, objects;
  Duration timeout;
  std::string review_version;  // "v1" or "v1beta1".
  // Where it is: a service, or a host and port.
  std::string service_namespace, service_name;
  std::string host;
  uint16_t port = 443;
  std::string path;       // "/validate"
  std::string authority;  // As in a URL: "webhook.default.svc:443".
  std::string authority_pem;

  [[nodiscard]] bool of_service() const { return !service_name.empty(); }
};
using WebhookRef = std::shared_ptr<const Webhook>;

enum class Operation : uint8_t { kCreate, kUpdate, kDelete };
[[nodiscard]] std::string_view ToString(Operation operation);

// What rules look at of a request.
struct Hooked {
  const api::Kind& kind;  // Of the resource, not of the subresource.
  std::string_view subresource;
  std::string_view namespace_name;  // Of a Namespace its name.
  Operation operation = Operation::kCreate;
};

// The subresource as rules call it; empty for none.
[[nodiscard]] std::string_view SubresourceName(Subpart subpart);

// Whether objects of a kind are put to no webhook: configurations of webhooks themselves.
[[nodiscard]] bool IsExempt(const api::Kind& kind);

// The kind that a webhook wants to be asked in: the request's, or another version of the same
// objects. Null: its rules don't match. Allocates nothing.
[[nodiscard]] const api::Kind* MatchRules(const Webhook& webhook, const Hooked& hooked);

// The webhooks of the durable configurations, by name of the configuration and place in it. A
// copyable value that shares what doesn't change; it follows from the store. Not thread-safe.
class Webhooks {
 public:
  // Takes over what is durable.
  void Recover(const store::Store& store);
  // Learns of what has become visible.
  void Observe(store::RevisionRange visible, const store::Store& store);

  // Whether any webhook's rules match what the request may come to. Allocates nothing. Cost: all
  // rules.
  [[nodiscard]] bool Concern(const ResourceRequest& request) const;

  [[nodiscard]] const std::vector<WebhookRef>& mutating() const { return mutating_; }
  [[nodiscard]] const std::vector<WebhookRef>& validating() const { return validating_; }

 private:
  std::vector<WebhookRef> mutating_, validating_;
};

}  // namespace berth::apiserver
