// Rates of an API server over HTTPS, of any Kubernetes API server alike: HTTP/1.1 with connections
// that are kept, JSON, the same objects. Each phase keeps as many requests on their way as there
// are connections, and times each from when it is sent to when its answer is here whole.
//
//   create   pods                            patch   a merge patch of an annotation of each
//   get      one pod                         bind    each to a node
//   list     all of them                     watch   pods created with W watches open: events told,
//                                                    each timed from when its create was sent
//
//   berth_apiserver_load --kubeconfig F [--pods 5000] [--connections 32] [--watchers 100]
//                        [--pid PID]...
//   berth_apiserver_load --kubeconfig F --fill [--nodes 5000] [--pods 50000]
//
// Prints one line of JSON; --fill makes nodes and bound pods, for whoever looks at the memory.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "load.h"
#include "net/certificates.h"

namespace {

using namespace berth;
using Clock = std::chrono::steady_clock;

constexpr int64_t kClasses = 20;
constexpr int64_t kGetsPerPod = 4;  // So that the phase takes long enough to be timed.
constexpr int kListsAtOnce = 4;
constexpr int kCreated = 201;
constexpr int kOk = 200;
constexpr char kTold[] = "told";  // Begins the names of pods that the watches are told of.
constexpr char kPods[] = "/api/v1/namespaces/default/pods";

struct Options {
  cli::ConnectOptions connect;
  int64_t pods = 5000;
  int64_t nodes = 5000;
  int64_t lists = 40;
  int64_t watchers = 100;
  int64_t watched_pods = 2000;
  int connections = 32;
  bool fill = false;
  std::vector<int> pids;  // Of the server, whose CPU time each phase tells.
  int timeout_seconds = 900;
};

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string NodeName(int64_t index) { return fmt::format("load-node-{:05}", index); }
std::string PodName(std::string_view prefix, int64_t index) {
  return fmt::format("{}-{:06}", prefix, index);
}
std::string PodPath(std::string_view prefix, int64_t index) {
  return fmt::format("{}/{}", kPods, PodName(prefix, index));
}

std::string PodJson(std::string_view prefix, int64_t index) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","namespace":"default","labels":{{"app":"{}","class":"c{}"}}}},)"
      R"("spec":{{"automountServiceAccountToken":false,"containers":[{{"name":"main","image":"registry.example/load:1","resources":{{"requests":{{"cpu":"{}m","memory":"16Mi"}}}}}}]}}}})",
      PodName(prefix, index), prefix, index % kClasses, 10 + index % kClasses);
}

std::string NodeJson(int64_t index) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{}","labels":{{"kubernetes.io/hostname":"{}","topology.kubernetes.io/zone":"z{}"}}}},)"
      R"("status":{{"capacity":{{"cpu":"64","memory":"256Gi","pods":"110"}},"allocatable":{{"cpu":"64","memory":"256Gi","pods":"110"}},)"
      R"("conditions":[{{"type":"Ready","status":"True","reason":"KubeletReady"}}]}}}})",
      NodeName(index), NodeName(index), index % 3);
}

env::HttpRequest MakeRequest(env::Method method, std::string target, std::string body = {},
                             const char* type = "application/json") {
  env::HttpRequest request;
  request.method = method;
  request.target = std::move(target);
  request.headers = {{"accept", "application/json"}};
  if (!body.empty()) request.headers.push_back({"content-type", type});
  request.body = Bytes(std::move(body));
  return request;
}

env::HttpRequest Creation(std::string_view prefix, int64_t index) {
  return MakeRequest(env::Method::kPost, kPods, PodJson(prefix, index));
}

// The first one in a document, or nothing.
std::string VersionIn(std::string_view text) {
  constexpr std::string_view kKey = "\"resourceVersion\":\"";
  const size_t found = text.find(kKey);
  if (found == std::string_view::npos) return {};
  const size_t begin = found + kKey.size();
  return std::string(text.substr(begin, text.find('"', begin) - begin));
}

// What a phase came to.
struct Figures {
  int64_t count = 0;
  int64_t bytes = 0;  // Of all answers or events.
  double seconds = 0;
  std::vector<double> times_ms;
};

// Where the watches go.
struct Place {
  std::string host;  // An address.
  uint16_t port = 0;
  std::string token;
};

