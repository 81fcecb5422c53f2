#include "apiserver/own_service.h"

#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "api/kinds.h"
#include "api/object.h"
#include "api/timestamp.h"
#include "apiserver/objects.h"
#include "apiserver/writes.h"

namespace berth::apiserver {
namespace {

using api::Json;
using api::JsonArray;
using api::JsonObject;
using api::KindId;

constexpr std::string_view kNamespace = "default";
constexpr std::string_view kName = "kubernetes";
constexpr int64_t kUsualPort = 6443;

struct Place {
  std::string address;
  int64_t port = 0;
};

std::optional<Place> PlaceOf(std::string_view host) {
  const size_t colon = host.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view address = host.substr(0, colon);
  const std::string_view digits = host.substr(colon + 1);
  if (address.starts_with('[') && address.ends_with(']'))
    address = address.substr(1, address.size() - 2);
  Place place{.address = std::string(address)};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), place.port);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  const bool is_address =
      address.contains(':') || address.find_first_not_of("0123456789.") == std::string_view::npos;
  if (!is_number || !is_address || address.empty()) return std::nullopt;
  return place;
}

Json Named(JsonObject labels) {
  return JsonObject{
      {"metadata",
       JsonObject{{"name", kName}, {"namespace", kNamespace}, {"labels", std::move(labels)}}}};
}

JsonArray Port(int64_t port) {
  return JsonArray({JsonObject{{"name", "https"}, {"port", port}, {"protocol", "TCP"}}});
}

Json Service(int64_t port) {
  Json service = Named({{"component", "apiserver"}, {"provider", "kubernetes"}});
  JsonArray ports = Port(443);
  ports.front().get_object()["targetPort"] = port;
  service.get_object()["spec"] =
      JsonObject{{"clusterIP", "10.96.0.1"}, {"ports", std::move(ports)}};
  return service;
}

// Controllers leave it alone by the label.
Json Endpoints(const Place& place) {
  Json endpoints = Named({{"endpointslice.kubernetes.io/skip-mirror", "true"}});
  endpoints.get_object()["subsets"] = JsonArray({JsonObject{
      {"addresses", JsonArray({JsonObject{{"ip", place.address}}})}, {"ports", Port(place.port)}}});
  return endpoints;
}

Json Slice(const Place& place) {
  Json slice = Named({{"kubernetes.io/service-name", kName}});
  JsonObject& members = slice.get_object();
  members["addressType"] = place.address.contains(':') ? "IPv6" : "IPv4";
  members["endpoints"] = JsonArray({JsonObject{{"addresses", JsonArray({Json(place.address)})},
                                               {"conditions", JsonObject{{"ready", true}}}}});
  members["ports"] = Port(place.port);
  return slice;
}

store::ObjectRef Find(const store::Store& store, KindId kind) {
  return store.FindHead(static_cast<store::Table>(kind),
                        {.namespace_name = std::string(kNamespace), .name = std::string(kName)});
}

// Sets what is wanted of the members and the labels. True when that changed something.
bool Correct(const Json& wanted, Json& object) {
  const Json before = object;
  for (const auto& [key, value] : wanted.get_object()) {
    if (key != "metadata") object.get_object()[key] = value;
  }
  for (const auto& [key, value] : api::ObjectAt(wanted, "metadata.labels"))
    api::MemberObject(object.get_object().at("metadata").get_object(), "labels")[key] = value;
  return !api::SameJson(before, object);
}

// Its address is the server's own: what rules say of addresses that others give is not asked.
void Keep(Instant now, store::Store& store, Prng& prng, KindId id, const Json& wanted) {
  const store::ObjectRef stored = Find(store, id);
  Json object = stored == nullptr ? wanted : Load(*stored);
  if (stored == nullptr) {
    api::SetPath(object, "metadata.uid", Json(NewUid(prng)));
    api::SetPath(object, "metadata.creationTimestamp", Json(api::PrintTimestamp(now)));
    if (id == KindId::kEndpointSlice) api::SetPath(object, "metadata.generation", Json(1));
  } else if (!Correct(wanted, object)) {
    return;
  } else if (id == KindId::kEndpointSlice) {
    api::SetPath(object, "metadata.generation",
                 Json(api::IntegerAt(object, "metadata.generation") + 1));
  }
  store.Put(PrintStored(api::KindOf(id), object, store.next_revision()));
}

}  // namespace

bool KeepOwnService(Instant now, store::Store& store, Prng& prng, std::string_view host) {
  const std::optional<Place> place = PlaceOf(host);
  bool all = Find(store, KindId::kService) != nullptr;
  if (!all) {
    all =
        TryCreateOwn(now, store, prng, KindId::kService, Service(place ? place->port : kUsualPort));
  }
  if (!place) return all;
  Keep(now, store, prng, KindId::kEndpoints, Endpoints(*place));
  Keep(now, store, prng, KindId::kEndpointSlice, Slice(*place));
  return all;
}

bool IsOwnService(const store::StoredObject& object) {
  const auto table = static_cast<KindId>(object.table);
  const bool kind =
      object.table < api::kKindsCount &&
      (table == KindId::kService || table == KindId::kEndpoints || table == KindId::kEndpointSlice);
  return kind && object.namespace_name == kNamespace && object.name == kName;
}

}  // namespace berth::apiserver
