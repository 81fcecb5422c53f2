#include "sim/replay_stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"
#include "client/client.h"
#include "codec/decode.h"
#include "codec/json.h"
#include "env/actor.h"
#include "translate/facts.h"

namespace berth::sim {
namespace {

// The virtual clock starts here: 2026-01-01T00:00:00Z.
constexpr Instant kStart = Instant::FromSeconds(1'767'225'600);
// How long the stack may take, in virtual time, until it has said something of a pod. Nothing but
// an interval between two writes of one condition makes it wait at all.
constexpr Duration kDecidedWithin = Duration::Minutes(5);
constexpr std::string_view kNamespace = "default";

client::Resource Nodes() { return {.group = "", .version = "v1", .plural = "nodes"}; }

// Who sends requests to the API server.
enum class Sender : uint8_t { kScheduler, kUser };

}  // namespace

// The actors and the messages between them.
class StackReplay::Stack {
 public:
  Stack(FillInputs inputs, const ReplayOptions& options, apiserver::ApiServer server)
      : inputs_(std::move(inputs)),
        recorder_(options, inputs_.nodes, inputs_.pods, inputs_.arrivals),
        server_(std::move(server)),
        scheduler_(SchedulerOptions(options, inputs_.pods)),
        user_({.user_agent = "berth-replay", .seed = options.seed}) {
    watch_ = user_.Watch({.resource = client::Pods()});
  }

  [[nodiscard]] Status RegisterNodes() {
    Settle();
    for (const TraceNode& node : inputs_.nodes) {
      if (Status done =
              Do(client::Create(Nodes(), "", codec::PrintJson(NodeDocument(node))), node.name);
          !done) {
        return done;
      }
      // As its kubelet and the node lifecycle make it ready: without the taint it is created with.
      if (Status done = Do(client::Patch(Nodes(), {.name = node.name}, client::PatchType::kMerge,
                                         R"({"spec":{"taints":null}})"),
                           node.name);
          !done) {
        return done;
      }
    }
    return {};
  }

  [[nodiscard]] Status Place(const Arrival& arrival) {
    now_ = now_ + kArrivalEvery;
    const TracePod& pod = inputs_.pods[arrival.pod];
    awaited_ = NameOf(pod, arrival.repeat);
    decision_.reset();
    trouble_.clear();
    if (Status done = Do(client::Create(client::Pods(), kNamespace,
                                        codec::PrintJson(PodDocument(pod, arrival.repeat))),
                         awaited_);
        !done) {
      return done;
    }
    const Instant until = now_ + kDecidedWithin;
    while (!decision_.has_value() && trouble_.empty()) {
      const Instant next = std::min({server_.wake_at(), scheduler_.wake_at(), user_.wake_at()});
      if (next > until) trouble_ = "the scheduler says nothing of it";
      now_ = std::max(now_, std::min(next, until));
      Settle();
    }
    if (!decision_.has_value()) {
      return Fail(ErrorCode::kUnknown, fmt::format("pod {}: {}", awaited_, trouble_));
    }
    recorder_.Decided({.node = decision_->node,
                       .devices_mask = decision_->devices_mask,
                       .reason = decision_->reason});
    return {};
  }

  [[nodiscard]] const FillInputs& inputs() const { return inputs_; }
  [[nodiscard]] const ReplayRecorder& recorder() const { return recorder_; }
  [[nodiscard]] const apiserver::ApiServer& server() const { return server_; }
  [[nodiscard]] const control::Scheduler& scheduler() const { return scheduler_; }

 private:
  struct Decision {
    std::string node;
    uint32_t devices_mask = 0;
    std::string reason;
  };
  struct Exchange {
    Sender sender = Sender::kScheduler;
    env::CallId call;
  };

  static control::SchedulerOptions SchedulerOptions(const ReplayOptions& options,
                                                    std::span<const TracePod> pods) {
    control::SchedulerOptions scheduler;
    scheduler.client.seed = options.seed;
    scheduler.engine = EngineOptions(options, pods);
    return scheduler;
  }