// The body of an answer in chunks.
class Chunks {
 public:
  // Hands over what `data` has of the body. False once it has ended, or is no chunk.
  template <typename TakeBody>
  bool Feed(std::string_view data, TakeBody take) {
    while (!data.empty()) {
      if (left_ > 0) {
        const std::string_view part = data.substr(0, left_);
        take(part);
        left_ -= part.size();
        data.remove_prefix(part.size());
        continue;
      }
      const size_t end = data.find('\n');
      line_ += data.substr(0, end);
      if (end == std::string_view::npos) return true;
      data.remove_prefix(end + 1);
      const std::string line = std::exchange(line_, {});
      // That alone is the end of the chunk before.
      if (line != "\r" && !SetLeft(line)) return false;
    }
    return true;
  }

 private:
  bool SetLeft(std::string_view line) {
    const auto read = std::from_chars(line.data(), line.data() + line.size(), left_, 16);
    return read.ec == std::errc() && left_ > 0;
  }

  size_t left_ = 0;  // Of the chunk.
  std::string line_;
};

// Watches read with as little work as can be, by threads of their own: what the load uses of the
// cores, the server lacks. One alone would be what a fast server waits for. Their connections take
// any certificate; those that the load's other requests go by have looked at it.
class Watchers {
 public:
  // What came of the body of a watch; called on the thread that reads it, always the same.
  using Take = std::function<void(size_t watch, std::string_view data)>;
  // A watch has ended: the target to go on with.
  using Renew = std::function<std::string(size_t watch)>;

  Watchers(Place place, Take take, Renew renew)
      : place_(std::move(place)),
        take_(std::move(take)),
        renew_(std::move(renew)),
        context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_read_ahead(context_, 1);
    SSL_CTX_set_default_read_buffer_len(context_, kReadBytes);
    // A hundred buffers in turn are in no cache; one that all use is.
    SSL_CTX_set_mode(context_, SSL_MODE_RELEASE_BUFFERS);
  }
  ~Watchers() {
    stop_ = true;
    for (Reader& each : readers_) {
      if (each.thread.joinable()) each.thread.join();
    }
    for (Connection& each : connections_) Close(each);
    for (const Reader& each : readers_) close(each.epoll);
    SSL_CTX_free(context_);
  }
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;

  // Opens so many and starts to read. False: one was not answered 200.
  bool Start(size_t count, const std::string& target) {
    connections_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      if (!Open(i, target)) return false;
    }
    for (Reader& each : readers_) each.thread = std::thread([this, &each] { Run(each); });
    return true;
  }

 private:
  static constexpr size_t kReadBytes = 64 * 1024;
  static constexpr size_t kReaders = 2;

  struct Reader {
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    std::thread thread;
    std::array<char, kReadBytes> buffer{};
  };
  struct Connection {
    int socket = -1;
    SSL* tls = nullptr;
    Chunks chunks;
  };

  static void Close(Connection& connection) {
    SSL_free(connection.tls);
    if (connection.socket >= 0) close(connection.socket);
    connection = {};
  }

  bool Open(size_t watch, const std::string& target) {
    Connection& connection = connections_[watch];
    connection.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(place_.port);
    if (inet_pton(AF_INET, place_.host.c_str(), &address.sin_addr) != 1 ||
        connect(connection.socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      return false;
    }
    connection.tls = SSL_new(context_);
    SSL_set_fd(connection.tls, connection.socket);
    if (SSL_connect(connection.tls) != 1) return false;
    const std::string request = fmt::format(
        "GET {} HTTP/1.1\r\nhost: {}:{}\r\naccept: application/json\r\n"
        "authorization: Bearer {}\r\n\r\n",
        target, place_.host, place_.port, place_.token);
    if (SSL_write(connection.tls, request.data(), static_cast<int>(request.size())) <= 0)
      return false;
    std::string head;
    while (head.find("\r\n\r\n") == std::string::npos) {
      char next = 0;
      if (SSL_read(connection.tls, &next, 1) != 1) return false;
      head += next;
    }
    if (!head.starts_with("HTTP/1.1 200")) return false;
    fcntl(connection.socket, F_SETFL, O_NONBLOCK);
    epoll_event event{.events = EPOLLIN, .data = {.u64 = watch}};
    const int epoll = readers_[watch % kReaders].epoll;
    return epoll_ctl(epoll, EPOLL_CTL_ADD, connection.socket, &event) == 0;
  }

  void Run(Reader& reader) {
    std::array<epoll_event, 64> events{};
    while (!stop_) {
      const int count =
          epoll_wait(reader.epoll, events.data(), static_cast<int>(events.size()), 100);
      for (int i = 0; i < count; ++i) Read(reader, events[static_cast<size_t>(i)].data.u64);
    }
  }

  void Read(Reader& reader, size_t watch) {
    std::array<char, kReadBytes>& buffer = reader.buffer;
    Connection& connection = connections_[watch];
    while (true) {
      const int count = SSL_read(connection.tls, buffer.data(), static_cast<int>(buffer.size()));
      bool open = count > 0;
      if (!open && SSL_get_error(connection.tls, count) == SSL_ERROR_WANT_READ) return;
      if (open) {
        const std::string_view data(buffer.data(), static_cast<size_t>(count));
        open = connection.chunks.Feed(data, [&](std::string_view part) { take_(watch, part); });
      }
      if (open) continue;
      Close(connection);
      if (stop_ || !Open(watch, renew_(watch))) return;
    }
  }

  const Place place_;
  const Take take_;
  const Renew renew_;
  SSL_CTX* const context_;
  std::atomic<bool> stop_ = false;
  std::array<Reader, kReaders> readers_;
  std::vector<Connection> connections_;
};

