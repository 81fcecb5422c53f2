#include "place/evaluate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <utility>
#include <vector>

#include "place/formulas.h"

// Goal: each filter refuses what it must, first come first named, and the column path says what the
// plain path says. Method: one node and one class per rule, with the allowed, the refused and the
// crossing case; random clusters for the two paths.
namespace berth::place {
namespace {

using model::ReasonKind;
using model::Verdict;

class OneNode {
 public:
  OneNode() {
    node.name = "n1";
    node.uid = "u1";
    node.allocatable = {{model::kCpu, 4000}, {model::kMemory, 1000}, {model::kPods, 10}};
  }

  model::NameId Name(std::string_view text) { return state.vocabulary().names.Intern(text); }

  model::ClassId Class(std::vector<model::ResourceAmount> amounts) {
    amounts.push_back({model::kPods, 1});
    spec.requests = state.vocabulary().bundles.Intern(amounts, ports);
    spec.scoring = spec.requests;
    return state.vocabulary().classes.Intern(spec);
  }

  // "TCP/127.0.0.1/80"
  std::vector<model::HostPort> Ports(const std::vector<std::string>& texts) {
    std::vector<model::HostPort> out;
    for (const std::string& text : texts) {
      const size_t first = text.find('/');
      const size_t second = text.find('/', first + 1);
      const std::string ip = text.substr(first + 1, second - first - 1);
      out.push_back({.port = static_cast<uint32_t>(std::stoul(text.substr(second + 1))),
                     .protocol = Name(text.substr(0, first)),
                     .ip = ip == "0.0.0.0" ? model::NameId{} : Name(ip)});
    }
    return out;
  }

  Verdict Filter(std::vector<model::ResourceAmount> amounts = {}, model::Pin pin = {}) {
    state.Apply(node);
    last = Class(std::move(amounts));
    return evaluator.Filter(state, last, state.FindNode("n1"), nullptr, pin);
  }

  void Run(const std::string& uid, std::vector<model::ResourceAmount> amounts,
           model::DeviceSlots devices = {}) {
    const model::ClassSpec kept = std::exchange(spec, {});
    const model::ClassId c = Class(std::move(amounts));
    spec = kept;
    state.Apply(node);
    state.Apply(model::PodUpsert{
        .uid = uid, .key = "d/" + uid, .class_id = c, .node = "n1", .devices = devices});
  }

