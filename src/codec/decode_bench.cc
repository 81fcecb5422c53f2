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
  return R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-7d4b9c6f5-x2x4z",)"
         R"("generateName":"web-7d4b9c6f5-","namespace":"default",)"
         R"("uid":"53f972c6-93f3-45f5-b79b-c306fd5c59c5","resourceVersion":"123456",)"
         R"("creationTimestamp":"2026-01-02T03:04:05Z","labels":{)" +
         labels +
         R"("app":"web"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet",)"
         R"("name":"web-7d4b9c6f5","uid":"2fe0ca5f-6148-4f54-b6e0-41b65b683ca5","controller":true,)"
         R"("blockOwnerDeletion":true}]},"spec":{"volumes":[{"name":"kube-api-access",)"
         R"("projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,)"
         R"("path":"token"}}],"defaultMode":420}}],"containers":[{"name":"c",)"
         R"("image":"registry.example/web:1.2.3","ports":[{"containerPort":80,"protocol":"TCP"}],)"
         R"("env":[{"name":"A","value":"b"},{"name":"POD_NAME",)"
         R"("valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}],)"
         R"("resources":{"limits":{"cpu":"2","memory":"4Gi"},"requests":{"cpu":"500m",)"
         R"("memory":"512Mi"}},"volumeMounts":[{"name":"kube-api-access","readOnly":true,)"
         R"("mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],)"
         R"("terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",)"
         R"("imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always",)"
         R"("terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst",)"
         R"("serviceAccountName":"default","nodeName":"node-00042","securityContext":{},)"
         R"("schedulerName":"default-scheduler",)"
         R"("tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists",)"
         R"("effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable",)"
         R"("operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,)"
         R"("enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},)"
         R"("status":{"phase":"Running","conditions":[)" +
         conditions +
         R"(],"hostIP":"10.0.0.1","podIP":"10.1.2.3","startTime":"2026-01-02T03:04:05Z",)"
         R"("containerStatuses":[{"name":"c",)"
         R"("state":{"running":{"startedAt":"2026-01-02T03:04:06Z"}},"lastState":{},"ready":true,)"
         R"("restartCount":0,"image":"registry.example/web:1.2.3","started":true}],)"
         R"("qosClass":"Burstable"}})";
}

void DecodePodText(benchmark::State& state) {
  const std::string text = PodText();
  Decoder decoder;
  for (auto _ : state) benchmark::DoNotOptimize(decoder.Pod(text));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
  state.SetLabel(std::to_string(text.size()) + " bytes");
}
BENCHMARK(DecodePodText);

void DecodeHeadText(benchmark::State& state) {
  const std::string text = PodText();
  Decoder decoder;
  for (auto _ : state) benchmark::DoNotOptimize(decoder.Head(text));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
}
BENCHMARK(DecodeHeadText);

void ParseJsonText(benchmark::State& state) {
  const std::string text = PodText();
  for (auto _ : state) benchmark::DoNotOptimize(ParseJson(text));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
}
BENCHMARK(ParseJsonText);

void PrintJsonText(benchmark::State& state) {
  const api::Json value = ParseJson(PodText()).value();
  for (auto _ : state) benchmark::DoNotOptimize(PrintJson(value));
}
BENCHMARK(PrintJsonText);

}  // namespace
}  // namespace berth::codec

BENCHMARK_MAIN();
