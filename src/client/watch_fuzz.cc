// Whatever a server sends, in whatever pieces: the client neither crashes nor loops, and asks
// again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "client/client.h"

using berth::Bytes;
namespace client = berth::client;
namespace env = berth::env;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const size_t half = size / 2;
  client::Client list({});
  list.Watch({.resource = {.group = "", .version = "v1", .plural = "pods"}});
  env::Outbox out;
  std::vector<client::Event> events;
  list.Handle({}, env::Tick{}, out, events);
  client::Client watch = list;
  list.Handle(
      {},
      env::Response{.call = {1}, .response = {.status = 200, .headers = {}, .body = Bytes(text)}},
      out, events);
  CHECK(list.wake_at() < berth::Instant::Never() || list.watch({0}).counters().opened > 0 ||
        list.watch({0}).counters().pages > 0);

  const Bytes empty_list(std::string(R"({"metadata":{"resourceVersion":"5"},"items":[]})"));
  watch.Handle(
      {},
      env::Response{.call = {1}, .response = {.status = 200, .headers = {}, .body = empty_list}},
      out, events);
  watch.Handle({}, env::Response{.call = {2}, .response = {}}, out, events);
  watch.Handle({}, env::StreamData{.call = {2}, .data = Bytes(text.substr(0, half))}, out, events);
  watch.Handle({}, env::StreamData{.call = {2}, .data = Bytes(text.substr(half) + "\n")}, out,
               events);
  CHECK(watch.wake_at() < berth::Instant::Never());
  return 0;
}
