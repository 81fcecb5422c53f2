#include "sim/tamper.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "sim/truth.h"

namespace berth::sim {
namespace {

constexpr Duration kDeafAfter = Duration::Seconds(40);

// Everything from each `head` to the first `tail` after it becomes `with`.
Bytes Replace(const Bytes& body, std::string_view head, std::string_view tail,
              std::string_view with) {
  std::string text(body.view());
  for (size_t at = text.find(head); at != std::string::npos;
       at = text.find(head, at + with.size())) {
    const size_t end = text.find(tail, at + head.size());
    if (end == std::string::npos) break;
    text.replace(at, end + tail.size() - at, with);
  }
  return Bytes(std::move(text));
}

Bytes Replace(const Bytes& body, std::string_view what, std::string_view with) {
  return Replace(body, what, "", with);
}

constexpr std::string_view kAllowed = R"("disruptionsAllowed":)";

// More, or fewer, disruptions.
Bytes AddDisruptions(const Bytes& body, int64_t more) {
  std::string text(body.view());
  const size_t at = text.find(kAllowed);
  if (at == std::string::npos) return body;
  const size_t from = at + kAllowed.size();
  const size_t to = text.find_first_not_of("0123456789", from);
  int64_t allowed = 0;
  std::from_chars(text.data() + from, text.data() + to, allowed);
  text.replace(from, to - from, std::to_string(std::max<int64_t>(allowed + more, 0)));
  return Bytes(std::move(text));
}

bool Has(const env::HttpRequest& request, std::string_view text) {
  return request.body.view().find(text) != std::string_view::npos;
}

// Users name the pods that they make themselves so; see Users::PlanPods.
bool OfUsersPod(const env::HttpRequest& request) {
  return request.target.find("/pods/pod-") != std::string::npos;
}

std::string WithoutSubresource(const std::string& target) {
  return target.substr(0, target.rfind('/'));
}

bool EvictsForCheck(const env::HttpRequest& request) {
  return request.target.contains("/workloads/") &&
         Has(request, "At least one admission check is false");
}

bool EvictsForNodes(const env::HttpRequest& request) {
  return request.target.contains("/workloads/") && !Has(request, R"("admission":{)") &&
         Has(request, R"("type":"Evicted","status":"True","reason":"NodeFailures")");
}

// Whatever held it back before.
bool BringsBack(const env::HttpRequest& request) {
  return request.target.contains("/workloads/") && !Has(request, R"("admission":{)") &&
         (Has(request, R"("BackoffFinished")") || Has(request, R"("Reactivated")") ||
          Has(request, R"("ClusterQueueRestarted")") || Has(request, R"("LocalQueueRestarted")"));
}

// The server only says that it was done.
void MakeUndone(env::HttpRequest& request, std::string target) {
  request = {.method = env::Method::kGet, .target = std::move(target), .headers = {}, .body = {}};
}

void TamperScheduler(Tampering tampering, env::HttpRequest& request) {
  const bool binds = request.target.ends_with("/binding");
  if (binds && tampering == Tampering::kBindWithoutUid) {
    request.body = Replace(request.body, R"(,"uid":")", "\"", "");
  } else if (binds && tampering == Tampering::kBindWithoutDevices) {
    request.body = Replace(request.body, R"(,"annotations":{)", "}", "");
  } else if (binds && tampering == Tampering::kBindingNotDone && OfUsersPod(request)) {
    MakeUndone(request, WithoutSubresource(request.target));
  } else if (tampering == Tampering::kTooFewUntold && Has(request, R"("phase":"Unknown")")) {
    MakeUndone(request, WithoutSubresource(request.target));
  } else if (tampering == Tampering::kQuotaUnfenced && request.target.contains("/workloads/")) {
    request.body = Replace(request.body, R"(,"resourceVersion":")", "\"", "");
  } else if (tampering == Tampering::kFailuresKept && Has(request, R"("conditions":)")) {
    request.body = Replace(request.body, R"(,"unhealthyNodes":null)", "");
  } else if (tampering == Tampering::kPassWithoutPlaces && EvictsForNodes(request)) {
    // Of scenarios, as kOneFlavorRead.
    request.body = Replace(Bytes(std::string(request.body.view()) + '\n'), R"("status":{)", "\n",
                           R"("status":{"unhealthyNodes":null,"admission":{"clusterQueue":"q",)"
                           R"("podSetAssignments":[{"name":"main","flavors":{"cpu":"spot"},)"
                           R"("resourceUsage":{"cpu":"1"},"count":1}]}}})");
  } else if (tampering == Tampering::kPlacesLeftOut && request.target.contains("/workloads/")) {
    request.body = Replace(request.body, R"(,"topologyAssignment":{)", "}]}", "");
  } else if (tampering == Tampering::kChecksKept && Has(request, R"("Evicted")")) {
    request.body = Replace(request.body, R"(,"admissionChecks":[)", "]", "");
  } else if ((tampering == Tampering::kRetryIgnored && EvictsForCheck(request)) ||
             (tampering == Tampering::kReturnUnwritten && BringsBack(request))) {
    MakeUndone(request, WithoutSubresource(request.target));
  } else if (tampering == Tampering::kQueuesKept && request.target.contains("/clusterqueues/") &&
             Has(request, R"("finalizers":[])")) {
    MakeUndone(request, request.target);
  } else if (tampering == Tampering::kMarkOfAnother && Has(request, "DisruptionTarget")) {
    request.body = Replace(request.body, R"("status":{)", R"("status":{"qosClass":"Guaranteed",)");
  } else if (tampering == Tampering::kHopelessPodDeleted && OfUsersPod(request) &&
             request.method == env::Method::kPatch && Has(request, "Unschedulable")) {
    const std::string pod = WithoutSubresource(request.target);
    request.method = env::Method::kPost;
    request.target = pod + "/eviction";
    request.headers = {};
    request.body = Bytes(
        fmt::format(R"({{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":"{}"}}}})",
                    pod.substr(pod.rfind('/') + 1)));
  }
}

