#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// The openb trace format: the GPU cluster of Weng et al., "Beware of Fragmentation", USENIX ATC
// 2023. Pure functions over text.
namespace berth::sim {

struct TraceNode {
  std::string name;
  int64_t cpu_milli = 0;
  int64_t memory_mib = 0;
  int64_t gpus_count = 0;
  std::string gpu_model;  // Empty for nodes without GPUs.
  bool operator==(const TraceNode&) const = default;
};

struct TracePod {
  std::string name;
  int64_t cpu_milli = 0;
  int64_t memory_mib = 0;
  // No GPU: both 0. A share of one device: 1 and under 1000. Whole devices: their number and 1000.
  int64_t gpus_count = 0;
  int64_t gpu_milli_each = 0;
  std::vector<std::string> gpu_models;  // Sorted. Empty allows all.
  [[nodiscard]] int64_t gpu_milli() const { return gpus_count * gpu_milli_each; }
  bool operator==(const TracePod&) const = default;
};

struct TraceOptions {
  std::string_view file_name;  // For messages.
  bool skip_bad = false;       // Leaves bad rows out instead of failing on the first.
};

template <typename Row>
struct Trace {
  std::vector<Row> rows;
  std::vector<std::string> skipped;  // One message per row left out.
};

// Reads sn,cpu_milli,memory_mib,gpu,model and
// name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec]: comma-separated with a header line, by
// column name; other columns are ignored. Fields may be quoted as in RFC 4180, but hold no line
// breaks. A row has as many fields as the header; values must be in range, names unique and good
// as names of Kubernetes objects.
//
// An Error reads "pods.csv:17:23: cpu_milli: ..." with line and byte column from 1. A header that
// lacks a column, or has it twice, fails even with skip_bad. Cost: O(text).
[[nodiscard]] Result<Trace<TraceNode>> ParseTraceNodes(std::string_view text,
                                                       const TraceOptions& options);
[[nodiscard]] Result<Trace<TracePod>> ParseTracePods(std::string_view text,
                                                     const TraceOptions& options);

}  // namespace berth::sim
