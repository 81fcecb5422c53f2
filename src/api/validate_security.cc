#include "api/validate_security.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "api/object.h"
#include "api/validate_volumes.h"
#include "api/validate_windows.h"

namespace berth::api::rules {
namespace {

constexpr std::array<std::string_view, 3> kProfiles = {"Localhost", "RuntimeDefault", "Unconfined"};
constexpr std::array<std::string_view, 3> kLists = {"initContainers", "containers",
                                                    "ephemeralContainers"};

void Refuse(FieldErrors& errors, const Path& path, std::string_view value, std::string_view why) {
  AddInvalid(errors, path, value, Messages{std::string(why)});
}

void CheckId(FieldErrors& errors, const Path& path, int64_t value) {
  if (value >= 0 && value <= INT32_MAX) return;
  errors.push_back(InvalidField(path.text(), value, RangeMessage(0, INT32_MAX)));
}

// Of a parameter of the kernel, or of a name of DNS.
bool IsSysctlPart(std::string_view part) {
  const auto is_end = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !part.empty() && is_end(part.front()) && is_end(part.back()) &&
         std::ranges::all_of(part, [&](char c) { return is_end(c) || c == '-' || c == '_'; });
}

bool IsSysctl(std::string_view name) {
  constexpr size_t kNameMax = 253;
  if (name.size() > kNameMax) return false;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find_first_of("./", begin), name.size());
    if (!IsSysctlPart(name.substr(begin, end - begin))) return false;
    begin = end + 1;
  }
  return true;
}

// With dots between its parts, as net.ipv4.conf.eth0/1.forwarding.
std::string WithDots(std::string_view name) {
  std::string dotted(name);
  const size_t first = name.find_first_of("./");
  if (first == std::string_view::npos || name[first] == '.') return dotted;
  std::ranges::transform(dotted, dotted.begin(),
                         [](char c) { return c == '.' ? '/' : (c == '/' ? '.' : c); });
  return dotted;
}

// The flag of a pod that shares the node's namespace of the parameter; "" for others.
std::string_view SharedBy(std::string_view sysctl) {
  constexpr std::array<std::string_view, 10> kIpc = {
      "kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced",
      "kernel.shm", "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.msg"};
  std::string name = WithDots(sysctl);
  name.resize(std::min(name.find('*'), name.size()));
  if (name.starts_with("net.")) return "hostNetwork";
  const bool ipc = name.starts_with("fs.mqueue.") || std::ranges::find(kIpc, name) != kIpc.end();
  return ipc ? "hostIPC" : "";
}

void CheckSysctls(FieldErrors& errors, const Path& security, const Json& spec) {
  const JsonArray& sysctls = ArrayAt(spec, "securityContext.sysctls");
  std::set<std::string_view> seen;
  for (size_t i = 0; i < sysctls.size(); ++i) {
    const Path item = security.At("sysctls", i);
    const Path path = item.At("name");
    const std::string_view name = TextAt(sysctls[i], "name");
    if (name.empty()) {
      AddRequired(errors, path);
    } else if (!IsSysctl(name)) {
      Refuse(errors, path, name,
             "must have at most 253 characters and match regex "
             R"(^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$)");
    } else if (seen.contains(name)) {
      errors.push_back(DuplicateField(path.text(), name));
    }
    const std::string_view flag = SharedBy(name);
    if (!flag.empty() && FlagAt(spec, flag)) {
      Refuse(errors, path, name, fmt::format("may not be specified when '{}' is true", flag));
    }
    seen.insert(name);
  }
}

void CheckSeccomp(FieldErrors& errors, const Path& owner, const Json& security) {
  const Json* profile = FindMember(security, "seccompProfile");
  if (profile == nullptr) return;
  const Path path = owner.At("seccompProfile");
  const std::string_view type = TextAt(*profile, "type");
  const Json* local = FindMember(*profile, "localhostProfile");
  if (type.empty()) {
    AddRequired(errors, path.At("type"), "type is required when seccompProfile is set");
  } else {
    CheckEnum(errors, path.At("type"), type, kProfiles);
  }
  const Path at = path.At("localhostProfile");
  if (type != "Localhost") {
    if (local == nullptr) return;
    AddInvalid(errors, at, Json(JsonObject{{"Type", type}, {"LocalhostProfile", *local}}),
               "can only be set when seccomp type is Localhost");
  } else if (local == nullptr) {
    AddRequired(errors, at, "must be set when seccomp type is Localhost");
  } else {
    CheckDescending(errors, at, TextOf(*local));
  }
}

