#include "client/kubeconfig.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "codec/yaml.h"

namespace berth::client {
namespace {

using api::Json;
using api::JsonArray;
using api::JsonObject;

constexpr std::string_view kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount";

// One mapping of the file, with the path that errors name it by.
class Section {
 public:
  Section(const JsonObject& object, std::string path) : object_(&object), path_(std::move(path)) {}

  [[nodiscard]] const std::string& path() const { return path_; }

  [[nodiscard]] const Json* Find(std::string_view key) const {
    const Json* value = object_->if_contains(key);
    return value == nullptr || value->is_null() ? nullptr : value;
  }

  // A string; empty when there is none.
  [[nodiscard]] Result<std::string> Text(std::string_view key) const {
    const Json* value = Find(key);
    if (value == nullptr) return std::string();
    if (const auto* text = value->if_string()) return std::string(text->data(), text->size());
    return Fail(ErrorCode::kInvalid, fmt::format("{}.{}: must be a string", path_, key));
  }

  [[nodiscard]] Result<bool> Flag(std::string_view key) const {
    const Json* value = Find(key);
    if (value == nullptr) return false;
    if (const auto* flag = value->if_bool()) return *flag;
    return Fail(ErrorCode::kInvalid, fmt::format("{}.{}: must be true or false", path_, key));
  }

 private:
  const JsonObject* object_;
  std::string path_;
};

// clusters, users and contexts are lists of {name, <inner>}; of a name given twice the first
// counts, as in client-go.
Result<std::optional<Section>> Named(const Section& root, std::string_view list,
                                     std::string_view inner, std::string_view name) {
  const std::string list_path = fmt::format("{}: {}", root.path(), list);
  const Json* value = root.Find(list);
  if (value == nullptr) return std::nullopt;
  const JsonArray* array = value->if_array();
  if (array == nullptr) return Fail(ErrorCode::kInvalid, list_path + ": must be a list");
  for (size_t i = 0; i < array->size(); ++i) {
    const std::string path = fmt::format("{}[{}]", list_path, i);
    const JsonObject* entry = (*array)[i].if_object();
    if (entry == nullptr) return Fail(ErrorCode::kInvalid, path + ": must be a mapping");
    const Section section(*entry, path);
    const auto entry_name = section.Text("name");
    if (!entry_name) return std::unexpected(entry_name.error());
    if (*entry_name != name) continue;
    const Json* content = section.Find(inner);
    if (content == nullptr)
      return Fail(ErrorCode::kInvalid, fmt::format("{}.{}: is missing", path, inner));
    const JsonObject* object = content->if_object();
    if (object == nullptr) {
      return Fail(ErrorCode::kInvalid, fmt::format("{}.{}: must be a mapping", path, inner));
    }
    return Section(*object, fmt::format("{}.{}", path, inner));
  }
  return std::nullopt;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  std::string out;
  uint32_t bits = 0;
  int bits_count = 0;
  size_t symbols = 0;
  size_t padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == ' ') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    constexpr std::string_view kAlphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos || padding > 0) return std::nullopt;
    ++symbols;
    bits = (bits << 6 | static_cast<uint32_t>(value)) & 0xFFFFFF;
    bits_count += 6;
    if (bits_count >= 8) {
      bits_count -= 8;
      out.push_back(static_cast<char>(bits >> bits_count & 0xFF));
    }
  }
  if ((symbols + padding) % 4 != 0 || symbols % 4 == 1 || padding > 2) return std::nullopt;
  return out;
}

std::string Resolve(std::string_view kubeconfig, const std::string& file) {
  if (file.empty() || file.front() == '/') return file;
  const size_t slash = kubeconfig.rfind('/');
  if (slash == std::string_view::npos) return file;
  return std::string(kubeconfig.substr(0, slash + 1)) + file;
}

// KEY-data (base64) or KEY (a file); the data wins, as in client-go.
Result<Source> SourceOf(const Section& section, std::string_view key,
                        const KubeconfigOptions& options) {
  const std::string data_key = fmt::format("{}-data", key);
  const auto data = section.Text(data_key);
  if (!data) return std::unexpected(data.error());
  const auto file = section.Text(key);
  if (!file) return std::unexpected(file.error());
  if (data->empty()) return Source{.data = {}, .file = Resolve(options.path, *file)};
  auto decoded = DecodeBase64(*data);
  if (!decoded) {
    return Fail(ErrorCode::kInvalid, fmt::format("{}.{}: is not base64", section.path(), data_key));
  }
  return Source{.data = std::move(*decoded), .file = {}};
}

