// Any bytes as an extender's answer: what it says or an error, the same each time; and as names that
// are sent to one: a document.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "codec/json.h"
#include "control/extender_messages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const bool by_names : {false, true}) {
    const auto answer = control::ReadFilterAnswer(text, by_names);
    CHECK(answer == control::ReadFilterAnswer(text, by_names));
    if (!answer) CHECK(!answer.error().message.empty());
  }
  const auto victims = control::ReadPreemptionAnswer(text);
  if (!victims) CHECK(!victims.error().message.empty());
  if (victims) {
    CHECK(codec::ParseJson(control::ExtenderPreemptionArgs("{}", *victims)).has_value());
    for (const control::ShownVictims& one : *victims) CHECK(one.uids.size() <= size);
  }
  const auto priorities = control::ReadPriorities(text);
  if (!priorities) CHECK(!priorities.error().message.empty());
  const auto bound = control::ReadBindingAnswer(text);
  if (!bound) CHECK(!bound.error().message.empty());
  CHECK_EQ(control::LooksOf(text), control::LooksOf(text));
  const std::vector<std::string> names = {std::string(text), std::string(text)};
  CHECK(codec::ParseJson(control::ExtenderArgs("{}", names)).has_value());
  const client::ObjectRef pod{.namespace_name = std::string(text), .name = std::string(text)};
  CHECK(codec::ParseJson(control::ExtenderBindingArgs(pod, text)).has_value());
  return 0;
}
