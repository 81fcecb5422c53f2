// Load on an API server over HTTPS: creates N pods on C connections as fast as they are taken,
// watches until all are bound (or running), and prints rates, the disk's fdatasync and the CPU of
// the processes. Works on any Kubernetes API server: a watch that the server ends is begun anew.
//
//   berth_api_load --kubeconfig F --pods 10000 --connections 16 [--until bound|running] [--json]
//                  [--pid PID]... [--disk DIR]
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "load.h"
#include "net/certificates.h"

namespace {

using namespace berth;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kFirstPodCall = 1000;  // Those below are watches.

struct Options {
  cli::ConnectOptions connect;
  int64_t pods = 10'000;
  int connections = 16;
  int classes = 20;
  std::string until = "bound";
  bool json = false;
  std::vector<int> pids;
  std::string disk;
  std::string namespace_name = "default";
  int timeout_seconds = 600;
};

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string PodJson(const Options& options, int64_t index) {
  const int64_t cpu = 10 + index % options.classes;
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"load-{:06}","namespace":"{}","labels":{{"app":"load","class":"c{}"}}}},)"
      R"("spec":{{"containers":[{{"name":"main","image":"registry.example/load:1","resources":{{"requests":{{"cpu":"{}m","memory":"16Mi"}}}}}}]}}}})",
      index, options.namespace_name, index % options.classes, cpu);
}

enum class WatchStage : uint8_t { kAsked, kOpen, kEnded, kRefused };

// Counts pods from the frames of watches, one after the other; each begins with the pods that there
// are. Bound and running are found by their bytes: whole decoding would cost more than the server.
class Watcher final : public env::InputSink {
 public:
  void Post(std::vector<env::Input> batch) override {
    const std::lock_guard lock(mutex_);
    for (env::Input& input : batch) {
      if (const auto* data = std::get_if<env::StreamData>(&input)) Take(data->data.view());
      if (const auto* response = std::get_if<env::Response>(&input)) Answered(*response);
      if (const auto* failed = std::get_if<env::CallFailed>(&input)) Failed(*failed);
      if (std::holds_alternative<env::StreamEnded>(input)) watch_ = WatchStage::kEnded;
    }
    // A thread that wakes to find that it has to go on waiting takes time from the server.
    if (awaited_ &&
        (watch_ == WatchStage::kEnded || watch_ == WatchStage::kRefused || awaited_())) {
      changed_.notify_all();
    }
  }
  // False when the time is over, no watch is to be had or so many have ended that there is no id
  // for another. `open_watch` sends the request of the watch with the id that it is given.
  template <typename OpenWatch>
  bool WaitFor(Clock::time_point deadline, std::function<bool()> condition, OpenWatch open_watch) {
    std::unique_lock lock(mutex_);
    awaited_ = condition;
    while (!condition()) {
      if (watch_ == WatchStage::kRefused) return false;
      if (watch_ == WatchStage::kEnded) {
        if (++watches_count_ == kFirstPodCall) return false;
        watch_ = WatchStage::kAsked;
        rest_.clear();
        open_watch(watches_count_);
      }
      if (changed_.wait_until(lock, deadline) == std::cv_status::timeout) return condition();
    }
    return true;
  }
  // Read under WaitFor's lock, or when nothing runs any more.
  WatchStage watch_ = WatchStage::kEnded;
  uint64_t watches_count_ = 0;
  int64_t created_ = 0;
  int64_t answered_ = 0;
  int64_t failed_ = 0;
  std::unordered_set<std::string> bound_;
  std::unordered_set<std::string> running_;
  Clock::time_point last_created_;
  Clock::time_point last_bound_;
  Clock::time_point last_running_;

