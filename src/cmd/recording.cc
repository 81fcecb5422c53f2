#include "cmd/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/json.h"
#include "api/timestamp.h"
#include "cmd/extenders.h"
#include "cmd/version.h"
#include "codec/json.h"
#include "codec/yaml.h"
#include "net/certificates.h"

namespace berth::cmd {
namespace {

constexpr std::string_view kPath = "the recorded configuration";
// Pods about which extenders are asked at once where they are sent the nodes themselves: of 5,000
// nodes of 10 KiB each call holds 50 MB.
constexpr uint32_t kQueriesWithNodesMax = 4;

// Half of what API servers keep events for.
constexpr Duration kTellAgain = Duration::Minutes(30);

// Takes out private keys, wherever they stand, and what is nothing without them.
void RemoveKeys(api::Json& value) {
  if (value.is_array()) {
    for (api::Json& item : value.get_array()) RemoveKeys(item);
  }
  if (!value.is_object()) return;
  api::JsonObject& object = value.get_object();
  if (object.erase("keyData") > 0) object.erase("certData");
  for (auto& member : object) RemoveKeys(member.value());
}

api::Json ToJson(const std::vector<std::string>& texts) {
  api::JsonArray out;
  for (const std::string& text : texts) out.emplace_back(text);
  return out;
}

api::Json LeaderJson(const control::LeaderElectionOptions& leader) {
  return {{"identity", leader.identity},
          {"namespace", leader.namespace_name},
          {"name", leader.name},
          {"leaseDuration", leader.lease_duration.ns},
          {"renewDeadline", leader.renew_deadline.ns},
          {"retryPeriod", leader.retry_period.ns},
          {"seed", leader.client.seed}};
}

// Members of an object, each of a type; the first that is not is told.
class Reader {
 public:
  Reader(const api::Json& value, std::string_view what) : what_(what) {
    if (value.is_object()) object_ = &value.get_object();
    if (object_ == nullptr) Refuse("is no object");
  }

  std::string Text(std::string_view name) {
    const api::Json* value = Find(name);
    if (value != nullptr && value->is_string()) return std::string(value->get_string());
    Refuse(fmt::format("has no text {}", name));
    return {};
  }
  template <typename T>
  T Number(std::string_view name) {
    const api::Json* value = Find(name);
    if (value != nullptr && value->is_int64()) return static_cast<T>(value->get_int64());
    if (value != nullptr && value->is_uint64()) return static_cast<T>(value->get_uint64());
    Refuse(fmt::format("has no integer {}", name));
    return {};
  }
  bool Flag(std::string_view name) {
    const api::Json* value = Find(name);
    if (value != nullptr && value->is_bool()) return value->get_bool();
    Refuse(fmt::format("has no flag {}", name));
    return false;
  }
  std::vector<std::string> Texts(std::string_view name) {
    const api::Json* value = Find(name);
    std::vector<std::string> out;
    if (value != nullptr && value->is_array()) {
      for (const api::Json& item : value->get_array()) {
        if (item.is_string()) out.emplace_back(item.get_string());
      }
    } else {
      Refuse(fmt::format("has no list {}", name));
    }
    return out;
  }
  // Null where there is none.
  const api::Json* Find(std::string_view name) {
    return object_ != nullptr ? object_->if_contains(name) : nullptr;
  }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  void Refuse(const std::string& text) {
    if (status_) status_ = Fail(ErrorCode::kInvalid, fmt::format("{} {}", what_, text));
  }

