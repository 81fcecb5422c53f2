#include "cli/why_text.h"

#include <fmt/format.h>

#include "api/json.h"
#include "codec/json.h"

namespace berth::cli {
namespace {

std::string Text(const api::JsonObject& object, std::string_view key) {
  const api::Json* value = object.if_contains(key);
  if (value == nullptr) return "";
  return value->is_string() ? std::string(value->get_string()) : codec::PrintJson(*value);
}

bool True(const api::JsonObject& object, std::string_view key) {
  return Text(object, key) == "true";
}

std::string ReasonLine(const api::Json& reason) {
  if (!reason.is_object()) return "";
  const api::JsonObject& object = reason.get_object();
  const std::string nodes = Text(object, "nodes");
  std::string line = fmt::format("  {:>6} {}  {}\n", nodes, nodes == "1" ? "node " : "nodes",
                                 Text(object, "text"));
  const std::string unblock = Text(object, "unblock");
  if (!unblock.empty()) line += fmt::format("                unblocked by: {}\n", unblock);
  return line;
}

std::string Placed(const api::JsonObject& object) {
  std::string text = fmt::format("  on node {}", Text(object, "node"));
  if (object.contains("devices")) text += fmt::format(", GPU devices {}", Text(object, "devices"));
  text += "\n";
  if (!True(object, "decidedHere"))
    return text + "  placed there by someone else, or before this scheduler started\n";
  return text + fmt::format("  the best of {} nodes that fit, with score {}\n",
                            Text(object, "feasibleNodes"), Text(object, "score"));
}

std::string Waiting(const api::JsonObject& object) {
  std::string text;
  if (True(object, "wouldFit")) text += "  it would fit now and is about to be placed\n";
  if (const api::Json* reasons = object.if_contains("reasons");
      reasons != nullptr && reasons->is_array()) {
    for (const api::Json& reason : reasons->get_array()) text += ReasonLine(reason);
  }
  if (object.contains("notBefore"))
    text += fmt::format("  not tried again before {}\n", Text(object, "notBefore"));
  if (object.contains("refusedCode")) {
    text += fmt::format("  the API server refused its last binding with {}\n",
                        Text(object, "refusedCode"));
  }
  text += fmt::format("  tried {} times; pods alike that wait: {}\n", Text(object, "attempts"),
                      Text(object, "waitingAlike"));
  return text;
}

// What to look at after a 404: the scheduler has no such pod, or who answered is no scheduler.
std::string_view Hint(std::string_view message) {
  if (message.find("is not known to the scheduler") != message.npos) {
    return "\n  look with `kubectl get pod -n NAMESPACE NAME -o yaml`: it is absent, has finished, "
           "names "
           "another scheduler, or was refused (its conditions and events say why)";
  }
  return "\n  no scheduler answers there: for a `berth run`, give --why-address HOST:PORT of its "
         "--secure-port and --why-ca the file of its --secure-ca";
}

}  // namespace

Result<std::string> WhyText(int status, std::string_view body) {
  const Result<api::Json> document = codec::ParseJson(body);
  if (!document || !document->is_object()) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("the answer (HTTP {}) is not what a scheduler of berth gives", status));
  }
  const api::JsonObject& object = document->get_object();
  if (status != 200) {
    const std::string message = Text(object, "message");
    return Fail(ErrorCode::kRefused,
                fmt::format("{} (HTTP {}){}", message, status, status == 404 ? Hint(message) : ""));
  }
  std::string text = fmt::format("pod {}: {}\n", Text(object, "pod"), Text(object, "stage"));
  if (object.contains("message")) text += fmt::format("  {}\n", Text(object, "message"));
  if (object.contains("node")) return text + Placed(object);
  if (object.contains("attempts")) text += Waiting(object);
  return text;
}

}  // namespace berth::cli
