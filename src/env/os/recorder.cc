#include "env/os/recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"
#include "env/recording.h"

namespace berth::env::os {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWho = "recording";
constexpr std::chrono::milliseconds kFlushEvery{200};
constexpr size_t kBlockBytes = size_t{256} << 10;
constexpr int64_t kEndReserve = 512;     // Room for the end mark.
constexpr int64_t kWakeBytes = 4 << 20;  // So much waiting is not left for the next look.
constexpr int64_t kStepBytes = 256;      // What a step takes beside its texts.
constexpr int kGivesWayNice = 5;
constexpr mode_t kOwnerOnly = 0600;

std::string_view Why(int number) { return std::strerror(number); }

int64_t BytesOf(const RecordedStep& step) {
  size_t bytes = 0;
  if (const auto* response = std::get_if<Response>(&step.input))
    bytes += response->response.body.size();
  if (const auto* data = std::get_if<StreamData>(&step.input)) bytes += data->data.size();
  for (const Output& output : step.outputs) {
    bytes += static_cast<size_t>(kStepBytes);
    if (const auto* send = std::get_if<SendRequest>(&output)) bytes += send->request.body.size();
    if (const auto* respond = std::get_if<Respond>(&output)) bytes += respond->response.body.size();
  }
  return kStepBytes + static_cast<int64_t>(bytes);
}

// A descriptor that closes itself, and with it lets go of its lock.
class File {
 public:
  explicit File(int number = -1) : number_(number) {}
  ~File() {
    if (number_ >= 0) close(number_);
  }
  File(File&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

std::unexpected<Error> FailAt(const fs::path& path, std::string_view what) {
  return Fail(ErrorCode::kUnavailable, fmt::format("{}: {}", path.string(), what));
}

// That nobody's data is lost when the file is moved or replaced: it is absent, empty, or a
// recording which nobody writes.
Status CheckReplaceable(const fs::path& path) {
  const File file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.number() < 0 && errno == ENOENT) return {};
  if (file.number() < 0) return FailAt(path, fmt::format("can't be read: {}", Why(errno)));
  struct stat status{};
  if (fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode))
    return FailAt(path, "is no regular file");
  if (flock(file.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return FailAt(path, "another process records there");
  std::string begin(kRecordingMagic.size(), '\0');
  const ssize_t got = pread(file.number(), begin.data(), begin.size(), 0);
  if (got == 0) return {};
  if (got < 0) return FailAt(path, fmt::format("can't be read: {}", Why(errno)));
  if (begin != kRecordingMagic)
    return FailAt(path, "is no recording of berth: move it away, or name another file");
  return {};
}

}  // namespace

struct Recorder::Impl {
  Impl(RecorderOptions wanted, Logger& log)
      : options(std::move(wanted)),
        old_path(options.path.string() + ".1"),
        file_bytes_max(options.bytes_max / 2),
        logger(log) {}

  // ---- Of the thread, and before it runs
  Status Begin(std::string_view header);
  Status Write(std::string_view bytes);
  void Run();
  void TakeSteps(std::vector<RecordedStep>& batch);
  void Flush(int64_t step_bytes);
  void End(State why, const std::string& text);
  void Close();

  // Immutable after construction.
  const RecorderOptions options;
  const fs::path old_path;
  const int64_t file_bytes_max;
  Logger& logger;

  std::atomic<State> state = State::kOpen;
  std::atomic<int64_t> bytes = 0;  // Of the file.

  // The thread's own.
  File file;
  bool writes = false;  // The file has no end yet.
  std::string items;
  std::thread thread;

