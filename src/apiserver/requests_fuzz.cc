// Goal: no sequence of requests ends the API server or hangs it.
// Method: requests made of the schema (any_requests.h), where the bytes choose what is in them.
#include <cstdint>
#include <string>
#include <utility>

#include "apiserver/any_requests.h"
#include "apiserver/server_fixture.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  constexpr uint32_t kByte = 256;
  size_t at = 0;
  apiserver::AnyRequests requests([&](uint32_t count) {
    // Loops end where the number is not 0.
    if (at >= size) return count - 1;
    uint32_t number = data[at++];
    if (count > kByte && at < size) number = number * kByte + data[at++];
    return number % count;
  });
  apiserver::ServerFixture server;
  while (at < size) {
    const apiserver::AnyRequest request = requests.Next();
    const env::ExchangeId exchange =
        server.Send(request.method, request.target, request.body, request.headers);
    server.Settle();
    // A webhook that does not answer, if it came to one.
    if (!server.Answered(exchange)) server.Advance(Duration::Minutes(1));
    CHECK(server.Answered(exchange));
    if (server.Take(exchange).status == 201) requests.HasMade();
  }
  return 0;
}
