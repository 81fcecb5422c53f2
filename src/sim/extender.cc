#include "sim/extender.h"

#include <memory>
#include <string_view>

#include "api/json.h"
#include "base/check.h"
#include "base/hash.h"
#include "codec/json.h"

namespace berth::sim {

control::ExtenderOptions SimulatedExtender() {
  return {.url = "http://extender",
          .to = std::make_shared<const env::Endpoint>(
              env::Endpoint{.host = "extender", .port = 80, .plain = true}),
          .path = "",
          .filter_verb = "filter",
          .prioritize_verb = "prioritize",
          .preempt_verb = "preempt",
          .weight = 2,
          .takes_names = true};
}

std::string ExtenderAnswer(const env::HttpRequest& request, bool refuses) {
  const Result<api::Json> parsed = codec::ParseJson(request.body.view());
  CHECK(parsed.has_value());
  if (request.target == "/preempt") {
    const api::Json permitted =
        refuses ? api::Json(api::JsonObject{}) : parsed->at("NodeNameToMetaVictims");
    return codec::PrintJson(api::JsonObject{{"NodeNameToMetaVictims", permitted}});
  }
  const api::JsonArray& nodes = parsed->at("NodeNames").as_array();
  if (request.target == "/filter") {
    api::JsonObject failed;
    for (const api::Json& node : nodes) {
      if (refuses) failed[node.as_string()] = "it is not in the mood";
    }
    return codec::PrintJson(api::JsonObject{{"NodeNames", refuses ? api::JsonArray{} : nodes},
                                            {"FailedNodes", std::move(failed)}});
  }
  CHECK_EQ(request.target, "/prioritize");
  const std::string pod = codec::PrintJson(parsed->at("Pod").at("metadata").at("name"));
  api::JsonArray scores;
  for (const api::Json& node : nodes) {
    const auto drawn = Hasher().Add(pod).Add(std::string_view(node.as_string())).value() % 11;
    scores.push_back(api::JsonObject{{"Host", node}, {"Score", static_cast<int64_t>(drawn)}});
  }
  return codec::PrintJson(scores);
}

}  // namespace berth::sim