void TamperNodes(Tampering tampering, env::HttpRequest& request) {
  if (request.method != env::Method::kPatch) return;
  const bool runs = Has(request, R"("phase":"Running")");
  const bool ends = Has(request, R"("phase":"Succeeded")");
  if (ends && tampering == Tampering::kAdmittedAgain) {
    request.body = Replace(request.body, R"("startTime":"2026)", R"("startTime":"2027)");
  } else if (ends && tampering == Tampering::kAddressChanged) {
    request.body = Replace(request.body, R"("podIP":"10.)", R"("podIP":"11.)");
    request.body = Replace(request.body, R"("podIPs":[{"ip":"10.)",
                           R"("podIPs":[{"$patch":"replace"},{"ip":"11.)");
  } else if (runs && tampering == Tampering::kRestartsForgotten) {
    request.body = Replace(request.body, R"("restartCount":0)", R"("restartCount":7)");
  } else if (ends && tampering == Tampering::kRestartsForgotten) {
    request.body = Replace(request.body, R"("restartCount":7)", R"("restartCount":0)");
  } else if (runs && tampering == Tampering::kRunningPodFailed && OfUsersPod(request)) {
    request.body = Replace(request.body, R"("phase":"Running")", R"("phase":"Failed")");
  } else if (runs && tampering == Tampering::kRunningPodDeleted && OfUsersPod(request)) {
    request.method = env::Method::kDelete;
    request.target = WithoutSubresource(request.target) + "?gracePeriodSeconds=0";
    request.body = {};
  }
}

}  // namespace

void TamperSent(Tampering tampering, Party party, env::HttpRequest& request) {
  if (party == Party::kScheduler) TamperScheduler(tampering, request);
  if (party == Party::kNodes) TamperNodes(tampering, request);
  if (party == Party::kControllers && tampering == Tampering::kPodNotDeleted &&
      request.method == env::Method::kDelete &&
      request.target.find("/pods/") != std::string::npos) {
    request.method = env::Method::kGet;
    request.body = {};
  }
  if (party == Party::kControllers && tampering == Tampering::kDeletionUnfenced &&
      request.method == env::Method::kDelete) {
    request.body = {};
  }
  if (party == Party::kControllers && tampering == Tampering::kBudgetOverstated &&
      request.method == env::Method::kPatch) {
    request.body = AddDisruptions(request.body, 1);
  }
  if (party != Party::kUsers) return;
  if (tampering == Tampering::kScaledToMore && request.method == env::Method::kPatch) {
    request.body = Replace(request.body, R"({"spec":{"replicas":)", R"({"spec":{"replicas":1)");
  } else if (tampering == Tampering::kJobSuspended) {
    request.body = Replace(request.body, R"("backoffLimit":1000)", R"("suspend":true)");
  }
}

namespace {

// In what is heard, of one thing the other.
struct Mishearing {
  Tampering tampering;
  std::string_view said;
  std::string_view heard;
};
constexpr Mishearing kMishearings[] = {
    {Tampering::kPolicyUnheard, R"("preemptionPolicy":"Never")",
     R"("preemptionPolicy":"PreemptLowerPriority")"},
    {Tampering::kStrictUnheard, R"("queueingStrategy":"StrictFIFO")",
     R"("queueingStrategy":"BestEffortFIFO")"},
    {Tampering::kChecksUnheard, R"("admissionChecksStrategy":)", R"("unheard":)"},
};

}  // namespace

bool TamperHeard(Tampering tampering, Duration since_start, Party party, env::Input& input) {
  if (party != Party::kScheduler) return true;
  for (const Mishearing& each : kMishearings) {
    if (each.tampering != tampering) continue;
    if (auto* data = std::get_if<env::StreamData>(&input)) {
      data->data = Replace(data->data, each.said, each.heard);
    } else if (auto* response = std::get_if<env::Response>(&input)) {
      response->response.body = Replace(response->response.body, each.said, each.heard);
    }
  }
  if (!std::holds_alternative<env::StreamData>(input)) return true;
  return tampering != Tampering::kDeafScheduler || since_start <= kDeafAfter;
}

void TamperRead(Tampering tampering, env::Input& input) {
  auto* response = std::get_if<env::Response>(&input);
  if (response == nullptr) return;
  // Of scenarios, whose flavor is the one that all quota is of.
  Bytes& body = response->response.body;
  if (tampering == Tampering::kOneFlavorRead) body = Replace(body, R"(,"memory":"spot"})", "}");
}

void TamperWritten(Tampering tampering, std::vector<env::JournalRecord>& records) {
  if (tampering != Tampering::kEvictionUncharged && tampering != Tampering::kEvictionChargedTwice) {
    return;
  }
  for (env::JournalRecord& record : records) {
    if (!record.key.starts_with(kBudgetsPrefix)) continue;
    if (!record.value.view().contains(R"("disruptedPods":{")")) continue;
    record.value =
        AddDisruptions(record.value, tampering == Tampering::kEvictionUncharged ? 1 : -1);
  }
}

void TamperRecovered(Tampering tampering, std::vector<env::JournalRecord>& records) {
  if (tampering != Tampering::kBindingsLost) return;
  for (env::JournalRecord& record : records) {
    if (!record.key.starts_with(kPodsPrefix)) continue;
    record.value = Replace(record.value, R"("nodeName":")", "\"", R"("nodeName":"")");
  }
}

}  // namespace berth::sim
