// Goal: a decoder that has read other pods before reads each one as a new decoder does, whatever its
// text, and does share the specs of a workload's pods. Method: a table of odd texts after each other
// in every order, random damage to good ones, and a count of what is shared.
#include "codec/spec_memo.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/prng.h"
#include "codec/decode.h"

namespace berth::codec {
namespace {

// Long enough to be remembered.
std::string Containers(std::string_view cpu = "10m") {
  return R"("containers":[{"name":"main","image":"registry.example/)" + std::string(220, 'i') +
         R"(:1","resources":{"requests":{"cpu":")" + std::string(cpu) +
         R"(","memory":"16Mi"}},"nodeName":"no"}],"tolerations":[{"key":"k","operator":"Exists"}])";
}

std::string Document(std::string_view spec, std::string_view name = "p") {
  return R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":")" + std::string(name) +
         R"(","uid":"u","annotations":{"spec":"{\"spec\":{}}"}},"spec":)" + std::string(spec) +
         R"(,"status":{"phase":"Pending","conditions":[{"type":"Ready","status":"True"}]}})";
}

void ExpectSame(Decoder& decoder, const std::string& text) {
  const Result<api::Pod> plain = DecodePod(text);
  const Result<api::Pod> pod = decoder.Pod(text);
  ASSERT_EQ(pod.has_value(), plain.has_value()) << text;
  if (plain) {
    EXPECT_EQ(*pod, *plain) << text;
  } else {
    EXPECT_EQ(pod.error().message, plain.error().message) << text;
  }
}

std::vector<std::string> OddDocuments() {
  const std::string containers = Containers();
  std::vector<std::string> texts;
  for (const std::string& spec : {
           "{" + containers + "}",
           "{" + containers + R"(,"nodeName":"n1"})",
           "{" + containers + R"(,"nodeName":"n2.example"})",
           "{" + containers + R"(,"nodeName":"","priority":3})",
           "{" + containers + R"(,"nodeName":null,"priority":3})",
           "{" + containers + R"(,"nodeName":"n1","priority":3})",
           "{" + containers + R"(,"nodeName":"n1","nodeName":"n2","priority":3})",
           "{" + containers + R"(,"nodeName":"n1","node\u004eame":"n2","priority":3})",
           "{" + containers + R"(,"node\u004eame":"n2","nodeName":"n1","priority":3})",
           "{" + containers + R"(,"nodeName":"n1","nodeName":"n1","priority":3})",
           "{" + containers + R"(,"nodeName":"n2","nodeName":"n1","priority":3})",
           "{" + containers + R"(,"nodeName":"n1","node\u004eame":"n1","priority":3})",
           "{" + containers + R"(,"nodeName":"n2","node\u004eame":"n1","priority":3})",
           "{" + containers + R"(,"nodeName":"n\u0031","priority":3})",
           "{" + containers + R"(,"nodeName":"N 1","priority":3})",
           "{" + containers + R"(,"nodeName":7,"priority":3})",
           "{" + containers + R"(, "nodeName": "n1", "priority": 3 })",
           R"({"nodeName":"n1",)" + containers + "}",
           R"({"nodeName":"n2",)" + containers + "}",
           R"({"affinity":{"nodeName":"n2"},)" + containers + R"(,"nodeName":"n1"})",
           "{" + containers + R"(,"affinity":{"nodeName":"n2"}})",
           "{" + Containers("20m") + "}",
           std::string(R"({"nodeName":"n1"})"),
           std::string("{}"),
           std::string("null"),
           std::string("[]"),
       }) {
    texts.push_back(Document(spec));
    texts.push_back(Document(spec, "other"));
  }
  const std::string spec = "{" + containers + R"(,"nodeName":"n1"})";
  for (const std::string& text : {
           R"({"spec":)" + spec + "}",
           R"({"metadata":{"name":"p"},"spec":)" + spec + "}",
           R"({"metadata":{"name":"p"},"spec":)" + spec + ",}",
           R"({"metadata":{"name":"p"},"spec":)" + spec + "} x",
           R"({"metadata":{"name":"p"},,"spec":)" + spec + "}",
           R"({,"spec":)" + spec + "}",
           R"({"metadata":{"name":"p","spec":)" + spec + "}}",
           R"({"metadata":{"name":"p"},"sp\u0065c":{"priority":7},"spec":)" + spec + "}",
           R"({"metadata":{"name":"p"},"spec":)" + spec + R"(,"spec":{"priority":7}})",
           R"({"metadata":{"name":"p"},"spec":)" + spec + R"(,"spec":{}})",
           R"({"metadata":{"name":"p"},"spec":)" + spec + R"(,"spec":{"nodeName":"n3"}})",
           fmt::format(R"({{"metadata":{{"name":"p"}},"spec":{0},"spec":{0}}})", spec),
           R"({"metadata":{"name":5},"spec":)" + spec + "}",
           R"(["spec",)" + spec + "]",
           R"({"metadata":{"name":"p"} ,"spec" : )" + spec + "}",
       }) {
    texts.push_back(text);
  }
  return texts;
}

