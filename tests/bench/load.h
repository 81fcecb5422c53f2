#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "cmd/connect.h"
#include "net/client.h"

// What the programs that load a server share.
namespace berth::bench {

// The CPU that a process or thread has used so far.
struct CpuTime {
  std::string name;
  double seconds = 0;
};

// Of its `stat` in /proc (proc(5)); nothing: it is gone.
inline std::optional<CpuTime> CpuTimeIn(const std::filesystem::path& stat) {
  std::ifstream in(stat);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  // The name may have brackets and blanks of its own.
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return std::nullopt;
  std::istringstream rest(text.substr(close + 2));
  std::string skipped;
  constexpr int kBeforeTimes = 11;
  for (int i = 0; i < kBeforeTimes; ++i) rest >> skipped;
  double user = 0;
  double system = 0;
  rest >> user >> system;
  return CpuTime{.name = text.substr(open + 1, close - open - 1),
                 .seconds = (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK))};
}

struct Connection {
  net::ClientOptions transport;
  std::unique_ptr<net::HttpsClient> client;
};

// To the server that the options name, by so many connections at most. Nothing: `program` has said
// on stderr why.
inline std::optional<Connection> Connect(std::string_view program,
                                         const cli::ConnectOptions& options, int connections_max) {
  Result<cmd::Endpoint> endpoint = cmd::FindEndpoint(options);
  if (!endpoint) {
    fmt::print(stderr, "{}: {}\n", program, endpoint.error().message);
    return std::nullopt;
  }
  Connection connection{.transport = std::move(endpoint->transport), .client = nullptr};
  connection.transport.path_prefix = endpoint->base_path;
  connection.transport.connections_max = connections_max;
  auto client = net::HttpsClient::Make(connection.transport);
  if (!client) {
    fmt::print(stderr, "{}: {}\n", program, client.error().message);
    return std::nullopt;
  }
  connection.client = std::move(*client);
  return connection;
}

}  // namespace berth::bench