  const std::string_view what_;
  const api::JsonObject* object_ = nullptr;
  Status status_;
};

Result<control::LeaderElectionOptions> ReadLeader(const api::Json& value,
                                                  const client::Options& client) {
  Reader reader(value, "the header's leader");
  control::LeaderElectionOptions out{
      .identity = reader.Text("identity"),
      .namespace_name = reader.Text("namespace"),
      .name = reader.Text("name"),
      .lease_duration = Duration{reader.Number<int64_t>("leaseDuration")},
      .renew_deadline = Duration{reader.Number<int64_t>("renewDeadline")},
      .retry_period = Duration{reader.Number<int64_t>("retryPeriod")},
      .client = client};
  out.client.seed = reader.Number<uint64_t>("seed");
  if (!reader.status()) return std::unexpected(reader.status().error());
  if (const std::string problem = control::ProblemOf(out); !problem.empty())
    return Fail(ErrorCode::kInvalid, problem);
  return out;
}

client::Options ReadClient(Reader& reader) {
  client::Options out;
  out.user_agent = reader.Text("userAgent");
  out.base_path = reader.Text("basePath");
  out.host = reader.Text("host");
  out.seed = reader.Number<uint64_t>("seed");
  out.calls_in_flight_max = reader.Number<int64_t>("callsInFlightMax");
  out.calls_apart_max = reader.Number<int64_t>("callsApartMax");
  return out;
}

}  // namespace

control::SchedulerOptions OptionsOf(const SchedulerSetup& setup) {
  control::SchedulerOptions options;
  options.engine.preemption = true;
  Put(setup.configuration, options);
  options.groups = true;
  options.volumes = true;
  options.namespaces = true;
  options.spread_defaults = true;
  options.quota = setup.quota;
  options.client = setup.client;
  if (!setup.scheduler_names.empty()) options.scheduler_names = setup.scheduler_names;
  options.leader_election = setup.leader;
  options.status.tell_again = kTellAgain;
  options.status.tell_leader = true;
  // The host, of HOST_AND-SOME-MORE.
  if (setup.leader) {
    const std::string& identity = setup.leader->identity;
    options.status.instance = identity.substr(0, identity.rfind('_'));
  }
  options.extenders = setup.extenders;
  if (!std::ranges::all_of(options.extenders, &control::ExtenderOptions::takes_names))
    options.engine.queries_max = kQueriesWithNodesMax;
  return options;
}

std::unique_ptr<control::OperatedScheduler> MakeScheduler(const SchedulerSetup& setup) {
  return std::make_unique<control::OperatedScheduler>(OptionsOf(setup), setup.configz);
}

Result<ConfigurationSource> SourceOf(const std::string& path, std::vector<std::string> gate_values,
                                     const Configuration& read) {
  ConfigurationSource out{.document = {}, .gate_values = std::move(gate_values)};
  if (path.empty()) return out;
  const Result<std::string> text = net::ReadFile(path);
  if (!text) return std::unexpected(text.error());
  auto documents = codec::ParseYaml(*text);
  if (!documents) return Fail(ErrorCode::kInvalid, fmt::format("{}: can't be read any more", path));
  for (api::Json& document : *documents) {
    RemoveKeys(document);
    out.document +=
        fmt::format("{}{}", out.document.empty() ? "" : "\n---\n", codec::PrintJson(document));
  }
  const Result<Configuration> again =
      ParseConfiguration(out.document, std::string(kPath), out.gate_values);
  if (!again || *again != read) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{}: can't be recorded: it changed since it was read, or has keys in "
                            "it: name files instead",
                            path));
  }
  return out;
}

std::string PrintHeader(const SchedulerSetup& setup, const ConfigurationSource& source,
                        Instant now) {
  api::JsonObject out{{"berth", Version()},
                      {"commit", Commit()},
                      {"startedAt", api::PrintMicroTime(now)},
                      {"configuration", source.document},
                      {"featureGates", ToJson(source.gate_values)},
                      {"schedulerNames", ToJson(setup.scheduler_names)},
                      {"quota", setup.quota},
                      {"userAgent", setup.client.user_agent},
                      {"basePath", setup.client.base_path},
                      {"host", setup.client.host},
                      {"seed", setup.client.seed},
                      {"callsInFlightMax", setup.client.calls_in_flight_max},
                      {"callsApartMax", setup.client.calls_apart_max},
                      {"configz", setup.configz}};
  if (setup.leader) out["leader"] = LeaderJson(*setup.leader);
  return codec::PrintJson(out);
}

Result<RecordingHeader> ReadHeader(const std::string& text) {
  const Result<api::Json> parsed = codec::ParseJson(text);
  if (!parsed) return std::unexpected(parsed.error());
  Reader reader(*parsed, "the header");
  RecordingHeader out;
  out.version = reader.Text("berth");
  out.commit = reader.Text("commit");
  const std::string document = reader.Text("configuration");
  const std::string started_at = reader.Text("startedAt");
  const std::vector<std::string> gate_values = reader.Texts("featureGates");
  out.setup.scheduler_names = reader.Texts("schedulerNames");
  out.setup.quota = reader.Flag("quota");
  out.setup.client = ReadClient(reader);
  out.setup.configz = reader.Text("configz");
  if (!reader.status()) return std::unexpected(reader.status().error());
  if (out.setup.client.calls_in_flight_max <= 0)
    return Fail(ErrorCode::kInvalid, "the header's callsInFlightMax is not above 0");
  if (out.setup.client.calls_apart_max < 0)
    return Fail(ErrorCode::kInvalid, "the header's callsApartMax is negative");
  const Result<Instant> time = api::ParseMicroTime(started_at);
  if (!time) return std::unexpected(time.error());
  out.started_at = *time;
  Result<Configuration> configuration = ParseConfiguration(
      document, document.empty() ? std::string() : std::string(kPath), gate_values);
  if (!configuration) return std::unexpected(configuration.error());
  if (Status good = CheckSupported(std::string(kPath), *configuration); !good)
    return std::unexpected(good.error());
  out.setup.configuration = *std::move(configuration);
  if (out.setup.configuration.scheduler) {
    auto extenders = ExtendersOf(*out.setup.configuration.scheduler, ExtenderFiles::kLeft);
    if (!extenders) return std::unexpected(extenders.error());
    out.setup.extenders = *std::move(extenders);
  }
  if (const api::Json* leader = reader.Find("leader")) {
    Result<control::LeaderElectionOptions> read = ReadLeader(*leader, out.setup.client);
    if (!read) return std::unexpected(read.error());
    out.setup.leader = *std::move(read);
  }
  return out;
}

}  // namespace berth::cmd
