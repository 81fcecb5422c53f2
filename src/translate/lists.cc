#include "translate/lists.h"

#include <optional>
#include <string_view>

namespace berth::translate {
namespace {

std::optional<model::TaintEffect> EffectOf(std::string_view effect) {
  if (effect == "NoSchedule") return model::TaintEffect::kNoSchedule;
  if (effect == "PreferNoSchedule") return model::TaintEffect::kPreferNoSchedule;
  if (effect == "NoExecute") return model::TaintEffect::kNoExecute;
  return std::nullopt;
}

std::optional<model::TolerationOp> TolerationOpOf(std::string_view op) {
  if (op.empty() || op == "Equal") return model::TolerationOp::kEqual;
  if (op == "Exists") return model::TolerationOp::kExists;
  if (op == "Lt") return model::TolerationOp::kLt;
  if (op == "Gt") return model::TolerationOp::kGt;
  return std::nullopt;
}

}  // namespace

std::vector<model::Label> LabelsOf(const api::StringMap& labels, model::Vocabulary& vocabulary) {
  std::vector<model::Label> out;
  out.reserve(labels.size());
  for (const auto& [key, value] : labels)
    out.push_back({.key = vocabulary.names.Intern(key), .value = vocabulary.names.Intern(value)});
  return out;
}

std::vector<model::Taint> TaintsOf(std::span<const api::Taint> taints,
                                   model::Vocabulary& vocabulary) {
  std::vector<model::Taint> out;
  for (const api::Taint& taint : taints) {
    const auto effect = EffectOf(taint.effect);
    if (!effect.has_value()) continue;
    out.push_back({.key = vocabulary.names.Intern(taint.key),
                   .value = vocabulary.names.Intern(taint.value),
                   .effect = *effect});
  }
  return out;
}

model::TolerationListId InternTolerations(std::span<const api::Toleration> tolerations,
                                          model::Vocabulary& vocabulary) {
  std::vector<model::Toleration> list;
  for (const api::Toleration& t : tolerations) {
    const auto op = TolerationOpOf(t.op);
    const auto effect = EffectOf(t.effect);
    if (!op.has_value() || (!t.effect.empty() && !effect.has_value())) continue;
    model::Toleration out{.op = *op};
    if (!t.key.empty()) out.key = vocabulary.names.Intern(t.key);
    if (*op != model::TolerationOp::kExists) out.value = vocabulary.names.Intern(t.value);
    if (effect.has_value()) out.effect = static_cast<uint32_t>(*effect);
    list.push_back(out);
  }
  return list.empty() ? model::TolerationListId{} : vocabulary.tolerations.Intern(list);
}

std::vector<model::HostPort> HostPortsOf(const api::PodSpec& spec, model::Vocabulary& vocabulary) {
  constexpr std::string_view kAnyIp = "0.0.0.0";
  constexpr std::string_view kTcp = "TCP";
  std::vector<model::HostPort> ports;
  const auto add = [&](const api::Container& container) {
    for (const api::ContainerPort& port : container.ports) {
      if (port.host_port <= 0) continue;
      const bool any = port.host_ip.empty() || port.host_ip == kAnyIp;
      ports.push_back(
          {.port = static_cast<uint32_t>(std::min<int64_t>(port.host_port, UINT32_MAX)),
           .protocol = vocabulary.names.Intern(port.protocol.empty() ? kTcp : port.protocol),
           .ip = any ? model::NameId{} : vocabulary.names.Intern(port.host_ip)});
    }
  };
  for (const api::Container& container : spec.init_containers) {
    if (container.restart_always) add(container);
  }
  for (const api::Container& container : spec.containers) add(container);
  return ports;
}

}  // namespace berth::translate
