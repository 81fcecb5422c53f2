#include "model/pods.h"

#include "base/check.h"

namespace berth::model {

void Pod::AddTo(Hasher& hasher) const {
  hasher.Add(uid.value)
      .Add(key.value)
      .Add(class_id.value)
      .Add(charge.value)
      .Add(charge_scoring.value);
  hasher.Add(pin.kind)
      .Add(pin.node.value)
      .Add(node.value)
      .Add(nominated.value)
      .Add(creation.ns)
      .Add(priority);
  hasher.Add(devices.mask)
      .Add(devices.milli_each)
      .Add(ours)
      .Add(gated)
      .Add(terminating)
      .Add(terminal)
      .Add(succeeded)
      .Add(preempts)
      .Add(disrupted);
  hasher.Add(start.ns).Add(deletion_deadline.ns).Add(labels.value).Add(group.value).Add(role.value);
  hasher.Add(spared_until.ns).Add(spared_count);
  hasher.Add(promised.value).Add(evicted_for.value).Add(void_node.value).Add(overdue);
  hasher.Add(lost.why).Add(lost.node.value);
  hasher.Add(refused_code)
      .Add(write)
      .Add(attempts)
      .Add(errors)
      .Add(not_before.ns)
      .Add(backoff_until.ns);
}

PodId PodTable::Add(OwnerId uid, KeyId key) {
  CHECK(!FindUid(uid).valid());
  PodId id{static_cast<uint32_t>(rows_.size())};
  if (free_rows_.empty()) {
    rows_.emplace_back();
  } else {
    id = free_rows_.back();
    free_rows_.pop_back();
  }
  rows_[id.value].uid = uid;
  rows_[id.value].key = key;
  if (uid.value >= row_of_uid_.size()) row_of_uid_.resize(uid.value + 1);
  if (key.value >= row_of_key_.size()) row_of_key_.resize(key.value + 1);
  row_of_uid_[uid.value] = id;
  row_of_key_[key.value] = id;
  return id;
}

void PodTable::Remove(PodId id) {
  CHECK(used(id));
  Pod& pod = rows_[id.value];
  row_of_uid_[pod.uid.value] = PodId{};
  if (row_of_key_[pod.key.value] == id) row_of_key_[pod.key.value] = PodId{};
  pod = Pod{};
  free_rows_.push_back(id);
}

void PodTable::AddTo(Hasher& hasher) const {
  hasher.Add(rows_.size());
  for (const Pod& pod : rows_) pod.AddTo(hasher);
  hasher.Add(free_rows_.size());
  for (const PodId id : free_rows_) hasher.Add(id.value);
}

}  // namespace berth::model
