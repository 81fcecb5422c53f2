#include "api/validate_job_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <expected>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/object.h"
#include "api/timestamp.h"

namespace berth::api::rules {
namespace {

// ---- Indexes -----------------------------------------------------------------------------------

struct IndexRange {
  int64_t first = 0;
  int64_t last = 0;
};

// "1,3-5": the ranges up to the first that is wrong, and what is wrong with that.
struct Indexes {
  std::vector<IndexRange> ranges;
  std::string why;
};

// As Go reads a number.
std::optional<int64_t> ParseIndex(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return index;
}

// One end of a range.
std::expected<int64_t, std::string> ReadIndex(std::string_view text, int64_t completions) {
  const std::optional<int64_t> index = ParseIndex(text);
  if (!index) {
    return std::unexpected(fmt::format("cannot convert string to integer for index: \"{}\"", text));
  }
  if (*index >= completions) return std::unexpected(fmt::format("too large index: \"{}\"", text));
  return *index;
}

std::string NotIncreasing(int64_t previous, int64_t current) {
  return fmt::format("non-increasing order, previous: {}, current: {}", previous, current);
}

std::expected<IndexRange, std::string> ReadRange(std::string_view text, int64_t completions) {
  const size_t dash = text.find('-');
  if (dash != std::string_view::npos && text.find('-', dash + 1) != std::string_view::npos) {
    return std::unexpected(fmt::format(
        "the fragment \"{}\" violates the requirement that an index interval can have at most two "
        "parts separated by '-'",
        text));
  }
  const auto first = ReadIndex(text.substr(0, dash), completions);
  if (!first) return std::unexpected(first.error());
  if (dash == std::string_view::npos) return IndexRange{*first, *first};
  const auto last = ReadIndex(text.substr(dash + 1), completions);
  if (!last) return std::unexpected(last.error());
  if (*first >= *last) return std::unexpected(NotIncreasing(*first, *last));
  return IndexRange{*first, *last};
}

Indexes ParseIndexes(std::string_view text, int64_t completions) {
  Indexes indexes;
  if (text.empty()) return indexes;
  for (size_t begin = 0; begin <= text.size() && indexes.why.empty();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const auto range = ReadRange(text.substr(begin, end - begin), completions);
    begin = end + 1;
    if (!range) {
      indexes.why = range.error();
    } else if (!indexes.ranges.empty() && indexes.ranges.back().last >= range->first) {
      indexes.why = NotIncreasing(indexes.ranges.back().last, range->first);
    } else {
      indexes.ranges.push_back(*range);
    }
  }
  return indexes;
}

// The first index that is in both.
std::optional<int64_t> Overlap(const std::vector<IndexRange>& left,
                               const std::vector<IndexRange>& right) {
  auto one = left.begin();
  auto other = right.begin();
  while (one != left.end() && other != right.end()) {
    const int64_t first = std::max(one->first, other->first);
    if (first <= std::min(one->last, other->last)) return first;
    if (one->last < other->last) {
      ++one;
    } else {
      ++other;
    }
  }
  return std::nullopt;
}

// ---- The status --------------------------------------------------------------------------------

bool HasTrue(const Json& job, std::string_view type) {
  return std::ranges::any_of(ArrayAt(job, "status.conditions"), [&](const Json& condition) {
    return TextAt(condition, "type") == type && TextAt(condition, "status") == "True";
  });
}

bool IsFinished(const Json& job) { return HasTrue(job, "Complete") || HasTrue(job, "Failed"); }

// Upstream's internal type, whose lists are null until somebody gives them.
Json ShownUncounted(const Json& uncounted) {
  const auto list = [&](std::string_view member) {
    const Json* found = FindMember(uncounted, member);
    return found == nullptr ? Json() : *found;
  };
  return JsonObject{{"Succeeded", list("succeeded")}, {"Failed", list("failed")}};
}

class Checker {
 public:
  Checker(FieldErrors& errors, const Json& old, const Json& job)
      : errors_(errors), old_(old), job_(job) {}

  // In upstream's order.
  void Run() {
    constexpr std::array<std::string_view, 5> kCounts = {"active", "succeeded", "failed", "ready",
                                                         "terminating"};
    CheckNonnegative(errors_, status_, OrEmptyObject(FindMember(job_, "status")), kCounts);
    Uncounted();
    Ends();
    Finished();
    CompletedIndexes();
    FailedIndexes();
    Running();
    Stays();
  }

 private:
  // An error about the conditions as a whole, which shows no value.
  void RefuseConditions(std::string detail) {
    errors_.push_back({FieldErrorType::kInvalid, "status.conditions", "", std::move(detail)});
  }

  void Refuse(std::string_view member, int64_t value, std::string detail) {
    errors_.push_back(InvalidField(status_.At(member).text(), value, std::move(detail)));
  }

