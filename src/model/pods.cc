#include "model/pods.h"

namespace berth::model {

void Pod::AddTo(Hasher& hasher) const {
  hasher.Add(uid.value)
      .Add(key.value)
      .Add(class_id.value)
      .Add(charge.value)
      .Add(charge_scoring.value);
  hasher.Add(pin.kind)
      .Add(pin.node.value)
      .Add(pin.volumes.value)
      .Add(pin.asker.value)
      .Add(looks)
      .Add(asks_about_victims)
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
  hasher.Add(job.value).Add(pod_set.value).Add(slot.value).Add(queued);
  hasher.Add(spared_until.ns).Add(spared_count);
  hasher.Add(promised.value).Add(evicted_for.value).Add(released);
  hasher.Add(void_node.value).Add(overdue);
  hasher.Add(lost.why).Add(lost.node.value);
  hasher.Add(refused_code)
      .Add(write)
      .Add(attempts)
      .Add(errors)
      .Add(not_before.ns)
      .Add(backoff_until.ns);
}

}  // namespace berth::model
