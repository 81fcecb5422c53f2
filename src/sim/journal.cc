#include "sim/journal.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace berth::sim {

void Journal::Append(Instant now, env::AppendJournal append) {
  // An fdatasync of a laptop's disk: tenths of a millisecond to some milliseconds.
  const Duration delay{prng_.Between(Duration::Microseconds(100).ns, Duration::Milliseconds(4).ns)};
  last_ = std::max(last_, now + delay);
  pending_.push_back({.at = last_, .append = std::move(append)});
}

Instant Journal::next_at() const {
  return pending_.empty() ? Instant::Never() : pending_.front().at;
}

Journal::Done Journal::Pop() {
  CHECK(!pending_.empty());
  Pending first = std::move(pending_.front());
  pending_.erase(pending_.begin());
  Apply(first.append);
  return {.appended = {.sequence = first.append.sequence},
          .records = std::move(first.append.records)};
}

env::JournalRefused Journal::Refuse() {
  CHECK(!pending_.empty());
  const uint64_t sequence = pending_.front().append.sequence;
  pending_.erase(pending_.begin());
  return {.sequence = sequence};
}

Journal::Recovered Journal::Recover() {
  Recovered recovered;
  for (Pending& pending : pending_) {
    if (!prng_.Chance({1, 2})) break;
    Apply(pending.append);
    std::ranges::move(pending.append.records, std::back_inserter(recovered.survivors));
  }
  pending_.clear();
  recovered.last_revision = revision_;
  recovered.records.reserve(live_.size());
  for (const auto& [key, record] : live_) recovered.records.push_back(record);
  return recovered;
}

void Journal::Apply(const env::AppendJournal& append) {
  for (const env::JournalRecord& record : append.records) {
    CHECK_GE(record.revision, revision_);
    revision_ = record.revision;
    if (record.value.empty()) {
      live_.erase(record.key);
    } else {
      live_.insert_or_assign(record.key, record);
    }
  }
}

void Journal::AddTo(Hasher& hasher) const {
  const auto add = [&](const env::JournalRecord& record) {
    hasher.Add(record.key).Add(record.revision).Add(record.value.view());
  };
  hasher.Add(prng_.fingerprint()).Add(revision_).Add(last_.ns);
  hasher.Add(live_.size());
  for (const auto& [key, record] : live_) add(record);
  hasher.Add(pending_.size());
  for (const Pending& pending : pending_) {
    hasher.Add(pending.at.ns).Add(pending.append.sequence).Add(pending.append.records.size());
    for (const env::JournalRecord& record : pending.append.records) add(record);
  }
}

}  // namespace berth::sim