Status ReadCluster(const Section& cluster, const KubeconfigOptions& options, ServerConfig& config) {
  const auto server = cluster.Text("server");
  if (!server) return std::unexpected(server.error());
  if (server->empty()) {
    return Fail(ErrorCode::kInvalid, cluster.path() + ".server: is missing");
  }
  auto parsed = ParseServerUrl(*server);
  if (!parsed) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{}.server: {}", cluster.path(), parsed.error().message));
  }
  config = std::move(*parsed);
  if (cluster.Find("proxy-url") != nullptr) {
    return Fail(ErrorCode::kRefused, cluster.path() + ".proxy-url: proxies are not supported");
  }
  const auto name = cluster.Text("tls-server-name");
  if (!name) return std::unexpected(name.error());
  config.tls_server_name = *name;
  const auto insecure = cluster.Flag("insecure-skip-tls-verify");
  if (!insecure) return std::unexpected(insecure.error());
  config.insecure_skip_tls_verify = *insecure;
  auto authority = SourceOf(cluster, "certificate-authority", options);
  if (!authority) return std::unexpected(authority.error());
  config.certificate_authority = std::move(*authority);
  if (config.insecure_skip_tls_verify && !config.certificate_authority.none()) {
    return Fail(ErrorCode::kInvalid,
                cluster.path() +
                    ": specifying a root certificates file with the insecure flag is not allowed");
  }
  return {};
}

Status RefuseOthers(const Section& user) {
  struct Refusal {
    std::string_view field;
    std::string_view why;
  };
  constexpr std::array<Refusal, 8> kRefusals = {{
      {"exec", "exec credential plugins are not supported; use a token or a client certificate"},
      {"auth-provider",
       "auth-provider plugins are not supported; use a token or a client certificate"},
      {"username", "basic authentication is not supported; use a token or a client certificate"},
      {"password", "basic authentication is not supported; use a token or a client certificate"},
      {"as", "impersonation is not supported"},
      {"as-uid", "impersonation is not supported"},
      {"as-groups", "impersonation is not supported"},
      {"as-user-extra", "impersonation is not supported"},
  }};
  for (const Refusal& refusal : kRefusals) {
    if (user.Find(refusal.field) == nullptr) continue;
    return Fail(ErrorCode::kRefused,
                fmt::format("{}.{}: {}", user.path(), refusal.field, refusal.why));
  }
  return {};
}

Status ReadUser(const Section& user, const KubeconfigOptions& options, ServerConfig& config) {
  if (const Status refused = RefuseOthers(user); !refused) return refused;
  auto certificate = SourceOf(user, "client-certificate", options);
  if (!certificate) return std::unexpected(certificate.error());
  auto key = SourceOf(user, "client-key", options);
  if (!key) return std::unexpected(key.error());
  if (certificate->none() != key->none()) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{}: {} is missing: a client certificate needs its key and a key its "
                            "certificate",
                            user.path(), key->none() ? "client-key" : "client-certificate"));
  }
  config.client_certificate = std::move(*certificate);
  config.client_key = std::move(*key);
  const auto token = user.Text("token");
  if (!token) return std::unexpected(token.error());
  const auto file = user.Text("tokenFile");
  if (!file) return std::unexpected(file.error());
  config.token = file->empty() ? Source{.data = *token, .file = {}}
                               : Source{.data = {}, .file = Resolve(options.path, *file)};
  if (config.token.data.find_first_of("\r\n") != std::string::npos) {
    return Fail(ErrorCode::kInvalid, user.path() + ".token: must be one line");
  }
  return {};
}

Result<uint16_t> ParsePort(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) {
    return Fail(ErrorCode::kInvalid, fmt::format("port \"{}\" is not within 1 to 65535", text));
  }
  return port;
}

}  // namespace