  [[nodiscard]] bool Turned(std::string_view type) const {
    return HasTrue(old_, type) != HasTrue(job_, type);
  }

  static const Json* MemberOf(const Json& job, std::string_view member) {
    return FindMember(OrEmptyObject(FindMember(job, "status")), member);
  }
  [[nodiscard]] const Json* Member(std::string_view member) const { return MemberOf(job_, member); }
  [[nodiscard]] int64_t Count(std::string_view member) const {
    return IntegerAt(job_, fmt::format("status.{}", member));
  }

  [[nodiscard]] bool Changes(std::string_view member) const {
    const Json* before = MemberOf(old_, member);
    const Json* now = Member(member);
    return before == nullptr || now == nullptr ? before != now : !SameJson(*before, *now);
  }

  [[nodiscard]] bool finishes() const { return IsFinished(job_) && !IsFinished(old_); }

  // Pods are named once.
  void Uncounted() {
    const Json* uncounted = Member("uncountedTerminatedPods");
    if (uncounted == nullptr) return;
    const Path path = status_.At("uncountedTerminatedPods");
    std::set<std::string_view> seen;
    for (const std::string_view member : {"succeeded", "failed"}) {
      const JsonArray& uids = ArrayAt(*uncounted, member);
      for (size_t i = 0; i < uids.size(); ++i) {
        const std::string_view uid = TextOf(uids[i]);
        const Path item = path.At(member, i);
        if (uid.empty()) {
          AddInvalid(errors_, item, uid, Messages{"must not be empty"});
        } else if (!seen.insert(uid).second) {
          errors_.push_back(DuplicateField(item.text(), uid));
        }
      }
    }
  }

