#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/workloads.h"
#include "codec/decode.h"
#include "env/actor.h"
#include "sim/truth.h"

namespace berth::explore {

// What must be true of Jobs and their Workloads, seen from outside, where the controllers' plans
// write both (GroupMaker): a Job runs as many pods as it has quota for and no more, it keeps that
// quota while a pod goes on, its Workload ends when it does and not before, nothing keeps what is
// to go once no pod goes on, and what another namespace names as its owner is nobody's business
// here.
//
// A value of the Stage, which tells it all that becomes durable. The objects say all that it knows.
class JobChecks {
 public:
  // Who makes a change.
  enum class Writer : uint8_t { kOther, kController, kCollector };
  // What is wrong with it.
  [[nodiscard]] std::vector<std::string> OnCommit(const env::JournalRecord& record, Writer writer);
  // What is wrong when nothing is left to happen.
  [[nodiscard]] std::vector<std::string> AtRest() const;
  // The name of the Workload of that Job, or of the one that it left behind; empty: there is none.
  [[nodiscard]] std::string WorkloadOf(std::string_view job) const;

 private:
  struct Job {
    std::string uid;
    std::string queue;  // Empty: none.
    int64_t count = 0;
    bool suspended = false;
    bool over = false;
    bool deleting = false;
    [[nodiscard]] bool asks() const { return !queue.empty() && !over && !deleting; }
  };
  struct Pod {
    std::string job;  // Uid.
    bool active = false;
    bool over = false;
  };
  void OnWorkload(const std::string& key, const env::JournalRecord& record, Writer writer,
                  std::vector<std::string>& findings);
  void JudgePods(std::vector<std::string>& findings) const;
  void JudgeLeft(const std::string& key, const api::Workload& workload,
                 std::vector<std::string>& findings) const;
  [[nodiscard]] bool GoesOn(std::string_view job_uid) const;
  [[nodiscard]] const api::Workload* Of(const Job& job) const;
  [[nodiscard]] bool Matches(const Job& job, const api::Workload& workload) const;

  codec::Decoder decoder_;
  std::map<std::string, Job, std::less<>> jobs_;    // By name.
  std::map<std::string, Pod> pods_;                 // By key.
  std::map<std::string, api::Workload> workloads_;  // By key.
};

inline constexpr std::string_view kJobsPrefix = "jobs.batch/";

}  // namespace berth::explore
