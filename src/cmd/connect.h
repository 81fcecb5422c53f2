#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "cli/command_line.h"
#include "client/kubeconfig.h"
#include "net/client.h"

// How the commands that are clients reach their API server.
namespace berth::cmd {

struct Endpoint {
  net::ClientOptions transport;  // Has the credentials.
  std::string base_path;         // Before every path.
  std::string namespace_name;    // Of the context; may be empty.
  std::string where;             // For messages: https://HOST:PORT.
};

// Reads the kubeconfig and all files it names, or the pod's account.
Result<Endpoint> FindEndpoint(const cli::ConnectOptions& options);

// The scheduler that the options name; behind that API server where they name none. Errors: an
// address or a file that can't be read, with the option.
Result<Endpoint> SchedulerAt(const Endpoint& api, const cli::SchedulerAddress& address);

// As Ask. The error says what may lack when it can't be trusted.
Result<env::HttpResponse> AskScheduler(const Endpoint& scheduler,
                                       const cli::SchedulerAddress& address,
                                       env::HttpRequest request);

// One request, waited for. The error says what went wrong on the way; an answer of any status is an
// answer.
Result<env::HttpResponse> Ask(const Endpoint& endpoint, env::HttpRequest request, Duration timeout);

}  // namespace berth::cmd