// The requests of a phase: the one of a number.
using Make = std::function<env::HttpRequest(int64_t)>;

// One client, and what is on its way. Answers come on the client's thread, which sends the next
// request at once; the main thread only waits.
class Load final : public env::InputSink {
 public:
  Load(net::HttpsClient& client, Place place, const Options& options)
      : client_(client), place_(std::move(place)), options_(options) {}

  // Sends `count` requests, `at_once` of them at a time. False: some were refused or lost.
  bool Run(int64_t count, int at_once, const Make& make, Figures& figures);
  // Opens the watches from that version on and waits until each is answered. One that the server
  // ends, as kube-apiserver does when it is not read fast enough, goes on where it was.
  bool Watch(const std::string& version);
  // Creates pods that the watches are told of, until each has been told of all.
  bool RunWatched(Figures& figures);
  // How many watches were ended by the server.
  [[nodiscard]] int64_t renewed() const { return renewed_; }
  // The body of the last answer.
  [[nodiscard]] const std::string& body() const { return body_; }

  void Post(std::vector<env::Input> batch) override;

 private:
  // Of the thread that reads the watch.
  struct Stream {
    std::string rest;     // An event that is not whole yet.
    std::string version;  // Of the last one.
    // What came with the last bytes: the numbers of the pods, and how long the events were.
    std::vector<size_t> numbers;
    int64_t bytes = 0;
  };
  struct Told {
    int64_t count = 0;
    int64_t bytes = 0;
    std::vector<double> times_ms;
  };
  // Finds what stands in an event before the number of its pod, without a look at every quote on
  // the way.
  using Searcher = std::boyer_moore_horspool_searcher<std::string::const_iterator>;

  void SendNext();
  void Answered(const env::Response& response);
  void Failed(std::string_view what, std::string_view why);
  void Take(Stream& stream, std::string_view data);
  [[nodiscard]] bool Read(Stream& stream, std::string_view data) const;
  [[nodiscard]] bool ReadEvent(Stream& stream, std::string_view event) const;
  bool Wait(const std::function<bool()>& condition, std::unique_lock<std::mutex>& lock);

  net::HttpsClient& client_;
  const Place place_;
  const Options& options_;
  const std::string told_prefix_ = fmt::format("\"name\":\"{}-", kTold);
  const Searcher told_search_{told_prefix_.cbegin(), told_prefix_.cend()};

  std::vector<Stream> streams_;  // By watch.
  // All below under it.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<bool()> awaited_;
  uint64_t next_call_ = 1;
  int64_t wanted_ = 0;
  int64_t answered_ = 0;
  int64_t failed_ = 0;
  const Make* make_ = nullptr;
  Figures* figures_ = nullptr;
  Clock::time_point last_;
  std::vector<Clock::time_point> sent_at_;         // By number of the request.
  std::unordered_map<uint64_t, int64_t> numbers_;  // By call.
  int64_t renewed_ = 0;
  Told told_;
  std::string body_;
  std::unique_ptr<Watchers> watchers_;  // The first to end: it calls the rest.
};

void Load::SendNext() {
  env::SendRequest send;
  send.call = {next_call_++};
  const auto number = static_cast<int64_t>(sent_at_.size());
  send.request = (*make_)(number);
  send.timeout = Duration::Seconds(options_.timeout_seconds);
  numbers_.emplace(send.call.value, number);
  sent_at_.push_back(Clock::now());
  std::vector<env::Output> one;
  one.emplace_back(std::move(send));
  client_.Take(std::move(one));
}

