#pragma once

#include <condition_variable>
#include <mutex>

// Locks that clang's -Wthread-safety understands. For env/os, net and cmd (STYLE 23); elsewhere one
// thread owns each state. tools/lint refuses the standard library's, which that check does not see.
#if defined(__clang__)
#define BERTH_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define BERTH_THREAD_ATTRIBUTE(x)
#endif
#define GUARDED_BY(x) BERTH_THREAD_ATTRIBUTE(guarded_by(x))
#define REQUIRES_LOCK(...) BERTH_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))

namespace berth {

class BERTH_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void Lock() BERTH_THREAD_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
  void Unlock() BERTH_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }
  std::mutex& native() { return mutex_; }

 private:
  std::mutex mutex_;
};

class BERTH_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) BERTH_THREAD_ATTRIBUTE(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() BERTH_THREAD_ATTRIBUTE(release_capability()) { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  void NotifyAll() { condition_.notify_all(); }
  void NotifyOne() { condition_.notify_one(); }
  void Wait(Mutex& mutex) REQUIRES_LOCK(mutex) {
    std::unique_lock<std::mutex> lock(mutex.native(), std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  template <typename Timeout>
  void WaitFor(Mutex& mutex, Timeout timeout) REQUIRES_LOCK(mutex) {
    std::unique_lock<std::mutex> lock(mutex.native(), std::adopt_lock);
    condition_.wait_for(lock, timeout);
    lock.release();
  }

 private:
  std::condition_variable condition_;
};

}  // namespace berth
