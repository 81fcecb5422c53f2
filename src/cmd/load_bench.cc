// A load for an API server: creates pods over HTTPS by some connections, watches them being bound
// and running, and tells the rates as JSON. tests/bench runs it; it knows nothing of berth's inside
// but the client's half of net/, so that it measures a genuine API server just as well.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cmd/connect.h"
#include "env/actor.h"
#include "env/port.h"
#include "net/client.h"

namespace berth::cmd {
namespace {

using Clock = std::chrono::steady_clock;

struct LoadOptions {
  cli::ConnectOptions connect;
  std::string namespace_name = "default";
  int64_t pods = 10000;
  int connections = 16;
  std::string cpu = "100m";
  std::string memory = "500Mi";
  bool wait_running = false;
  int64_t seconds_max = 600;
};

// What was seen, and when. Times are seconds since the first create was handed to the client.
struct Progress {
  int64_t created = 0;
  int64_t bound = 0;
  int64_t running = 0;
  double created_at = 0;
  double bound_at = 0;
  double running_at = 0;
  std::string problem;
};

double Percentile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<size_t>(last * share)];
}

// The value of the first member `name` of a watch event's line; the lines are compact JSON.
std::string_view Member(std::string_view line, std::string_view name) {
  const std::string key = fmt::format("\"{}\":\"", name);
  const size_t begin = line.find(key);
  if (begin == std::string_view::npos) return {};
  const size_t end = line.find('"', begin + key.size());
  if (end == std::string_view::npos) return {};
  return line.substr(begin + key.size(), end - begin - key.size());
}