bool Load::Wait(const std::function<bool()>& condition, std::unique_lock<std::mutex>& lock) {
  const auto deadline = Clock::now() + std::chrono::seconds(options_.timeout_seconds);
  awaited_ = condition;
  const bool done = changed_.wait_until(lock, deadline, condition);
  awaited_ = nullptr;
  if (!done) {
    fmt::print(stderr, "apiserver_load: not done in {} s: {} of {} answered, {} events told\n",
               options_.timeout_seconds, answered_, wanted_, told_.count);
  }
  return done && failed_ == 0;
}

bool Load::Run(int64_t count, int at_once, const Make& make, Figures& figures) {
  std::unique_lock lock(mutex_);
  wanted_ = count;
  answered_ = 0;
  make_ = &make;
  figures_ = &figures;
  sent_at_.clear();
  sent_at_.reserve(static_cast<size_t>(count));
  const auto start = Clock::now();
  while (static_cast<int64_t>(sent_at_.size()) < std::min<int64_t>(at_once, count)) SendNext();
  const bool done = Wait([&] { return answered_ == wanted_ || failed_ > 0; }, lock);
  make_ = nullptr;
  figures_ = nullptr;
  figures.count = answered_;
  figures.seconds = Seconds(last_ - start);
  return done;
}

bool Load::Watch(const std::string& version) {
  const auto target = [](const Stream& stream) {
    return fmt::format("{}?watch=1&resourceVersion={}", kPods, stream.version);
  };
  const auto count = static_cast<size_t>(options_.watchers);
  streams_.assign(count, {.rest = {}, .version = version, .numbers = {}, .bytes = 0});
  watchers_ = std::make_unique<Watchers>(
      place_, [this](size_t watch, std::string_view data) { Take(streams_[watch], data); },
      [this, target](size_t watch) {
        const std::lock_guard lock(mutex_);
        ++renewed_;
        streams_[watch].rest.clear();
        return target(streams_[watch]);
      });
  if (watchers_->Start(count, target(streams_.front()))) return true;
  fmt::print(stderr, "apiserver_load: a watch can't be begun\n");
  return false;
}

bool Load::RunWatched(Figures& figures) {
  const int64_t all = options_.watchers * options_.watched_pods;
  {
    const std::lock_guard lock(mutex_);
    told_.times_ms.reserve(static_cast<size_t>(all));
  }
  const Make make = [&](int64_t i) { return Creation(kTold, i); };
  const auto start = Clock::now();
  Figures creates;
  if (!Run(options_.watched_pods, options_.connections, make, creates)) return false;
  std::unique_lock lock(mutex_);
  if (!Wait([&] { return told_.count >= all || failed_ > 0; }, lock)) return false;
  figures = {.count = told_.count,
             .bytes = told_.bytes,
             .seconds = Seconds(last_ - start),
             .times_ms = std::move(told_.times_ms)};
  return true;
}

void Load::Post(std::vector<env::Input> batch) {
  const std::lock_guard lock(mutex_);
  for (env::Input& input : batch) {
    if (const auto* response = std::get_if<env::Response>(&input)) {
      Answered(*response);
    } else if (std::holds_alternative<env::CallFailed>(input)) {
      Failed("a request", "it was lost");
    }
  }
  // A thread that wakes to find that it has to go on waiting takes time from the server.
  if (awaited_ && awaited_()) changed_.notify_all();
}

void Load::Answered(const env::Response& response) {
  const env::HttpResponse& answer = response.response;
  if (answer.status != kOk && answer.status != kCreated)
    return Failed(fmt::format("{}", answer.status), answer.body.view());
  const auto number = numbers_.extract(response.call.value);
  if (number.empty() || figures_ == nullptr) return;
  last_ = Clock::now();
  const Clock::time_point sent = sent_at_[static_cast<size_t>(number.mapped())];
  figures_->times_ms.push_back(Seconds(last_ - sent) * 1000);
  figures_->bytes += static_cast<int64_t>(answer.body.size());
  ++answered_;
  if (answered_ == wanted_) body_ = answer.body.view();
  if (static_cast<int64_t>(sent_at_.size()) < wanted_) SendNext();
}

void Load::Failed(std::string_view what, std::string_view why) {
  if (failed_++ == 0) fmt::print(stderr, "apiserver_load: {}: {}\n", what, why);
}

