#pragma once

#include <fmt/format.h>

#include <string>

#include "model/delta.h"
#include "model/vocabulary.h"

// Random objects that the volumes of pods hang on, for histories: a few of each kind, which know of
// each other, come, change and go.
namespace berth::cycle {

// `draw(low, high)`: below `high`. Claims are those of TestPod, "c0" to "c2", of one namespace.
template <typename Draw>
model::StorageFact DrawStorage(model::Vocabulary& v, const Draw& draw) {
  const auto one_in = [&](int n) { return draw(0, n) == 0; };
  const auto name = [&](const std::string& text) { return v.names.Intern(text); };
  const auto claim = [&] { return name(fmt::format("default/c{}", draw(0, 3))); };
  const auto volume = [&] { return name(fmt::format("v{}", draw(0, 3))); };
  const auto zone = [&] {
    if (one_in(2)) return model::SelectorId{};
    return v.selectors.Intern(
        {.all = {{.key = name("zone"), .values = {name(one_in(2) ? "a" : "b")}}}});
  };
  const auto modes = [&] { return one_in(4) ? model::kReadWriteOncePod : model::kReadWriteOnce; };
  const bool gone = one_in(6);
  switch (draw(0, 7)) {
    case 0:
      return {.name = volume(),
              .gone = gone,
              .row = model::Volume{.driver = one_in(3) ? model::NameId{} : name("driver"),
                                   .handle = one_in(2) ? "h" : "i",
                                   .places = zone(),
                                   .claim = one_in(2) ? claim() : model::NameId{},
                                   .storage_class = name("class"),
                                   .capacity = draw(1, 4),
                                   .modes = model::kReadWriteOnce | model::kReadWriteOncePod,
                                   .available = one_in(2)}};
    case 1:
      return {.name = name("class"),
              .gone = gone,
              .row = model::StorageClass{.provisioner = name("driver"),
                                         .provisions = !one_in(3),
                                         .waits = !one_in(4),
                                         .places = zone()}};
    case 2:
      return {.name = name("driver"),
              .gone = gone,
              .row = model::StorageDriver{.tells_capacity = one_in(2)}};
    case 3:
      return {
          .name = name(fmt::format("n{}", draw(0, 5))),
          .gone = gone,
          .row = model::AttachLimits{.drivers = {{.driver = name("driver"), .count = draw(0, 3)}}}};
    case 4:
      return {.name = name("capacity"),
              .gone = gone,
              .row = model::StorageCapacity{
                  .storage_class = name("class"), .nodes = zone(), .most = draw(1, 4)}};
    case 5:
      return {.name = name("attachment"),
              .gone = gone,
              .row = model::Attachment{.node = name(fmt::format("n{}", draw(0, 5))),
                                       .driver = name("driver"),
                                       .volume = volume()}};
    default: {
      const bool has = !one_in(3);
      return {.name = claim(),
              .gone = gone,
              .row = model::VolumeClaim{.volume = has ? volume() : model::NameId{},
                                        .storage_class = name("class"),
                                        .request = draw(1, 4),
                                        .modes = static_cast<model::AccessModes>(modes()),
                                        .bound = has && !one_in(5),
                                        .lost = one_in(8),
                                        .deleted = one_in(8)}};
    }
  }
}

}  // namespace berth::cycle