  // One request of the user, until all that follows from it has happened.
  Status Do(client::Request request, std::string_view name) {
    asked_ = user_.Call(now_, std::move(request), out_);
    answer_.reset();
    CarryOut(Sender::kUser);
    Settle();
    CHECK(answer_.has_value());
    if (answer_->outcome == client::Outcome::kDone) return {};
    return Fail(ErrorCode::kInvalid,
                fmt::format("{}: {}", name, client::StatusOf(answer_->response).message));
  }

  // ---- Messages -------------------------------------------------------------------------------

  // Delivers everything until nobody has anything to do at this instant.
  void Settle() {
    while (true) {
      if (!to_server_.empty()) {
        env::Input input = std::move(to_server_.front());
        to_server_.pop_front();
        StepServer(std::move(input));
      } else if (!to_clients_.empty()) {
        auto [sender, input] = std::move(to_clients_.front());
        to_clients_.pop_front();
        StepClient(sender, std::move(input));
      } else if (server_.wake_at() <= now_) {
        StepServer(env::Tick{});
      } else if (user_.wake_at() <= now_) {
        StepClient(Sender::kUser, env::Tick{});
      } else if (scheduler_.wake_at() <= now_) {
        StepClient(Sender::kScheduler, env::Tick{});
      } else {
        return;
      }
    }
  }

  void StepServer(env::Input input) {
    server_.Step(now_, std::move(input), out_);
    for (env::Output& output : out_) {
      std::visit([this](auto& value) { OfServer(value); }, output);
    }
    out_.clear();
  }
  void OfServer(env::AppendJournal& append) {
    to_server_.emplace_back(env::JournalAppended{.sequence = append.sequence});
  }
  void OfServer(env::Respond& respond) {
    const auto exchange = exchanges_.find(respond.exchange.value);
    if (exchange == exchanges_.end()) return;
    const Exchange to = exchange->second;
    if (!respond.stream) Forget(exchange);
    to_clients_.emplace_back(
        to.sender, env::Response{.call = to.call, .response = std::move(respond.response)});
  }
  void OfServer(env::Frame& frame) {
    const auto exchange = exchanges_.find(frame.exchange.value);
    if (exchange == exchanges_.end()) return;
    to_server_.emplace_back(
        env::StreamDrained{.exchange = frame.exchange, .bytes = frame.data.size()});
    to_clients_.emplace_back(
        exchange->second.sender,
        env::StreamData{.call = exchange->second.call, .data = std::move(frame.data)});
  }
  void OfServer(env::EndStream& end) {
    const auto exchange = exchanges_.find(end.exchange.value);
    if (exchange == exchanges_.end()) return;
    const Exchange to = exchange->second;
    Forget(exchange);
    to_clients_.emplace_back(to.sender, env::StreamEnded{.call = to.call});
  }
  template <typename T>
  void OfServer(T&) {}  // The log; and nothing that only clients send.

  void StepClient(Sender sender, env::Input input) {
    if (sender == Sender::kScheduler) {
      scheduler_.Step(now_, std::move(input), out_);
    } else {
      user_.Handle(now_, input, out_, events_);
      for (const client::Event& event : events_) {
        std::visit([this](const auto& value) { Observe(value); }, event);
      }
      events_.clear();
    }
    CarryOut(sender);
  }
  // Carries out what a client wants.
  void CarryOut(Sender sender) {
    for (env::Output& output : out_) {
      if (auto* send = std::get_if<env::SendRequest>(&output)) {
        const env::ExchangeId id{next_exchange_++};
        exchanges_[id.value] = {.sender = sender, .call = send->call};
        by_call_[{sender, send->call.value}] = id.value;
        to_server_.emplace_back(env::RequestArrived{
            .exchange = id,
            .peer = {.user = sender == Sender::kUser ? "admin" : "system:kube-scheduler",
                     .groups = {"system:masters", "system:authenticated"}},
            .request = std::move(send->request)});
      } else if (const auto* cancel = std::get_if<env::CancelCall>(&output)) {
        const auto of = by_call_.find({sender, cancel->call.value});
        if (of == by_call_.end()) continue;
        to_server_.emplace_back(env::ExchangeAbandoned{.exchange = {of->second}});
        Forget(exchanges_.find(of->second));
      }
    }
    out_.clear();
  }
  void Forget(std::map<uint64_t, Exchange>::iterator exchange) {
    by_call_.erase({exchange->second.sender, exchange->second.call.value});
    exchanges_.erase(exchange);
  }

