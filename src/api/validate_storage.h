#pragma once

#include "api/validate_common.h"

// Private to api/: the rules of volumes, claims, what they are made and
// attached by, and of RuntimeClasses.
// `old` is nullptr for a creation.
namespace berth::api::rules {

void CheckVolume(FieldErrors& errors, const Json* old, const Json& object);
// Of a claim, or of a template of claims.
void CheckClaimSpec(FieldErrors& errors, const Path& path, const Json& spec);
void CheckClaim(FieldErrors& errors, const Json* old, const Json& object);
void CheckClaimStatus(FieldErrors& errors, const Json& object);
void CheckStorageClass(FieldErrors& errors, const Json* old, const Json& object);
void CheckCsiNode(FieldErrors& errors, const Json* old, const Json& object);
void CheckCsiDriver(FieldErrors& errors, const Json* old, const Json& object);
void CheckAttachment(FieldErrors& errors, const Json* old, const Json& object);
void CheckAttachmentStatus(FieldErrors& errors, const Json& object);
void CheckStorageCapacity(FieldErrors& errors, const Json* old, const Json& object);
void CheckRuntimeClass(FieldErrors& errors, const Json* old, const Json& object);

}  // namespace berth::api::rules
