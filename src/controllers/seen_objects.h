#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "controllers/objects.h"

// For tests of plans: objects that are seen as they are written down.
namespace berth::controllers {

class SeenObjects {
 public:
  // `version`: after which those that are seen begin.
  explicit SeenObjects(int version = 0) : version_(version) {}
  // In namespace "d", of uid "u-" and its name, each time in a later version. `metadata`: more
  // members of it, `rest` of the object, with a comma before each.
  Slot See(api::KindId kind, const std::string& name, const std::string& metadata,
           const std::string& rest) {
    const auto difference = objects.Observe(
        kind, fmt::format(R"({{"metadata":{{"name":"{0}","namespace":"d","uid":"u-{0}",)"
                          R"("resourceVersion":"{1}"{2}}}{3}}})",
                          name, ++version_, metadata, rest));
    EXPECT_TRUE(difference.has_value()) << difference.error().message;
    return objects.Find("u-" + name);
  }

  Objects objects;

 private:
  int version_;
};

}  // namespace berth::controllers
