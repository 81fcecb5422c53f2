#pragma once

#include <string>
#include <string_view>

namespace berth::cli {

// What the API has of a Job and its Workload, in JSON; empty: there is none, or it was not to be
// had.
struct JobDocuments {
  std::string_view job = {};
  std::string_view workload = {};
  std::string_view events_of_job = {};  // Lists of Events, of warnings alone.
  std::string_view events_of_workload = {};
};

// What the server refused of them: starting and stopping the Job, its pods, what its status and its
// Workload's are to say. No scheduler knows of these; who controls them told it in Events, which
// stay for an hour, and the objects say whether it is still so. Of each kind the last refusal is
// told; empty: nothing is refused that is told.
std::string RefusalsText(const JobDocuments& documents);

// The name of the Job that controls a Workload; empty: none does.
std::string JobOf(std::string_view workload);

}  // namespace berth::cli