  // ---- What the user sees ---------------------------------------------------------------------

  void Observe(const client::ObjectEvent& event) {
    if (event.change == client::Change::kDeleted || event.name != awaited_) return;
    const auto pod = decoder_.Pod(event.object.view());
    if (!pod) {
      trouble_ = pod.error().message;
      return;
    }
    if (!pod->node_name.empty()) return Bound(*pod);
    for (const api::PodCondition& condition : pod->conditions) {
      if (condition.type != "PodScheduled" || condition.status != "False") continue;
      if (condition.reason == control::kUnschedulable) {
        decision_ = {.node = {}, .devices_mask = 0, .reason = MainReason(condition.message)};
      } else {
        trouble_ = condition.message;
      }
    }
  }
  void Bound(const api::Pod& pod) {
    uint32_t mask = 0;
    const auto indices = api::Find(pod.meta.annotations, translate::kGpuIndexAnnotation);
    if (indices.has_value()) {
      const std::optional<uint16_t> parsed = translate::ParseDevices(*indices);
      if (!parsed.has_value()) {
        trouble_ = fmt::format("bound with the devices \"{}\"", *indices);
        return;
      }
      mask = *parsed;
    }
    decision_ = {.node = pod.node_name, .devices_mask = mask, .reason = {}};
  }
  void Observe(const client::CallDone& done) {
    if (done.call == asked_) answer_ = done;
  }
  void Observe(const client::Synced&) {}
  void Observe(const client::WatchTrouble&) {}
  void Observe(const client::ServerAnswers&) {}

  const FillInputs inputs_;
  ReplayRecorder recorder_;
  Instant now_ = kStart;
  apiserver::ApiServer server_;
  control::Scheduler scheduler_;
  client::Client user_;
  codec::Decoder decoder_;
  client::WatchId watch_;

  env::Outbox out_;
  std::vector<client::Event> events_;
  std::deque<env::Input> to_server_;
  std::deque<std::pair<Sender, env::Input>> to_clients_;
  std::map<uint64_t, Exchange> exchanges_;
  std::map<std::pair<Sender, uint64_t>, uint64_t> by_call_;
  uint64_t next_exchange_ = 1;

  env::CallId asked_;
  std::optional<client::CallDone> answer_;
  std::string awaited_;
  std::optional<Decision> decision_;
  std::string trouble_;
};

StackReplay::StackReplay(std::unique_ptr<Stack> stack) : stack_(std::move(stack)) {}
StackReplay::StackReplay(StackReplay&&) noexcept = default;
StackReplay& StackReplay::operator=(StackReplay&&) noexcept = default;
StackReplay::~StackReplay() = default;

Result<StackReplay> StackReplay::Make(std::vector<TraceNode> nodes, std::vector<TracePod> pods,
                                      const ReplayOptions& options) {
  Result<std::vector<Arrival>> arrivals = FillOrder(nodes, pods, options);
  if (!arrivals) return std::unexpected(arrivals.error());
  Result<apiserver::ApiServer> server = apiserver::ApiServer::Make({.seed = options.seed}, {});
  if (!server) return std::unexpected(server.error());
  auto stack =
      std::make_unique<Stack>(FillInputs{std::move(nodes), std::move(pods), std::move(*arrivals)},
                              options, std::move(*server));
  if (Status registered = stack->RegisterNodes(); !registered) {
    return std::unexpected(registered.error());
  }
  return StackReplay(std::move(stack));
}

Result<bool> StackReplay::Step(size_t count) {
  const std::span<const Arrival> arrivals = stack_->inputs().arrivals;
  for (; count > 0 && decided() < arrivals.size(); --count) {
    if (Status placed = stack_->Place(arrivals[decided()]); !placed) {
      return std::unexpected(placed.error());
    }
  }
  return decided() < arrivals.size();
}

size_t StackReplay::decided() const { return stack_->recorder().decided(); }
size_t StackReplay::arrivals() const { return stack_->recorder().arrivals(); }
ReplayReport StackReplay::Report() const { return stack_->recorder().Report(); }
const apiserver::ApiServer& StackReplay::server() const { return stack_->server(); }
const control::Scheduler& StackReplay::scheduler() const { return stack_->scheduler(); }

}  // namespace berth::sim
