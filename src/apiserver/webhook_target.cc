#include "apiserver/webhook_target.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "api/object.h"
#include "api/url.h"
#include "apiserver/objects.h"

namespace berth::apiserver {

namespace {

using api::Json;
using api::KindId;

constexpr std::string_view kServiceLabel = "kubernetes.io/service-name";

using Place = std::pair<std::string, uint16_t>;

// Where the ready endpoints of a slice serve the named port.
void AddPlaces(const Json& slice, std::string_view port_name, std::vector<Place>& places) {
  std::optional<uint16_t> number;
  for (const Json& port : api::ArrayAt(slice, "ports")) {
    if (api::TextAt(port, "name") == port_name)
      number = static_cast<uint16_t>(api::IntegerAt(port, "port"));
  }
  if (number.value_or(0) == 0) return;
  for (const Json& endpoint : api::ArrayAt(slice, "endpoints")) {
    const Json* ready = api::FindPath(endpoint, "conditions.ready");
    if (ready != nullptr && *ready == false) continue;
    const std::vector<std::string> addresses = api::TextsAt(endpoint, "addresses");
    if (!addresses.empty()) places.emplace_back(addresses.front(), *number);
  }
}

const Json* FindPort(const Json& service, int64_t number) {
  for (const Json& port : api::ArrayAt(service, "spec.ports")) {
    if (api::IntegerAt(port, "port") == number) return &port;
  }
  return nullptr;
}

std::expected<Place, std::string> PlaceOf(const Webhook& webhook, const store::Store& store,
                                          Prng& prng) {
  const auto none = [&] {
    return std::unexpected(
        fmt::format("no endpoints available for service \"{}\"", webhook.service_name));
  };
  const store::ObjectRef found =
      store.Find(static_cast<store::Table>(KindId::kService),
                 {.namespace_name = webhook.service_namespace, .name = webhook.service_name});
  if (found == nullptr)
    return std::unexpected(fmt::format("service \"{}\" not found", webhook.service_name));
  const Json service = Load(*found);
  if (api::TextAt(service, "spec.type") == "ExternalName")
    return Place(api::TextAt(service, "spec.externalName"), webhook.port);
  const Json* const port = FindPort(service, webhook.port);
  if (port == nullptr) {
    return std::unexpected(fmt::format("no service port {} found for service \"{}\"", webhook.port,
                                       webhook.service_name));
  }
  std::vector<Place> places;
  store.Walk({.table = static_cast<store::Table>(KindId::kEndpointSlice),
              .namespace_name = webhook.service_namespace},
             [&](const store::ObjectRef& slice) {
               for (const auto& [key, value] : slice->labels) {
                 if (key == kServiceLabel && value == webhook.service_name)
                   AddPlaces(Load(*slice), api::TextAt(*port, "name"), places);
               }
               return true;
             });
  if (places.empty()) return none();
  return places[prng.Below(places.size())];
}

}  // namespace

std::string WebhookTarget(const Webhook& webhook) {
  return fmt::format("{}?timeout={}s", webhook.path, webhook.timeout.ns / Duration::Seconds(1).ns);
}

std::string WebhookUrl(const Webhook& webhook) {
  return fmt::format("https://{}{}", webhook.authority, WebhookTarget(webhook));
}

std::expected<env::Endpoint, std::string> ResolveWebhook(const Webhook& webhook,
                                                         const store::Store& store, Prng& prng) {
  env::Endpoint endpoint{.host = webhook.host,
                         .port = webhook.port,
                         .server_name = webhook.host,
                         .authority_pem = webhook.authority_pem,
                         .host_header = webhook.authority};
  // Nobody looked at what an older version stored.
  if (webhook.authority.empty() || api::UrlProblem("https://" + webhook.authority))
    return std::unexpected("no host that can be called");
  if (!webhook.of_service()) return endpoint;
  std::expected<Place, std::string> place = PlaceOf(webhook, store, prng);
  if (!place) return std::unexpected(std::move(place.error()));
  endpoint.host = std::move(place->first);
  endpoint.port = place->second;
  return endpoint;
}

}  // namespace berth::apiserver