  // How a Job may end, and when it did.
  void Ends() {
    const bool complete = HasTrue(job_, "Complete");
    const bool failed = HasTrue(job_, "Failed");
    const bool target = HasTrue(job_, "FailureTarget");
    if (complete && failed && (Turned("Complete") || Turned("Failed")))
      RefuseConditions("cannot set Complete=True and Failed=true conditions");
    if (complete && target && (Turned("Complete") || Turned("FailureTarget")))
      RefuseConditions("cannot set Complete=True and FailureTarget=true conditions");
    const Json* completed = Member("completionTime");
    const bool looked_at = Turned("Complete") || Changes("completionTime");
    const Path path = status_.At("completionTime");
    if (completed != nullptr && !complete && looked_at) {
      AddInvalid(errors_, path, *completed,
                 "cannot set completionTime when there is no Complete=True condition");
    }
    if (complete && completed == nullptr && looked_at)
      AddRequired(errors_, path, "completionTime is required for Complete jobs");
    const Json* started = Member("startTime");
    if (completed != nullptr && started != nullptr &&
        (Changes("startTime") || Changes("completionTime"))) {
      const Result<Instant> begin = ParseTimestamp(TextOf(*started));
      const Result<Instant> end = ParseTimestamp(TextOf(*completed));
      if (begin && end && *end < *begin)
        AddInvalid(errors_, path, *completed, "must be equal to or after `startTime`");
    }
    if (failed && !target && Turned("Failed")) {
      RefuseConditions("cannot set Failed=True condition without the FailureTarget=true condition");
    }
    const bool criteria = HasTrue(job_, "SuccessCriteriaMet");
    if (complete && !criteria && (Turned("Complete") || Turned("SuccessCriteriaMet"))) {
      RefuseConditions(
          "cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
    }
  }

  // What has ended has begun, and has no pods any more.
  void Finished() {
    if (!IsFinished(job_)) return;
    if (Count("active") > 0 && (finishes() || Changes("active")))
      Refuse("active", Count("active"), "active>0 is invalid for finished job");
    const bool empty_and_suspended = FlagAt(job_, "spec.suspend") &&
                                     FindPath(job_, "spec.completions") != nullptr &&
                                     IntegerAt(job_, "spec.completions") == 0;
    if (Member("startTime") == nullptr && !empty_and_suspended &&
        (finishes() || Changes("startTime"))) {
      AddRequired(errors_, status_.At("startTime"), "startTime is required for finished job");
    }
    const Json* uncounted = Member("uncountedTerminatedPods");
    if (uncounted != nullptr && (finishes() || Changes("uncountedTerminatedPods")) &&
        !(ArrayAt(*uncounted, "failed").empty() && ArrayAt(*uncounted, "succeeded").empty())) {
      AddInvalid(errors_, status_.At("uncountedTerminatedPods"), ShownUncounted(*uncounted),
                 "must be empty for finished job");
    }
  }

  void CompletedIndexes() {
    constexpr std::string_view kMember = "completedIndexes";
    const Json* given = Member(kMember);
    if (given == nullptr || TextOf(*given).empty() || !Changes(kMember)) return;
    const Path path = status_.At(kMember);
    const std::string why = ParseIndexesOf(kMember).why;
    if (!why.empty()) {
      AddInvalid(errors_, path, TextOf(*given),
                 Messages{fmt::format("error parsing {}: {}", kMember, why)});
    }
    if (TextAt(job_, "spec.completionMode") != "Indexed") {
      AddInvalid(
          errors_, path, TextOf(*given),
          Messages{"cannot set non-empty completedIndexes when non-indexed completion mode"});
    }
  }

  void FailedIndexes() {
    constexpr std::string_view kMember = "failedIndexes";
    const Json* given = Member(kMember);
    if (given == nullptr) return;
    const Path path = status_.At(kMember);
    const bool limited = FindPath(job_, "spec.backoffLimitPerIndex") != nullptr;
    const std::string why = limited ? ParseIndexesOf(kMember).why : "";
    if (!why.empty() && Changes(kMember)) {
      AddInvalid(errors_, path, TextOf(*given),
                 Messages{fmt::format("error parsing {}: {}", kMember, why)});
    }
    if (!limited && Changes(kMember)) {
      AddInvalid(errors_, path, TextOf(*given),
                 Messages{"cannot set non-null failedIndexes when backoffLimitPerIndex is null"});
    }
    if (!Changes(kMember) && !Changes("completedIndexes")) return;
    const std::optional<int64_t> both =
        Overlap(ParseIndexesOf("completedIndexes").ranges, ParseIndexesOf(kMember).ranges);
    if (!both) return;
    AddInvalid(
        errors_, path, TextOf(*given),
        Messages{fmt::format("failedIndexes and completedIndexes overlap at index: {}", *both)});
  }

  // Of a Job that says how many indexes it has.
  [[nodiscard]] Indexes ParseIndexesOf(std::string_view member) const {
    const Json* given = Member(member);
    if (given == nullptr || FindPath(job_, "spec.completions") == nullptr) return {};
    return ParseIndexes(TextOf(*given), IntegerAt(job_, "spec.completions"));
  }

  void Running() {
    if (IsFinished(job_) && Count("terminating") > 0 && (finishes() || Changes("terminating")))
      Refuse("terminating", Count("terminating"), "terminating>0 is invalid for finished job");
    if (Count("ready") > Count("active") && (Changes("ready") || Changes("active")))
      Refuse("ready", Count("ready"), "cannot set more ready pods than active");
    if (!HasTrue(job_, "SuccessCriteriaMet")) return;
    for (const std::string_view type : {"Failed", "FailureTarget"}) {
      if (HasTrue(job_, type))
        RefuseConditions(
            fmt::format("cannot set SuccessCriteriaMet=True and {}=true conditions", type));
    }
  }

  // What was once said.
  void Stays() {
    for (const std::string_view type : {"Failed", "Complete", "FailureTarget"}) {
      if (HasTrue(old_, type) && !HasTrue(job_, type))
        RefuseConditions(fmt::format("cannot disable the terminal {}=True condition", type));
    }
    const bool elastic = TextAt(job_, "spec.completionMode") == "Indexed" &&
                         IntegerAt(job_, "spec.completions") == IntegerAt(job_, "spec.parallelism");
    for (const std::string_view member : {"failed", "succeeded"}) {
      if (member == "succeeded" && elastic) continue;
      if (Count(member) < IntegerAt(old_, fmt::format("status.{}", member)))
        Refuse(member, Count(member), fmt::format("cannot decrease the {} counter", member));
    }
    const Json* completed = Member("completionTime");
    if (completed != nullptr && MemberOf(old_, "completionTime") != nullptr &&
        Changes("completionTime")) {
      AddInvalid(errors_, status_.At("completionTime"), *completed, std::string(kImmutable));
    }
    if (MemberOf(old_, "startTime") != nullptr && Changes("startTime") &&
        !FlagAt(job_, "spec.suspend")) {
      const Json* started = Member("startTime");
      AddInvalid(errors_, status_.At("startTime"), started == nullptr ? Json() : *started,
                 "field is immutable for unsuspended job once set");
    }
    if (HasTrue(old_, "SuccessCriteriaMet") && !HasTrue(job_, "SuccessCriteriaMet"))
      RefuseConditions("cannot disable the SuccessCriteriaMet=True condition");
  }

  FieldErrors& errors_;
  const Json& old_;
  const Json& job_;
  const Path status_{"status"};
};

}  // namespace

void CheckJobStatus(FieldErrors& errors, const Json& old, const Json& job) {
  Checker(errors, old, job).Run();
}

}  // namespace berth::api::rules