void CheckLocalAppArmor(FieldErrors& errors, const Path& path, const Json* local) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  constexpr int64_t kProfileMax = 4095;
  const std::string_view name = local == nullptr ? std::string_view() : TextOf(*local);
  if (name.empty()) {
    AddRequired(errors, path, "must be set when AppArmor type is Localhost");
    return;
  }
  if (kBlanks.contains(name.front()) || kBlanks.contains(name.back())) {
    Refuse(errors, path, name, "must not be padded with whitespace");
  }
  if (std::ssize(name) > kProfileMax) errors.push_back(TooLongField(path.text(), kProfileMax));
}

void CheckAppArmor(FieldErrors& errors, const Path& owner, const Json& security) {
  const Json* profile = FindMember(security, "appArmorProfile");
  if (profile == nullptr) return;
  const Path path = owner.At("appArmorProfile");
  const std::string_view type = TextAt(*profile, "type");
  const Json* local = FindMember(*profile, "localhostProfile");
  if (type.empty()) {
    AddRequired(errors, path.At("type"), "type is required when appArmorProfile is set");
  } else if (type == "Localhost") {
    CheckLocalAppArmor(errors, path.At("localhostProfile"), local);
  } else if (std::ranges::find(kProfiles, type) == kProfiles.end()) {
    CheckEnum(errors, path.At("type"), type, kProfiles);
  } else if (local != nullptr) {
    AddInvalid(errors, path.At("localhostProfile"), *local,
               "can only be set when AppArmor type is Localhost");
  }
}

template <size_t N>
void CheckGiven(FieldErrors& errors, const Path& path, const Json& owner, std::string_view member,
                const std::array<std::string_view, N>& supported) {
  if (FindMember(owner, member) == nullptr) return;
  CheckEnum(errors, path.At(member), TextAt(owner, member), supported);
}

// A container's security context as upstream's internal type is shown.
Json ShownSecurity(const Json& security) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kMembers = {
      {{"Privileged", "privileged"},
       {"SELinuxOptions", "seLinuxOptions"},
       {"WindowsOptions", "windowsOptions"},
       {"RunAsUser", "runAsUser"},
       {"RunAsGroup", "runAsGroup"},
       {"RunAsNonRoot", "runAsNonRoot"},
       {"ReadOnlyRootFilesystem", "readOnlyRootFilesystem"},
       {"AllowPrivilegeEscalation", "allowPrivilegeEscalation"},
       {"ProcMount", "procMount"},
       {"SeccompProfile", "seccompProfile"},
       {"AppArmorProfile", "appArmorProfile"}}};
  const auto value = [](const Json& owner, std::string_view member) {
    const Json* found = FindMember(owner, member);
    return found == nullptr ? Json() : *found;
  };
  JsonObject shown;
  const Json capabilities = value(security, "capabilities");
  shown["Capabilities"] = capabilities.is_null()
                              ? Json()
                              : Json(JsonObject{{"Add", value(capabilities, "add")},
                                                {"Drop", value(capabilities, "drop")}});
  for (const auto& [name, member] : kMembers) shown[name] = value(security, member);
  return shown;
}