 private:
  void Answered(const env::Response& response) {
    if (response.call.value < kFirstPodCall) {
      watch_ = response.response.status == 200 ? WatchStage::kOpen : WatchStage::kRefused;
      if (watch_ == WatchStage::kRefused) Tell("watch", response);
      return;
    }
    ++answered_;
    if (response.response.status == 201) {
      ++created_;
      last_created_ = Clock::now();
      return;
    }
    if (failed_++ == 0) Tell("create", response);
  }
  void Failed(const env::CallFailed& failed) {
    if (failed.call.value < kFirstPodCall) {
      watch_ = WatchStage::kRefused;
      return;
    }
    ++failed_;
    ++answered_;
  }
  static void Tell(const char* what, const env::Response& response) {
    fmt::print(stderr, "{}: {} {}\n", what, response.response.status,
               response.response.body.view());
  }
  void Take(std::string_view data) {
    rest_ += data;
    size_t begin = 0;
    for (size_t end = 0; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      Frame(std::string_view(rest_).substr(begin, end - begin));
    }
    rest_.erase(0, begin);
  }
  void Frame(std::string_view frame) {
    const size_t found = frame.find("\"name\":\"load-");
    if (found == std::string_view::npos) {
      if (frame.find("\"type\":\"ERROR\"") != std::string_view::npos) {
        fmt::print(stderr, "watch: {}\n", frame);
      }
      return;
    }
    const std::string name(frame.substr(found + 8, 11));
    // The watch only tells of pods that are bound.
    if (bound_.insert(name).second) last_bound_ = Clock::now();
    if (frame.find("\"phase\":\"Running\"") == std::string_view::npos) return;
    if (running_.insert(name).second) last_running_ = Clock::now();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<bool()> awaited_;
  std::string rest_;
};

// CPU seconds of each thread of a process, by name.
std::map<std::string, double> CpuOf(int pid) {
  std::map<std::string, double> all;
  std::error_code error;
  for (const auto& task :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), error)) {
    if (const auto used = bench::CpuTimeIn(task.path() / "stat")) all[used->name] += used->seconds;
  }
  return all;
}

int64_t ResidentMib(int pid) {
  std::ifstream in(fmt::format("/proc/{}/statm", pid));
  int64_t size = 0;
  int64_t resident = 0;
  in >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE) / (1024 * 1024);
}

