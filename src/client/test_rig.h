#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/client.h"

// A scripted server for the tests of the client: the test plays its part input by input.
namespace berth::client {

inline const WatchOptions kPods{.resource = {.group = "", .version = "v1", .plural = "pods"},
                                .namespace_name = {},
                                .label_selector = {},
                                .field_selector = {}};

inline std::string Object(std::string_view name, std::string_view uid, int version) {
  return fmt::format(
      R"({{"kind":"Pod","metadata":{{"name":"{}","namespace":"default","uid":"{}","resourceVersion":"{}"}},"spec":{{"x":"}}\"\n"}}}})",
      name, uid, version);
}

inline std::string Frame(std::string_view type, const std::string& object) {
  return fmt::format(R"({{"type":"{}","object":{}}})", type, object) + "\n";
}

inline std::string Bookmark(int version) {
  return Frame("BOOKMARK",
               fmt::format(R"({{"kind":"Pod","metadata":{{"resourceVersion":"{}"}}}})", version));
}

inline std::string GoneFrame() {
  return Frame(
      "ERROR",
      R"({"kind":"Status","status":"Failure","reason":"Expired","message":"old","code":410})");
}

inline std::string List(int version, const std::vector<std::string>& items,
                        std::string_view next = "") {
  std::string body = fmt::format(
      R"({{"kind":"PodList","metadata":{{"resourceVersion":"{}","continue":"{}"}},"items":[)",
      version, next);
  for (size_t i = 0; i < items.size(); ++i) body += (i > 0 ? "," : "") + items[i];
  return body + "]}";
}

// A client and the far end of its requests.
class Rig {
 public:
  explicit Rig(Options options = {}) : client(std::move(options)) {}

  void Step(const env::Input& input) {
    events.clear();
    client.Handle(now, input, out, events);
    for (env::Output& output : out) {
      if (auto* send = std::get_if<env::SendRequest>(&output)) requests.push_back(*send);
      if (auto* cancel = std::get_if<env::CancelCall>(&output)) cancelled.push_back(cancel->call);
    }
    out.clear();
    for (const Event& event : events) Print(event);
  }
  // Lets time pass until the client has something to do, and does it.
  void Wake() {
    ASSERT_NE(client.wake_at(), Instant::Never());
    now = std::max(now, client.wake_at());
    Step(env::Tick{});
  }
  env::CallId Call(Request request) {
    const env::CallId call = client.Call(now, std::move(request), out);
    for (env::Output& output : out) {
      if (auto* send = std::get_if<env::SendRequest>(&output)) requests.push_back(*send);
    }
    out.clear();
    return call;
  }
  void Answer(int status, std::string body, std::vector<env::Header> headers = {}) {
    Step(env::Response{
        .call = requests.back().call,
        .response = {
            .status = status, .headers = std::move(headers), .body = Bytes(std::move(body))}});
  }
  void Data(std::string text) {
    Step(env::StreamData{.call = requests.back().call, .data = Bytes(std::move(text))});
  }
  void End() { Step(env::StreamEnded{.call = requests.back().call}); }
  void Fail(env::CallFailure failure, std::string why = "") {
    Step(env::CallFailed{.call = requests.back().call, .failure = failure, .why = std::move(why)});
  }
  const std::string& target() const { return requests.back().request.target; }
  std::string Told() { return std::exchange(told, {}); }

  Client client;
  Instant now{1'000'000'000};
  env::Outbox out;
  std::vector<Event> events;
  std::vector<env::SendRequest> requests;
  std::vector<env::CallId> cancelled;
  std::vector<std::string> troubles;
  std::string told;
  int answers_again = 0;

 private:
  void Print(const Event& event) {
    if (const auto* object = std::get_if<ObjectEvent>(&event)) {
      constexpr std::string_view kSigns = "+*-";
      told += fmt::format("{}{}:{} ", kSigns[static_cast<size_t>(object->change)], object->name,
                          object->uid);
    }
    if (const auto* synced = std::get_if<Synced>(&event))
      told += synced->first ? "first " : "synced ";
    if (const auto* trouble = std::get_if<WatchTrouble>(&event)) {
      told += fmt::format("trouble{}{} ", trouble->status, trouble->repeated ? "again" : "");
      troubles.push_back(trouble->message);
    }
    answers_again += std::holds_alternative<ServerAnswers>(event) ? 1 : 0;
    if (const auto* done = std::get_if<CallDone>(&event)) {
      told += fmt::format("call{}={}{} ", done->call.value, ToString(done->outcome),
                          done->failure ? "!" : "");
    }
  }
};

// Lists two objects and opens the watch.
inline void Sync(Rig& rig) {
  rig.client.Watch(kPods);
  rig.Wake();
  ASSERT_EQ(rig.target(), "/api/v1/pods?limit=500");
  rig.Answer(200, List(10, {Object("a", "u1", 3), Object("b", "u2", 4)}));
  ASSERT_EQ(rig.Told(), "+a:u1 +b:u2 first ");
  ASSERT_TRUE(
      rig.target().starts_with("/api/v1/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds="));
  ASSERT_TRUE(rig.target().ends_with("&resourceVersion=10"));
  ASSERT_TRUE(rig.requests.back().stream);
  rig.Answer(200, "");
}

}  // namespace berth::client
