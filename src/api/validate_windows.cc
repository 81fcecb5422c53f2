#include "api/validate_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>

#include "api/object.h"

namespace berth::api::rules {
namespace {

// In the order in which upstream visits them.
constexpr std::array<std::string_view, 3> kLists = {"initContainers", "containers",
                                                    "ephemeralContainers"};

bool IsAsciiControl(char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; }

bool IsNetBiosName(std::string_view name) {
  constexpr size_t kNameMax = 15;
  constexpr std::string_view kNever = R"(\/:*?"<>|)";
  const auto count = std::ranges::count_if(  // Characters, of UTF-8.
      name, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  return !name.empty() && static_cast<size_t>(count) <= kNameMax && name.front() != '.' &&
         name.find_first_of(kNever) == std::string_view::npos;
}

bool IsDnsDomain(std::string_view name) {
  constexpr size_t kLabelMax = 63;
  const auto is_alnum = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view label = name.substr(begin, end - begin);
    if (label.empty() || label.size() > kLabelMax || !is_alnum(label.front()) ||
        !is_alnum(label.back()) ||
        !std::ranges::all_of(label, [&](char c) { return is_alnum(c) || c == '-'; })) {
      return false;
    }
    begin = end + 1;
  }
  return true;
}

// "DOMAIN\user", or a user alone.
void CheckRunAsName(FieldErrors& errors, const Path& path, std::string_view name) {
  constexpr size_t kDomainMax = 256;
  constexpr size_t kUserMax = 104;
  const auto refuse = [&](std::string why) {
    errors.push_back(InvalidPointedField(path.text(), name, "runAsUserName" + std::move(why)));
  };
  if (name.empty()) return refuse(" cannot be an empty string");
  if (std::ranges::any_of(name, IsAsciiControl))
    return refuse(" cannot contain control characters");
  const size_t slash = name.find('\\');
  if (slash != std::string_view::npos && name.find('\\', slash + 1) != std::string_view::npos)
    return refuse(" cannot contain more than one backslash");
  const bool has_domain = slash != std::string_view::npos;
  const std::string_view domain = has_domain ? name.substr(0, slash) : std::string_view();
  const std::string_view user = has_domain ? name.substr(slash + 1) : name;
  if (domain.size() >= kDomainMax)
    refuse(fmt::format("'s Domain length must be under {} characters", kDomainMax));
  if (has_domain && !IsNetBiosName(domain) && !IsDnsDomain(domain))
    refuse("'s Domain doesn't match the NetBios nor the DNS format");
  if (user.empty()) {
    refuse("'s User cannot be empty");
  } else if (user.size() > kUserMax) {
    refuse(fmt::format("'s User length must not be longer than {} characters", kUserMax));
  }
  if (!user.empty() && user.find_first_not_of(". ") == std::string_view::npos)
    refuse("'s User cannot contain only periods or spaces");
  if (user.find_first_of(R"("/\:;|=,+*?<>@[])") != std::string_view::npos)
    refuse(R"('s User cannot contain the following characters: "/\:;|=,+*?<>@[])");
}

const Json* HostProcessOf(const Json& owner) {
  return FindPath(owner, "securityContext.windowsOptions.hostProcess");
}

void Forbid(FieldErrors& errors, const Path& path, std::string_view member) {
  AddForbidden(errors, path.At(member), "cannot be set for a windows pod");
}

}  // namespace

void CheckWindowsOptions(FieldErrors& errors, const Path& security_path, const Json& security) {
  constexpr int64_t kSpecKibMax = 64;
  const Json* options = FindMember(security, "windowsOptions");
  if (options == nullptr) return;
  const Path path = security_path.At("windowsOptions");
  if (const Json* name = FindMember(*options, "gmsaCredentialSpecName")) {
    for (std::string& why : CheckDns1123Subdomain(TextOf(*name))) {
      errors.push_back(InvalidPointedField(path.At("gmsaCredentialSpecName").text(), TextOf(*name),
                                           std::move(why)));
    }
  }
  if (const Json* spec = FindMember(*options, "gmsaCredentialSpec")) {
    const std::string_view text = TextOf(*spec);
    const auto refuse = [&](std::string why) {
      errors.push_back(InvalidPointedField(path.At("gmsaCredentialSpec").text(), text,
                                           "gmsaCredentialSpec " + std::move(why)));
    };
    if (text.empty()) refuse("cannot be an empty string");
    if (std::ssize(text) > kSpecKibMax * 1024)
      refuse(fmt::format("size must be under {} KiB", kSpecKibMax));
  }
  if (const Json* name = FindMember(*options, "runAsUserName"))
    CheckRunAsName(errors, path.At("runAsUserName"), TextOf(*name));
}

void CheckHostProcesses(FieldErrors& errors, const Path& spec_path, const Json& spec) {
  const Json* of_pod = HostProcessOf(spec);
  size_t all = 0;
  size_t processes = 0;
  for (const std::string_view list : kLists) {
    const JsonArray& containers = ArrayAt(spec, list);
    for (size_t i = 0; i < containers.size(); ++i) {
      const Json* own = HostProcessOf(containers[i]);
      ++all;
      if (of_pod != nullptr && own != nullptr && *of_pod != *own) {
        const Path path = spec_path.At(list, i);
        const Path security = path.At("securityContext");
        const Path options = security.At("windowsOptions");
        AddInvalid(errors, options.At("hostProcess"), *own,
                   fmt::format("pod hostProcess value must be identical if both are specified, was "
                               "{}",
                               *of_pod == true));
      }
      const Json* counts = own != nullptr ? own : of_pod;
      if (counts != nullptr && *counts == true) ++processes;
    }
  }
  if (processes == 0) return;
  if (processes != all) {
    AddInvalid(errors, spec_path, "",
               Messages{"If pod contains any hostProcess containers then all containers must be "
                        "HostProcess containers"});
  }
  if (!FlagAt(spec, "hostNetwork")) {
    AddInvalid(errors, spec_path.At("hostNetwork"), Json(false),
               "hostNetwork must be true if pod contains any hostProcess containers");
  }
}

void CheckWindowsPod(FieldErrors& errors, const Path& spec_path, const Json& spec) {
  struct Never {
    std::string_view member;
    bool of_spec;  // Not of its securityContext.
    bool flag;     // Only true counts.
  };
  constexpr std::array<Never, 15> kPod = {{{"appArmorProfile", false, false},
                                           {"seLinuxOptions", false, false},
                                           {"hostUsers", true, false},
                                           {"hostPID", true, true},
                                           {"hostIPC", true, true},
                                           {"seccompProfile", false, false},
                                           {"fsGroup", false, false},
                                           {"fsGroupChangePolicy", false, false},
                                           {"sysctls", false, false},
                                           {"shareProcessNamespace", true, false},
                                           {"runAsUser", false, false},
                                           {"runAsGroup", false, false},
                                           {"supplementalGroups", false, false},
                                           {"supplementalGroupsPolicy", false, false},
                                           {"seLinuxChangePolicy", false, false}}};
  const Json& security = OrEmptyObject(FindMember(spec, "securityContext"));
  const Path security_path = spec_path.At("securityContext");
  for (const Never& never : kPod) {
    const Json* value = FindMember(never.of_spec ? spec : security, never.member);
    if (value == nullptr || (never.flag && *value == false)) continue;
    if (value->is_array() && value->get_array().empty()) continue;
    Forbid(errors, never.of_spec ? spec_path : security_path, never.member);
  }
  for (const std::string_view list : kLists) {
    const JsonArray& containers = ArrayAt(spec, list);
    for (size_t i = 0; i < containers.size(); ++i) {
      const Json* own = FindMember(containers[i], "securityContext");
      if (own == nullptr) continue;
      const Path path = spec_path.At(list, i);
      const Path at = path.At("securityContext");
      for (const std::string_view member :
           {"appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities",
            "readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation", "procMount",
            "runAsUser", "runAsGroup"}) {
        if (FindMember(*own, member) != nullptr) Forbid(errors, at, member);
      }
    }
  }
}

}  // namespace berth::api::rules