void Load::Take(Stream& stream, std::string_view data) {
  const Clock::time_point now = Clock::now();
  const bool sound = Read(stream, data);
  const std::lock_guard lock(mutex_);
  if (!sound) return Failed("a watch", data.substr(0, 1000));
  if (stream.numbers.empty()) return;
  for (const size_t number : stream.numbers) {
    told_.times_ms.push_back(Seconds(now - sent_at_.at(number)) * 1000);
  }
  told_.count += static_cast<int64_t>(stream.numbers.size());
  told_.bytes += std::exchange(stream.bytes, 0);
  stream.numbers.clear();
  last_ = std::max(last_, now);
  if (awaited_ && awaited_()) changed_.notify_all();
}

// False: what came is no event of a pod that was created.
bool Load::Read(Stream& stream, std::string_view data) const {
  std::string& rest = stream.rest;
  size_t end = data.find('\n');
  if (end == std::string_view::npos) {
    rest += data;
    return true;
  }
  if (!rest.empty()) {
    rest += data.substr(0, end);
    if (!ReadEvent(stream, rest)) return false;
    // Of the last one, which is where the watch would go on; mostly another one follows.
    if (data.find('\n', end + 1) == std::string_view::npos) stream.version = VersionIn(rest);
    rest.clear();
    data.remove_prefix(end + 1);
    end = data.find('\n');
  }
  std::string_view last;
  for (; end != std::string_view::npos; end = data.find('\n')) {
    last = data.substr(0, end);
    if (!ReadEvent(stream, last)) return false;
    data.remove_prefix(end + 1);
  }
  if (!last.empty()) stream.version = VersionIn(last);
  rest = data;
  return true;
}

bool Load::ReadEvent(Stream& stream, std::string_view event) const {
  if (!event.starts_with(R"({"type":"ADDED")")) return false;
  const auto [begin, end] = told_search_(event.begin(), event.end());
  if (begin == end) return false;
  size_t number = 0;
  if (std::from_chars(end, event.end(), number).ec != std::errc()) return false;
  stream.numbers.push_back(number);
  stream.bytes += static_cast<int64_t>(event.size());
  return true;
}

double Quantile(std::vector<double>& times, double part) {
  if (times.empty()) return 0;
  const auto at = static_cast<ptrdiff_t>(part * static_cast<double>(times.size() - 1));
  std::ranges::nth_element(times, times.begin() + at);
  return times[static_cast<size_t>(at)];
}

// CPU seconds that processes have used so far.
double CpuOf(const std::vector<int>& pids) {
  double sum = 0;
  for (const int pid : pids) {
    if (const auto used = bench::CpuTimeIn(fmt::format("/proc/{}/stat", pid))) sum += used->seconds;
  }
  return sum;
}

// The phases that were run, as members of an object.
class Report {
 public:
  explicit Report(std::vector<int> pids) : pids_(std::move(pids)), server_cpu_(CpuOf(pids_)) {}

  void Add(std::string_view phase, Figures figures) {
    text_ += fmt::format(
        R"({}"{}":{{"count":{},"seconds":{:.6f},"bytes":{},"p50_ms":{:.3f},"p99_ms":{:.3f},"own_cpu_seconds":{:.3f},"server_cpu_seconds":{:.3f}}})",
        text_.empty() ? "" : ",", phase, figures.count, figures.seconds, figures.bytes,
        Quantile(figures.times_ms, 0.5), Quantile(figures.times_ms, 0.99), CpuSince(),
        ServerCpuSince());
  }
  // `renewed`: watches that the server ended.
  void Print(int64_t renewed) const {
    fmt::print(R"({{{},"renewed":{}}})"
               "\n",
               text_, renewed);
  }

 private:
  double CpuSince() {
    const double now = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
    return now - std::exchange(cpu_, now);
  }

  double ServerCpuSince() {
    const double now = CpuOf(pids_);
    return now - std::exchange(server_cpu_, now);
  }

  std::vector<int> pids_;
  double server_cpu_;
  std::string text_;
  double cpu_ = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
};

env::HttpRequest Binding(std::string_view prefix, int64_t index, int64_t nodes) {
  return MakeRequest(
      env::Method::kPost, PodPath(prefix, index) + "/binding",
      fmt::format(
          R"({{"apiVersion":"v1","kind":"Binding","metadata":{{"name":"{}"}},"target":{{"apiVersion":"v1","kind":"Node","name":"{}"}}}})",
          PodName(prefix, index), NodeName(index % nodes)));
}

