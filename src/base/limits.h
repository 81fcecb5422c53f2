#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"

// Every bound of berth with the arithmetic behind it, so that limits can be read, and related, in
// one place.
namespace berth::limits {

// Kubernetes supports 5,000 nodes and 150,000 pods a cluster; the largest that are told of have
// some 100,000 nodes.
inline constexpr int64_t kNodesMax = 100'000;
inline constexpr int64_t kPodsMax = 200'000;

// Places on nodes that admitted workloads have for pods which are yet to come, at once.
inline constexpr int64_t kFreeSlotsMax = 50'000;
// Amounts are clamped to this at ingest: a sum over every pod and free slot, or every node, of a
// full-size cluster can't overflow, nor can the difference of two such sums.
inline constexpr int64_t kAmountMax = INT64_MAX / 2 / (kPodsMax + kFreeSlotsMax);
static_assert(kAmountMax > (int64_t{16} << 40), "an amount must hold the bytes of a 16 TiB node");
static_assert(kNodesMax <= kPodsMax, "the clamp counts pods, so nodes must not be more");

// A group of one pod each, at most.
inline constexpr int64_t kGroupsMax = kPodsMax;

// Queues and cohorts, those that are only named among them.
inline constexpr int64_t kQueuesMax = 65'536;
// Accounts of the tree of queues, one per queue and flavor: 1,000 queues with 16 flavors at four
// levels. With a cell of 80 bytes per kind of resource, 20 kinds are 105 MB, and a real cluster has
// a hundredth of that.
inline constexpr int64_t kQuotaAccountsMax = 65'536;
// Flavors of quota, and topologies: a queue names at most 256, as Kueue's definition says, and a
// cluster has a few hundred.
inline constexpr int64_t kFlavorsMax = 4'096;
// Slots of admitted workloads that are charged to queues at once. Their pods must fit the cluster.
inline constexpr int64_t kSlotsMax = kPodsMax;
// Workloads that are known, waiting and ended ones among them: each was made for a job. And the
// LocalQueues that they come through, one or a few a namespace.
inline constexpr int64_t kWorkloadsMax = 200'000;
inline constexpr int64_t kLocalQueuesMax = 65'536;
// Of each kind of object that says where storage is: claims, volumes, attachments and the like. A
// pod has a few; with 300 bytes each they are 60 MB.
inline constexpr int64_t kStorageRowsMax = 200'000;
// Quotas, and what is read of sums of them, are clamped to this: 128 PiB.
inline constexpr int64_t kQuotaMax = int64_t{1} << 57;
static_assert(kQuotaMax > (int64_t{16} << 40) * 1024, "1,024 of the largest nodes");
static_assert(INT64_MAX - kAmountMax * kSlotsMax > kQuotaMax * 3,
              "what a queue has left is a sum of three quotas less what all slots use");

// Kinds of resource that a scheduler tells apart, for as long as it runs. Nodes times kinds are
// dense columns: 100,000 nodes x 128 x 4 columns x 8 bytes = 410 MB at worst, and a real cluster
// has under 20.
inline constexpr uint32_t kResourceKindsMax = 128;
// Any user can make pods that ask for resources that he invented; nodes are made by few. So pods
// may add kinds up to here only, and the other 32 are left for what nodes offer.
inline constexpr uint32_t kResourceKindsOfPodsMax = 96;
static_assert(kResourceKindsOfPodsMax < kResourceKindsMax, "nodes must be able to name theirs");
// Terms of a pod's affinity to other pods. Each that nobody has yet is matched with the labels of
// all pods, so that a pod with the 40,000 that an object has room for would take seconds.
inline constexpr size_t kAffinityTermsMax = 128;
// What its selectors of nodes and pods ask for together, and what a budget's or a claim's does.
inline constexpr size_t kRequirementsMax = 1'024;
inline constexpr size_t kRequirementValuesMax = 10'000;
// Its host ports, and its claims and disks: each is compared with those of the pods on a node.
inline constexpr size_t kHostPortsMax = 1'024;
inline constexpr size_t kPodVolumesMax = 256;
// Names of images that a node has: kubelets tell 50 by default.
inline constexpr size_t kNodeImagesMax = 2'000;
// Pods that could not be understood and are kept to be read again: 30 MB with 3 KiB each. Beyond
// that they are told of and wait until they change.
inline constexpr size_t kUnreadPodsMax = 10'000;

// A pod that is not gone this long after the grace of its deletion is over (a dead kubelet, a
// finalizer), and after it was first seen to leave (when that grace is over another clock says), is
// not waited for any more. Kubelets need seconds.
inline constexpr Duration kOverdueAfter = Duration::Seconds(60);

// kube-apiserver refuses larger request bodies with 413; etcd's own limit is 1.5 MiB an object.
inline constexpr int64_t kRequestBodyBytesMax = 3 * 1024 * 1024;
inline constexpr int64_t kObjectBytesMax = 1536 * 1024;
// Entries of managedFields that a client sends: an object has some ten, of at least 100 bytes, and
// each is compared with all others.
inline constexpr int64_t kManagersSentMax = 1000;
inline constexpr int64_t kRequestHeaderBytesMax = 64 * 1024;
// Deepest manifests (CRD schemas aside) nest under 40 levels; a parser's stack frame is under 1
// KiB.
inline constexpr int64_t kNestingMax = 128;

// Servers of webhooks that connections are kept to, 16 idle ones each. A cluster has some dozens.
inline constexpr int64_t kEndpointsMax = 256;
// What a webhook's answer may have: a patch that replaces the largest object, in base64.
inline constexpr int64_t kReviewBytesMax = 3 * 1024 * 1024;
static_assert(kReviewBytesMax > kObjectBytesMax / 3 * 4, "the patch of a whole object must fit");
// Writes that wait for webhooks, and what they hold: requests, and the texts of reviews that were
// answered. 1,024 of the usual 10 KiB are 10 MiB. Upstream serves 200 writes at once.
inline constexpr int64_t kWaitingWritesMax = 1'024;
inline constexpr int64_t kWaitingBytesMax = 256 * 1024 * 1024;
// Calls that one write has under way at once: of webhooks that validate, and of the objects of a
// collection.
inline constexpr int64_t kReviewsAtOnceMax = 64;
// HTTP/1.1 has a connection a watch, beside those for all else. An open one costs some 45 KiB.
inline constexpr int64_t kWatchesMax = 16'384;
inline constexpr int64_t kConnectionsMax = kWatchesMax + 4'096;
static_assert(kEndpointsMax * 16 <= kConnectionsMax);
// Of requests that are not whole yet, in sum: 170 bodies of the largest size. Nobody has said yet
// who he is. Over it who holds the most for the longest time without sending is cut.
inline constexpr int64_t kComingBytesMax = int64_t{512} << 20;
static_assert(kComingBytesMax >= 100 * kRequestBodyBytesMax);
// Whole answers that clients have not taken yet, in sum: two lists of 150,000 pods of 3 KiB. Over
// it who holds the most for the longest time without taking any is cut.
inline constexpr int64_t kUnsentBytesMax = int64_t{1} << 30;
// A watch with this much unread gets nothing more until its client has read; it then continues from
// the log. 500 pods of 2 KiB fit. With every watch at its limit this would be 16 GiB; with the
// dozens that a cluster has, tens of MiB.
inline constexpr int64_t kWatchUnreadBytesMax = 1024 * 1024;

// How far back a watch can resume: 65,536 events are 20 s at 3,000 pods/s, and beside 50,000 pods
// of 3 KiB stay under half of the store's share of memory.
inline constexpr int64_t kWatchLogEventsMax = 65'536;
inline constexpr int64_t kWatchLogBytesMax = 128 * 1024 * 1024;
static_assert(kWatchLogBytesMax > kWatchUnreadBytesMax, "a slow watch must find what it missed");

}  // namespace berth::limits
