#include "controllers/refusal.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "api/object.h"
#include "client/request.h"
#include "codec/json.h"

namespace berth::controllers {
namespace {

constexpr size_t kCausesMax = 10;

std::string CausesText(std::string_view body) {
  const Result<api::Json> status = codec::ParseJson(body);
  if (!status || !status->is_object()) return {};
  const api::JsonArray& causes = api::ArrayAt(*status, "details.causes");
  std::string text;
  for (size_t i = 0; i < std::min(causes.size(), kCausesMax); ++i) {
    text += fmt::format("{} {} {}", i == 0 ? ":" : ",", api::TextAt(causes[i], "field"),
                        api::TextAt(causes[i], "reason"));
  }
  return text;
}

}  // namespace

std::string TargetLine(const Write& write) {
  Write bare = write;
  bare.body.clear();
  bare.metadata.clear();
  return ToString(bare);
}

std::string RefusalLine(const Write& write, const env::HttpResponse& response) {
  const std::string reason = client::StatusOf(response).reason;
  return fmt::format("{}: HTTP {}{}{}{}", TargetLine(write), response.status,
                     reason.empty() ? "" : " ", reason, CausesText(response.body.view()));
}

}  // namespace berth::controllers
