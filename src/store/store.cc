#include "store/store.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace berth::store {

Store::Store(Options options)
    : options_(std::move(options)), tables_(options_.tables.size()), head_(options_.tables.size()) {
  CHECK_LE(options_.tables.size(), size_t{UINT16_MAX});
}

std::optional<Table> Store::TableNamed(std::string_view name) const {
  const auto at = std::ranges::find(options_.tables, name);
  if (at == options_.tables.end()) return std::nullopt;
  return static_cast<Table>(at - options_.tables.begin());
}

Table Store::AddTable(std::string name) {
  CHECK(!TableNamed(name));
  CHECK_LT(options_.tables.size(), size_t{UINT16_MAX});
  options_.tables.push_back(std::move(name));
  tables_.emplace_back();
  head_.emplace_back();
  return static_cast<Table>(tables_.size() - 1);
}

ObjectRef Store::FindHead(Table table, ObjectKey key) const {
  const Overlay& overlay = head_[table];
  if (!overlay.empty()) {
    const auto it = overlay.find(key);
    if (it != overlay.end()) return it->second.object;
  }
  return tables_[table].Find(key);
}

void Store::Put(StoredObject object) {
  CHECK_EQ(object.revision, next_revision());
  auto ref = std::make_shared<const StoredObject>(std::move(object));
  ObjectRef previous = FindHead(ref->table, KeyOf(*ref));
  Commit({.object = std::move(ref), .previous = std::move(previous), .deleted = false});
}

void Store::Delete(StoredObject last) {
  CHECK_EQ(last.revision, next_revision());
  auto ref = std::make_shared<const StoredObject>(std::move(last));
  ObjectRef previous = FindHead(ref->table, KeyOf(*ref));
  CHECK(previous != nullptr);
  Commit({.object = std::move(ref), .previous = std::move(previous), .deleted = true});
}

void Store::Commit(Event event) {
  ++head_revision_;
  const StoredObject& object = *event.object;
  Hasher hasher;
  hasher.Add(history_hash_).Add(object.table).Add(event.deleted);
  hasher.Add(std::string_view(object.namespace_name)).Add(std::string_view(object.name));
  hasher.Add(object.json.view());
  history_hash_ = hasher.value();
  head_[object.table].insert_or_assign(
      OwnKey{object.namespace_name, object.name},
      Difference{.object = event.deleted ? nullptr : event.object, .revision = head_revision_});
  pending_.push_back(std::move(event));
}

std::string Store::JournalKey(const StoredObject& object) const {
  return fmt::format("{}/{}/{}", options_.tables[object.table], object.namespace_name, object.name);
}

env::AppendJournal Store::TakeAppend() {
  CHECK(!append_in_flight());
  CHECK(has_unsent());
  env::AppendJournal append{.sequence = ++sequence_, .records = {}};
  append.records.reserve(pending_.size());
  for (const Event& event : pending_) {
    append.records.push_back({.key = JournalKey(*event.object),
                              .revision = event.revision(),
                              .value = event.deleted ? Bytes() : event.object->json});
  }
  in_flight_ = pending_.size();
  return append;
}

RevisionRange Store::MarkDurable(uint64_t sequence) {
  CHECK_EQ(sequence, sequence_);
  CHECK(append_in_flight());
  const RevisionRange range{.first = durable_revision_ + 1, .last = durable_revision_ + in_flight_};
  for (; in_flight_ > 0; --in_flight_) {
    Event event = std::move(pending_.front());
    pending_.pop_front();
    ++durable_revision_;
    CHECK_EQ(event.revision(), durable_revision_);
    const StoredObject& object = *event.object;
    if (event.deleted) {
      CHECK(tables_[object.table].Erase(KeyOf(object)));
    } else {
      tables_[object.table].Put(event.object);
    }
    Overlay& overlay = head_[object.table];
    const auto it = overlay.find(KeyOf(object));
    CHECK(it != overlay.end());
    if (it->second.revision == durable_revision_) overlay.erase(it);
    AppendToLog(std::move(event));
  }
  return range;
}

void Store::Discard(uint64_t sequence) {
  CHECK_EQ(sequence, sequence_);
  CHECK(append_in_flight());
  for (const Event& event : pending_) head_[event.object->table].clear();
  pending_.clear();
  in_flight_ = 0;
  head_revision_ = durable_revision_;
}

void Store::AppendToLog(Event event) {
  log_bytes_ += FootprintBytes(*event.object);
  log_.push_back(std::move(event));
  while (log_.size() > options_.log_events_max || log_bytes_ > options_.log_bytes_max) {
    log_bytes_ -= FootprintBytes(*log_.front().object);
    log_.pop_front();
    ++compacted_revision_;
  }
  CHECK_EQ(compacted_revision_ + log_.size(), durable_revision_);
}

void Store::CompactTo(uint64_t revision) {
  CHECK_LE(revision, durable_revision_);
  while (compacted_revision_ < revision) {
    log_bytes_ -= FootprintBytes(*log_.front().object);
    log_.pop_front();
    ++compacted_revision_;
  }
}

