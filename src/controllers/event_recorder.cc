#include "controllers/event_recorder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "client/request.h"

namespace berth::controllers {
namespace {

const client::Resource kEvents{.group = "", .version = "v1", .plural = "events"};

}  // namespace

EventRecorder::Row& EventRecorder::RowOf(Instant now, const Head& object, const KindNames& kind) {
  const auto [at, fresh] = rows_.try_emplace(object.uid);
  Row& row = at->second;
  if (!fresh) by_age_.erase({row.told, object.uid});
  row.kind = kind;
  row.object = {.namespace_name = object.namespace_name,
                .name = object.name,
                .uid = object.uid,
                .resource_version = object.resource_version};
  row.told = now;
  by_age_.emplace(now, object.uid);
  // Whoever was silent longest is told of anew if ever.
  for (auto oldest = by_age_.begin(); rows_.size() > kObjectsMax && oldest != by_age_.end();) {
    const auto known = rows_.find(oldest->second);
    if (known->second.in_flight > 0 || known->first == object.uid) {
      ++oldest;
      continue;
    }
    for (const auto& [key, entry] : known->second.entries) due_.erase(entry.due);
    rows_.erase(known);
    oldest = by_age_.erase(oldest);
  }
  return row;
}

// Events of one key are one Event. What comes too often with ever new messages is put under one
// key, and says so.
std::string EventRecorder::KeyOf(Instant now, Row& row, Told& told) {
  std::string group = fmt::format("{} {}", told.warning ? "Warning" : "Normal", told.reason);
  Similar& similar = row.similar[group];
  if (now - similar.last > kSimilarWithin) similar.messages.clear();
  similar.last = now;
  similar.messages.insert(told.message);
  if (similar.messages.size() < kSimilarMax) return group + " " + told.message;
  similar.messages.erase(told.message);
  told.message = "(combined from similar events): " + told.message;
  return group;
}

// A burst, then one in each interval: `spent` is when all of the burst is back.
bool EventRecorder::MaySpend(Instant now, Row& row) {
  const Instant spent = std::max(row.spent, now);
  if (spent - now > kRefill * (kBurst - 1)) return false;
  row.spent = spent + kRefill;
  return true;
}

void EventRecorder::Tell(Instant now, const Head& object, const KindNames& kind,
                         std::string_view component, Told told) {
  Row& row = RowOf(now, object, kind);
  const std::string key = KeyOf(now, row, told);
  Entry& entry = row.entries[key];
  if (entry.count == 0) {
    entry.component = component;
    entry.first = now;
    const uint64_t suffix = Hasher().Add(object.uid).Add(now.ns).Add(++serial_).value();
    entry.name = client::EventName(object.name, suffix);
  }
  ++entry.count;
  entry.last = now;
  entry.told = std::move(told);
  // What waits to be written anyway costs nothing more.
  if (entry.due != 0) return;
  if (!MaySpend(now, row)) {
    if (!entry.made && !entry.in_flight) row.entries.erase(key);
    return;
  }
  Wait(entry, {.uid = object.uid, .entry = key});
  if (row.entries.size() > kEntriesMax) Shrink(row);
}

void EventRecorder::Wait(Entry& entry, Place place) {
  entry.due = ++last_due_;
  due_.emplace(entry.due, std::move(place));
}

// What was told longest ago is not told again, or as a new Event: one that does not wait, if there
// is one.
void EventRecorder::Shrink(Row& row) {
  const auto order = [](const Entry& entry) { return std::pair(entry.due != 0, entry.last); };
  auto oldest = row.entries.end();
  for (auto at = row.entries.begin(); at != row.entries.end(); ++at) {
    if (at->second.in_flight) continue;
    if (oldest == row.entries.end() || order(at->second) < order(oldest->second)) oldest = at;
  }
  if (oldest == row.entries.end()) return;
  due_.erase(oldest->second.due);
  row.entries.erase(oldest);
}

EventRecorder::Entry* EventRecorder::Find(const Place& place, Row*& row) {
  const auto known = rows_.find(place.uid);
  if (known == rows_.end()) return nullptr;
  row = &known->second;
  const auto entry = row->entries.find(place.entry);
  return entry == row->entries.end() ? nullptr : &entry->second;
}

void EventRecorder::Send(Instant now, client::Client& client, env::Outbox& out) {
  for (size_t left = due_.size(); left > 0 && calls_.size() < kInFlightMax; --left) {
    Place place = std::move(due_.begin()->second);
    due_.erase(due_.begin());
    Row* row = nullptr;
    Entry* entry = Find(place, row);
    CHECK(entry != nullptr);
    if (entry->in_flight) {
      Wait(*entry, std::move(place));
      continue;
    }
    entry->due = 0;
    entry->in_flight = true;
    ++row->in_flight;
    const env::CallId call = client.Call(now, RequestOf(*row, *entry), out);
    calls_.emplace(call.value, std::move(place));
  }
}

bool EventRecorder::OnCallDone(const client::CallDone& done) {
  const auto call = calls_.find(done.call.value);
  if (call == calls_.end()) return false;
  const Place place = std::move(call->second);
  calls_.erase(call);
  Row* row = nullptr;
  Entry* entry = Find(place, row);
  CHECK(entry != nullptr);
  CHECK(entry->in_flight);
  entry->in_flight = false;
  --row->in_flight;
  // One that has expired meanwhile, or whose fate nobody knows, is made anew when told again.
  entry->made = done.outcome == client::Outcome::kDone;
  if (!entry->made && entry->due == 0) row->entries.erase(place.entry);
  return true;
}

client::Request EventRecorder::RequestOf(const Row& row, const Entry& entry) {
  // Events of cluster-scoped objects stand in "default", as client-go puts them.
  const std::string namespace_name =
      row.object.namespace_name.empty() ? "default" : row.object.namespace_name;
  const std::string_view message = client::CutUtf8(entry.told.message, client::kEventNoteBytesMax);
  client::Request request;
  if (entry.made) {
    request = client::Patch(
        kEvents, {.namespace_name = namespace_name, .name = entry.name}, client::PatchType::kMerge,
        fmt::format(R"({{"count":{},"lastTimestamp":"{}","message":{}}})", entry.count,
                    client::SecondsTime(entry.last), client::JsonString(message)));
  } else {
    std::string body = fmt::format(
        R"({{"apiVersion":"v1","kind":"Event","metadata":{{"namespace":{},"name":{}}},)",
        client::JsonString(namespace_name), client::JsonString(entry.name));
    body += fmt::format(R"("involvedObject":{{"apiVersion":"{}","kind":"{}","namespace":{},)",
                        row.kind.api_version, row.kind.kind,
                        client::JsonString(row.object.namespace_name));
    body += fmt::format(
        R"("name":{},"uid":{},"resourceVersion":{}}},"reason":{},"message":{},"type":"{}",)",
        client::JsonString(row.object.name), client::JsonString(row.object.uid),
        client::JsonString(row.object.resource_version), client::JsonString(entry.told.reason),
        client::JsonString(message), entry.told.warning ? "Warning" : "Normal");
    body += fmt::format(
        R"("source":{{"component":"{0}"}},"reportingComponent":"{0}","reportingInstance":"",)"
        R"("firstTimestamp":"{1}","lastTimestamp":"{2}","count":{3}}})",
        entry.component, client::SecondsTime(entry.first), client::SecondsTime(entry.last),
        entry.count);
    request = client::Create(kEvents, namespace_name, std::move(body));
  }
  request.priority = client::Priority::kLow;
  return request;
}

size_t EventRecorder::entries() const {
  size_t count = 0;
  for (const auto& [uid, row] : rows_) count += row.entries.size();
  return count;
}

void EventRecorder::AddTo(Hasher& hasher, const Entry& entry) {
  hasher.Add(entry.component).Add(entry.name).Add(entry.count);
  hasher.Add(entry.told.warning).Add(entry.told.reason).Add(entry.told.message);
  hasher.Add(entry.first.ns).Add(entry.last.ns);
  hasher.Add(entry.made).Add(entry.in_flight).Add(entry.due);
}

void EventRecorder::AddTo(Hasher& hasher, const Row& row) {
  hasher.Add(row.kind.api_version)
      .Add(row.kind.kind)
      .Add(row.object.namespace_name)
      .Add(row.object.name)
      .Add(row.object.uid);
  hasher.Add(row.object.resource_version).Add(row.told.ns).Add(row.spent.ns).Add(row.in_flight);
  hasher.Add(row.similar.size());
  for (const auto& [group, similar] : row.similar) {
    hasher.Add(group).Add(similar.last.ns).Add(similar.messages.size());
    for (const std::string& message : similar.messages) hasher.Add(message);
  }
  hasher.Add(row.entries.size());
  for (const auto& [key, entry] : row.entries) {
    hasher.Add(key);
    AddTo(hasher, entry);
  }
}

// `by_age_` and `due_` follow from the rows.
void EventRecorder::AddTo(Hasher& hasher) const {
  hasher.Add(serial_).Add(last_due_).Add(rows_.size());
  for (const auto& [uid, row] : rows_) {
    hasher.Add(uid);
    AddTo(hasher, row);
  }
  hasher.Add(calls_.size());
  for (const auto& [call, place] : calls_) hasher.Add(call).Add(place.uid).Add(place.entry);
}

}  // namespace berth::controllers