Result<ServerConfig> ParseServerUrl(std::string_view url) {
  ServerConfig config;
  const auto bad = [&](std::string_view why) {
    return Fail(ErrorCode::kInvalid, fmt::format("\"{}\": {}", url, why));
  };
  std::string_view rest = url;
  const size_t scheme_end = rest.find("://");
  // client-go takes a bare host for http, and so do its users' files.
  config.scheme =
      scheme_end == std::string_view::npos ? "http" : std::string(rest.substr(0, scheme_end));
  if (scheme_end != std::string_view::npos) rest.remove_prefix(scheme_end + 3);
  if (config.scheme != "https" && config.scheme != "http") return bad("must be https or http");
  config.port = config.scheme == "https" ? 443 : 80;
  for (const char c : rest) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7F)
      return bad("must not hold spaces or control characters");
  }
  if (rest.find_first_of("?#") != std::string_view::npos) return bad("must not have a query");
  const size_t slash = rest.find('/');
  std::string_view authority = rest.substr(0, slash);
  if (slash != std::string_view::npos) config.base_path = rest.substr(slash);
  while (config.base_path.ends_with('/')) config.base_path.pop_back();
  if (authority.find('@') != std::string_view::npos) return bad("must not hold credentials");
  std::string_view port;
  if (authority.starts_with('[')) {
    const size_t end = authority.find(']');
    if (end == std::string_view::npos) return bad("the IPv6 address is not closed");
    config.host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
    if (!port.empty() && port.front() != ':') return bad("unknown text after the address");
  } else {
    const size_t colon = authority.find(':');
    config.host = authority.substr(0, colon);
    port = colon == std::string_view::npos ? std::string_view() : authority.substr(colon);
  }
  if (config.host.empty()) return bad("has no host");
  if (port.empty()) return config;
  const auto number = ParsePort(port.substr(1));
  if (!number) return bad(number.error().message);
  config.port = *number;
  return config;
}

Result<ServerConfig> ReadKubeconfig(const api::Json& document, const KubeconfigOptions& options) {
  const JsonObject* object = document.if_object();
  if (object == nullptr) {
    return Fail(ErrorCode::kInvalid, options.path + ": is not a kubeconfig: no mapping");
  }
  const Section root(*object, options.path);
  auto context_name = root.Text("current-context");
  if (!context_name) return std::unexpected(context_name.error());
  if (!options.context.empty()) context_name = options.context;
  if (context_name->empty()) {
    return Fail(ErrorCode::kInvalid, options.path + ": current-context: is not set");
  }
  const auto missing = [&](std::string_view what, std::string_view name) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{}: {} \"{}\" does not exist", options.path, what, name));
  };
  const auto context = Named(root, "contexts", "context", *context_name);
  if (!context) return std::unexpected(context.error());
  if (!*context) return missing("context", *context_name);
  const auto cluster_name = (*context)->Text("cluster");
  if (!cluster_name) return std::unexpected(cluster_name.error());
  const auto user_name = (*context)->Text("user");
  if (!user_name) return std::unexpected(user_name.error());
  const auto namespace_name = (*context)->Text("namespace");
  if (!namespace_name) return std::unexpected(namespace_name.error());

  const auto cluster = Named(root, "clusters", "cluster", *cluster_name);
  if (!cluster) return std::unexpected(cluster.error());
  if (!*cluster) return missing("cluster", *cluster_name);
  ServerConfig config;
  if (const Status read = ReadCluster(**cluster, options, config); !read) {
    return std::unexpected(read.error());
  }
  config.context = *context_name;
  config.namespace_name = *namespace_name;
  if (user_name->empty()) return config;
  const auto user = Named(root, "users", "user", *user_name);
  if (!user) return std::unexpected(user.error());
  if (!*user) return missing("user", *user_name);
  if (const Status read = ReadUser(**user, options, config); !read) {
    return std::unexpected(read.error());
  }
  return config;
}

Result<ServerConfig> ParseKubeconfig(std::string_view text, const KubeconfigOptions& options) {
  const auto documents = codec::ParseYaml(text);
  if (!documents) {
    return Fail(documents.error().code,
                fmt::format("{}: {}", options.path, documents.error().message));
  }
  if (documents->size() != 1) {
    return Fail(ErrorCode::kInvalid, fmt::format("{}: holds {} documents; a kubeconfig is one",
                                                 options.path, documents->size()));
  }
  return ReadKubeconfig(documents->front(), options);
}

Result<ServerConfig> InCluster(std::string_view host, std::string_view port) {
  if (host.empty() || port.empty()) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("in-cluster configuration: {} is not set: this is no pod of a cluster",
                            host.empty() ? "KUBERNETES_SERVICE_HOST" : "KUBERNETES_SERVICE_PORT"));
  }
  const auto number = ParsePort(port);
  if (!number) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("in-cluster configuration: KUBERNETES_SERVICE_PORT: {}",
                            number.error().message));
  }
  ServerConfig config;
  config.host = host;
  config.port = *number;
  config.certificate_authority.file = std::string(kServiceAccount) + "/ca.crt";
  config.token.file = std::string(kServiceAccount) + "/token";
  config.context = "in-cluster";
  return config;
}

}  // namespace berth::client