const Event& Store::EventAt(uint64_t revision) const {
  CHECK_LT(compacted_revision_, revision);
  CHECK_LE(revision, durable_revision_);
  return log_[revision - compacted_revision_ - 1];
}

void Store::WalkHead(const Range& range, const Visit& visit) const {
  WalkOver(tables_[range.table], head_[range.table], range, visit);
}

void Store::Walk(const Range& range, const Visit& visit) const {
  WalkOver(tables_[range.table], {}, range, visit);
}

void Store::WalkAt(uint64_t revision, const Range& range, const Visit& visit) const {
  CHECK_LE(compacted_revision_, revision);
  CHECK_LE(revision, durable_revision_);
  Overlay past;
  for (uint64_t undone = durable_revision_; undone > revision; --undone) {
    const Event& event = EventAt(undone);
    const StoredObject& object = *event.object;
    if (object.table != range.table) continue;
    past.insert_or_assign(OwnKey{object.namespace_name, object.name},
                          Difference{.object = event.previous, .revision = undone});
  }
  WalkOver(tables_[range.table], past, range, visit);
}

// Merges two sorted walks; where both have a key the overlay is right.
void Store::WalkOver(const ObjectTable& table, const Overlay& overlay, const Range& range,
                     const Visit& visit) {
  ObjectKey start{.namespace_name = range.after_namespace, .name = range.after_name};
  if (range.namespace_name && start.namespace_name < std::string_view(*range.namespace_name)) {
    start = {.namespace_name = *range.namespace_name, .name = {}};
  }
  const bool resumed = !range.after_namespace.empty() || !range.after_name.empty();
  const ObjectKey after{.namespace_name = range.after_namespace, .name = range.after_name};
  const auto wanted = [&](ObjectKey key) {
    return !range.namespace_name || key.namespace_name == *range.namespace_name;
  };
  ObjectTable::Cursor cursor = table.LowerBound(start);
  auto different = overlay.lower_bound(start);
  while (true) {
    const ObjectRef* stored = table.At(cursor);
    const bool overlaid =
        different != overlay.end() &&
        (stored == nullptr || !(KeyOf(**stored) < KeyLess::View(different->first)));
    if (stored == nullptr && !overlaid) return;
    const ObjectKey key = overlaid ? KeyLess::View(different->first) : KeyOf(**stored);
    if (!wanted(key)) return;
    const ObjectRef& object = overlaid ? different->second.object : *stored;
    if (stored != nullptr && KeyOf(**stored) == key) table.Next(cursor);
    if (object != nullptr && !(resumed && key == after) && !visit(object)) return;
    if (overlaid) ++different;
  }
}

Status Store::RecoverOne(const env::JournalRecord& record, const Decode& decode) {
  const auto damaged = [&](std::string_view why) {
    return Fail(ErrorCode::kDamaged, fmt::format("journal record {:?}: {}", record.key, why));
  };
  head_revision_ = std::max(head_revision_, record.revision);
  const size_t first = record.key.find('/');
  const size_t second = first == std::string::npos ? first : record.key.find('/', first + 1);
  if (second == std::string::npos) return damaged("the key is not table/namespace/name");
  const std::string_view key = record.key;
  const std::optional<Table> named = TableNamed(key.substr(0, first));
  if (!named) return damaged("unknown kind of object");
  const Table table = *named;
  const ObjectKey object_key{.namespace_name = key.substr(first + 1, second - first - 1),
                             .name = key.substr(second + 1)};
  if (record.revision == 0) return damaged("no revision");
  const ObjectRef present = tables_[table].Find(object_key);
  if (present != nullptr && present->revision >= record.revision) {
    return damaged("its revisions are not in order");
  }
  Hasher hasher;
  hasher.Add(history_hash_).Add(std::string_view(record.key)).Add(record.value.view());
  history_hash_ = hasher.value();
  if (record.value.empty()) {
    tables_[table].Erase(object_key);
    return {};
  }
  Result<StoredObject> object = decode(table, record);
  if (!object) return damaged(object.error().message);
  if (KeyOf(*object) != object_key) return damaged("it names another object than its key");
  if (object->revision != record.revision) return damaged("it carries another revision");
  CHECK_EQ(object->table, table);
  tables_[table].Put(std::make_shared<const StoredObject>(std::move(*object)));
  return {};
}

Result<Store> Store::Recover(Options options, const env::JournalContent& content,
                             const Decode& decode) {
  Store store(std::move(options));
  store.head_revision_ = content.last_revision;
  for (const env::JournalRecord& record : content.records) {
    if (Status status = store.RecoverOne(record, decode); !status) {
      return std::unexpected(status.error());
    }
  }
  store.durable_revision_ = store.compacted_revision_ = store.head_revision_;
  return store;
}

void Store::AddTo(Hasher& hasher) const {
  hasher.Add(history_hash_).Add(head_revision_).Add(durable_revision_).Add(compacted_revision_);
  hasher.Add(in_flight_).Add(sequence_);
}

}  // namespace berth::store
