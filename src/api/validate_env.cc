#include "api/validate_env.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "api/object.h"
#include "api/quantity.h"
#include "api/text.h"
#include "api/validate_volumes.h"

namespace berth::api::rules {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::array<std::string_view, 9> kForVariables = {"metadata.name",
                                                           "metadata.namespace",
                                                           "metadata.uid",
                                                           "spec.nodeName",
                                                           "spec.serviceAccountName",
                                                           "status.hostIP",
                                                           "status.hostIPs",
                                                           "status.podIP",
                                                           "status.podIPs"};
constexpr std::array<std::string_view, 5> kForFiles = {"metadata.annotations", "metadata.labels",
                                                       "metadata.name", "metadata.namespace",
                                                       "metadata.uid"};
// pkg/apis/core/pods/helpers.go: what else a field's path may be, though not in these places.
constexpr std::array<std::string_view, 3> kElsewhere = {"spec.restartPolicy", "spec.schedulerName",
                                                        "status.phase"};

bool Contains(Names names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

void Refuse(FieldErrors& errors, const Path& path, std::string_view value, std::string_view why) {
  AddInvalid(errors, path, value, Messages{std::string(why)});
}

// metadata.labels['key']
void CheckSubscript(FieldErrors& errors, const Path& reference, std::string_view path,
                    size_t bracket) {
  const std::string_view map = path.substr(0, bracket);
  if (map != "metadata.annotations" && map != "metadata.labels") {
    Refuse(errors, reference.At("fieldPath"), path,
           fmt::format("error converting fieldPath: field label does not support subscript: {}",
                       path));
    return;
  }
  std::string key(path.substr(bracket + 2, path.size() - bracket - 4));
  if (map == "metadata.annotations") key = Lower(key);
  AddInvalid(errors, reference, key, CheckQualifiedName(key));
}

void CheckFieldRef(FieldErrors& errors, const Path& reference, const Json& field, Names allowed) {
  const std::string_view version = TextAt(field, "apiVersion");
  std::string_view path = TextAt(field, "fieldPath");
  const Path at = reference.At("fieldPath");
  if (version.empty()) {
    AddRequired(errors, reference.At("apiVersion"));
    return;
  }
  if (path.empty()) {
    AddRequired(errors, at);
    return;
  }
  if (version != "v1") {
    Refuse(errors, at, path,
           fmt::format("error converting fieldPath: unsupported pod version: {}", version));
    return;
  }
  const size_t bracket = path.ends_with("']") ? path.find("['") : std::string_view::npos;
  if (bracket != std::string_view::npos) {
    CheckSubscript(errors, reference, path, bracket);
    return;
  }
  if (path == "spec.host") path = "spec.nodeName";
  if (Contains(allowed, path)) return;
  if (Contains(kForVariables, path) || Contains(kForFiles, path) || Contains(kElsewhere, path)) {
    errors.push_back(NotSupportedField(at.text(), path, allowed));
    return;
  }
  Refuse(errors, at, path,
         fmt::format("error converting fieldPath: field label not supported: {}", path));
}

bool IsDivisorOfBytes(std::string_view divisor) {
  constexpr std::array<std::string_view, 13> kUnits = {
      "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"};
  return Contains(kUnits, divisor);
}

void CheckDivisor(FieldErrors& errors, const Path& reference, const Json& field) {
  const Result<Quantity> divisor = ParseQuantity(TextAt(field, "divisor"));
  if (!divisor || divisor->sign() == 0) return;
  const std::string text = ToString(*divisor);
  const std::string_view resource = TextAt(field, "resource");
  const std::string_view kind = resource.substr(std::min(resource.find('.'), resource.size()));
  const bool asked = resource.starts_with("requests.") || resource.starts_with("limits.");
  std::string_view what;
  if (asked && kind == ".cpu") {
    if (text == "1m" || text == "1") return;
    Refuse(errors, reference.At("divisor"), resource,
           "only divisor's values 1m and 1 are supported with the cpu resource");
    return;
  }
  if (asked && kind == ".memory") what = "memory";
  if (asked && kind == ".ephemeral-storage") what = "local ephemeral storage";
  if (asked && kind.starts_with(".hugepages-")) what = "hugepages";
  if (what.empty() || IsDivisorOfBytes(text)) return;
  Refuse(errors, reference.At("divisor"), resource,
         fmt::format("only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, "
                     "1Ei are supported with the {} resource",
                     what));
}

void CheckResourceRef(FieldErrors& errors, const Path& reference, const Json& field,
                      bool wants_container) {
  constexpr std::array<std::string_view, 6> kResources = {
      "limits.cpu",   "limits.ephemeral-storage",   "limits.memory",
      "requests.cpu", "requests.ephemeral-storage", "requests.memory"};
  const std::string_view resource = TextAt(field, "resource");
  if (wants_container && TextAt(field, "containerName").empty()) {
    AddRequired(errors, reference.At("containerName"));
  } else if (resource.empty()) {
    AddRequired(errors, reference.At("resource"));
  } else if (!resource.starts_with("limits.hugepages-") &&
             !resource.starts_with("requests.hugepages-")) {
    CheckEnum(errors, reference.At("resource"), resource, kResources);
  }
  CheckDivisor(errors, reference, field);
}

void CheckKeyRef(FieldErrors& errors, const Path& path, const Json& target) {
  const std::string_view name = TextAt(target, "name");
  const std::string_view key = TextAt(target, "key");
  AddInvalid(errors, path.At("name"), name, CheckDns1123Subdomain(name));
  CheckRequired(errors, path.At("key"), key, CheckConfigMapKey(key));
}

void CheckFileKeyRef(FieldErrors& errors, const Path& path, const Json& target) {
  const std::string_view key = TextAt(target, "key");
  const std::string_view volume = TextAt(target, "volumeName");
  const std::string_view file = TextAt(target, "path");
  CheckRequired(errors, path.At("key"), key, CheckEnvVarName(key));
  CheckRequired(errors, path.At("volumeName"), volume, CheckDns1123Label(volume));
  if (file.empty()) {
    AddRequired(errors, path.At("path"));
  } else {
    CheckNoBacksteps(errors, path.At("path"), file);
  }
}

void CheckEnvSource(FieldErrors& errors, const Path& path, const Json& variable) {
  const JsonObject& source = ObjectAt(variable, "valueFrom");
  if (FindPath(variable, "valueFrom") == nullptr) return;
  if (const Json* field = FindMember(source, "fieldRef")) {
    CheckFieldRef(errors, path.At("fieldRef"), *field, kForVariables);
  }
  if (const Json* field = FindMember(source, "resourceFieldRef")) {
    CheckResourceRef(errors, path.At("resourceFieldRef"), *field, false);
  }
  for (const std::string_view reference : {"configMapKeyRef", "secretKeyRef"}) {
    const Json* target = FindMember(source, reference);
    if (target != nullptr) CheckKeyRef(errors, path.At(reference), *target);
  }
  if (const Json* target = FindMember(source, "fileKeyRef")) {
    CheckFileKeyRef(errors, path.At("fileKeyRef"), *target);
  }
  if (source.empty()) {
    Refuse(errors, path, "",
           "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
           "`secretKeyRef` or `fileKeyRef`");
  } else if (!TextAt(variable, "value").empty()) {
    Refuse(errors, path, "", "may not be specified when `value` is not empty");
  } else if (source.size() > 1) {
    Refuse(errors, path, "", "may not have more than one field specified at a time");
  }
}

void CheckEnvFrom(FieldErrors& errors, const Path& container, const JsonArray& sources) {
  // Upstream names the list where a source has none or several.
  const Path list = container.At("envFrom");
  for (size_t i = 0; i < sources.size(); ++i) {
    const Path path = container.At("envFrom", i);
    const std::string_view prefix = TextAt(sources[i], "prefix");
    if (!prefix.empty()) AddInvalid(errors, path.At("prefix"), prefix, CheckEnvVarName(prefix));
    int count = 0;
    for (const std::string_view reference : {"configMapRef", "secretRef"}) {
      const Json* target = FindMember(sources[i], reference);
      if (target == nullptr) continue;
      ++count;
      const Path at = path.At(reference);
      const std::string_view name = TextAt(*target, "name");
      CheckRequired(errors, at.At("name"), name, CheckDns1123Subdomain(name));
    }
    if (count == 0) Refuse(errors, list, "", "must specify one of: `configMapRef` or `secretRef`");
    if (count > 1) Refuse(errors, list, "", "may not have more than one field specified at a time");
  }
}

}  // namespace

void CheckVariables(FieldErrors& errors, const Path& container, const Json& body) {
  const JsonArray& variables = ArrayAt(body, "env");
  for (size_t i = 0; i < variables.size(); ++i) {
    const Path path = container.At("env", i);
    const std::string_view name = TextAt(variables[i], "name");
    CheckRequired(errors, path.At("name"), name, CheckEnvVarName(name));
    CheckEnvSource(errors, path.At("valueFrom"), variables[i]);
  }
  CheckEnvFrom(errors, container, ArrayAt(body, "envFrom"));
}

void CheckDownwardFile(FieldErrors& errors, const Path& path, const Json& file) {
  constexpr int64_t kModeMax = 0777;
  const std::string_view where = TextAt(file, "path");
  if (where.empty()) AddRequired(errors, path.At("path"));
  CheckLocalPath(errors, path.At("path"), where);
  const Json* field = FindMember(file, "fieldRef");
  const Json* resource = FindMember(file, "resourceFieldRef");
  if (field != nullptr) {
    CheckFieldRef(errors, path.At("fieldRef"), *field, kForFiles);
    if (resource != nullptr) {
      Refuse(errors, path, "resource",
             "fieldRef and resourceFieldRef can not be specified simultaneously");
    }
  } else if (resource != nullptr) {
    CheckResourceRef(errors, path.At("resourceFieldRef"), *resource, true);
  } else {
    AddRequired(errors, path, "one of fieldRef and resourceFieldRef is required");
  }
  const int64_t mode = IntegerAt(file, "mode");
  if (mode < 0 || mode > kModeMax) {
    errors.push_back(InvalidField(path.At("mode").text(), mode,
                                  "must be a number between 0 and 0777 (octal), both inclusive"));
  }
}

void CheckVariableVolumes(FieldErrors& errors, const Path& spec_path, const Json& spec) {
  const JsonArray& volumes = ArrayAt(spec, "volumes");
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    const JsonArray& containers = ArrayAt(spec, list);
    for (size_t i = 0; i < containers.size(); ++i) {
      const Path container = spec_path.At(list, i);
      const JsonArray& variables = ArrayAt(containers[i], "env");
      for (size_t k = 0; k < variables.size(); ++k) {
        const Json* target = FindPath(variables[k], "valueFrom.fileKeyRef");
        if (target == nullptr) continue;
        const std::string_view name = TextAt(*target, "volumeName");
        const Path variable = container.At("env", k);
        const Path source = variable.At("valueFrom");
        const Path reference = source.At("fileKeyRef");
        const auto volume = std::ranges::find_if(
            volumes, [&](const Json& each) { return TextAt(each, "name") == name; });
        if (volume == volumes.end()) {
          errors.push_back(NotFoundField(reference.At("volumeName").text(), name));
        } else if (FindMember(*volume, "emptyDir") == nullptr) {
          Refuse(errors, reference.At("volumeName"), name,
                 "referenced volume must be of type emptyDir");
        }
      }
    }
  }
}

}  // namespace berth::api::rules
