#include "translate/quota_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/limits.h"

// Goal: why a workload waits for quota reads as Kueue writes it. Method: each reason once, compared
// whole.
namespace berth::translate {
namespace {

using model::FlavorReason;
using model::FlavorReasonKind;

TEST(QuotaTextTest, EachReasonHasItsWords) {
  model::Vocabulary v;
  const model::NameId spot = v.names.Intern("spot");
  const model::NameId other = v.names.Intern("other");
  const model::ResourceId gpu = v.resources.Intern("example.com/gpu").value();
  const auto text = [&](FlavorReason reason) {
    if (reason.kind != FlavorReasonKind::kNotCovered) reason.flavor = spot;
    return FlavorReasonText(reason, v);
  };
  const auto of = [&](FlavorReasonKind kind) { return text({.kind = kind}); };
  EXPECT_EQ(text({.kind = FlavorReasonKind::kNotCovered, .resource = gpu}),
            "resource example.com/gpu unavailable in ClusterQueue");
  EXPECT_EQ(of(FlavorReasonKind::kGone), "flavor spot not found");
  EXPECT_EQ(of(FlavorReasonKind::kNotAllowed),
            "skipping flavor spot due to WorkloadAllowedResourceFlavorAnnotation annotation");
  EXPECT_EQ(of(FlavorReasonKind::kNoTopology),
            "Flavor \"spot\" does not support TopologyAwareScheduling");
  EXPECT_EQ(of(FlavorReasonKind::kTopologyGone),
            "Flavor \"spot\" information missing in TAS cache");
  EXPECT_EQ(of(FlavorReasonKind::kNoLevel), "Flavor \"spot\" does not contain the requested level");
  EXPECT_EQ(of(FlavorReasonKind::kTopologyOnly),
            "Flavor \"spot\" supports only TopologyAwareScheduling");
  EXPECT_EQ(
      text({.kind = FlavorReasonKind::kTaint,
            .taint = {.key = spot, .value = other, .effect = model::TaintEffect::kNoExecute}}),
      "untolerated taint {spot other NoExecute <nil>} in flavor spot");
  EXPECT_EQ(of(FlavorReasonKind::kAffinity), "flavor spot doesn't match node affinity");
  EXPECT_EQ(text({.kind = FlavorReasonKind::kHeldOther, .held = other}),
            "could not assign spot flavor since the original workload is assigned: other");
  EXPECT_EQ(text({.kind = FlavorReasonKind::kExceedsMost,
                  .resource = model::kMemory,
                  .amount = int64_t{10} << 20,
                  .assumed = 0,
                  .most = int64_t{3} << 30}),
            "insufficient quota for memory in flavor spot, previously considered podsets requests "
            "(0) + current podset request (10Mi) > maximum capacity (3Gi)");
  // What was cut when it was read is told as such.
  EXPECT_EQ(text({.kind = FlavorReasonKind::kExceedsMost,
                  .resource = model::kMemory,
                  .amount = 3 * limits::kAmountMax,
                  .assumed = limits::kAmountMax,
                  .most = limits::kQuotaMax}),
            "insufficient quota for memory in flavor spot, previously considered podsets requests "
            "(at least 18446744073709) + current podset request (at least 55340232221127) > "
            "maximum capacity (at least 128Pi)");
  EXPECT_EQ(text({.kind = FlavorReasonKind::kShort, .resource = model::kCpu, .amount = 1500}),
            "insufficient unused quota for cpu in flavor spot, 1500m more needed");
  EXPECT_EQ(text({.kind = FlavorReasonKind::kShort, .resource = model::kCpu, .amount = 2000}),
            "insufficient unused quota for cpu in flavor spot, 2 more needed");
  EXPECT_EQ(text({.kind = FlavorReasonKind::kShort, .resource = gpu, .amount = 2000}),
            "insufficient unused quota for example.com/gpu in flavor spot, 2k more needed");
}

TEST(QuotaTextTest, WhyNoTopologyNamesFlavorsInOrder) {
  model::Vocabulary v;
  const std::vector<model::NameId> flavors = {v.names.Intern("b"), v.names.Intern("a")};
  using model::TopologyFault;
  EXPECT_EQ(TopologyFaultText(TopologyFault::kNone, {}, v), "");
  EXPECT_EQ(TopologyFaultText(TopologyFault::kNoInformation, {}, v),
            "workload requires Topology, but there is no TAS cache information");
  EXPECT_EQ(TopologyFaultText(TopologyFault::kNoFlavor, {}, v), "no TAS flavor assigned");
  EXPECT_EQ(TopologyFaultText(TopologyFault::kSeveralFlavors, flavors, v),
            "more than one TAS flavor assigned: a, b");
}

TEST(QuotaTextTest, WhyOneIsEvictedNamesForWhom) {
  using model::VictimReason;
  EXPECT_EQ(PreemptionText({}),
            "Preempted to accommodate a workload (UID: UNKNOWN, JobUID: UNKNOWN) due to UNKNOWN; "
            "preemptor path: UNKNOWN; preemptee path: UNKNOWN");
  const auto why = [](VictimReason reason) {
    const std::string text = PreemptionText({.uid = "u",
                                             .job_uid = "j",
                                             .reason = reason,
                                             .preemptor_path = "/all/a",
                                             .preemptee_path = "/b"});
    EXPECT_TRUE(
        text.starts_with("Preempted to accommodate a workload (UID: u, JobUID: j) due to "));
    EXPECT_TRUE(text.ends_with("; preemptor path: /all/a; preemptee path: /b"));
    const size_t begin = text.find("due to ") + 7;
    return text.substr(begin, text.find(';') - begin);
  };
  EXPECT_EQ(why(VictimReason::kInQueue), "prioritization in the ClusterQueue");
  EXPECT_EQ(why(VictimReason::kReclaimed), "reclamation within the cohort");
  EXPECT_EQ(why(VictimReason::kReclaimedByBorrowing),
            "reclamation within the cohort while borrowing");
  EXPECT_EQ(ToString(VictimReason::kInQueue), "InClusterQueue");
  EXPECT_EQ(ToString(VictimReason::kReclaimed), "InCohortReclamation");
  EXPECT_EQ(ToString(VictimReason::kReclaimedByBorrowing), "InCohortReclaimWhileBorrowing");
  EXPECT_EQ(why(VictimReason::kOnNodes), "prioritization on the nodes");
  EXPECT_EQ(ToString(VictimReason::kOnNodes), "OnNodes");
}

TEST(QuotaTextTest, ReasonsOfTheConditionAreUpstreams) {
  EXPECT_EQ(ToString(model::Unfit::kNone), "");
  EXPECT_EQ(ToString(model::Unfit::kWaiting), "WaitingForQuota");
  EXPECT_EQ(ToString(model::Unfit::kExceeds), "ExceedsMaxQuota");
  EXPECT_EQ(ToString(model::Unfit::kNoMatch), "NoMatchingFlavor");
}

// The other words are those of Kueue's vectors.
TEST(QuotaTextTest, WhomOneIsToBeAdmittedWithIsSaid) {
  model::State state;
  state.Apply(model::WorkloadUpsert{.uid = "u", .key = "ns/b"});
  const std::string start =
      "its pods could not start by themselves: it is to be admitted together with ";
  EXPECT_EQ(AwaitedText(state.workloads().at(state.FindWorkload("u")).key, state),
            start +
                "workload ns/b, whose pods are of the same PodGroup, and which has admission "
                "checks to pass, or awaits its quota, or places for its pods");
  EXPECT_EQ(AwaitedText({}, state), start + "others, whose pods are of the same PodGroup");
}

TEST(QuotaTextTest, WhyATopologyRefusesNamesWhatKeepsPodsOff) {
  model::Vocabulary v;
  using Kind = model::TopologyRefusal::Kind;
  model::TopologyRefusal refusal{.kind = Kind::kStale,
                                 .topology = v.names.Intern("racks"),
                                 .level = v.names.Intern("n1"),
                                 .within = {},
                                 .flavor = v.names.Intern("spot"),
                                 .fills = {},
                                 .left_out = {.all = 7, .by_domain = 2, .by_others = 1}};
  EXPECT_EQ(TopologyRefusalText(refusal, v),
            "topology \"racks\" has no domain n1 any more, in which some of the pods stand");
  refusal.kind = Kind::kFewSlices;
  refusal.fills = {{.level = v.names.Intern("rack"), .fits = 1, .wanted = 2}};
  EXPECT_EQ(TopologyRefusalText(refusal, v),
            "topology \"racks\" allows to fit only 1 out of 2 slice(s). Total nodes: 7; excluded: "
            "other: 1, topologyDomain: 2");
  refusal.kind = Kind::kUneven;
  refusal.fills = {{.level = v.names.Intern("rack"), .fits = 2, .wanted = 3}};
  EXPECT_EQ(TopologyRefusalText(refusal, v),
            "3 pod(s) can't be divided into slices of 2 on level rack: change how many they are, "
            "or the size of slices");
  const auto text = [&](Kind kind) {
    refusal.kind = kind;
    return TopologyRefusalText(refusal, v);
  };
  EXPECT_EQ(text(Kind::kGone),
            "topology \"racks\", which ResourceFlavor spot names, doesn't exist: create it");
  EXPECT_EQ(text(Kind::kFlavorGone), "ResourceFlavor spot doesn't exist: create it");
  EXPECT_EQ(text(Kind::kUntold), "ResourceFlavor spot names no topology any more");
}

// Goal: who waits in vain is told what to change. Method: a refusal of each kind that waiting alone
// doesn't end, and of each that it does.
TEST(QuotaTextTest, WhatToChangeIsSaid) {
  model::Vocabulary v;
  using Kind = model::TopologyRefusal::Kind;
  using model::FlavorReasonKind;
  const auto of_topology = [&](Kind kind) {
    model::PlacesRefusal places;
    places.topology = model::TopologyRefusal{.kind = kind, .level = v.names.Intern("rack")};
    return AdviceText({.places = {places}}, v);
  };
  EXPECT_EQ(of_topology(Kind::kNoLevel),
            "ask for a level that the Topology of the queue's flavor has, or add this one to it");
  EXPECT_EQ(of_topology(Kind::kSliceAbove),
            "ask for slices of the level of the pods, or of a narrower one");
  EXPECT_EQ(of_topology(Kind::kNoDomains),
            "give nodes the nodeLabels of the flavor and labels of all levels of its Topology "
            "down to rack, or ask for another level");
  EXPECT_EQ(of_topology(Kind::kStale),
            "bring back a node of rack, or have all pods placed anew: set spec.active of the "
            "workload to false and to true again");
  EXPECT_EQ(of_topology(Kind::kFewPods),
            "it waits for room; it needs less at once with a wider level, with a preferred one for "
            "a required, or with smaller slices or fewer pods");
  model::PlacesRefusal never;
  never.topology = model::TopologyRefusal{.kind = Kind::kFewPods};
  EXPECT_EQ(AdviceText({.unfit = model::Unfit::kNoPlaces, .places = {never}}, v),
            "not even without other workloads is there room for all of its pods: request less for "
            "each, ask for a wider level, for a preferred one instead of a required, for smaller "
            "slices or fewer pods, or add nodes");
  EXPECT_EQ(of_topology(Kind::kGone), "") << "its words say it";
  EXPECT_EQ(AdviceText({.places = {{.needed = 3, .most = 2}}}, v),
            "request less for each pod, ask for fewer pods, or add nodes that hold them");
  EXPECT_EQ(AdviceText({.places = {{.needed = 3}}}, v), "") << "it only has to wait";
  EXPECT_EQ(AdviceText({.bar = model::QueueBar::kNamespace}, v),
            "label the namespace as spec.namespaceSelector of the ClusterQueue asks, or set that: "
            "{} is all namespaces");
  EXPECT_EQ(AdviceText({.fault = model::TopologyFault::kSeveralFlavors}, v),
            "put the resources that the pod set requests into one group of spec.resourceGroups of "
            "the ClusterQueue, so that they come from one flavor");
  EXPECT_EQ(AdviceText({.fault = model::TopologyFault::kNoFlavor}, v),
            "have the pods request a resource of which the ClusterQueue has a ResourceFlavor with "
            "spec.topologyName, or take the topologyRequest, if there is one, out of the pod set");
  const auto of_flavors = [&](model::Unfit unfit, const std::vector<FlavorReasonKind>& kinds) {
    model::WorkloadRefusal refusal{.unfit = unfit};
    for (const FlavorReasonKind kind : kinds) {
      refusal.reasons.push_back(
          {.kind = kind, .flavor = v.names.Intern("spot"), .resource = model::kCpu});
    }
    return AdviceText(refusal, v);
  };
  EXPECT_EQ(of_flavors(model::Unfit::kNoMatch, {FlavorReasonKind::kNotCovered}),
            "add cpu to a group of spec.resourceGroups of the ClusterQueue, or don't request it");
  EXPECT_EQ(of_flavors(model::Unfit::kNoMatch, {FlavorReasonKind::kTopologyOnly}),
            "ask for a topology, unconstrained where any place will do");
  EXPECT_EQ(of_flavors(model::Unfit::kExceeds,
                       {FlavorReasonKind::kHeldOther, FlavorReasonKind::kExceedsMost}),
            "request less, or give the queue or its cohort more");
  EXPECT_EQ(
      of_flavors(model::Unfit::kWaiting, {FlavorReasonKind::kShort, FlavorReasonKind::kAffinity}),
      "")
      << "it only has to wait";
  const model::WorkloadRefusal exceeds{
      .unfit = model::Unfit::kExceeds,
      .reasons = {{.kind = FlavorReasonKind::kExceedsMost, .flavor = {}, .resource = {}}}};
  EXPECT_EQ(WithAdvice({.reason = "r", .message = "m"}, exceeds, v).message,
            "m. What to change: request less, or give the queue or its cohort more");
  EXPECT_EQ(WithAdvice({.reason = "r", .message = "m."}, exceeds, v).message,
            "m. What to change: request less, or give the queue or its cohort more");
  EXPECT_EQ(WithAdvice({.reason = "r", .message = "m"}, {}, v).message, "m");
}

}  // namespace
}  // namespace berth::translate
