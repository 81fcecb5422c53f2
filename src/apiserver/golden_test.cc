// Goal: each exchange is answered as Kubernetes answers it. Method: golden conversations with one
// server a file, in testdata/; the expected texts were compared with what a genuine
// kube-apiserver 1.36.3 answers to the same.
//
//   METHOD target [type=..] [accept=..] [show=path,path|body] [header:name=value]   input: the body
//   WATCH name target [accept=..]      opens a stream
//   EVENTS name [show=path,path]       what came since
//   ADVANCE seconds                    lets time pass
//   COMPACT                            forgets the log
//   FRESH                              starts anew, with the roles of a fresh cluster and tokens
//   PEER user [group]..                who sends what follows
//   TOKEN name target                  POSTs for a token, and shows its claims
//   REVIEW name                        has it reviewed
//
// With token=NAME a request has that token, with token=NAME! one that was tampered with.
//
// An answer is its code, with reason, message and causes when it is a failure, warnings, and the
// paths of `show`.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "api/object.h"
#include "apiserver/server_fixture.h"
#include "codec/json.h"
#include "testing/datadriven.h"

namespace berth::apiserver {
namespace {

using api::Json;
using env::Method;

std::optional<Method> MethodOf(const std::string& name) {
  if (name == "GET") return Method::kGet;
  if (name == "POST") return Method::kPost;
  if (name == "PUT") return Method::kPut;
  if (name == "PATCH") return Method::kPatch;
  if (name == "DELETE") return Method::kDelete;
  if (name == "OPTIONS") return Method::kOther;
  return std::nullopt;
}

// The value at a path whose steps may be indexes: items.0.metadata.name.
const Json* At(const Json& document, std::string_view path) {
  const Json* at = &document;
  while (!path.empty() && at != nullptr) {
    const size_t end = path.find('.');
    const std::string step(path.substr(0, end));
    path = end == std::string_view::npos ? std::string_view() : path.substr(end + 1);
    if (at->is_array()) {
      const size_t index = static_cast<size_t>(std::stoul(step));
      at = index < at->get_array().size() ? &at->get_array()[index] : nullptr;
    } else if (at->is_object()) {
      at = at->get_object().if_contains(step);
    } else {
      at = nullptr;
    }
  }
  return at;
}

std::string Show(const Json& document, std::string_view paths) {
  std::string out;
  while (!paths.empty()) {
    const size_t end = paths.find(',');
    const std::string_view path = paths.substr(0, end);
    paths = end == std::string_view::npos ? std::string_view() : paths.substr(end + 1);
    const Json* value = At(document, path);
    if (path == "names") {
      std::string names;
      for (const Json& item : api::ArrayAt(document, "items")) {
        names += fmt::format("{}{}", names.empty() ? "" : " ", api::TextAt(item, "metadata.name"));
      }
      out += fmt::format("names: {}\n", names);
      continue;
    }
    out += fmt::format("{}: {}\n", path, value == nullptr ? "-" : codec::PrintJson(*value));
  }
  return out;
}

std::string Describe(const env::HttpResponse& response, const std::string& show) {
  std::string out = std::to_string(response.status);
  const std::string_view body = response.body.view();
  const Result<Json> document = codec::ParseJson(body);
  const bool failure = document && api::TextAt(*document, "status") == "Failure";
  if (failure) {
    out +=
        fmt::format(" {}: {}", api::TextAt(*document, "reason"), api::TextAt(*document, "message"));
  }
  out += '\n';
  for (const env::Header& header : response.headers) {
    if (header.name == "warning" || header.name == "retry-after") {
      out += fmt::format("{}: {}\n", header.name, header.value);
    }
  }
  if (failure) {
    for (const Json& cause : api::ArrayAt(*document, "details.causes")) {
      out += fmt::format("  {} at {}: {}\n", api::TextAt(cause, "reason"),
                         api::TextAt(cause, "field"), api::TextAt(cause, "message"));
    }
  }
  if (show == "body") {
    out += body;
    if (!body.ends_with('\n')) out += '\n';
  } else if (document) {
    out += Show(*document, show);
  }
  return out;
}

std::string DecodeBase64Url(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    bits = (bits << 6) | static_cast<uint32_t>(kDigits.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>((bits >> count) & 0xff);
  }
  return bytes;
}

class Conversation {
 public:
  std::string Handle(const testing::Directive& directive) {
    if (directive.command == "FRESH") {
      server_ = std::make_unique<ServerFixture>(
          Options{.bootstrap_roles = true, .token_key = FakeTokenKey(), .host = "10.0.0.1:6443"});
      return "";
    }
    if (directive.command == "PEER") {
      const std::vector<std::string>& names = directive.arguments;
      server_->set_peer({.user = names.at(0), .groups = {names.begin() + 1, names.end()}});
      return "";
    }
    if (directive.command == "TOKEN") return TakeToken(directive);
    if (directive.command == "REVIEW") return ReviewToken(directive);
    if (directive.command == "ADVANCE") {
      server_->Advance(Duration::Seconds(std::stoll(directive.arguments.at(0))));
      return "";
    }
    if (directive.command == "WATCH") return Watch(directive);
    if (directive.command == "EVENTS") return Events(directive);
    const std::optional<Method> method = MethodOf(directive.command);
    CHECK(method.has_value());
    const auto response =
        server_->Call(*method, directive.arguments.at(0), directive.input, Headers(directive));
    return Describe(response, directive.Value("show"));
  }

