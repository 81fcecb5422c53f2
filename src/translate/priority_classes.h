#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "api/types.h"
#include "api/workloads.h"
#include "base/hash.h"

namespace berth::translate {

// PriorityClasses as they are, and what pods get by them: the same as admission gives those that
// are made of the same template (apiserver/admission.h). A copyable value.
class PriorityClasses {
 public:
  struct Priority {
    int32_t value = 0;
    bool preempts = true;  // Whether they may evict others.
    bool operator==(const Priority&) const = default;
  };

  // Whether the class is another than before.
  bool Put(const api::PriorityClass& of);
  bool Remove(std::string_view name);
  // Of pods whose template names a class, or none and so gets the default. What the template says
  // itself goes before what its class does. O(log classes), without a name O(classes).
  [[nodiscard]] Priority Of(const api::PodSpec& spec) const;

  void AddTo(Hasher& hasher) const;

 private:
  struct Class {
    Priority priority;
    bool is_default = false;
    bool operator==(const Class&) const = default;
  };
  std::map<std::string, Class, std::less<>> classes_;  // By name.
};

}  // namespace berth::translate