  model::State state;
  model::NodeUpsert node;
  model::ClassSpec spec;
  std::vector<model::HostPort> ports;  // Of classes.
  model::ClassId last;
  Evaluator evaluator;
};

TEST(FilterTest, AmountsFitUpToTheLastUnit) {
  OneNode t;
  EXPECT_TRUE(t.Filter({{model::kCpu, 4000}, {model::kMemory, 1000}}).fits());
  t.Run("p", {{model::kCpu, 1000}});
  EXPECT_TRUE(t.Filter({{model::kCpu, 3000}}).fits());
  const Verdict verdict = t.Filter({{model::kCpu, 3001}});
  EXPECT_EQ(verdict.kind, ReasonKind::kInsufficient);
  EXPECT_FALSE(verdict.unresolvable) << "the empty node has room";
  EXPECT_EQ(verdict.lacking, 1u);
}

TEST(FilterTest, EveryAmountThatLacksIsNamedAndOneTooLargeForTheEmptyNodeIsForGood) {
  OneNode t;
  t.Run("p", {{model::kCpu, 1000}});
  const Verdict verdict = t.Filter({{model::kCpu, 3500}, {model::kMemory, 1001}});
  EXPECT_EQ(verdict.lacking, 0b11u);
  EXPECT_TRUE(verdict.unresolvable);
}

TEST(FilterTest, TooManyPodsIsNeverForGood) {
  OneNode t;
  t.node.allocatable = {{model::kCpu, 4000}};
  const Verdict verdict = t.Filter({{model::kCpu, 1}});
  EXPECT_EQ(verdict.kind, ReasonKind::kInsufficient);
  EXPECT_FALSE(verdict.unresolvable) << "not even at 0 pods";
}

TEST(FilterTest, AResourceNobodyOffersLacks) {
  OneNode t;
  EXPECT_TRUE(t.Filter().fits());
  const model::ResourceId fpga = t.state.vocabulary().resources.Intern("example.com/fpga").value();
  const model::ClassId c = t.Class({{fpga, 1}});
  const Verdict verdict = t.evaluator.Filter(t.state, c, t.state.FindNode("n1"), nullptr);
  EXPECT_EQ(verdict.kind, ReasonKind::kInsufficient);
  EXPECT_TRUE(verdict.unresolvable);
  Evaluation all;
  t.evaluator.EvaluateAll(t.state, c, all);
  EXPECT_EQ(all.kinds[0], ReasonKind::kInsufficient);
}

TEST(FilterTest, AnOvercommittedNodeTakesWhatAsksForNothing) {
  OneNode t;
  t.Run("p", {{model::kCpu, 9000}});
  EXPECT_TRUE(t.Filter().fits());
  EXPECT_EQ(t.Filter({{model::kCpu, 1}}).kind, ReasonKind::kInsufficient);
}

TEST(FilterTest, ACordonYieldsToItsToleration) {
  OneNode t;
  t.node.unschedulable = true;
  EXPECT_EQ(t.Filter().kind, ReasonKind::kUnschedulable);
  const auto tolerate = [&](model::Toleration toleration) {
    t.spec.tolerations = t.state.vocabulary().tolerations.Intern(std::span(&toleration, 1));
    return t.Filter().fits();
  };
  EXPECT_FALSE(tolerate({.key = t.Name("other"), .op = model::TolerationOp::kExists}));
  EXPECT_TRUE(tolerate({.op = model::TolerationOp::kExists}));
  const model::NameId key = t.Name("node.kubernetes.io/unschedulable");
  EXPECT_TRUE(tolerate({.key = key, .op = model::TolerationOp::kExists}));
  EXPECT_FALSE(tolerate({.key = key,
                         .op = model::TolerationOp::kExists,
                         .effect = static_cast<uint32_t>(model::TaintEffect::kNoExecute)}));
  EXPECT_TRUE(tolerate({.key = key, .value = t.Name("")}));
  EXPECT_FALSE(tolerate({.key = key, .value = t.Name("v")}));
}

TEST(FilterTest, TheFirstTaintNotToleratedIsNamed) {
  OneNode t;
  const model::NameId a = t.Name("a");
  const model::NameId b = t.Name("b");
  const model::NameId v = t.Name("v");
  t.node.taints = {{a, v, model::TaintEffect::kPreferNoSchedule},
                   {a, v, model::TaintEffect::kNoSchedule},
                   {b, v, model::TaintEffect::kNoExecute}};
  EXPECT_EQ(t.Filter(), (Verdict{.kind = ReasonKind::kTaint, .unresolvable = true, .detail = 1}));
  std::vector<model::Toleration> list = {{.key = a, .value = v}};
  t.spec.tolerations = t.state.vocabulary().tolerations.Intern(list);
  EXPECT_EQ(t.Filter().detail, 2u);
  list.push_back({.key = b, .op = model::TolerationOp::kLt});
  t.spec.tolerations = t.state.vocabulary().tolerations.Intern(list);
  EXPECT_EQ(t.Filter().kind, ReasonKind::kTaint) << "Lt is off in 1.36";
  list.push_back({.key = b,
                  .op = model::TolerationOp::kExists,
                  .effect = static_cast<uint32_t>(model::TaintEffect::kNoExecute)});
  t.spec.tolerations = t.state.vocabulary().tolerations.Intern(list);
  EXPECT_TRUE(t.Filter().fits());
}

TEST(FilterTest, NamesPinsAndConflictsComeInUpstreamsOrder) {
  OneNode t;
  t.node.unschedulable = true;
  const model::Pin elsewhere_by_affinity{model::PinKind::kAffinity, t.Name("n2")};
  const model::Pin elsewhere_by_name{model::PinKind::kNodeName, t.Name("n2")};
  EXPECT_EQ(t.Filter({}, elsewhere_by_affinity).kind, ReasonKind::kNotNamed);
  EXPECT_EQ(t.Filter({}, elsewhere_by_name).kind, ReasonKind::kUnschedulable);
  t.node.unschedulable = false;
  EXPECT_EQ(t.Filter({}, elsewhere_by_name).kind, ReasonKind::kNodeName);
  EXPECT_TRUE(t.Filter({}, {model::PinKind::kNodeName, t.Name("n1")}).fits());
  const std::vector<model::NameId> others = {t.Name("n2"), t.Name("n3")};
  t.spec.names = t.state.vocabulary().name_lists.Intern(others);
  EXPECT_EQ(t.Filter().kind, ReasonKind::kNotNamed);
  t.spec.names = t.state.vocabulary().name_lists.Intern({});
  EXPECT_EQ(t.Filter().kind, ReasonKind::kAffinityConflict);
}

// Upstream's TestNodePorts (nodeports/node_ports_test.go), case by case: what the node's pods have,
// what is asked, and whether that is refused.
TEST(FilterTest, HostPortsConflictByProtocolPortAndIp) {
  struct Row {
    const char* name;
    std::vector<std::string> taken;
    std::vector<std::string> asked;
    bool refused;
  };
  const Row rows[] = {
      {"skip filter", {}, {}, false},
      {"other port", {"UDP/127.0.0.1/9090"}, {"UDP/127.0.0.1/8080"}, false},
      {"same udp port", {"UDP/127.0.0.1/8080"}, {"UDP/127.0.0.1/8080"}, true},
      {"same tcp port", {"TCP/127.0.0.1/8080"}, {"TCP/127.0.0.1/8080"}, true},
      {"different host ip", {"TCP/127.0.0.2/8080"}, {"TCP/127.0.0.1/8080"}, false},
      {"different protocol", {"TCP/127.0.0.1/8080"}, {"UDP/127.0.0.1/8080"}, false},
      {"second udp port conflict",
       {"UDP/127.0.0.1/8080"},
       {"UDP/127.0.0.1/8000", "UDP/127.0.0.1/8080"},
       true},
      {"first tcp port conflict",
       {"TCP/127.0.0.1/8001", "UDP/127.0.0.1/8081"},
       {"TCP/127.0.0.1/8001", "UDP/127.0.0.1/8080"},
       true},
      {"first tcp port conflict due to 0.0.0.0 hostIP",
       {"TCP/127.0.0.1/8001"},
       {"TCP/0.0.0.0/8001"},
       true},
      {"TCP hostPort conflict due to 0.0.0.0 hostIP",
       {"TCP/127.0.0.1/8001"},
       {"TCP/10.0.10.10/8001", "TCP/0.0.0.0/8001"},
       true},
      {"second tcp port conflict to 0.0.0.0 hostIP",
       {"TCP/0.0.0.0/8001"},
       {"TCP/127.0.0.1/8001"},
       true},
      {"second different protocol", {"TCP/0.0.0.0/8001"}, {"UDP/127.0.0.1/8001"}, false},
      {"UDP hostPort conflict due to 0.0.0.0 hostIP",
       {"UDP/0.0.0.0/8001"},
       {"UDP/127.0.0.1/8001"},
       true},
  };
  for (const Row& row : rows) {
    OneNode t;
    t.ports = t.Ports(row.taken);
    t.Run("other", {});
    t.ports = t.Ports(row.asked);
    const Verdict verdict = t.Filter();
    EXPECT_EQ(verdict.kind, row.refused ? ReasonKind::kPorts : ReasonKind::kNone) << row.name;
    EXPECT_FALSE(verdict.unresolvable) << row.name;
  }
}

TEST(FilterTest, PortsComeBehindLabelsAndBeforeAmounts) {
  OneNode t;
  t.ports = t.Ports({"TCP/0.0.0.0/80"});
  t.Run("other", {});
  EXPECT_EQ(t.Filter({{model::kCpu, 5000}}).kind, ReasonKind::kPorts);
  EXPECT_EQ(t.evaluator.FixedRefusalOn(t.state, t.last, t.state.FindNode("n1"), {}),
            (FixedRefusal{.kind = ReasonKind::kInsufficient, .behind = Behind::kPorts}));
  t.spec.selector = t.state.vocabulary().selectors.Intern(
      {.all = {{.key = t.Name("l"), .values = {t.Name("v")}}}});
  EXPECT_EQ(t.Filter().kind, ReasonKind::kAffinity);
  t.spec.selector = {};
  t.state.Apply(model::PodRemove{.uid = "other"});
  EXPECT_EQ(t.Filter({{model::kCpu, 5000}}).kind, ReasonKind::kInsufficient);
  EXPECT_TRUE(t.Filter().fits());
}

TEST(FilterTest, FeaturesMustAllBeDeclared) {
  OneNode t;
  std::vector<model::NameId> both = {t.Name("f1"), t.Name("f2")};
  t.spec.features = t.state.vocabulary().name_lists.Intern(both);
  EXPECT_EQ(t.Filter().kind, ReasonKind::kFeatures);
  t.node.features = {both[0]};
  EXPECT_EQ(t.Filter().kind, ReasonKind::kFeatures);
  t.node.features = {both[1], t.Name("f3"), both[0]};
  EXPECT_TRUE(t.Filter().fits());
  EXPECT_EQ(t.Filter({{model::kCpu, 5000}}).kind, ReasonKind::kInsufficient)
      << "amounts come first";
}

class Devices : public ::testing::Test {
 protected:
  Devices() {
    t.node.allocatable = {{model::kCpu, 4000}, {model::kPods, 10}, {model::kGpuMilli, 3000}};
    t.node.gpu_model = t.Name("T4");
    t.Run("a", {{model::kGpuMilli, 700}}, {.mask = 0b001, .milli_each = 700});
    t.Run("b", {{model::kGpuMilli, 500}}, {.mask = 0b010, .milli_each = 500});
  }
  Verdict Ask(model::GpuDemand gpu) {
    t.spec.gpu = gpu;
    return t.Filter({{model::kGpuMilli, gpu.total_milli()}});
  }
  uint16_t Chosen(const Evaluator& evaluator) {
    return evaluator.ChooseDevices(t.state, t.last, t.state.FindNode("n1"), nullptr).mask;
  }
  OneNode t;
};

TEST_F(Devices, AShareNeedsRoomOnOneDevice) {
  EXPECT_TRUE(Ask({.share_milli = 300}).fits());
  EXPECT_EQ(Chosen(t.evaluator), 0b001) << "the fullest that has room";
  EXPECT_TRUE(Ask({.share_milli = 301}).fits());
  EXPECT_EQ(Chosen(t.evaluator), 0b010);
  EXPECT_TRUE(Ask({.share_milli = 501}).fits());
  EXPECT_EQ(Chosen(t.evaluator), 0b100);
  t.Run("c", {{model::kGpuMilli, 100}}, {.mask = 0b100, .milli_each = 100});
  const Verdict verdict = Ask({.share_milli = 901});
  EXPECT_EQ(verdict.kind, ReasonKind::kDevices) << "1,700 milli are free, but on no one device";
  EXPECT_FALSE(verdict.unresolvable);
}

TEST_F(Devices, ADrawFallsOnAnyThatHasRoom) {
  const Evaluator random(model::Policy::kRandom);
  EXPECT_TRUE(Ask({.share_milli = 400}).fits());
  const auto drawn = [&](uint64_t draw) {
    return random.ChooseDevices(t.state, t.last, t.state.FindNode("n1"), nullptr, draw).mask;
  };
  EXPECT_EQ(drawn(0), 0b010) << "the first has too little";
  EXPECT_EQ(drawn(1), 0b100);
  EXPECT_EQ(drawn(2), 0b010);
}

TEST_F(Devices, EquallyFullDevicesGoByIndex) {
  t.Run("c", {{model::kGpuMilli, 500}}, {.mask = 0b100, .milli_each = 500});
  EXPECT_TRUE(Ask({.share_milli = 400}).fits());
  EXPECT_EQ(Chosen(t.evaluator), 0b010);
}

TEST_F(Devices, WholeDevicesMustBeIdle) {
  EXPECT_TRUE(Ask({.devices_count = 1}).fits());
  EXPECT_EQ(Chosen(t.evaluator), 0b100);
  EXPECT_EQ(Ask({.devices_count = 2}).kind, ReasonKind::kInsufficient);
  t.state.Apply(model::PodRemove{.uid = "a"});
  EXPECT_TRUE(Ask({.devices_count = 2}).fits());
  EXPECT_EQ(Chosen(t.evaluator), 0b101);
  t.node.allocatable.back().amount = 2000;
  EXPECT_TRUE(Ask({.devices_count = 3}).unresolvable);
}

TEST_F(Devices, ModelsAreAllowedOrNot) {
  std::vector<model::NameId> models = {t.Name("A10")};
  t.spec.models = t.state.vocabulary().name_lists.Intern(models);
  EXPECT_EQ(Ask({.share_milli = 1}).kind, ReasonKind::kGpuModel);
  models = {t.Name("T4"), t.Name("A10")};
  std::ranges::sort(models);
  t.spec.models = t.state.vocabulary().name_lists.Intern(models);
  EXPECT_TRUE(Ask({.share_milli = 1}).fits());
}

TEST_F(Devices, FgdTakesTheDeviceThatFragmentsLeast) {
  // Typical pods are whole devices: a share does least harm where another is already.
  const std::vector<TypicalPod> typical = {{.gpu = {.devices_count = 1}, .count = 1}};
  const Evaluator fgd(model::Policy::kFgd, FragmentTable(typical));
  EXPECT_TRUE(Ask({.share_milli = 200}).fits());
  EXPECT_EQ(Chosen(fgd), 0b001);
  const model::NodeId n = t.state.FindNode("n1");
  // 0.8 of a device too full for a whole pod falls to 0.6: floor(100 x sigmoid(0.2)).
  EXPECT_EQ(fgd.Score(t.state, t.last, n).local >> 40, 54);
}

// Upstream's TestImageLocalityPriority (imagelocality/image_locality_test.go), whose arithmetic
// stands beside each.
TEST(ImagesTest, ScoreBySizeAndByHowManyNodesHaveThem) {
  constexpr int64_t kMega = 1024 * 1024;
  struct Row {
    const char* name;
    std::vector<std::vector<std::pair<const char*, int64_t>>> nodes;
    std::vector<const char*> images;
    std::vector<int64_t> scores;
  };
  const std::vector<std::pair<const char*, int64_t>> node403002000 = {
      {"40", 40}, {"300", 300}, {"2000", 2000}};
  const std::vector<std::pair<const char*, int64_t>> node25010 = {{"250", 250}, {"10", 10}};
  const std::vector<std::pair<const char*, int64_t>> node400030 = {{"4000", 4000}, {"30", 30}};
  const Row rows[] = {
      // 40 / 2 is below the least; 100 x (250 / 2 - 23) / (1000 x 2 - 23).
      {"two images spread on two nodes, prefer the larger image one",
       {node403002000, node25010},
       {"40", "250"},
       {0, 5}},
      // 100 x ((40 + 300) / 2 - 23) / (1000 x 2 - 23).
      {"two images on one node, prefer this node",
       {node403002000, node25010},
       {"40", "300"},
       {7, 0}},
      // 4000 / 2 is the most for two containers.
      {"if exceed limit, use limit", {node400030, node25010}, {"4000", "10"}, {100, 0}},
      // 100 x (4000 / 3 - 23) / (1000 x 2 - 23).
      {"if exceed limit, use limit (with node which has no images present)",
       {node400030, node25010, {}},
       {"4000", "10"},
       {66, 0, 0}},
  };
  for (const Row& row : rows) {
    OneNode t;
    for (size_t i = 0; i < row.nodes.size(); ++i) {
      model::NodeUpsert node = t.node;
      node.name = fmt::format("n{}", i + 1);
      node.uid = node.name;
      for (const auto& [name, size] : row.nodes[i])
        node.images.push_back({.name = t.Name(name), .size = size * kMega});
      t.state.Apply(node);
    }
    std::vector<model::NameId> images;
    for (const char* name : row.images) images.push_back(t.Name(name));
    std::ranges::sort(images);
    t.spec.images = t.state.vocabulary().name_lists.Intern(images);
    t.spec.containers_count = 2;
    const model::ClassId c = t.Class({});
    for (size_t i = 0; i < row.scores.size(); ++i) {
      const model::NodeId n = t.state.FindNode(fmt::format("n{}", i + 1));
      EXPECT_EQ(t.evaluator.Parts(t.state, c, n).images, row.scores[i])
          << row.name << " n" << i + 1;
    }
    EXPECT_EQ(t.evaluator.ScoredAs(t.state, c), c) << row.name;
  }
}

TEST(ViewerTest, ReservationsOfOthersCountForThoseOfNoHigherPriority) {
  OneNode t;
  t.state.Apply(t.node);
  const model::ClassId c = t.Class({{model::kCpu, 3000}});
  t.state.Apply(
      model::PodUpsert{.uid = "r", .key = "d/r", .class_id = c, .nominated = "n1", .priority = 5});
  t.state.Apply(model::PodUpsert{.uid = "w", .key = "d/w", .class_id = c});
  const model::NodeId n = t.state.FindNode("n1");
  const auto fits = [&](std::string_view uid, int32_t priority) {
    const model::Viewer viewer{.owner = t.state.OwnerOf(t.state.FindPod(uid)),
                               .priority = priority};
    return t.evaluator.Filter(t.state, c, n, &viewer).fits();
  };
  EXPECT_FALSE(fits("w", 4));
  EXPECT_FALSE(fits("w", 5));
  EXPECT_TRUE(fits("w", 6));
  EXPECT_TRUE(fits("r", 5)) << "its own";
  EXPECT_TRUE(t.evaluator.Filter(t.state, c, n, nullptr).fits());
}

// ---- Two paths --------------------------------------------------------------------------------

// A random cluster and a random class, so drawn that every filter refuses now and then.
struct Drawn {
  model::State state;
  model::ClassId asked;
};

model::NameId DrawName(model::Vocabulary& v, const char* prefix, int kinds) {
  return v.names.Intern(fmt::format("{}{}", prefix, *rc::gen::inRange(0, kinds)));
}

int64_t DrawAmount(int64_t unit) { return unit * *rc::gen::inRange<int64_t>(0, 8); }

model::ClassId DrawClass(model::Vocabulary& v, model::ResourceId fpga) {
  model::ClassSpec spec;
  const int devices = *rc::gen::inRange(0, 3);
  if (devices == 1) spec.gpu.share_milli = 400;
  if (devices == 2) spec.gpu.devices_count = 1;
  const std::vector<model::ResourceAmount> amounts = {{model::kCpu, DrawAmount(150)},
                                                      {model::kMemory, DrawAmount(20)},
                                                      {fpga, *rc::gen::inRange(0, 2)},
                                                      {model::kPods, 1},
                                                      {model::kGpuMilli, spec.gpu.total_milli()}};
  std::vector<model::HostPort> ports;
  for (int i = *rc::gen::inRange(-3, 3); i > 0; --i) {
    ports.push_back({.port = *rc::gen::inRange(80u, 82u), .protocol = DrawName(v, "T", 2)});
    if (*rc::gen::arbitrary<bool>()) ports.back().ip = DrawName(v, "ip", 2);
  }
  spec.requests = v.bundles.Intern(amounts, ports);
  spec.scoring = v.bundles.Intern(std::vector<model::ResourceAmount>{
      {model::kCpu, DrawAmount(150)}, {model::kMemory, DrawAmount(20)}});
  if (*rc::gen::arbitrary<bool>()) {
    spec.selector = v.selectors.Intern(
        {.all = {{.key = v.names.Intern("l"),
                  .op = *rc::gen::element(model::SelectorOp::kIn, model::SelectorOp::kNotIn),
                  .values = {DrawName(v, "x", 3)}}}});
  }
  if (*rc::gen::arbitrary<bool>()) {
    const model::SelectorSpec term{
        .has_terms = true,
        .terms = {
            {.requirements = {{.key = v.names.Intern("l"), .values = {DrawName(v, "x", 3)}}}}}};
    spec.preferences =
        v.preferences.Intern(std::vector<model::Preference>{{v.selectors.Intern(term), 7}});
  }
  if (*rc::gen::arbitrary<bool>()) {
    spec.tolerations = v.tolerations.Intern(std::vector<model::Toleration>{
        {.key = DrawName(v, "k", 2), .op = model::TolerationOp::kExists}});
  }
  if (*rc::gen::arbitrary<bool>()) {
    std::vector<model::NameId> images = {DrawName(v, "i", 4), DrawName(v, "i", 4)};
    std::ranges::sort(images);
    spec.images = v.name_lists.Intern(images);
    spec.containers_count = *rc::gen::inRange(1u, 3u);
  }
  if (*rc::gen::inRange(0, 4) == 0)
    spec.features = v.name_lists.Intern(std::vector<model::NameId>{DrawName(v, "f", 2)});
  if (*rc::gen::inRange(0, 4) == 0)
    spec.models = v.name_lists.Intern(std::vector<model::NameId>{DrawName(v, "m", 2)});
  return v.classes.Intern(spec);
}

Drawn Draw() {
  Drawn out;
  model::Vocabulary& v = out.state.vocabulary();
  const model::ResourceId fpga = v.resources.Intern("example.com/fpga").value();
  const auto name = [&](const char* prefix, int kinds) { return DrawName(v, prefix, kinds); };
  const auto taint = [&] {
    return model::Taint{
        name("k", 2), name("v", 2),
        *rc::gen::element(model::TaintEffect::kNoSchedule, model::TaintEffect::kPreferNoSchedule,
                          model::TaintEffect::kNoExecute)};
  };
  const int nodes = *rc::gen::inRange(1, 140);
  for (int i = 0; i < nodes; ++i) {
    model::NodeUpsert node{.name = fmt::format("n{}", i), .uid = fmt::format("u{}", i)};
    node.allocatable = {{model::kCpu, DrawAmount(700)},
                        {model::kMemory, DrawAmount(90)},
                        {model::kPods, 3},
                        {fpga, DrawAmount(1)},
                        {model::kGpuMilli, 1000 * *rc::gen::inRange(0, 3)}};
    node.labels = {{.key = v.names.Intern("l"), .value = name("x", 3)}};
    if (*rc::gen::inRange(0, 3) == 0) node.taints = {taint(), taint()};
    if (*rc::gen::inRange(0, 4) != 0) node.features = {name("f", 2)};
    node.gpu_model = name("m", 2);
    for (int k = *rc::gen::inRange(0, 4); k > 0; --k)
      node.images.push_back({.name = name("i", 4), .size = DrawAmount(150 << 20)});
    node.unschedulable = *rc::gen::inRange(0, 8) == 0;
    out.state.Apply(node);
  }
  const int pods = *rc::gen::inRange(0, 60);
  for (int i = 0; i < pods; ++i) {
    const std::string node = fmt::format("n{}", *rc::gen::inRange(0, nodes + 2));  // Ghosts too.
    out.state.Apply(model::PodUpsert{.uid = fmt::format("p{}", i),
                                     .key = fmt::format("d/p{}", i),
                                     .class_id = DrawClass(v, fpga),
                                     .node = node});
  }
  out.asked = DrawClass(v, fpga);
  if (*rc::gen::arbitrary<bool>()) {
    out.state.Apply(model::PodUpsert{.uid = "asked", .key = "d/asked", .class_id = out.asked});
  }
  return out;
}

// Goal: the ports that are in use are those of the pods there. Method: random clusters beside a look
// at every pod, for classes that nothing else refuses.
TEST(PortsTest, AreThoseOfThePodsOnTheNode) {
  EXPECT_TRUE(rc::check([] {
    const Drawn drawn = Draw();
    const model::State& state = drawn.state;
    const model::Vocabulary& v = state.vocabulary();
    const Evaluator evaluator;
    const auto asked = v.bundles.Ports(v.classes.at(drawn.asked).requests);
    for (uint32_t row = 0; row < state.nodes().size(); ++row) {
      const Verdict verdict = evaluator.Filter(state, drawn.asked, model::NodeId{row}, nullptr);
      bool taken = false;
      for (uint32_t i = 0; i < state.pods().size(); ++i) {
        const model::Pod& pod = state.pods().at(model::PodId{i});
        if (pod.node == state.nodes().name(model::NodeId{row}))
          taken = taken || model::CountConflicts(asked, v.bundles.Ports(pod.charge)) > 0;
      }
      if (verdict.kind == ReasonKind::kPorts) RC_ASSERT(taken);
      if (verdict.kind > ReasonKind::kPorts || verdict.fits()) {
        RC_ASSERT(!taken || verdict.kind == ReasonKind::kNodeMissing);
      }
    }
  }));
}

TEST(EvaluateAllTest, SaysWhatFilterAndScoreSay) {
  const std::vector<TypicalPod> typical = {
      {.cpu_milli = 300, .gpu = {.devices_count = 1}, .count = 2},
      {.cpu_milli = 100, .gpu = {.share_milli = 400}, .count = 1}};
  for (const model::Policy policy : {model::Policy::kSpread, model::Policy::kBestFit,
                                     model::Policy::kFgd, model::Policy::kRandom}) {
    const Evaluator evaluator(policy, FragmentTable(typical));
    EXPECT_TRUE(rc::check([&] {
      Drawn drawn = Draw();
      drawn.state.SortNames();
      Evaluation all;
      Extremes extremes;
      uint32_t count = 0;
      uint32_t best = 0;
      evaluator.EvaluateAll(drawn.state, drawn.asked, all);
      const model::ClassId scored = evaluator.ScoredAs(drawn.state, drawn.asked);
      RC_ASSERT(all.kinds.size() == drawn.state.nodes().size());
      for (uint32_t row = 0; row < all.kinds.size(); ++row) {
        const Verdict verdict =
            evaluator.Filter(drawn.state, drawn.asked, model::NodeId{row}, nullptr);
        RC_ASSERT(all.kinds[row] == verdict.kind);
        if (!verdict.fits()) continue;
        RC_ASSERT(all.scores[row] == evaluator.Score(drawn.state, drawn.asked, model::NodeId{row}));
        RC_ASSERT(all.scores[row] == evaluator.Score(drawn.state, scored, model::NodeId{row}));
        extremes.taints_max = std::max(extremes.taints_max, all.scores[row].taints_raw);
        extremes.affinity_max = std::max(extremes.affinity_max, all.scores[row].affinity_raw);
        const auto place = [&](uint32_t r) {
          return std::pair(-all.scores[r].local, drawn.state.nodes().rank(model::NodeId{r}));
        };
        if (count++ == 0 || place(row) < place(best)) best = row;
      }
      RC_ASSERT(all.fitting_count == count);
      RC_ASSERT(all.extremes == extremes);
      if (count > 0) RC_ASSERT(all.best == best);
    }));
  }
}

}  // namespace
}  // namespace berth::place
