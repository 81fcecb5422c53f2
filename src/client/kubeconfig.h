#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/json.h"
#include "base/result.h"

// How to reach an API server, and as whom: from a kubeconfig file or from what Kubernetes mounts
// into a pod. Pure: the functions take text and say which files are wanted; cmd/ reads them.
namespace berth::client {

// Text that a configuration holds itself or names a file for. Both empty: there is none.
struct Source {
  std::string data = {};  // Decoded: PEM text.
  std::string file = {};  // Absolute if the kubeconfig's own path is.
  [[nodiscard]] bool none() const { return data.empty() && file.empty(); }
  bool operator==(const Source&) const = default;
};

struct ServerConfig {
  std::string scheme = "https";
  std::string host = {};  // Without brackets if it is an IPv6 address.
  uint16_t port = 443;
  std::string base_path = {};  // Without a slash at its end.
  std::string tls_server_name = {};
  bool insecure_skip_tls_verify = false;
  Source certificate_authority = {};
  // As whom. Without any: anonymous.
  Source client_certificate = {};
  Source client_key = {};
  Source token = {};  // A token file's content wins over a token, as in client-go; spaces around it
                      // don't count.
  std::string namespace_name = {};
  std::string context = {};
  bool operator==(const ServerConfig&) const = default;
};

struct KubeconfigOptions {
  // Named in errors; relative file names in it are relative to its directory.
  std::string path = "kubeconfig";
  std::string context = {};  // Instead of current-context.
};

// Reads a kubeconfig (YAML or JSON). Fails with kInvalid naming file and field; with kRefused for
// what berth does not do: exec and auth-provider plugins, basic authentication, impersonation,
// proxies.
[[nodiscard]] Result<ServerConfig> ParseKubeconfig(std::string_view text,
                                                   const KubeconfigOptions& options);

// The same of a document that is parsed already.
[[nodiscard]] Result<ServerConfig> ReadKubeconfig(const api::Json& document,
                                                  const KubeconfigOptions& options);

// The configuration inside a pod, of the values of KUBERNETES_SERVICE_HOST and
// KUBERNETES_SERVICE_PORT.
[[nodiscard]] Result<ServerConfig> InCluster(std::string_view host, std::string_view port);

// The parts of "https://host:port/path". Fails on other schemes, missing hosts, bad ports, queries.
[[nodiscard]] Result<ServerConfig> ParseServerUrl(std::string_view url);

}  // namespace berth::client
