#include "cli/holders_text.h"

#include <fmt/format.h>

#include "cli/answer.h"

namespace berth::cli {

std::string AmountsOf(const api::JsonObject& object) {
  std::string text;
  const api::JsonObject* all = Part(object, "amounts");
  if (all == nullptr) return text;
  for (const auto& of : *all) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", Text(*all, of.key()),
                        std::string_view(of.key()));
  }
  return text;
}

std::string HoldersText(const api::JsonObject& object, std::string_view name) {
  std::string text;
  size_t shown = 0;
  for (const api::JsonObject* holder : ObjectsIn(object, name)) {
    ++shown;
    const std::string_view kind = holder->contains("pod")        ? "pod"
                                  : holder->contains("podgroup") ? "podgroup"
                                                                 : "workload";
    const std::string nodes = Text(*holder, "nodes");
    text += fmt::format("    {}{} {} {} {}, priority {}{}\n", AmountsOf(*holder),
                        nodes.empty() ? "" : fmt::format(" on {} node(s)", nodes),
                        Text(*holder, "promised") == "true" ? "promised to" : "by", kind,
                        Text(*holder, kind), Text(*holder, "priority"),
                        Text(*holder, "leaves") == "true" ? ", which leaves" : "");
  }
  const std::string count = Text(object, fmt::format("{}Count", name));
  if (!count.empty() && count != fmt::format("{}", shown))
    text += fmt::format("    ... by {} altogether\n", count);
  return text;
}

std::string NodeHoldersText(const api::JsonObject& object, std::string_view whose) {
  const std::string text = HoldersText(object, "nodeHolders");
  return text.empty() ? text : fmt::format("  nodes that lack room for {}:\n{}", whose, text);
}

}  // namespace berth::cli