 private:
  std::string TakeToken(const testing::Directive& directive) {
    const env::HttpResponse response = server_->Call(Method::kPost, directive.arguments.at(1),
                                                     directive.input, Headers(directive));
    const Result<Json> document = codec::ParseJson(response.body.view());
    CHECK(document.has_value());
    const std::string token(api::TextAt(*document, "status.token"));
    if (token.empty()) return Describe(response, directive.Value("show"));
    tokens_[directive.arguments.at(0)] = token;
    const size_t dot = token.find('.');
    return Describe(response, directive.Value("show")) +
           DecodeBase64Url(token.substr(dot + 1, token.rfind('.') - dot - 1)) + "\n";
  }

  std::string ReviewToken(const testing::Directive& directive) {
    const std::string body =
        fmt::format(R"({{"spec":{{"token":"{}"{}}}}})", TokenCalled(directive.arguments.at(0)),
                    directive.input.empty() ? "" : "," + directive.input);
    return Describe(
        server_->Call(Method::kPost, "/apis/authentication.k8s.io/v1/tokenreviews", body),
        "status");
  }

  [[nodiscard]] std::string TokenCalled(std::string name) const {
    const bool tampered = name.ends_with('!');
    if (tampered) name.pop_back();
    const auto known = tokens_.find(name);
    std::string token = known == tokens_.end() ? name : known->second;
    if (tampered) {
      char& first = token.at(token.rfind('.') + 1);
      first = first == 'A' ? 'B' : 'A';
    }
    return token;
  }

  [[nodiscard]] std::vector<env::Header> Headers(const testing::Directive& directive) const {
    std::vector<env::Header> headers;
    const std::string token = directive.Value("token");
    if (!token.empty()) headers.push_back({"authorization", "Bearer " + TokenCalled(token)});
    const std::string type = directive.Value("type");
    if (!type.empty()) headers.push_back({"content-type", type});
    const std::string accept = directive.Value("accept");
    if (!accept.empty()) headers.push_back({"accept", accept});
    for (const std::string& argument : directive.arguments) {
      if (!argument.starts_with("header:")) continue;
      const size_t equals = argument.find('=');
      headers.push_back({argument.substr(7, equals - 7), argument.substr(equals + 1)});
    }
    return headers;
  }

  std::string Watch(const testing::Directive& directive) {
    const env::ExchangeId exchange =
        server_->Send(Method::kGet, directive.arguments.at(1), "", Headers(directive));
    server_->Settle();
    streams_[directive.arguments.at(0)] = exchange;
    return Describe(server_->Take(exchange), "");
  }

  std::string Events(const testing::Directive& directive) {
    auto& stream = server_->stream(streams_.at(directive.arguments.at(0)));
    std::string out;
    std::string_view text = stream.text;
    const std::string show = directive.Value("show", "metadata.name");
    while (!text.empty()) {
      const size_t end = text.find('\n');
      const Result<Json> event = codec::ParseJson(text.substr(0, end));
      CHECK(event.has_value());
      text = text.substr(end + 1);
      out += fmt::format("{}\n", api::TextAt(*event, "type"));
      if (show == "body") {
        out += codec::PrintJson(*At(*event, "object")) + "\n";
      } else {
        out += Show(*At(*event, "object"), show);
      }
    }
    stream.text.clear();
    if (!stream.open) out += stream.aborted ? "cut\n" : "end\n";
    return out;
  }

  std::unique_ptr<ServerFixture> server_ = std::make_unique<ServerFixture>();
  std::map<std::string, env::ExchangeId> streams_;
  std::map<std::string, std::string> tokens_;
};

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, IsAnsweredAsWritten) {
  Conversation conversation;
  testing::RunGoldenFile(GetParam(), [&](const testing::Directive& directive) {
    return conversation.Handle(directive);
  });
}

std::string NameOf(const ::testing::TestParamInfo<std::string>& file) {
  const size_t slash = file.param.rfind('/');
  return file.param.substr(slash + 1, file.param.size() - slash - 5);
}

INSTANTIATE_TEST_SUITE_P(Testdata, Golden,
                         ::testing::ValuesIn(testing::GoldenFiles(BERTH_TESTDATA)), NameOf);

}  // namespace
}  // namespace berth::apiserver
