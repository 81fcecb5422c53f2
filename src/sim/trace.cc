#include "sim/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "api/names.h"
#include "base/limits.h"
#include "model/ledger.h"

namespace berth::sim {
namespace {

// A field with where it starts, for messages.
struct Field {
  std::string text;
  size_t column = 1;
};

struct Problem {
  size_t column = 1;
  std::string text;
};

std::string Shown(std::string_view text) {
  constexpr size_t kShownMax = 40;
  std::string out = "\"";
  for (const char c : text.substr(0, kShownMax)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '"') {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + (text.size() > kShownMax ? "...\"" : "\"");
}

// Cuts one line into fields.
std::expected<std::vector<Field>, Problem> Cut(std::string_view line) {
  std::vector<Field> fields;
  size_t at = 0;
  while (true) {
    Field field{.column = at + 1};
    if (at < line.size() && line[at] == '"') {
      ++at;
      while (true) {
        if (at >= line.size()) {
          return std::unexpected(Problem{field.column, "quoted field does not end on its line"});
        }
        if (line[at] == '"' && at + 1 < line.size() && line[at + 1] == '"') {
          ++at;
        } else if (line[at] == '"') {
          ++at;
          break;
        }
        field.text += line[at++];
      }
      if (at < line.size() && line[at] != ',') {
        return std::unexpected(Problem{at + 1, "text after a quoted field"});
      }
    } else {
      const size_t end = std::min(line.find(',', at), line.size());
      field.text = line.substr(at, end - at);
      at = end;
    }
    fields.push_back(std::move(field));
    if (at >= line.size()) return fields;
    ++at;  // The comma: another field follows, be it empty.
  }
}

class Row {
 public:
  Row(std::span<const Field> fields, std::span<const size_t> column_of,
      std::span<const std::string_view> names)
      : fields_(fields), column_of_(column_of), names_(names) {}

  [[nodiscard]] const std::string& Text(size_t i) const { return fields_[column_of_[i]].text; }
  [[nodiscard]] bool has(size_t i) const { return column_of_[i] < fields_.size(); }

  int64_t Number(size_t i, int64_t high) {
    const std::string& text = Text(i);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= high) {
      return value;
    }
    Complain(i, fmt::format("want an integer from 0 to {}, got {}", high, Shown(text)));
    return 0;
  }

  // Keeps the first.
  void Complain(size_t i, std::string_view what) {
    if (problem_.has_value()) return;
    problem_ = Problem{fields_[column_of_[i]].column, fmt::format("{}: {}", names_[i], what)};
  }

  void CheckName(size_t i) {
    if (api::IsDns1123Subdomain(Text(i))) return;
    Complain(i, fmt::format("want a name of lower case letters, digits, '-' and '.', got {}",
                            Shown(Text(i))));
  }

  void CheckModel(size_t i, std::string_view model) {
    if (model.empty() || !api::IsLabelValue(model)) {
      Complain(i,
               fmt::format("want a GPU model that can be a label's value, got {}", Shown(model)));
    }
  }

  [[nodiscard]] const std::optional<Problem>& problem() const { return problem_; }

 private:
  const std::span<const Field> fields_;
  const std::span<const size_t> column_of_;
  const std::span<const std::string_view> names_;
  std::optional<Problem> problem_;
};

// What differs between the two kinds of file.
template <typename R>
struct Format {
  std::span<const std::string_view> names;
  size_t required_count = 0;  // Of names; the rest may be absent.
  size_t rows_max = 0;
  R (*read)(Row&) = nullptr;
};

std::string At(const TraceOptions& options, size_t line, const Problem& problem) {
  return fmt::format("{}:{}:{}: {}", options.file_name, line, problem.column, problem.text);
}

struct Header {
  std::vector<std::string> names;
  std::vector<size_t> column_of;  // Where each column of the format stands; npos: nowhere.
};

template <typename R>
std::expected<Header, Problem> ReadHeader(const Format<R>& format, std::string_view line) {
  const auto fields = Cut(line);
  if (!fields) return std::unexpected(fields.error());
  Header header;
  for (const Field& field : *fields) {
    const bool known = std::ranges::find(format.names, field.text) != format.names.end();
    if (known && std::ranges::find(header.names, field.text) != header.names.end()) {
      return std::unexpected(
          Problem{field.column, fmt::format("the header has the column {} twice", field.text)});
    }
    header.names.push_back(field.text);
  }
  for (size_t i = 0; i < format.names.size(); ++i) {
    const auto found = std::ranges::find(header.names, format.names[i]);
    if (found == header.names.end() && i < format.required_count) {
      return std::unexpected(
          Problem{1, fmt::format("the header lacks the column {}", format.names[i])});
    }
    header.column_of.push_back(found == header.names.end()
                                   ? std::string::npos
                                   : static_cast<size_t>(found - header.names.begin()));
  }
  return header;
}

template <typename R>
std::expected<R, Problem> ReadRow(const Format<R>& format, const Header& header,
                                  std::string_view line, std::set<std::string>& seen) {
  const auto fields = Cut(line);
  if (!fields) return std::unexpected(fields.error());
  if (fields->size() < header.names.size()) {
    return std::unexpected(
        Problem{line.size() + 1,
                fmt::format("the row ends before {}", Shown(header.names[fields->size()]))});
  }
  if (fields->size() > header.names.size()) {
    return std::unexpected(Problem{(*fields)[header.names.size()].column,
                                   fmt::format("the row has {} fields, the header has {}",
                                               fields->size(), header.names.size())});
  }
  Row row(*fields, header.column_of, format.names);
  R out = format.read(row);
  if (!row.problem().has_value() && !seen.insert(out.name).second) {
    row.Complain(0, fmt::format("{} is there twice", Shown(out.name)));
  }
  if (row.problem().has_value()) return std::unexpected(*row.problem());
  return out;
}

template <typename R>
Result<Trace<R>> Read(const Format<R>& format, std::string_view text, const TraceOptions& options) {
  Trace<R> trace;
  std::optional<Header> header;
  std::set<std::string> seen;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (!header.has_value()) {
      auto read = ReadHeader(format, line);
      if (!read) return Fail(ErrorCode::kInvalid, At(options, number, read.error()));
      header = std::move(*read);
      continue;
    }
    std::expected<R, Problem> row = ReadRow(format, *header, line, seen);
    if (row.has_value()) {
      if (trace.rows.size() == format.rows_max) {
        return Fail(ErrorCode::kTooLarge,
                    At(options, number, {1, fmt::format("more than {} rows", format.rows_max)}));
      }
      trace.rows.push_back(std::move(*row));
      continue;
    }
    std::string message = At(options, number, row.error());
    if (!options.skip_bad) return Fail(ErrorCode::kInvalid, std::move(message));
    trace.skipped.push_back(std::move(message));
  }
  if (!header.has_value()) {
    return Fail(ErrorCode::kInvalid, At(options, 1, {1, "the file is empty: want a header line"}));
  }
  return trace;
}

// A machine of a million cores or 16 TiB is not a trace's.
constexpr int64_t kCpuMilliMax = 1'000'000'000;
constexpr int64_t kMemoryMibMax = int64_t{16} << 20;

constexpr std::string_view kNodeColumns[] = {"sn", "cpu_milli", "memory_mib", "gpu", "model"};

TraceNode ReadNode(Row& row) {
  TraceNode node{.name = row.Text(0),
                 .cpu_milli = row.Number(1, kCpuMilliMax),
                 .memory_mib = row.Number(2, kMemoryMibMax),
                 .gpus_count = row.Number(3, model::kDevicesMax),
                 .gpu_model = row.Text(4)};
  row.CheckName(0);
  if (node.gpus_count == 0) node.gpu_model.clear();
  if (node.gpus_count > 0) row.CheckModel(4, node.gpu_model);
  return node;
}

constexpr std::string_view kPodColumns[] = {"name",    "cpu_milli", "memory_mib",
                                            "num_gpu", "gpu_milli", "gpu_spec"};

TracePod ReadPod(Row& row) {
  TracePod pod{.name = row.Text(0),
               .cpu_milli = row.Number(1, kCpuMilliMax),
               .memory_mib = row.Number(2, kMemoryMibMax),
               .gpus_count = row.Number(3, model::kDevicesMax),
               .gpu_milli_each = row.Number(4, model::kDeviceMilli)};
  row.CheckName(0);
  if (pod.gpus_count == 0) pod.gpu_milli_each = 0;
  if (pod.gpus_count == 1 && pod.gpu_milli_each == 0) {
    row.Complain(4, "must not be 0 for a pod with a GPU");
  }
  if (pod.gpus_count > 1 && pod.gpu_milli_each != model::kDeviceMilli) {
    row.Complain(4, fmt::format("must be {} for a pod with several GPUs", model::kDeviceMilli));
  }
  if (!row.has(5) || pod.gpus_count == 0) return pod;
  for (std::string_view rest = row.Text(5); !rest.empty();) {
    const size_t bar = std::min(rest.find('|'), rest.size());
    row.CheckModel(5, rest.substr(0, bar));
    pod.gpu_models.emplace_back(rest.substr(0, bar));
    if (bar + 1 == rest.size()) row.CheckModel(5, "");
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  std::ranges::sort(pod.gpu_models);
  const auto repeated = std::ranges::unique(pod.gpu_models);
  pod.gpu_models.erase(repeated.begin(), repeated.end());
  return pod;
}

}  // namespace

Result<Trace<TraceNode>> ParseTraceNodes(std::string_view text, const TraceOptions& options) {
  const Format<TraceNode> format{.names = kNodeColumns,
                                 .required_count = std::size(kNodeColumns),
                                 .rows_max = static_cast<size_t>(limits::kNodesMax),
                                 .read = ReadNode};
  return Read(format, text, options);
}

Result<Trace<TracePod>> ParseTracePods(std::string_view text, const TraceOptions& options) {
  const Format<TracePod> format{.names = kPodColumns,
                                .required_count = std::size(kPodColumns) - 1,
                                .rows_max = static_cast<size_t>(limits::kPodsMax),
                                .read = ReadPod};
  return Read(format, text, options);
}

}  // namespace berth::sim