env::HttpRequest Annotation(std::string_view prefix, int64_t index) {
  return MakeRequest(env::Method::kPatch, PodPath(prefix, index),
                     fmt::format(R"({{"metadata":{{"annotations":{{"load/seen":"{}"}}}}}})", index),
                     "application/merge-patch+json");
}

// What the watches shall follow.
std::string VersionNow(Load& load) {
  Figures ignored;
  const Make one = [](int64_t) {
    return MakeRequest(env::Method::kGet, fmt::format("{}?limit=1", kPods));
  };
  if (!load.Run(1, 1, one, ignored)) return {};
  // Of the list's own metadata, which comes before the items'.
  return VersionIn(load.body());
}

bool Fill(Load& load, const Options& options, Report& report) {
  const auto run = [&](std::string_view phase, int64_t count, const Make& make) {
    Figures figures;
    const bool done = load.Run(count, options.connections, make, figures);
    report.Add(phase, std::move(figures));
    return done;
  };
  return run("nodes", options.nodes,
             [](int64_t i) {
               return MakeRequest(env::Method::kPost, "/api/v1/nodes", NodeJson(i));
             }) &&
         run("create", options.pods, [](int64_t i) { return Creation("load", i); }) &&
         run("bind", options.pods, [&](int64_t i) { return Binding("load", i, options.nodes); });
}

bool Measure(Load& load, const Options& options, Report& report) {
  const auto run = [&](std::string_view phase, int64_t count, int at_once, const Make& make) {
    Figures figures;
    const bool done = load.Run(count, at_once, make, figures);
    report.Add(phase, std::move(figures));
    return done;
  };
  const auto get = [&](int64_t i) {
    return MakeRequest(env::Method::kGet, PodPath("load", i % options.pods));
  };
  const auto list = [](int64_t) { return MakeRequest(env::Method::kGet, kPods); };
  const int many = options.connections;
  const bool done =
      run("create", options.pods, many, [](int64_t i) { return Creation("load", i); }) &&
      run("get", options.pods * kGetsPerPod, many, get) &&
      run("list", options.lists, kListsAtOnce, list) &&
      run("patch", options.pods, many, [](int64_t i) { return Annotation("load", i); }) &&
      run("bind", options.pods, many, [&](int64_t i) { return Binding("load", i, options.nodes); });
  if (!done) return false;
  const std::string version = VersionNow(load);
  if (version.empty()) return false;
  Figures figures;
  const bool told = load.Watch(version) && load.RunWatched(figures);
  report.Add("watch", std::move(figures));
  return told;
}

// Pods need it, and no controller need be there to make it.
bool MakeAccount(Load& load) {
  Figures ignored;
  const Make one = [](int64_t) {
    return MakeRequest(
        env::Method::kPatch, "/api/v1/namespaces/default/serviceaccounts/default?fieldManager=load",
        R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}})",
        "application/apply-patch+yaml");
  };
  return load.Run(1, 1, one, ignored);
}

int Run(const Options& options) {
  const auto connection = bench::Connect("apiserver_load", options.connect, options.connections);
  if (!connection) return 1;
  net::HttpsClient& client = *connection->client;
  const net::ClientOptions& transport = connection->transport;
  const Place place{.host = transport.host,
                    .port = transport.port,
                    .token = transport.bearer_token ? transport.bearer_token->Current() : ""};
  Load load(client, place, options);
  client.Start(load);
  Report report(options.pids);
  const bool done = MakeAccount(load) &&
                    (options.fill ? Fill(load, options, report) : Measure(load, options, report));
  client.Stop();
  report.Print(load.renewed());
  return done ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("rates of an API server");
  app.add_option("--kubeconfig", options.connect.kubeconfig);
  app.add_option("--pods", options.pods)->check(CLI::Range(1, 200'000));
  app.add_option("--nodes", options.nodes, "that pods are bound to; --fill makes them")
      ->check(CLI::Range(1, 50'000));
  app.add_option("--lists", options.lists)->check(CLI::Range(1, 100'000));
  app.add_option("--watchers", options.watchers)->check(CLI::Range(1, 2'000));
  app.add_option("--watched-pods", options.watched_pods)->check(CLI::Range(1, 100'000));
  app.add_option("--connections", options.connections)->check(CLI::Range(1, 1024));
  app.add_flag("--fill", options.fill, "makes nodes and bound pods, and nothing else");
  app.add_option("--pid", options.pids, "process of the server; may be repeated");
  app.add_option("--timeout", options.timeout_seconds, "seconds that a phase may take");
  CLI11_PARSE(app, argc, argv);
  return Run(options);
}
