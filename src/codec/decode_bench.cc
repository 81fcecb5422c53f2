// What decoding costs: a pod of about 2.5 KB into its typed view, beside the same pod into a
// document.

#include <benchmark/benchmark.h>

#include <string>

#include "codec/decode.h"
#include "codec/json.h"

namespace berth::codec {
namespace {

std::string PodText() {
  std::string labels;
  for (int i = 0; i < 8; ++i)
    labels += "\"label-" + std::to_string(i) + "\":\"value-" + std::to_string(i) + "\",";
  std::string conditions;
  for (const char* type :
       {"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"}) {
    conditions +=
        std::string(conditions.empty() ? "" : ",") + R"({"type":")" + type +
        R"(","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-02T03:04:05Z"})";
  }
  return R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-7d4b9c6f5-x2x4z","generateName":"web-7d4b9c6f5-","namespace":"default","uid":"53f972c6-93f3-45f5-b79b-c306fd5c59c5","resourceVersion":"123456","creationTimestamp":"2026-01-02T03:04:05Z","labels":{)" +
         labels +
         R"("app":"web"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-7d4b9c6f5","uid":"2fe0ca5f-6148-4f54-b6e0-41b65b683ca5","controller":true,"blockOwnerDeletion":true}]},"spec":{"volumes":[{"name":"kube-api-access","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}}],"defaultMode":420}}],"containers":[{"name":"c","image":"registry.example/web:1.2.3","ports":[{"containerPort":80,"protocol":"TCP"}],"env":[{"name":"A","value":"b"},{"name":"POD_NAME","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}],"resources":{"limits":{"cpu":"2","memory":"4Gi"},"requests":{"cpu":"500m","memory":"512Mi"}},"volumeMounts":[{"name":"kube-api-access","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"default","nodeName":"node-00042","securityContext":{},"schedulerName":"default-scheduler","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},"status":{"phase":"Running","conditions":[)" + conditions +
         R"(],"hostIP":"10.0.0.1","podIP":"10.1.2.3","startTime":"2026-01-02T03:04:05Z","containerStatuses":[{"name":"c","state":{"running":{"startedAt":"2026-01-02T03:04:06Z"}},"lastState":{},"ready":true,"restartCount":0,"image":"registry.example/web:1.2.3","started":true}],"qosClass":"Burstable"}})";
}

void BM_DecodePod(benchmark::State& state) {
  const std::string text = PodText();
  Decoder decoder;
  for (auto _ : state) benchmark::DoNotOptimize(decoder.Pod(text));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
  state.SetLabel(std::to_string(text.size()) + " bytes");
}
BENCHMARK(BM_DecodePod);

void BM_DecodeHead(benchmark::State& state) {
  const std::string text = PodText();
  Decoder decoder;
  for (auto _ : state) benchmark::DoNotOptimize(decoder.Head(text));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
}
BENCHMARK(BM_DecodeHead);

void BM_ParseJson(benchmark::State& state) {
  const std::string text = PodText();
  for (auto _ : state) benchmark::DoNotOptimize(ParseJson(text));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
}
BENCHMARK(BM_ParseJson);

void BM_PrintJson(benchmark::State& state) {
  const api::Json value = ParseJson(PodText()).value();
  for (auto _ : state) benchmark::DoNotOptimize(PrintJson(value));
}
BENCHMARK(BM_PrintJson);

}  // namespace
}  // namespace berth::codec

BENCHMARK_MAIN();
