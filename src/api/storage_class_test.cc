// Goal: which class a claim names is one answer for all who ask, upstream's
// (component-helpers' GetPersistentVolumeClaimClass). Method: a row per way to say it.
#include "api/storage_class.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace berth::api {
namespace {

TEST(StorageClass, TheAnnotationOfOldCountsBeforeTheField) {
  const struct {
    const char* claim;
    std::optional<std::string_view> name;
  } rows[] = {
      {R"({})", std::nullopt},
      {R"({"spec":{"storageClassName":null}})", std::nullopt},
      {R"({"spec":{"storageClassName":""}})", ""},
      {R"({"spec":{"storageClassName":"a"}})", "a"},
      {R"({"metadata":{"annotations":{"x":"y"}},"spec":{"storageClassName":"a"}})", "a"},
      {R"({"metadata":{"annotations":{"volume.beta.kubernetes.io/storage-class":"b"}}})", "b"},
      {R"({"metadata":{"annotations":{"volume.beta.kubernetes.io/storage-class":"b"}},
          "spec":{"storageClassName":"a"}})",
       "b"},
      {R"({"metadata":{"annotations":{"volume.beta.kubernetes.io/storage-class":""}},
          "spec":{"storageClassName":"a"}})",
       ""},
  };
  for (const auto& row : rows) {
    const Json claim = boost::json::parse(row.claim);
    EXPECT_EQ(StorageClassNameOf(claim), row.name) << row.claim;
  }
}

TEST(StorageClass, WhatAClassSays) {
  const auto json = [](const char* text) { return boost::json::parse(text); };
  EXPECT_TRUE(WaitsForFirstConsumer(json(R"({"volumeBindingMode":"WaitForFirstConsumer"})")));
  EXPECT_FALSE(WaitsForFirstConsumer(json(R"({"volumeBindingMode":"Immediate"})")));
  EXPECT_FALSE(WaitsForFirstConsumer(json("{}")));
  for (const char* key : {"storageclass.kubernetes.io/is-default-class",
                          "storageclass.beta.kubernetes.io/is-default-class"}) {
    Json annotated = json(R"({"metadata":{"annotations":{}}})");
    annotated.at("metadata").at("annotations").as_object()[key] = "true";
    EXPECT_TRUE(IsDefaultStorageClass(annotated)) << key;
    annotated.at("metadata").at("annotations").as_object()[key] = "yes";
    EXPECT_FALSE(IsDefaultStorageClass(annotated)) << key;
  }
}

}  // namespace
}  // namespace berth::api
