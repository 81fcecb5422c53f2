#pragma once

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "api/defaults.h"
#include "api/field_error.h"
#include "api/fields.h"
#include "api/patch.h"
#include "api/validate.h"

// For tests of validation: a base object that is fine, and rows that break one thing each.
namespace berth::api {

inline Json Parse(std::string_view text) { return boost::json::parse(text); }

inline std::string Show(const FieldErrors& errors) {
  std::string text;
  for (const FieldError& error : errors) text += (text.empty() ? "" : "\n") + ToString(error);
  return text;
}

// A stored object: the base with a merge patch over it, as the server would prepare it.
inline Json Made(KindId kind, std::string_view base, std::string_view patch) {
  Json object = ApplyMergePatch(Parse(base), Parse(patch));
  EXPECT_TRUE(Conform(kind, object).has_value()) << patch;
  ApplyDefaults(kind, object);
  PrepareForCreate(kind, object);
  return object;
}

struct Row {
  std::string_view patch;
  std::string_view errors;
};

inline void ExpectRows(KindId kind, std::string_view base, const std::vector<Row>& rows) {
  EXPECT_EQ(Show(ValidateCreate(kind, Made(kind, base, "{}"))), "");
  for (const Row& row : rows) {
    SCOPED_TRACE(row.patch);
    EXPECT_EQ(Show(ValidateCreate(kind, Made(kind, base, row.patch))), row.errors);
  }
}

}  // namespace berth::api
