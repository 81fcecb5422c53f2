// `berth queue`: asks the scheduler at /debug/queues and shows the tree.
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "cli/queue_text.h"
#include "cmd/commands.h"
#include "cmd/connect.h"

namespace berth::cmd {
namespace {

int Failed(const std::string& text) {
  fmt::print(stderr, "berth queue: {}\n", text);
  return cli::kFailed;
}

}  // namespace

int Queue(const cli::QueueOptions& options) {
  const Result<Endpoint> endpoint = FindEndpoint(options.connect);
  if (!endpoint) return Failed(endpoint.error().message);
  env::HttpRequest request;
  request.target = "/debug/queues";
  const Result<env::HttpResponse> answer =
      Ask(*endpoint, std::move(request), Duration::Seconds(30));
  if (!answer) return Failed(answer.error().message);
  if (options.json && answer->status == 200) {
    fmt::print("{}\n", answer->body.view());
    return cli::kOk;
  }
  const Result<std::string> text =
      cli::QueueText(answer->status, answer->body.view(), options.name);
  if (!text) return Failed(text.error().message);
  fmt::print("{}", *text);
  return cli::kOk;
}

}  // namespace berth::cmd