// The median time of a write of 4 KiB made durable.
double FdatasyncP50Ms(const std::string& folder) {
  const std::string path = folder + "/berth-fdatasync-probe";
  const int file = open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return -1;
  const std::string block(4096, 'x');
  std::vector<double> times;
  for (int i = 0; i < 200; ++i) {
    const auto start = Clock::now();
    if (write(file, block.data(), block.size()) < 0 || fdatasync(file) != 0) break;
    times.push_back(Seconds(Clock::now() - start) * 1000);
  }
  close(file);
  unlink(path.c_str());
  if (times.empty()) return -1;
  std::ranges::nth_element(times, times.begin() + static_cast<ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

env::SendRequest Watch(const Options& options, uint64_t number) {
  env::SendRequest send;
  send.call = {number};
  send.request.target = fmt::format(
      "/api/v1/namespaces/{}/"
      "pods?watch=1&labelSelector=app%3Dload&fieldSelector=spec.nodeName%21%3D",
      options.namespace_name);
  send.stream = true;
  return send;
}

env::SendRequest Create(const Options& options, int64_t index) {
  env::SendRequest send;
  send.call = {kFirstPodCall + static_cast<uint64_t>(index)};
  send.request.method = env::Method::kPost;
  send.request.target = fmt::format("/api/v1/namespaces/{}/pods", options.namespace_name);
  send.request.headers = {{"content-type", "application/json"}, {"accept", "application/json"}};
  send.request.body = Bytes(PodJson(options, index));
  send.timeout = Duration::Seconds(options.timeout_seconds);
  return send;
}

void PrintCpu(const Options& options, const std::map<int, std::map<std::string, double>>& before) {
  for (const int pid : options.pids) {
    double sum = 0;
    std::string threads;
    for (const auto& [name, seconds] : CpuOf(pid)) {
      const auto& old = before.at(pid);
      const double used = seconds - (old.contains(name) ? old.at(name) : 0);
      sum += used;
      threads += fmt::format(" {} {:.2f}", name, used);
    }
    fmt::print("cpu of process {}: {:.2f} s ({} MiB resident):{}\n", pid, sum, ResidentMib(pid),
               threads);
  }
}

double OwnCpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double Rate(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }

// REQUIRES: the client has been stopped.
void PrintText(const Options& options, const Watcher& watcher, Clock::time_point start) {
  const double creating = Seconds(watcher.last_created_ - start);
  fmt::print("{} pods created by {} connections in {:.2f} s: {:.0f}/s ({} failed)\n",
             watcher.created_, options.connections, creating,
             Rate(static_cast<double>(watcher.created_), creating), watcher.failed_);
  const auto print = [&](const char* what, size_t count, Clock::time_point last) {
    const double seconds = count == 0 ? 0 : Seconds(last - start);
    fmt::print("{} pods {} {:.2f} s after the first create: {:.0f}/s\n", count, what, seconds,
               Rate(static_cast<double>(count), seconds));
  };
  print("bound", watcher.bound_.size(), watcher.last_bound_);
  print("running", watcher.running_.size(), watcher.last_running_);
}

// One line. REQUIRES: the client has been stopped.
void PrintJson(const Watcher& watcher, Clock::time_point start, double own_cpu) {
  const auto seconds = [&](size_t count, Clock::time_point last) {
    return count == 0 ? 0 : Seconds(last - start);
  };
  fmt::print(
      R"({{"created":{},"create_seconds":{:.4f},"failed":{},"bound":{},"bind_seconds":{:.4f},)"
      R"("running":{},"running_seconds":{:.4f},"watches":{},"own_cpu_seconds":{:.3f}}})"
      "\n",
      watcher.created_, seconds(static_cast<size_t>(watcher.created_), watcher.last_created_),
      watcher.failed_, watcher.bound_.size(), seconds(watcher.bound_.size(), watcher.last_bound_),
      watcher.running_.size(), seconds(watcher.running_.size(), watcher.last_running_),
      watcher.watches_count_, own_cpu);
}

int Run(const Options& options) {
  const auto connection = bench::Connect("api_load", options.connect, options.connections);
  if (!connection) return 1;
  net::HttpsClient& client = *connection->client;
  Watcher watcher;
  client.Start(watcher);
  const auto open_watch = [&](uint64_t number) {
    std::vector<env::Output> one;
    one.emplace_back(Watch(options, number));
    client.Take(std::move(one));
  };
  if (!watcher.WaitFor(
          Clock::now() + std::chrono::seconds(10),
          [&] { return watcher.watch_ == WatchStage::kOpen; }, open_watch)) {
    fmt::print(stderr, "api_load: no watch\n");
    return 1;
  }
  std::map<int, std::map<std::string, double>> cpu;
  std::vector<env::Output> batch;
  for (int64_t i = 0; i < options.pods; ++i) batch.emplace_back(Create(options, i));
  for (const int pid : options.pids) cpu[pid] = CpuOf(pid);
  const double own_cpu_before = OwnCpuSeconds();
  const auto start = Clock::now();
  const auto deadline = start + std::chrono::seconds(options.timeout_seconds);
  client.Take(std::move(batch));
  const auto& reached = options.until == "running" ? watcher.running_ : watcher.bound_;
  const bool done = watcher.WaitFor(
      deadline,
      [&] {
        return watcher.answered_ == options.pods &&
               static_cast<int64_t>(reached.size()) >= watcher.created_;
      },
      open_watch);
  const double own_cpu = OwnCpuSeconds() - own_cpu_before;
  client.Stop();
  if (!done) fmt::print(stderr, "api_load: not all pods got there\n");
  if (options.json) {
    PrintJson(watcher, start, own_cpu);
  } else {
    PrintText(options, watcher, start);
    if (!options.disk.empty()) {
      fmt::print("fdatasync p50 {:.2f} ms\n", FdatasyncP50Ms(options.disk));
    }
    PrintCpu(options, cpu);
    fmt::print("cpu of this client: {:.2f} s\n", own_cpu);
  }
  return done && watcher.failed_ == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("load on an API server: creates pods and waits for them");
  app.add_option("--kubeconfig", options.connect.kubeconfig);
  app.add_option("--pods", options.pods)->check(CLI::Range(1, 200'000));
  app.add_option("--connections", options.connections)->check(CLI::Range(1, 1024));
  app.add_option("--classes", options.classes, "different requests among the pods")
      ->check(CLI::Range(1, 1000));
  app.add_option("--until", options.until)->check(CLI::IsMember({"bound", "running"}));
  app.add_flag("--json", options.json, "prints one line of JSON");
  app.add_option("--pid", options.pids, "process whose CPU is counted; may be repeated");
  app.add_option("--disk", options.disk, "folder whose fdatasync is measured");
  app.add_option("--namespace", options.namespace_name);
  app.add_option("--timeout", options.timeout_seconds, "seconds");
  CLI11_PARSE(app, argc, argv);
  return Run(options);
}
