// Goal: what a KubeSchedulerConfiguration says of extenders is what the scheduler is told, as
// kube-scheduler takes it. Method: files, each setting once.
#include "cmd/extenders.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "api/base64.h"
#include "testing/files.h"

namespace berth::cmd {
namespace {

config::SchedulerConfiguration Read(const std::string& extenders) {
  const auto read = config::ReadSchedulerConfiguration(
      fmt::format("apiVersion: {}\nkind: {}\nextenders:\n{}", config::kSchedulerVersion,
                  config::kSchedulerKind, extenders));
  EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().front());
  return read ? *read : config::SchedulerConfiguration{};
}

control::ExtenderOptions One(const std::string& extender) {
  const auto made = ExtendersOf(Read(fmt::format("- {}\n", extender)), ExtenderFiles::kRead);
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
  return made ? made->front() : control::ExtenderOptions{};
}

TEST(ExtendersTest, WhatItIsAskedAndWhere) {
  const control::ExtenderOptions one =
      One("{urlPrefix: 'http://e:80/a/b//', filterVerb: f, prioritizeVerb: p, weight: 7, "
          "bindVerb: b, nodeCacheCapable: true, ignorable: true, httpTimeout: 1500ms, "
          "managedResources: [{name: x.com/y}]}");
  EXPECT_EQ(one.url, "http://e:80/a/b");
  EXPECT_EQ(one.path, "/a/b");
  EXPECT_EQ(std::pair(one.to->host, one.to->port), std::pair(std::string("e"), uint16_t{80}));
  EXPECT_TRUE(one.to->plain);
  EXPECT_EQ(one.filter_verb + one.prioritize_verb + one.bind_verb, "fpb");
  EXPECT_EQ(one.weight, 7);
  EXPECT_TRUE(one.takes_names);
  EXPECT_TRUE(one.ignorable);
  EXPECT_EQ(one.timeout, Duration::Milliseconds(1500));
  EXPECT_EQ(one.managed, std::vector<std::string>{"x.com/y"});
  EXPECT_EQ(One("{urlPrefix: 'http://e'}").timeout, Duration::Seconds(5));
}

// As client-go: data before files; enableHTTPS without an authority trusts anybody, and a URL of
// https alone the system's authorities.
TEST(ExtendersTest, WhomItTrustsAndAsWhomItComes) {
  EXPECT_FALSE(One("{urlPrefix: 'https://e'}").to->insecure);
  EXPECT_TRUE(One("{urlPrefix: 'https://e', enableHTTPS: true}").to->insecure);
  EXPECT_TRUE(One("{urlPrefix: 'https://e', tlsConfig: {insecure: true}}").to->insecure);
  const testing::TempFolder folder{"extenders"};
  const std::string file = (folder.path() / "pem").string();
  std::ofstream(file) << "of the file";
  const control::ExtenderOptions one =
      One(fmt::format("{{urlPrefix: 'https://e', enableHTTPS: true, tlsConfig: {{serverName: s, "
                      "caFile: '{0}', certFile: '{0}', certData: {1}, keyData: {1}}}}}",
                      file, api::EncodeBase64("of the data")));
  EXPECT_FALSE(one.to->insecure);
  EXPECT_EQ(one.to->port, 443);
  EXPECT_EQ(one.to->server_name, "s");
  EXPECT_EQ(one.to->authority_pem, "of the file");
  EXPECT_EQ(one.to->certificate_pem, "of the data");
  EXPECT_EQ(one.to->key_pem, "of the data");
  const auto missing = ExtendersOf(
      Read("- {urlPrefix: 'https://e', tlsConfig: {caFile: /nosuch}}\n"), ExtenderFiles::kRead);
  ASSERT_FALSE(missing.has_value());
  EXPECT_TRUE(missing.error().message.starts_with("extenders[0].tlsConfig.caFile: "))
      << missing.error().message;
}

TEST(ExtendersTest, ThoseThatAreIgnorableComeLast) {
  const auto made =
      ExtendersOf(Read("- {urlPrefix: 'http://a', ignorable: true}\n- {urlPrefix: 'http://b'}\n"
                       "- {urlPrefix: 'http://c', ignorable: true}\n- {urlPrefix: 'http://d'}\n"),
                  ExtenderFiles::kRead);
  std::string order;
  for (const control::ExtenderOptions& one : made.value()) order += one.to->host;
  EXPECT_EQ(order, "bdac");
}

TEST(ExtendersTest, ResourcesThatFiltersLeaveToThem) {
  EXPECT_EQ(IgnoredResourcesOf(Read(
                "- {urlPrefix: 'http://a', managedResources: [{name: x.com/a}, {name: x.com/b, "
                "ignoredByScheduler: true}]}\n")),
            std::vector<std::string>{"x.com/b"});
}

}  // namespace
}  // namespace berth::cmd
