#include "cli/queue_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "api/json.h"
#include "cli/answer.h"
#include "cli/workload_text.h"
#include "codec/json.h"

namespace berth::cli {
namespace {

constexpr size_t kColumns = 9;
using Row = std::array<std::string, kColumns>;

// What is unusual about it.
std::string Marks(const api::JsonObject& queue) {
  std::string marks;
  const auto add = [&](std::string_view mark) {
    marks += fmt::format("{}{}", marks.empty() ? "" : ", ", mark);
  };
  if (Text(queue, "kind") == "Cohort") add("cohort");
  if (Text(queue, "exists") == "false" && Text(queue, "kind") != "Cohort") add("does not exist");
  if (Text(queue, "deleting") == "true") add("being deleted");
  if (Text(queue, "stopped") == "true") add(Text(queue, "kind") == "Queue" ? "closed" : "stopped");
  if (Text(queue, "strict") == "true") add("strict");
  if (Text(queue, "active") == "false" && Text(queue, "stopped") != "true" &&
      Text(queue, "deleting") != "true") {
    add("not active");
  }
  return marks.empty() ? "" : " (" + marks + ")";
}

std::string Dash(const std::string& text) { return text.empty() ? "-" : text; }

class Tree {
 public:
  void Add(const api::JsonObject& queue, size_t depth) {
    const std::string indent(2 * depth, ' ');
    const std::string count = Text(queue, "waitingCount");
    Row row = {indent + Text(queue, "name") + Marks(queue)};
    row[kColumns - 1] = count;
    bool first = true;
    std::string missing;
    for (const api::JsonObject* quota : ObjectsIn(queue, "quotas")) {
      if (!first) row = {};
      first = false;
      row[1] = Text(*quota, "flavor");
      row[2] = Text(*quota, "resource");
      row[3] = Dash(Text(*quota, "has"));
      row[4] = Text(*quota, "used");
      row[5] = Dash(Text(*quota, "borrowed"));
      row[6] = Dash(Text(*quota, "lent"));
      row[7] = Dash(Text(*quota, "left"));
      rows_.push_back(row);
      if (Text(*quota, "flavorMissing") == "true" && std::exchange(missing, row[1]) != row[1]) {
        notes_[rows_.size() - 1].push_back(
            fmt::format("{}    ResourceFlavor {} doesn't exist", indent, missing));
      }
      AddNotes(*quota, indent);
    }
    if (first) rows_.push_back(row);
    if (const api::JsonObject* why = Part(queue, "inactive");
        why != nullptr && Text(*why, "reason") != "Stopped") {
      notes_[rows_.size() - 1].push_back(
          fmt::format("{}    {}: {}", indent, Text(*why, "reason"), Text(*why, "message")));
    }
    size_t number = 0;
    for (const api::JsonObject* waits : ObjectsIn(queue, "waiting")) {
      std::string note = fmt::format("{}    {}. {}  priority {}, since {}", indent, ++number,
                                     Text(*waits, waits->contains("group") ? "group" : "workload"),
                                     Text(*waits, "priority"), Text(*waits, "since"));
      for (const std::string& line : {Text(*waits, "message"), DelayText(*waits)}) {
        if (!line.empty()) note += fmt::format("\n{}         {}", indent, line);
      }
      notes_[rows_.size() - 1].push_back(std::move(note));
    }
    if (!count.empty() && count != fmt::format("{}", number))
      notes_[rows_.size() - 1].push_back(
          fmt::format("{}    ... {} wait altogether", indent, count));
  }

  [[nodiscard]] std::string Print() const {
    std::array<size_t, kColumns> widths = {};
    for (const Row& row : rows_) {
      for (size_t c = 0; c < kColumns; ++c) widths[c] = std::max(widths[c], row[c].size());
    }
    std::string text;
    for (size_t i = 0; i < rows_.size(); ++i) {
      std::string line;
      for (size_t c = 0; c < kColumns; ++c) {
        const bool number = c >= 3;
        line += number ? fmt::format("{:>{}}", rows_[i][c], widths[c])
                       : fmt::format("{:<{}}", rows_[i][c], widths[c]);
        line += "  ";
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
      if (const auto notes = notes_.find(i); notes != notes_.end()) {
        for (const std::string& note : notes->second) text += note + "\n";
      }
    }
    return text;
  }

 private:
  void AddNotes(const api::JsonObject& quota, const std::string& indent) {
    std::string note;
    for (const auto& [member, says] :
         {std::pair("guarantee", "guaranteed"), std::pair("deserved", "deserved"),
          std::pair("leaving", "being given back"),
          std::pair("promised", "promised to who waits for that")}) {
      if (!quota.contains(member)) continue;
      note += fmt::format("{}{} is {}", note.empty() ? "" : ", ", Text(quota, member), says);
    }
    if (!note.empty()) notes_[rows_.size() - 1].push_back(indent + "    " + note);
  }

  std::vector<Row> rows_ = {
      {"QUEUE", "FLAVOR", "RESOURCE", "HAS", "USED", "BORROWED", "LENT", "LEFT", "WAITING"}};
  std::map<size_t, std::vector<std::string>> notes_;  // Below rows.
};

}  // namespace

Result<std::string> QueueText(int status, std::string_view body, std::string_view name) {
  const Result<api::Json> answer = codec::ParseJson(body);
  if (status == 404)
    return Fail(ErrorCode::kNotFound, fmt::format("the server answers 404{}", kNoScheduler));
  if (!answer || !answer->is_object())
    return Fail(ErrorCode::kInvalid, fmt::format("the server's answer, {}, is no JSON", status));
  const api::JsonObject& object = answer->get_object();
  if (status != 200) {
    const std::string message = Text(object, "message");
    return Fail(ErrorCode::kInvalid,
                message.empty() ? fmt::format("the server answers {}", status) : message);
  }
  Tree tree;
  // By kind and name: depth, and whether it is of what was asked for.
  std::map<std::pair<std::string, std::string>, std::pair<size_t, bool>> above;
  bool any = false;
  for (const api::JsonObject* queue : ObjectsIn(object, "queues")) {
    const std::string of = Text(*queue, "name");
    const std::string kind = Text(*queue, "kind");
    const auto parent = above.find({kind == "Queue" ? "Queue" : "Cohort", Text(*queue, "parent")});
    const bool below = parent != above.end();
    const bool wanted = name.empty() || of == name || (below && parent->second.second);
    const size_t depth =
        below && (name.empty() || parent->second.second) ? parent->second.first + 1 : 0;
    above[{kind, of}] = {depth, wanted};
    if (!wanted) continue;
    tree.Add(*queue, depth);
    any = true;
  }
  if (!any && !name.empty())
    return Fail(ErrorCode::kInvalid, fmt::format("no queue or cohort is called {}", name));
  if (!any) return std::string("there are no queues\n");
  return tree.Print();
}

}  // namespace berth::cli