// A name of DNS whose labels may have underscores, one of them in front.
bool IsSearchName(std::string_view name) {
  constexpr size_t kNameMax = 253;
  if (name.size() > kNameMax) return false;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    std::string_view label = name.substr(begin, end - begin);
    if (label.starts_with('_')) label.remove_prefix(1);
    if (!IsSysctlPart(label)) return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

void CheckPodSecurity(FieldErrors& errors, const Path& spec_path, const Json& spec) {
  const Json* security = FindMember(spec, "securityContext");
  if (security == nullptr) return;
  const Path path = spec_path.At("securityContext");
  for (const std::string_view id : {"fsGroup", "runAsUser", "runAsGroup"}) {
    CheckId(errors, path.At(id), IntegerAt(*security, id));
  }
  const JsonArray& groups = ArrayAt(*security, "supplementalGroups");
  for (size_t i = 0; i < groups.size(); ++i) {
    CheckId(errors, path.At("supplementalGroups", i),
            groups[i].is_int64() ? groups[i].get_int64() : 0);
  }
  if (FlagAt(spec, "shareProcessNamespace") && FlagAt(spec, "hostPID")) {
    AddInvalid(errors, path.At("shareProcessNamespace"), Json(true),
               "ShareProcessNamespace and HostPID cannot both be enabled");
  }
  CheckSysctls(errors, path, spec);
  constexpr std::array<std::string_view, 2> kChanges = {"Always", "OnRootMismatch"};
  constexpr std::array<std::string_view, 2> kGroups = {"Merge", "Strict"};
  constexpr std::array<std::string_view, 1> kLabels = {"Recursive"};
  CheckGiven(errors, path, *security, "fsGroupChangePolicy", kChanges);
  CheckSeccomp(errors, path, *security);
  CheckWindowsOptions(errors, path, *security);
  CheckAppArmor(errors, path, *security);
  CheckGiven(errors, path, *security, "supplementalGroupsPolicy", kGroups);
  CheckGiven(errors, path, *security, "seLinuxChangePolicy", kLabels);
}

bool HasHostUsers(const Json& spec) {
  const Json* users = FindMember(spec, "hostUsers");
  return users == nullptr || *users != false;
}

void CheckOwnUsers(FieldErrors& errors, const Path& spec_path, const Json& spec) {
  if (HasHostUsers(spec)) return;
  constexpr std::string_view kWhy = "when `hostUsers` is false";
  const std::array<std::pair<std::string_view, std::string_view>, 3> flags = {
      {{"hostNetwork", "hostNetwork"}, {"hostPID", "HostPID"}, {"hostIPC", "HostIPC"}}};
  for (const auto& [member, called] : flags) {
    if (FlagAt(spec, member)) AddForbidden(errors, spec_path.At(called), std::string(kWhy));
  }
  for (const std::string_view list : kLists) {
    const JsonArray& containers = ArrayAt(spec, list);
    for (size_t i = 0; i < containers.size(); ++i) {
      if (ArrayAt(containers[i], "volumeDevices").empty()) continue;
      const Path path = spec_path.At(list, i);
      AddForbidden(errors, path.At("volumeDevices"), std::string(kWhy));
    }
  }
}

void CheckContainerSecurity(FieldErrors& errors, const Path& container, const Json& body,
                            bool host_users) {
  const Json* security = FindMember(body, "securityContext");
  if (security == nullptr) return;
  const Path path = container.At("securityContext");
  for (const std::string_view id : {"runAsUser", "runAsGroup"}) {
    CheckId(errors, path.At(id), IntegerAt(*security, id));
  }
  constexpr std::array<std::string_view, 2> kMounts = {"Default", "Unmasked"};
  CheckGiven(errors, path, *security, "procMount", kMounts);
  if (host_users && TextAt(*security, "procMount") == "Unmasked") {
    Refuse(errors, path.At("procMount"), "Unmasked", "`hostUsers` must be false to use `Unmasked`");
  }
  CheckSeccomp(errors, path, *security);
  const Json* escalation = FindMember(*security, "allowPrivilegeEscalation");
  if (escalation != nullptr && *escalation == false) {
    if (FlagAt(*security, "privileged")) {
      AddInvalid(errors, path, ShownSecurity(*security),
                 "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
    }
    for (const Json& capability : ArrayAt(*security, "capabilities.add")) {
      if (TextOf(capability) != "CAP_SYS_ADMIN") continue;
      AddInvalid(errors, path, ShownSecurity(*security),
                 "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` "
                 "CAP_SYS_ADMIN");
    }
  }
  CheckWindowsOptions(errors, path, *security);
  CheckAppArmor(errors, path, *security);
}

void CheckDns(FieldErrors& errors, const Path& spec_path, const Json& spec) {
  constexpr size_t kServersMax = 3;
  constexpr size_t kSearchesMax = 32;
  constexpr size_t kSearchCharactersMax = 2048;
  constexpr std::string_view kSearchMessage =
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' "
      "or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex "
      "used for validation is "
      R"('_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*'))";
  const Json* config = FindMember(spec, "dnsConfig");
  const Path path = spec_path.At("dnsConfig");
  const JsonArray& servers = ArrayAt(OrEmptyObject(config), "nameservers");
  if (TextAt(spec, "dnsPolicy") == "None" && servers.empty()) {
    if (config == nullptr) {
      AddRequired(errors, path, "must provide `dnsConfig` when `dnsPolicy` is None");
    } else {
      AddRequired(errors, path.At("nameservers"),
                  "must provide at least one DNS nameserver when `dnsPolicy` is None");
    }
    return;
  }
  if (config == nullptr) return;
  if (servers.size() > kServersMax) {
    AddInvalid(errors, path.At("nameservers"), Json(servers),
               "must not have more than 3 nameservers");
  }
  for (size_t i = 0; i < servers.size(); ++i) {
    CheckIp(errors, path.At("nameservers", i), TextOf(servers[i]));
  }
  const JsonArray& searches = ArrayAt(*config, "searches");
  size_t characters = searches.empty() ? 0 : searches.size() - 1;
  for (const Json& search : searches) characters += TextOf(search).size();
  if (searches.size() > kSearchesMax) {
    AddInvalid(errors, path.At("searches"), Json(searches),
               "must not have more than 32 search paths");
  }
  if (characters > kSearchCharactersMax) {
    AddInvalid(errors, path.At("searches"), Json(searches),
               "must not have more than 2048 characters (including spaces) in the search list");
  }
  for (size_t i = 0; i < searches.size(); ++i) {
    std::string_view search = TextOf(searches[i]);
    if (search == ".") continue;
    if (search.ends_with('.')) search.remove_suffix(1);
    if (!IsSearchName(search)) Refuse(errors, path.At("searches", i), search, kSearchMessage);
  }
  const JsonArray& options = ArrayAt(*config, "options");
  for (size_t i = 0; i < options.size(); ++i) {
    if (TextAt(options[i], "name").empty()) {
      AddRequired(errors, path.At("options", i), "must not be empty");
    }
  }
}

void CheckHostAliases(FieldErrors& errors, const Path& spec_path, const Json& spec) {
  const JsonArray& aliases = ArrayAt(spec, "hostAliases");
  for (size_t i = 0; i < aliases.size(); ++i) {
    const Path path = spec_path.At("hostAliases", i);
    CheckIp(errors, path.At("ip"), TextAt(aliases[i], "ip"));
    const JsonArray& names = ArrayAt(aliases[i], "hostnames");
    for (size_t k = 0; k < names.size(); ++k) {
      AddInvalid(errors, path.At("hostnames", k), TextOf(names[k]),
                 CheckDns1123Subdomain(TextOf(names[k])));
    }
  }
}

void CheckHostnameOverride(FieldErrors& errors, const Path& spec_path, const Json& spec) {
  constexpr int64_t kNameMax = 64;
  const Json* name = FindMember(spec, "hostnameOverride");
  if (name == nullptr) return;
  const Path path = spec_path.At("hostnameOverride");
  for (const std::string_view flag : {"setHostnameAsFQDN", "hostNetwork"}) {
    if (FlagAt(spec, flag)) {
      AddForbidden(errors, path, fmt::format("may not be specified when {} is true", flag));
    }
  }
  if (std::ssize(TextOf(*name)) > kNameMax) errors.push_back(TooLongField(path.text(), kNameMax));
  AddInvalid(errors, path, TextOf(*name), CheckDns1123Subdomain(TextOf(*name)));
}

void CheckSystem(FieldErrors& errors, const Path& spec_path, const Json& spec) {
  const Json* system = FindMember(spec, "os");
  if (system == nullptr) return;
  const std::string_view name = TextAt(*system, "name");
  const Path path = spec_path.At("os");
  if (name.empty()) {
    AddRequired(errors, path.At("name"));
    return;
  }
  constexpr std::array<std::string_view, 2> kSystems = {"linux", "windows"};
  CheckEnum(errors, path, name, kSystems);
  if (name == "windows") CheckWindowsPod(errors, spec_path, spec);
  if (name != "linux") return;
  constexpr std::string_view kWhy = "windows options cannot be set for a linux pod";
  const auto check = [&](const Path& owner, const Json& body) {
    if (FindPath(body, "securityContext.windowsOptions") == nullptr) return;
    const Path security = owner.At("securityContext");
    AddForbidden(errors, security.At("windowsOptions"), std::string(kWhy));
  };
  check(spec_path, spec);
  for (const std::string_view list : kLists) {
    const JsonArray& containers = ArrayAt(spec, list);
    for (size_t i = 0; i < containers.size(); ++i) check(spec_path.At(list, i), containers[i]);
  }
}

}  // namespace berth::api::rules
