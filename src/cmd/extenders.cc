#include "cmd/extenders.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "api/base64.h"
#include "client/kubeconfig.h"
#include "config/effects.h"
#include "net/certificates.h"

namespace berth::cmd {
namespace {

constexpr Duration kTimeout = Duration::Seconds(5);  // Of one that names none.
static_assert(config::kExtendersMax == control::Extenders::kExtendersMax);

// Of FIELDData and FIELDFile the first counts.
Status ReadPem(std::string_view field, const std::string& data, const std::string& file,
               std::string& out) {
  if (!data.empty()) {
    out = api::DecodeBase64(data).value_or("");
    return {};
  }
  if (file.empty()) return {};
  Result<std::string> text = net::ReadFile(file);
  if (!text) return Fail(text.error().code, fmt::format("{}: {}", field, text.error().message));
  out = *std::move(text);
  return {};
}

Result<env::Endpoint> EndpointOf(const config::Extender& extender,
                                 const client::ServerConfig& server, const std::string& field,
                                 ExtenderFiles files) {
  const bool v6 = server.host.find(':') != std::string::npos;
  env::Endpoint to{.host = server.host,
                   .port = server.port,
                   .server_name = server.host,
                   .authority_pem = {},
                   .host_header = fmt::format("{}{}{}:{}", v6 ? "[" : "", server.host,
                                              v6 ? "]" : "", server.port),
                   .plain = server.scheme == "http"};
  if (extender.tls_config) {
    const config::ExtenderTls& tls = *extender.tls_config;
    to.insecure = tls.insecure;
    if (!tls.server_name.empty()) to.server_name = tls.server_name;
    if (files == ExtenderFiles::kLeft) return to;
    Status read = ReadPem(fmt::format("{}.tlsConfig.caFile", field), tls.ca_data, tls.ca_file,
                          to.authority_pem);
    if (read) {
      read = ReadPem(fmt::format("{}.tlsConfig.certFile", field), tls.cert_data, tls.cert_file,
                     to.certificate_pem);
    }
    if (read) {
      read = ReadPem(fmt::format("{}.tlsConfig.keyFile", field), tls.key_data, tls.key_file,
                     to.key_pem);
    }
    if (!read) return std::unexpected(read.error());
  }
  if (extender.enable_https && to.authority_pem.empty()) to.insecure = true;
  return to;
}

Result<control::ExtenderOptions> ExtenderOf(const config::Extender& extender,
                                            const std::string& field, ExtenderFiles files) {
  const Result<client::ServerConfig> server = client::ParseServerUrl(extender.url_prefix);
  if (!server) {
    return Fail(server.error().code,
                fmt::format("{}.urlPrefix: {}", field, server.error().message));
  }
  Result<env::Endpoint> to = EndpointOf(extender, *server, field, files);
  if (!to) return std::unexpected(to.error());
  std::string url = extender.url_prefix;
  while (url.ends_with('/')) url.pop_back();
  control::ExtenderOptions out{.url = std::move(url),
                               .to = std::make_shared<const env::Endpoint>(*std::move(to)),
                               .path = server->base_path,
                               .filter_verb = extender.filter_verb,
                               .prioritize_verb = extender.prioritize_verb,
                               .preempt_verb = extender.preempt_verb,
                               .bind_verb = extender.bind_verb,
                               .weight = extender.weight};
  out.timeout = extender.http_timeout == Duration{} ? kTimeout : extender.http_timeout;
  out.takes_names = extender.node_cache_capable;
  out.ignorable = extender.ignorable;
  for (const config::ManagedResource& one : extender.managed_resources)
    out.managed.push_back(one.name);
  return out;
}

}  // namespace

Result<std::vector<control::ExtenderOptions>> ExtendersOf(
    const config::SchedulerConfiguration& configuration, ExtenderFiles files) {
  std::vector<control::ExtenderOptions> out;
  for (size_t i = 0; i < configuration.extenders.size(); ++i) {
    Result<control::ExtenderOptions> one =
        ExtenderOf(configuration.extenders[i], fmt::format("extenders[{}]", i), files);
    if (!one) return std::unexpected(one.error());
    out.push_back(*std::move(one));
  }
  std::ranges::stable_partition(out,
                                [](const control::ExtenderOptions& one) { return !one.ignorable; });
  return out;
}

std::vector<std::string> IgnoredResourcesOf(const config::SchedulerConfiguration& configuration) {
  std::vector<std::string> out;
  for (const config::Extender& extender : configuration.extenders) {
    for (const config::ManagedResource& one : extender.managed_resources) {
      if (one.ignored_by_scheduler) out.push_back(one.name);
    }
  }
  return out;
}

}  // namespace berth::cmd
