// What loads a genuine API server beside a scheduler, and what takes its time.
//
//   berth_scheduler_load send --kubeconfig F --requests FILE [--connections 36]
//       Sends the requests of the file, so many at once, and prints what came of them. A line each:
//       METHOD TARGET CONTENT-TYPE BODY, with tabs between.
//   berth_scheduler_load watch --kubeconfig F --namespace N --pods COUNT
//       Prints "ready" once it watches, and when so many pods of the namespace have a node and its
//       events come no more, when each pod was seen to have one, and when the last event was there.
//
// Both print one line of JSON. Times are seconds of the monotonic clock, which is the same in all
// processes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <vector>

#include "load.h"
#include "net/certificates.h"

namespace {

using namespace berth;
using Clock = std::chrono::steady_clock;

// How long nothing may come before there is nothing more to come: with all that is expected, and
// with less.
constexpr auto kQuiet = std::chrono::milliseconds(500);
constexpr auto kQuietWithLess = std::chrono::seconds(20);
constexpr auto kAskAgain = std::chrono::milliseconds(20);

struct Options {
  cli::ConnectOptions connect;
  std::string requests;
  int connections = 36;
  std::string namespace_name;
  size_t pods = 0;
  int timeout_seconds = 900;
};

double At(Clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

double OwnCpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// The answers to calls that were sent all at once; the client has so many on their way as it has
// connections.
class Answers final : public env::InputSink {
 public:
  void Post(std::vector<env::Input> batch) override {
    const std::lock_guard lock(mutex_);
    for (const env::Input& input : batch) {
      if (const auto* answer = std::get_if<env::Response>(&input)) {
        const int status = answer->response.status;
        Count(status >= 200 && status < 300, answer->response.body.view());
        body_ = answer->response.body;
      } else if (std::holds_alternative<env::CallFailed>(input)) {
        Count(false, "no answer");
      }
    }
    if (answered_ >= wanted_) changed_.notify_all();
  }
  // False: not all are there in time.
  bool WaitFor(size_t count, Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    wanted_ = count;
    return changed_.wait_until(lock, deadline, [&] { return answered_ >= wanted_; });
  }
  // Read when nothing runs any more, or after WaitFor.
  [[nodiscard]] size_t answered() const { return answered_; }
  [[nodiscard]] size_t failed() const { return failed_; }
  [[nodiscard]] Clock::time_point last() const { return last_; }
  [[nodiscard]] std::string_view body() const { return body_.view(); }

 private:
  void Count(bool good, std::string_view told) {
    ++answered_;
    last_ = Clock::now();
    if (!good && failed_++ == 0) fmt::print(stderr, "scheduler_load: {}\n", told);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  size_t wanted_ = SIZE_MAX;
  size_t answered_ = 0;
  size_t failed_ = 0;
  Clock::time_point last_;
  Bytes body_;
};

std::optional<env::Method> MethodOf(std::string_view name) {
  if (name == "GET") return env::Method::kGet;
  if (name == "POST") return env::Method::kPost;
  if (name == "PUT") return env::Method::kPut;
  if (name == "PATCH") return env::Method::kPatch;
  if (name == "DELETE") return env::Method::kDelete;
  return std::nullopt;
}

// Nothing: the line is no request.
std::optional<env::HttpRequest> RequestIn(std::string_view line) {
  const auto next = [&line] {
    const size_t end = std::min(line.find('\t'), line.size());
    const std::string_view field = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    return field;
  };
  const auto method = MethodOf(next());
  if (!method) return std::nullopt;
  env::HttpRequest request;
  request.method = *method;
  request.target = next();
  request.headers = {{"accept", "application/json"}};
  const std::string_view type = next();
  if (!line.empty()) request.headers.push_back({"content-type", std::string(type)});
  request.body = Bytes(std::string(line));
  return request;
}

int Send(const Options& options) {
  std::ifstream in(options.requests);
  std::vector<env::Output> batch;
  for (std::string line; std::getline(in, line);) {
    auto request = RequestIn(line);
    if (!request) {
      fmt::print(stderr, "scheduler_load: {}: line {} is no request\n", options.requests,
                 batch.size() + 1);
      return 1;
    }
    env::SendRequest send;
    send.call = {batch.size() + 1};
    send.request = *std::move(request);
    send.timeout = Duration::Seconds(options.timeout_seconds);
    batch.emplace_back(std::move(send));
  }
  const auto connection = bench::Connect("scheduler_load", options.connect, options.connections);
  if (!connection) return 1;
  Answers answers;
  connection->client->Start(answers);
  const size_t count = batch.size();
  const double cpu = OwnCpuSeconds();
  const auto start = Clock::now();
  connection->client->Take(std::move(batch));
  const bool done = answers.WaitFor(count, start + std::chrono::seconds(options.timeout_seconds));
  connection->client->Stop();
  fmt::print(R"({{"count":{},"failed":{},"start":{:.6f},"end":{:.6f},"own_cpu_seconds":{:.3f}}})"
             "\n",
             answers.answered(), answers.failed(), At(start), At(answers.last()),
             OwnCpuSeconds() - cpu);
  return done && answers.failed() == 0 ? 0 : 1;
}

// When pods of a namespace came to have a node, told by watches one after the other, which go on
// where the last one was: a server that is busy ends them. They are asked for metadata alone, which
// costs it least.
class Bound final : public env::InputSink {
 public:
  explicit Bound(size_t wanted) : wanted_(wanted) {}

  void Post(std::vector<env::Input> batch) override {
    const std::lock_guard lock(mutex_);
    for (const env::Input& input : batch) {
      if (const auto* data = std::get_if<env::StreamData>(&input)) Take(data->data.view());
      if (const auto* answer = std::get_if<env::Response>(&input)) {
        open_ = answer->response.status == 200;
        ended_ = !open_;
      }
      if (std::holds_alternative<env::StreamEnded>(input) ||
          std::holds_alternative<env::CallFailed>(input)) {
        ended_ = true;
      }
    }
    if (ended_ || (open_ && times_.empty()) || times_.size() >= wanted_) changed_.notify_all();
  }
  // `wanted` 0: until the watch is open. `open_watch` sends the request for one, from a version on;
  // empty: from the beginning.
  template <typename OpenWatch>
  bool WaitFor(size_t wanted, Clock::time_point deadline, OpenWatch open_watch) {
    std::unique_lock lock(mutex_);
    while (!open_ || times_.size() < wanted) {
      if (ended_) {
        ended_ = false;
        rest_.clear();
        open_watch(++watches_, version_);
      }
      if (changed_.wait_until(lock, deadline) == std::cv_status::timeout) return false;
    }
    return true;
  }
  // Read when nothing runs any more.
  [[nodiscard]] const std::vector<double>& times() const { return times_; }
  [[nodiscard]] uint64_t watches() const { return watches_; }

 private:
  void Take(std::string_view data) {
    rest_ += data;
    size_t begin = 0;
    for (size_t end = 0; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      Frame(std::string_view(rest_).substr(begin, end - begin));
    }
    rest_.erase(0, begin);
  }
  void Frame(std::string_view frame) {
    constexpr std::string_view kName = R"("metadata":{"name":")";
    const size_t found = frame.find(kName);
    if (found == std::string_view::npos) {
      // The server no longer has the version.
      if (frame.starts_with(R"({"type":"ERROR")")) version_.clear();
      return;
    }
    constexpr std::string_view kVersion = R"("resourceVersion":")";
    const size_t version = frame.find(kVersion, found);
    if (version != std::string_view::npos) {
      const size_t begin = version + kVersion.size();
      version_ = frame.substr(begin, frame.find('"', begin) - begin);
    }
    const std::string_view name = frame.substr(found + kName.size());
    if (names_.emplace(name.substr(0, name.find('"'))).second) times_.push_back(At(Clock::now()));
  }

  const size_t wanted_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  bool ended_ = true;
  uint64_t watches_ = 0;
  std::string rest_;
  std::string version_;  // Of the last one that was told of.
  std::unordered_set<std::string> names_;
  std::vector<double> times_;
};

// Of what is metadata alone: `kind` PartialObjectMetadata or its list.
env::SendRequest Get(uint64_t call, std::string target, std::string_view kind) {
  env::SendRequest send;
  send.call = {call};
  send.request.target = std::move(target);
  send.request.headers = {
      {"accept", fmt::format("application/json;as={};g=meta.k8s.io;v=v1", kind)}};
  return send;
}

// Asks how many events a namespace has, by a connection that is kept: the server's part of a new
// one is as dear as several answers.
class EventCounter {
 public:
  explicit EventCounter(const Options& options)
      : target_(fmt::format("/apis/events.k8s.io/v1/namespaces/{}/events?limit=1",
                            options.namespace_name)),
        connection_(bench::Connect("scheduler_load", options.connect, 1)) {
    if (connection_) connection_->client->Start(answers_);
  }
  EventCounter(const EventCounter&) = delete;
  EventCounter& operator=(const EventCounter&) = delete;
  ~EventCounter() {
    if (connection_) connection_->client->Stop();
  }

