#include "apiserver/attributes.h"

#include <cstddef>
#include <string>
#include <vector>

#include "api/selector.h"

namespace berth::apiserver {

namespace {

// Of what is no resource the method's own name.
std::string_view MethodName(env::Method method) {
  if (method == env::Method::kPost) return "post";
  if (method == env::Method::kPut) return "put";
  return MethodWord(method);
}

// The name that all selected objects have, if there is one.
std::string SelectedName(const Query& query) {
  const Result<api::FieldQuery> fields = api::ParseFieldQuery(query.Text("fieldSelector"));
  if (!fields) return "";
  for (const api::FieldRequirement& requirement : fields->requirements) {
    if (requirement.field == "metadata.name" && requirement.equals) return requirement.value;
  }
  return "";
}

void SettleCollection(const Target& target, Attributes& wanted) {
  if (!wanted.name.empty()) return;
  if (wanted.verb == "delete") wanted.verb = "deletecollection";
  if (wanted.verb != "get") return;
  const Query query = Query::Parse(target.query);
  wanted.verb = ParseFlagParameter(query, "watch") ? "watch" : "list";
  wanted.name = SelectedName(query);
}

}  // namespace

Attributes AttributesOf(const Target& target, env::Method method) {
  const std::vector<std::string>& parts = target.parts;
  Attributes wanted;
  const bool core = !parts.empty() && parts[0] == "api";
  const bool named = !parts.empty() && parts[0] == "apis";
  size_t at = core ? 2 : 3;
  if ((!core && !named) || parts.size() <= at) {
    wanted.of_resource = false;
    wanted.verb = MethodName(method);
    wanted.path = target.path;
    return wanted;
  }
  if (named) wanted.group = parts[1];
  // The old form of a watch, and what upstream once had for proxies.
  const bool special = parts[at] == "watch" || parts[at] == "proxy";
  wanted.verb = special ? std::string_view(parts[at]) : MethodWord(method);
  if (special && ++at == parts.size()) return wanted;
  if (parts[at] == "namespaces" && parts.size() > at + 1) {
    wanted.namespace_name = parts[at + 1];
    const bool inside =
        parts.size() > at + 2 && parts[at + 2] != "status" && parts[at + 2] != "finalize";
    if (inside) at += 2;
  }
  wanted.resource = parts[at];
  if (parts.size() > at + 1) wanted.name = parts[at + 1];
  if (parts.size() > at + 2 && wanted.verb != "proxy") wanted.subresource = parts[at + 2];
  SettleCollection(target, wanted);
  return wanted;
}

}  // namespace berth::apiserver
