// Goal: a pod without topology spread constraints is spread among those that its Services and its
// owner select, as Kubernetes does by default. Method: selectors of single pods.
#include "translate/default_spread.h"

#include <gtest/gtest.h>

namespace berth::translate {
namespace {

api::Pod Web(std::string kind = {}, std::string api_version = "apps/v1") {
  api::Pod pod;
  pod.meta.namespace_name = "ns";
  pod.meta.labels = {{"app", "web"}, {"hash", "x"}};
  if (!kind.empty()) {
    pod.meta.owners.push_back({.api_version = std::move(api_version),
                               .kind = std::move(kind),
                               .name = "owner",
                               .uid = "u",
                               .controller = true});
  }
  return pod;
}

TEST(DefaultSpread, SelectorsOfServicesAreMerged) {
  DefaultSpread rules;
  EXPECT_FALSE(rules.SelectorFor(Web()).has_value());
  EXPECT_TRUE(rules.SetService("ns", "a", {{"app", "web"}}));
  EXPECT_FALSE(rules.SetService("ns", "a", {{"app", "web"}}));
  EXPECT_TRUE(rules.SetService("ns", "b", {{"hash", "x"}}));
  rules.SetService("ns", "other", {{"app", "db"}});
  rules.SetService("elsewhere", "c", {{"app", "web"}});
  EXPECT_EQ(rules.SelectorFor(Web())->match_labels, Web().meta.labels);
  EXPECT_TRUE(rules.SetService("ns", "a", {}));
  EXPECT_FALSE(rules.SetService("ns", "a", {}));
  EXPECT_EQ(rules.SelectorFor(Web())->match_labels, (api::StringMap{{"hash", "x"}}));
}

TEST(DefaultSpread, WhatTheOwnerAsksForIsAdded) {
  DefaultSpread rules;
  rules.SetService("ns", "a", {{"app", "web"}});
  api::LabelSelector selector{.match_labels = {{"hash", "x"}},
                              .match_expressions = {{.key = "app", .op = "Exists", .values = {}}}};
  EXPECT_TRUE(rules.SetOwner(SpreadOwner::kReplicaSet, "ns", "owner", selector));
  EXPECT_TRUE(rules.SelectorFor(Web())->match_expressions.empty());
  const auto found = rules.SelectorFor(Web("ReplicaSet"));
  EXPECT_EQ(found->match_labels, (api::StringMap{{"app", "web"}}));
  ASSERT_EQ(found->match_expressions.size(), 2u);
  EXPECT_EQ(found->match_expressions[0].values, std::vector<std::string>{"x"});
  // Another kind of that name, or of another group.
  EXPECT_TRUE(rules.SelectorFor(Web("StatefulSet"))->match_expressions.empty());
  EXPECT_TRUE(rules.SelectorFor(Web("ReplicaSet", "other/v1"))->match_expressions.empty());
  EXPECT_TRUE(rules.SetOwner(SpreadOwner::kReplicaSet, "ns", "owner", std::nullopt));
  EXPECT_TRUE(rules.SelectorFor(Web("ReplicaSet"))->match_expressions.empty());
}

TEST(DefaultSpread, AReplicationControllersLabelsAreMerged) {
  DefaultSpread rules;
  rules.SetOwner(SpreadOwner::kReplicationController, "ns", "owner",
                 api::LabelSelector{.match_labels = {{"app", "web"}}});
  EXPECT_EQ(rules.SelectorFor(Web("ReplicationController", "v1"))->match_labels,
            (api::StringMap{{"app", "web"}}));
}

}  // namespace
}  // namespace berth::translate