  // Nothing: the server does not say.
  std::optional<size_t> Ask() {
    if (!connection_) return std::nullopt;
    std::vector<env::Output> one;
    one.emplace_back(Get(++asked_, target_, "PartialObjectMetadataList"));
    connection_->client->Take(std::move(one));
    const size_t failed = answers_.failed();
    const bool answered = answers_.WaitFor(asked_, Clock::now() + std::chrono::seconds(30));
    if (!answered || answers_.failed() > failed) return std::nullopt;
    const std::string_view body = answers_.body();
    constexpr std::string_view kLeft = R"("remainingItemCount":)";
    const size_t found = body.find(kLeft);
    if (found == std::string_view::npos) return body.contains(R"("items":[{)") ? 1 : 0;
    size_t left = 0;
    std::from_chars(body.data() + found + kLeft.size(), body.data() + body.size(), left);
    return left + 1;
  }

 private:
  const std::string target_;
  Answers answers_;
  std::optional<bench::Connection> connection_;
  uint64_t asked_ = 0;
};

struct Events {
  size_t count = 0;
  Clock::time_point last;
};

// Asks until no more come. Begins when all pods are bound, so that it costs the server nothing
// before that.
Events WaitForEvents(const Options& options) {
  EventCounter counter(options);
  Events events{.count = 0, .last = Clock::now()};
  while (true) {
    const auto count = counter.Ask();
    const auto now = Clock::now();
    if (count && *count != events.count) events = {.count = *count, .last = now};
    const auto quiet = events.count >= options.pods ? Clock::duration(kQuiet) : kQuietWithLess;
    if (now - events.last > quiet) return events;
    std::this_thread::sleep_for(kAskAgain);  // Asking costs the server that is measured.
  }
}

int Watch(const Options& options) {
  const auto connection = bench::Connect("scheduler_load", options.connect, 1);
  if (!connection) return 1;
  net::HttpsClient& client = *connection->client;
  Bound bound(options.pods);
  client.Start(bound);
  const auto open_watch = [&](uint64_t number, const std::string& version) {
    std::vector<env::Output> one;
    const std::string target = fmt::format(
        "/api/v1/namespaces/{}/pods?watch=1&fieldSelector=spec.nodeName%21%3D&resourceVersion={}",
        options.namespace_name, version);
    env::SendRequest watch = Get(number, target, "PartialObjectMetadata");
    watch.stream = true;
    one.emplace_back(std::move(watch));
    client.Take(std::move(one));
  };
  const auto deadline = Clock::now() + std::chrono::seconds(options.timeout_seconds);
  if (!bound.WaitFor(0, deadline, open_watch)) return 1;
  fmt::print("ready\n");
  std::fflush(stdout);
  const bool done = bound.WaitFor(options.pods, deadline, open_watch);
  const Events events = WaitForEvents(options);
  client.Stop();
  fmt::print(R"({{"events":{},"last_event":{:.6f},"watches":{},"bound":[{:.6f}]}})"
             "\n",
             events.count, At(events.last), bound.watches(), fmt::join(bound.times(), ","));
  return done ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("load beside a scheduler");
  app.require_subcommand(1);
  CLI::App* send = app.add_subcommand("send", "sends the requests of a file");
  send->add_option("--requests", options.requests)->required();
  send->add_option("--connections", options.connections)->check(CLI::Range(1, 1024));
  CLI::App* watch = app.add_subcommand("watch", "waits until pods are bound");
  watch->add_option("--namespace", options.namespace_name)->required();
  watch->add_option("--pods", options.pods)->required();
  for (CLI::App* command : {send, watch}) {
    command->add_option("--kubeconfig", options.connect.kubeconfig)->required();
    command->add_option("--timeout", options.timeout_seconds, "seconds that it may take");
  }
  CLI11_PARSE(app, argc, argv);
  return send->parsed() ? Send(options) : Watch(options);
}