  Mutex mutex;
  CondVar wake;
  std::vector<RecordedStep> queue GUARDED_BY(mutex);
  int64_t waiting_bytes GUARDED_BY(mutex) = 0;
  bool too_slow GUARDED_BY(mutex) = false;
  bool stop GUARDED_BY(mutex) = false;
  std::optional<std::string> next_header GUARDED_BY(mutex);
};

// ---- The file ----------------------------------------------------------------------------------

// What was recorded there becomes the predecessor.
Status Recorder::Impl::Begin(std::string_view header) {
  file = File();  // Its lock would keep ourselves out.
  for (const fs::path& path : {options.path, old_path}) {
    if (Status good = CheckReplaceable(path); !good) return good;
  }
  const std::string start = RecordingStart(header);
  if (static_cast<int64_t>(start.size()) + kEndReserve > file_bytes_max) {
    return FailAt(options.path, fmt::format("a half of {} bytes is too little: what the scheduler "
                                            "is made of takes {}",
                                            options.bytes_max, start.size()));
  }
  std::error_code failed;
  if (fs::exists(options.path, failed) && fs::file_size(options.path, failed) > 0) {
    fs::rename(options.path, old_path, failed);
    if (failed)
      return FailAt(options.path, fmt::format("can't be moved away: {}", failed.message()));
  }
  File made(
      open(options.path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC, kOwnerOnly));
  if (made.number() < 0)
    return FailAt(options.path, fmt::format("can't be written: {}", Why(errno)));
  // Where there are no locks, nobody is kept out.
  static_cast<void>(flock(made.number(), LOCK_EX | LOCK_NB));
  file = std::move(made);
  bytes = 0;
  items.clear();
  writes = true;
  state = State::kOpen;
  if (const Status written = Write(start); !written) End(State::kEnded, written.error().message);
  return {};
}

Status Recorder::Impl::Write(std::string_view data) {
  const int64_t before = bytes;
  while (!data.empty()) {
    const ssize_t done = write(file.number(), data.data(), data.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      const int why = errno;
      // What is there stays whole.
      static_cast<void>(ftruncate(file.number(), before));
      bytes = before;
      return FailAt(options.path, Why(why));
    }
    data.remove_prefix(static_cast<size_t>(done));
    bytes += done;
  }
  return {};
}

void Recorder::Impl::End(State why, const std::string& text) {
  if (!writes) return;
  writes = false;
  std::string mark;
  AppendEnd(text, mark);
  // Without it the file is as one of a process that was killed.
  static_cast<void>(Write(SealBlock(mark, BlockMethod::kStored)));
  state = why;
  logger.Write(LogLevel::kWarning, kWho,
               fmt::format("recording ended: {}; the scheduler goes on", text));
}

// ---- The thread --------------------------------------------------------------------------------

void Recorder::Impl::Run() {
  // A file that grows beyond the process's limit is told of by write(), not by an end of berth.
  sigset_t beyond;
  sigemptyset(&beyond);
  sigaddset(&beyond, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &beyond, nullptr);
  // Linux keeps a niceness per thread. Less than others give way: who starves ends the recording.
  const int own = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), own + kGivesWayNice);
  for (;;) {
    std::vector<RecordedStep> batch;
    std::optional<std::string> header;
    bool slow = false;
    bool last = false;
    {
      MutexLock lock(mutex);
      if (!stop && waiting_bytes < kWakeBytes && !next_header) wake.WaitFor(mutex, kFlushEvery);
      batch.swap(queue);
      header = std::exchange(next_header, std::nullopt);
      slow = std::exchange(too_slow, false);
      last = stop;
    }
    if (header) {
      if (const Status begun = Begin(*header); !begun) {
        state = State::kEnded;
        logger.Write(
            LogLevel::kWarning, kWho,
            fmt::format("recording ended: {}; the scheduler goes on", begun.error().message));
      }
    }
    TakeSteps(batch);
    if (slow) {
      End(State::kEnded, fmt::format("the disk is too slow: {} MiB wait to be written",
                                     options.waiting_bytes_max >> 20));
    }
    if (last) return Close();
  }
}

void Recorder::Impl::TakeSteps(std::vector<RecordedStep>& batch) {
  int64_t step_bytes = 0;
  for (RecordedStep& step : batch) {
    const int64_t of_step = BytesOf(step);
    if (writes) AppendStep(step, items);
    step = RecordedStep{};  // Its memory is not kept longer than needed.
    step_bytes += of_step;
    if (items.size() < kBlockBytes && writes) continue;
    Flush(step_bytes);
    step_bytes = 0;
  }
  Flush(step_bytes);
}

