#pragma once

#include <expected>
#include <string>

#include "apiserver/webhooks.h"
#include "base/prng.h"
#include "env/actor.h"
#include "store/store.h"

namespace berth::apiserver {

// Where a webhook is reached now. Of a service it is one of its ready endpoints, as the durable
// EndpointSlices have them, or what its externalName says. Error: why it can't be reached, in the
// words of k8s.io/apiserver pkg/util/proxy.
[[nodiscard]] std::expected<env::Endpoint, std::string> ResolveWebhook(const Webhook& webhook,
                                                                       const store::Store& store,
                                                                       Prng& prng);

// "https://webhook.default.svc:443/validate?timeout=10s", and the same without the server.
[[nodiscard]] std::string WebhookUrl(const Webhook& webhook);
[[nodiscard]] std::string WebhookTarget(const Webhook& webhook);

}  // namespace berth::apiserver
