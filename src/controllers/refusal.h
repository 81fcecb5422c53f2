#pragma once

#include <string>

#include "controllers/write.h"
#include "env/http.h"

// What a log may say of a write that was refused. Answers quote what users' objects hold, and so do
// patches of theirs; a log holds neither.
namespace berth::controllers {

// What is written and how: "patch-status Deployment default/web uid-7@12".
[[nodiscard]] std::string TargetLine(const Write& write);
// "patch-status Deployment default/web uid-7@12: HTTP 422 Invalid: status.replicas
// FieldValueInvalid": of a refusal for what objects hold its fields alone, at most ten.
[[nodiscard]] std::string RefusalLine(const Write& write, const env::HttpResponse& response);

}  // namespace berth::controllers