// Runs on the client's thread; Wait() on the caller's.
class Load final : public env::InputSink {
 public:
  Load(LoadOptions options, net::HttpsClient& client, std::string base_path)
      : options_(std::move(options)),
        client_(client),
        path_(fmt::format("{}/api/v1/namespaces/{}/pods", base_path, options_.namespace_name)),
        body_(fmt::format(
            R"(","labels":{{"app":"load"}}}},"spec":{{"containers":[{{"name":"c","image":"load:1",)"
            R"("resources":{{"requests":{{"cpu":"{}","memory":"{}"}}}}}}]}}}})",
            options_.cpu, options_.memory)) {}

  void Begin() {
    const std::lock_guard lock(mutex_);
    env::HttpRequest watch{.method = env::Method::kGet,
                           .target = path_ +
                                     "?watch=true&fieldSelector=spec.nodeName%21%3D"
                                     "&labelSelector=app%3Dload",
                           .headers = {{"accept", "application/json"}},
                           .body = {}};
    std::vector<env::Output> batch;
    batch.emplace_back(
        env::SendRequest{.call = {kWatch}, .request = std::move(watch), .stream = true});
    client_.Take(std::move(batch));
  }

  void Post(std::vector<env::Input> inputs) override {
    const std::lock_guard lock(mutex_);
    for (env::Input& input : inputs) {
      if (const auto* response = std::get_if<env::Response>(&input)) OnResponse(*response);
      if (const auto* data = std::get_if<env::StreamData>(&input)) OnData(data->data.view());
      if (std::get_if<env::StreamEnded>(&input) != nullptr) Fault("the watch ended");
      if (const auto* failed = std::get_if<env::CallFailed>(&input)) {
        Fault(fmt::format("call {} got no answer", failed->call.value));
      }
    }
    changed_.notify_all();
  }

  Progress Wait() {
    std::unique_lock lock(mutex_);
    const auto limit = std::chrono::seconds(options_.seconds_max);
    const auto done = [this] {
      const int64_t last = options_.wait_running ? progress_.running : progress_.bound;
      return !progress_.problem.empty() || last >= options_.pods;
    };
    if (!changed_.wait_for(lock, limit, done)) {
      progress_.problem = fmt::format("not done after {} s", options_.seconds_max);
    }
    return progress_;
  }

  std::vector<double> create_ms() {
    const std::lock_guard lock(mutex_);
    return create_ms_;
  }
  std::vector<double> bind_ms() {
    const std::lock_guard lock(mutex_);
    return bind_ms_;
  }

 private:
  static constexpr uint64_t kWatch = 1;
  static constexpr uint64_t kFirstCreate = 2;

  void Fault(std::string text) {
    if (progress_.problem.empty()) progress_.problem = std::move(text);
  }
  [[nodiscard]] double Now() const {
    return std::chrono::duration<double>(Clock::now() - begin_).count();
  }

  void OnResponse(const env::Response& response) {
    const int status = response.response.status;
    if (response.call.value == kWatch) {
      if (status != 200) return Fault(fmt::format("the watch was answered with {}", status));
      begin_ = Clock::now();
      for (int i = 0; i < options_.connections; ++i) Create();
      return;
    }
    if (status != 201) {
      return Fault(fmt::format("a create was answered with {}: {}", status,
                               response.response.body.view().substr(0, 300)));
    }
    const double now = Now();
    create_ms_.push_back((now - sent_at_[response.call.value]) * 1000);
    sent_at_.erase(response.call.value);
    ++progress_.created;
    progress_.created_at = now;
    Create();
  }

  void Create() {
    if (next_ >= options_.pods) return;
    const int64_t index = next_++;
    const uint64_t call = kFirstCreate + static_cast<uint64_t>(index);
    const std::string name = fmt::format("load-{:06}", index);
    env::HttpRequest request{
        .method = env::Method::kPost,
        .target = path_,
        .headers = {{"content-type", "application/json"}, {"accept", "application/json"}},
        .body = Bytes(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name + body_)};
    std::vector<env::Output> batch;
    batch.emplace_back(env::SendRequest{.call = {call},
                                        .request = std::move(request),
                                        .stream = false,
                                        .timeout = Duration::Seconds(120)});
    const double now = Now();
    sent_at_[call] = now;
    created_by_name_[name] = now;
    client_.Take(std::move(batch));
  }

  void OnData(std::string_view data) {
    buffer_ += data;
    size_t begin = 0;
    for (size_t end = buffer_.find('\n'); end != std::string::npos;
         end = buffer_.find('\n', begin)) {
      OnLine(std::string_view(buffer_).substr(begin, end - begin));
      begin = end + 1;
    }
    buffer_.erase(0, begin);
  }

  void OnLine(std::string_view line) {
    const std::string_view type = Member(line, "type");
    if (type == "ERROR") return Fault(fmt::format("the watch told {}", line.substr(0, 300)));
    const std::string_view name = Member(line, "name");
    if (type == "ADDED") {
      const double now = Now();
      ++progress_.bound;
      progress_.bound_at = now;
      const auto created = created_by_name_.find(std::string(name));
      if (created != created_by_name_.end()) bind_ms_.push_back((now - created->second) * 1000);
    }
    if (line.find(R"("phase":"Running")") == std::string_view::npos) return;
    if (!running_.insert(std::string(name)).second) return;
    progress_.running = static_cast<int64_t>(running_.size());
    progress_.running_at = Now();
  }

  const LoadOptions options_;
  net::HttpsClient& client_;
  const std::string path_;
  const std::string body_;

  std::mutex mutex_;
  std::condition_variable changed_;
  Clock::time_point begin_;
  int64_t next_ = 0;
  Progress progress_;
  std::string buffer_;
  std::unordered_map<uint64_t, double> sent_at_;
  std::unordered_map<std::string, double> created_by_name_;
  std::unordered_set<std::string> running_;
  std::vector<double> create_ms_;
  std::vector<double> bind_ms_;
};

double Rate(int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

int RunLoad(const LoadOptions& options) {
  Result<Endpoint> endpoint = FindEndpoint(options.connect);
  if (!endpoint) {
    fmt::print(stderr, "load: {}\n", endpoint.error().message);
    return 1;
  }
  net::ClientOptions transport = endpoint->transport;
  transport.bearer_token = endpoint->bearer_token;
  transport.connections_max = options.connections;
  auto client = net::HttpsClient::Make(std::move(transport));
  if (!client) {
    fmt::print(stderr, "load: {}\n", client.error().message);
    return 1;
  }
  Load load(options, **client, endpoint->base_path);
  (*client)->Start(load);
  load.Begin();
  const Progress progress = load.Wait();
  (*client)->Stop();
  std::vector<double> create_ms = load.create_ms();
  std::vector<double> bind_ms = load.bind_ms();
  fmt::print(
      "{{\"pods\":{},\"connections\":{},\"created\":{},\"create_seconds\":{:.4f},"
      "\"create_per_second\":{:.1f},\"bound\":{},\"bind_seconds\":{:.4f},"
      "\"bind_per_second\":{:.1f},\"running\":{},\"running_seconds\":{:.4f},"
      "\"create_ms_p50\":{:.3f},\"create_ms_p99\":{:.3f},\"bind_ms_p50\":{:.3f},"
      "\"bind_ms_p99\":{:.3f}}}\n",
      options.pods, options.connections, progress.created, progress.created_at,
      Rate(progress.created, progress.created_at), progress.bound, progress.bound_at,
      Rate(progress.bound, progress.bound_at), progress.running, progress.running_at,
      Percentile(create_ms, 0.5), Percentile(create_ms, 0.99), Percentile(bind_ms, 0.5),
      Percentile(bind_ms, 0.99));
  if (progress.problem.empty()) return 0;
  fmt::print(stderr, "load: {}\n", progress.problem);
  return 1;
}

constexpr char kUsage[] =
    R"(usage: berth_load --kubeconfig=FILE [OPTIONS]
Creates pods and waits until they are bound; prints the rates as JSON.
  --namespace=NAME    where the pods go [default]
  --pods=N            how many [10000]
  --connections=N     creates on their way at once [16]
  --cpu=Q, --memory=Q requests of each pod [100m, 500Mi]
  --seconds-max=N     gives up after so long [600]
  --wait-running      waits until the pods run, too
)";

// True when `argument` is NAME=VALUE; the value is then in `value`.
bool Takes(std::string_view argument, std::string_view name, std::string_view& value) {
  if (!argument.starts_with(name) || argument.substr(name.size()).substr(0, 1) != "=") return false;
  value = argument.substr(name.size() + 1);
  return true;
}

template <typename T>
bool ReadNumber(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && number > 0;
}

bool Parse(const std::vector<std::string_view>& arguments, LoadOptions& options) {
  for (const std::string_view argument : arguments) {
    std::string_view value;
    bool good = true;
    if (Takes(argument, "--kubeconfig", value)) {
      options.connect.kubeconfig = value;
    } else if (Takes(argument, "--namespace", value)) {
      options.namespace_name = value;
    } else if (Takes(argument, "--pods", value)) {
      good = ReadNumber(value, options.pods);
    } else if (Takes(argument, "--connections", value)) {
      good = ReadNumber(value, options.connections);
    } else if (Takes(argument, "--cpu", value)) {
      options.cpu = value;
    } else if (Takes(argument, "--memory", value)) {
      options.memory = value;
    } else if (Takes(argument, "--seconds-max", value)) {
      good = ReadNumber(value, options.seconds_max);
    } else if (argument == "--wait-running") {
      options.wait_running = true;
    } else {
      good = false;
    }
    if (!good) {
      fmt::print(stderr, "load: bad argument {}\n{}", argument, kUsage);
      return false;
    }
  }
  if (options.connect.kubeconfig.empty()) fmt::print(stderr, "{}", kUsage);
  return !options.connect.kubeconfig.empty();
}

}  // namespace
}  // namespace berth::cmd

int main(int argc, char** argv) {
  berth::cmd::LoadOptions options;
  if (!berth::cmd::Parse({argv + 1, argv + argc}, options)) return 2;
  return berth::cmd::RunLoad(options);
}
