#include "net/gathering.h"

#include <algorithm>
#include <utility>

namespace berth::net {

Duration Gathering::Next(int under_way, uint64_t ended) {
  const uint64_t came = ended - std::exchange(ended_, ended);
  if (calls_min_ == 0 || under_way < calls_min_) {
    last_ = {};
  } else if (last_ == Duration{}) {
    last_ = std::min(kFirst, at_most_);
  } else {
    const uint64_t were = came + static_cast<uint64_t>(under_way);
    if (came * 8 < were) last_ = std::min(last_ * 2, at_most_);
    if (came * 4 > were) last_ = std::max(Duration{last_.ns / 2}, std::min(kFirst, at_most_));
  }
  return last_;
}

}  // namespace berth::net
