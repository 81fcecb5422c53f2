// The cost of one watch event beyond decoding, and of a list page, per object.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "client/client.h"

namespace berth::client {
namespace {

std::string Pod(int index, int version) {
  return fmt::format(
             R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"pod-{}","namespace":"default","uid":"00000000-0000-0000-0000-{:012}","resourceVersion":"{}","labels":{{"app":"x"}}}},"spec":{{"pad":")",
             index, index, version) +
         std::string(2'200, 'x') + "\"}}";
}

void WatchEvents(benchmark::State& state) {
  const int pods = static_cast<int>(state.range(0));
  Client client({});
  env::Outbox out;
  std::vector<Event> events;
  client.Watch({.resource = {.group = "", .version = "v1", .plural = "pods"}});
  client.Handle({}, env::Tick{}, out, events);
  std::string body = R"({"metadata":{"resourceVersion":"1"},"items":[)";
  for (int i = 0; i < pods; ++i) body += (i > 0 ? "," : "") + Pod(i, 1);
  const auto answer = [&](std::string text) {
    const env::CallId call = std::get<env::SendRequest>(out.back()).call;
    client.Handle({}, env::Response{.call = call, .response = {.body = Bytes(std::move(text))}},
                  out, events);
    return call;
  };
  answer(body + "]}");
  const env::CallId stream = answer("");
  int version = 2;
  for (auto _ : state) {
    state.PauseTiming();
    std::string data;
    for (int i = 0; i < 1'000; ++i) {
      data += R"({"type":"MODIFIED","object":)" + Pod((i * 7919) % pods, version) + "}\n";
      ++version;
    }
    const env::Input input = env::StreamData{.call = stream, .data = Bytes(std::move(data))};
    events.clear();
    state.ResumeTiming();
    client.Handle({}, input, out, events);
    if (events.size() != 1'000) state.SkipWithError("events lost");
  }
  state.SetItemsProcessed(state.iterations() * 1'000);
}
BENCHMARK(WatchEvents)->Arg(1'000)->Arg(50'000);

void ListPage(benchmark::State& state) {
  std::string body = R"({"metadata":{"resourceVersion":"1"},"items":[)";
  for (int i = 0; i < 500; ++i) body += (i > 0 ? "," : "") + Pod(i, 1);
  const Bytes page(body + "]}");
  for (auto _ : state) {
    Client client({});
    env::Outbox out;
    std::vector<Event> events;
    client.Watch({.resource = {.group = "", .version = "v1", .plural = "pods"}});
    client.Handle({}, env::Tick{}, out, events);
    client.Handle({}, env::Response{.call = {1}, .response = {.body = page}}, out, events);
    benchmark::DoNotOptimize(events);
  }
  state.SetItemsProcessed(state.iterations() * 500);
}
BENCHMARK(ListPage);

}  // namespace
}  // namespace berth::client

BENCHMARK_MAIN();
