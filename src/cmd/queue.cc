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
  const Result<Endpoint> api = FindEndpoint(options.connect);
  if (!api) return Failed(api.error().message);
  const Result<Endpoint> scheduler = SchedulerAt(*api, options.scheduler);
  if (!scheduler) return Failed(scheduler.error().message);
  env::HttpRequest request;
  request.target = "/debug/queues";
  const Result<env::HttpResponse> answer =
      AskScheduler(*scheduler, options.scheduler, std::move(request));
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