TEST(SpecMemo, OddTextsAreReadAsIfForTheFirstTime) {
  const std::vector<std::string> texts = OddDocuments();
  for (const std::string& before : texts) {
    Decoder decoder;
    for (int i = 0; i < 3; ++i) ExpectSame(decoder, before);
    for (const std::string& text : texts) ExpectSame(decoder, text);
  }
}

TEST(SpecMemo, PodsOfAWorkloadShareTheirSpecOnAnyNode) {
  Decoder decoder;
  const auto spec = [&](std::string_view node) {
    const std::string place =
        node.empty() ? std::string() : R"(,"nodeName":")" + std::string(node) + R"(")";
    auto pod = decoder.Pod(Document("{" + Containers() + place + R"(,"priority":3})"));
    EXPECT_EQ(pod->node_name, node);
    return pod->spec;
  };
  // Learned when read for the second time.
  (void)spec("");
  const Shared<api::PodSpec> waiting = spec("");
  (void)spec("n1");
  EXPECT_TRUE(spec("").Is(waiting));
  EXPECT_TRUE(spec("node-0002.example").Is(waiting));
  EXPECT_TRUE(spec("n3").Is(waiting));
  EXPECT_EQ(waiting->priority, 3);
  const Decoder copy(decoder);
  EXPECT_TRUE(copy == decoder);
}

TEST(SpecMemo, MoreSpecsThanItHoldsAreReadAllTheSame) {
  Decoder decoder;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 300; ++i) {
      ExpectSame(decoder, Document("{" + Containers(std::to_string(i + 1)) + "}"));
      // Told apart by their first bytes.
      const std::string name = R"("hostname":"h)" + std::to_string(i) + R"(",)";
      ExpectSame(decoder, Document("{" + name + Containers() + "}"));
    }
  }
}

TEST(SpecMemo, OfSpecsThatAreNeverSeenAgainFewAreRemembered) {
  SpecMemo memo;
  const auto remembers = [&](int cpu) {
    const std::string text = "{" + Containers(std::to_string(cpu)) + "}";
    if (memo.Find(text)) return true;
    api::Pod pod = *DecodePod(Document(text));
    memo.Learn(text, pod);
    return false;
  };
  int cpu = 0;
  const auto all_different = [&] {
    int remembered = 0;
    for (int i = 0; i < 1000; ++i) {
      remembers(++cpu);
      SpecMemo copy = memo;
      if (copy.Find("{" + Containers(std::to_string(cpu)) + "}")) ++remembered;
    }
    return remembered;
  };
  EXPECT_LT(all_different(), 40);
  EXPECT_LT(all_different(), 20);
  // Those of one workload after them are, after a while, and all that follow it at once.
  ++cpu;
  int reads = 0;
  while (!remembers(cpu)) ++reads;
  EXPECT_LE(reads, 65);
  for (int other = 0; other < 20; ++other) {
    remembers(++cpu);
    EXPECT_TRUE(remembers(cpu));
  }
  // All that could give way were found: one that does is no reason to pass others over.
  for (int other = 1; other <= 3; ++other) EXPECT_FALSE(remembers(cpu + other));
  for (int other = 1; other <= 3; ++other) EXPECT_TRUE(remembers(cpu + other));
}

// Takes, doubles, moves or overwrites a few bytes, mostly with what means something in JSON.
std::string Damaged(std::string text, Prng& prng) {
  constexpr std::string_view kBytes = "{}[]\",:\\ n1nodeName";
  const uint64_t edits = 1 + prng.Below(3);
  for (uint64_t i = 0; i < edits && !text.empty(); ++i) {
    const size_t at = prng.Below(text.size());
    const size_t size = 1 + prng.Below(prng.Below(4) == 0 ? 60 : 4);
    switch (prng.Below(4)) {
      case 0:
        text.erase(at, size);
        break;
      case 1:
        text.insert(prng.Below(text.size()), text.substr(at, size));
        break;
      case 2:
        text[at] = kBytes[prng.Below(kBytes.size())];
        break;
      default:
        text.insert(at, 1, kBytes[prng.Below(kBytes.size())]);
    }
  }
  return text;
}

TEST(SpecMemo, DamagedTextsAreReadAsIfForTheFirstTime) {
  const std::vector<std::string> texts = OddDocuments();
  Prng prng(1);
  Decoder decoder;
  for (int i = 0; i < 20'000 && !::testing::Test::HasFailure(); ++i) {
    const std::string& text = texts[prng.Below(texts.size())];
    ExpectSame(decoder, text);
    ExpectSame(decoder, Damaged(text, prng));
  }
}

}  // namespace
}  // namespace berth::codec