// `step_bytes` wait no more.
void Recorder::Impl::Flush(int64_t step_bytes) {
  int64_t waiting = 0;
  {
    MutexLock lock(mutex);
    waiting = waiting_bytes;
  }
  if (writes && !items.empty()) {
    const bool hurries = waiting > options.waiting_bytes_max / 2;
    const std::string block =
        SealBlock(items, hurries ? BlockMethod::kStored : BlockMethod::kDeflated);
    if (bytes + static_cast<int64_t>(block.size()) + kEndReserve > file_bytes_max) {
      End(State::kFull, fmt::format("{} is full: {} bytes of the {} that it may have",
                                    options.path.string(), bytes.load(), file_bytes_max));
    } else if (const Status written = Write(block); !written) {
      End(State::kEnded, written.error().message);
    }
  }
  items.clear();
  if (items.capacity() > 4 * kBlockBytes) items.shrink_to_fit();  // A list was in it.
  MutexLock lock(mutex);
  waiting_bytes -= step_bytes;
}

void Recorder::Impl::Close() {
  if (!writes) return;
  writes = false;
  std::string mark;
  AppendEnd("the process ended", mark);
  static_cast<void>(Write(SealBlock(mark, BlockMethod::kStored)));
  state = State::kEnded;
}

// ---- Recorder ----------------------------------------------------------------------------------

Recorder::Recorder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Recorder>> Recorder::Open(RecorderOptions options, const std::string& header,
                                                 Logger& logger) {
  CHECK_GE(options.bytes_max, kBytesMaxLeast);
  auto impl = std::make_unique<Impl>(std::move(options), logger);
  if (const Status begun = impl->Begin(header); !begun) return std::unexpected(begun.error());
  impl->thread = std::thread([of = impl.get()] { of->Run(); });
  pthread_setname_np(impl->thread.native_handle(), "recorder");
  return std::unique_ptr<Recorder>(new Recorder(std::move(impl)));
}

Recorder::~Recorder() { Stop(); }

void Recorder::Stop() {
  {
    MutexLock lock(impl_->mutex);
    impl_->stop = true;
    impl_->wake.NotifyOne();
  }
  if (impl_->thread.joinable()) impl_->thread.join();
}

StepSink::State Recorder::state() const { return impl_->state.load(std::memory_order_relaxed); }

void Recorder::Take(RecordedStep step) {
  if (state() != State::kOpen) return;
  const int64_t bytes = BytesOf(step);
  MutexLock lock(impl_->mutex);
  if (impl_->stop || impl_->too_slow) return;
  if (impl_->waiting_bytes + bytes > impl_->options.waiting_bytes_max) {
    impl_->too_slow = true;
    impl_->state = State::kEnded;
    return;
  }
  const bool few = impl_->waiting_bytes < kWakeBytes;
  impl_->waiting_bytes += bytes;
  impl_->queue.push_back(std::move(step));
  if (few && impl_->waiting_bytes >= kWakeBytes) impl_->wake.NotifyOne();
}

void Recorder::BeginAnew(std::string header) {
  CHECK(state() == State::kFull);
  MutexLock lock(impl_->mutex);
  // Steps of the life before, which found no room.
  for (const RecordedStep& step : impl_->queue) impl_->waiting_bytes -= BytesOf(step);
  impl_->queue.clear();
  impl_->too_slow = false;
  impl_->next_header = std::move(header);
  impl_->state = State::kOpen;
}

std::string Recorder::MetricsText() const {
  return fmt::format(
      "# HELP berth_recording_bytes Bytes of the file of --record.\n"
      "# TYPE berth_recording_bytes gauge\n"
      "berth_recording_bytes {}\n"
      "# HELP berth_recording_stopped 1 when the recording of --record has ended: it is full, or "
      "could not be written.\n"
      "# TYPE berth_recording_stopped gauge\n"
      "berth_recording_stopped {}\n",
      impl_->bytes.load(std::memory_order_relaxed), state() == State::kOpen ? 0 : 1);
}

}  // namespace berth::env::os
