#pragma once

#include "api/validate_common.h"

// Private to api/: the rules of configurations of admission webhooks. `old` is nullptr for a
// creation. Source: k8s.io/kubernetes pkg/apis/admissionregistration/validation.
namespace berth::api::rules {

void CheckValidatingWebhooks(FieldErrors& errors, const Json* old, const Json& object);
void CheckMutatingWebhooks(FieldErrors& errors, const Json* old, const Json& object);
// How a webhook is called: by url or Service.
void CheckWebhookClient(FieldErrors& errors, const Path& path, const Json& client);

}  // namespace berth::api::rules
