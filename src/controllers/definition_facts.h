#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "client/request.h"

namespace berth::controllers {

// What is read of a CustomResourceDefinition: where the objects of its kind are found.
struct DefinitionFacts {
  std::string group;
  std::string kind;
  std::string plural;
  bool namespaced = false;
  bool native = false;              // berth knows the kind without it.
  bool has_scale = false;           // In the version that its objects are read by.
  std::vector<std::string> served;  // The versions that are; of one not yet established none.
  std::string version;              // To read them by; empty: they can't be read.

  // Whether a reference to an object of that version and kind means one of its.
  [[nodiscard]] bool Means(std::string_view api_version, std::string_view kind_name) const;
  [[nodiscard]] client::Resource resource() const {
    return {.group = group, .version = version, .plural = plural};
  }
};

// By its accepted names. The version is the one that is stored, if it is served, else the first.
[[nodiscard]] DefinitionFacts ReadDefinition(const api::Json& object);

}  // namespace berth::controllers
