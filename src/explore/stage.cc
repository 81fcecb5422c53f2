#include "explore/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "api/groups.h"
#include "api/types.h"
#include "base/check.h"
#include "client/known_set.h"
#include "explore/at_rest.h"
#include "explore/models.h"
#include "explore/requests.h"
#include "explore/words.h"
#include "explore/workload_models.h"
#include "model/audit.h"
#include "sim/run.h"
#include "sim/tamper.h"

namespace berth::explore {
namespace {

// The clock starts here, so that stories read the same: 2026-01-01T00:00:00Z.
constexpr Instant kStart = Instant::FromSeconds(1'767'225'600);
// A timer further away than this is no progress: it renews watches and looks for what was missed.
constexpr Duration kTimersMax = Duration::Seconds(100);
constexpr int kSettlingStepsMax = 10'000;
// Events tell users; nobody here reads them, and what comes of writing them changes nothing.
constexpr std::string_view kEventsTarget = "/apis/events.k8s.io/";

// Only a scenario that says how many it expects has evictions.
control::SchedulerOptions OptionsOf(const Scenario& scenario, const sim::PlantedBugs& bugs) {
  control::SchedulerOptions options = sim::SchedulerOptions(1, bugs);
  // It would heal what is to be found.
  options.watchdog_interval = Duration::Minutes(24 * 60);
  options.engine.preemption = scenario.evictions.has_value();
  options.groups = scenario.groups;
  options.quota = scenario.quota;
  options.engine.joint_placement = scenario.joint;
  // It would add a moment at which everything is as it is a second later.
  options.engine.second_pass_delay = Duration{};
  // Whether queues are ready, and how many wait in them, decides nothing.
  options.quota_options.queue_status = false;
  options.quota_options.in_use = scenario.in_use;
  return options;
}

apiserver::ApiServer MakeServer() {
  apiserver::Options options;
  options.seed = 1;
  Result<apiserver::ApiServer> server = apiserver::ApiServer::Make(options, {});
  CHECK(server.has_value());
  return std::move(*server);
}

env::HttpResponse Refusal(Fate fate) {
  constexpr auto kReason = [](int status) {
    return status == 409 ? "Conflict" : status == 403 ? "Forbidden" : "InternalError";
  };
  env::HttpResponse response;
  response.status = fate == Fate::kConflict ? 409 : fate == Fate::kRefused ? 403 : 500;
  response.headers.push_back({.name = "content-type", .value = "application/json"});
  response.body = Bytes(fmt::format(
      R"({{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"injected","reason":"{}","code":{}}})",
      kReason(response.status), response.status));
  return response;
}

bool IsWrite(const env::HttpRequest& request) { return request.method != env::Method::kGet; }

std::string_view WithoutQuery(std::string_view target) {
  return target.substr(0, target.find('?'));
}

Footprint FootprintOf(std::string_view target) {
  return target.starts_with(kNodesTarget) ? kTouchesNodes : kTouchesPods;
}

// What checks read counts, too: a nomination is judged by the node that it names, a binding by what
// its node has, and what a user binds or nominates by whether the scheduler has sent the same.
Footprint FootprintOf(const Action& action) {
  const bool of_node = action.kind == Action::Kind::kNode;
  const bool decides =
      action.verb == Action::Verb::kBind || action.verb == Action::Verb::kPatchStatus;
  if (decides && !of_node) return kTouchesPods | kTouchesScheduler;
  if (!of_node) return kTouchesPods;
  const bool appears = action.verb == Action::Verb::kCreate || action.verb == Action::Verb::kDelete;
  return appears ? kTouchesNodes | kTouchesPods : kTouchesNodes;
}

// The plural of what is listed or watched there.
std::string_view PluralOf(std::string_view target) {
  target = WithoutQuery(target);
  return target.substr(target.rfind('/') + 1);
}

std::string NameOf(const std::string& key) { return key.substr(key.find('/') + 1); }

uint64_t KeyOf(Turn turn, Fate fate, std::string_view what, uint64_t number = 0) {
  return Hasher().Add(turn).Add(fate).Add(what).Add(number).value();
}

// Nobody waits for its containers any more: a finalizer keeps what is left of it.
bool Kept(const sim::Truth::PodFacts& pod) {
  return pod.deleting && pod.document.view().contains(R"("deletionGracePeriodSeconds":0)");
}

// A pod that a kubelet is to end.
bool Ending(const sim::Truth::PodFacts& pod) {
  return pod.deleting && !pod.node_name.empty() && !Kept(pod);
}

// A pod that a kubelet is to start.
bool Starting(const sim::Truth::PodFacts& pod) {
  return pod.active() && !pod.node_name.empty() && pod.phase != "Running";
}

// One by one, as checks hear them: what a watch missed since its list comes in one piece.
std::vector<Bytes> EventsIn(const Bytes& frame) {
  std::vector<Bytes> events;
  std::string_view rest = frame.view();
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const size_t size = end == std::string_view::npos ? rest.size() : end + 1;
    events.emplace_back(std::string(rest.substr(0, size)));
    rest.remove_prefix(size);
  }
  return events;
}

bool Homeless(const sim::Truth::PodFacts& pod, const sim::Truth& truth) {
  return !pod.node_name.empty() && !truth.nodes().contains(pod.node_name);
}

}  // namespace

// Versions by how many are newer; calls by what they ask for.
class Stage::Names final : public HashNames {
 public:
  explicit Names(const std::vector<Version>& versions) : versions_(versions) {}

  [[nodiscard]] uint64_t OfVersion(uint64_t version) const override {
    const auto at = std::ranges::lower_bound(versions_, version, {}, &Version::revision);
    if (at == versions_.end() || at->revision != version) return 0;
    const auto newer = std::count_if(
        at + 1, versions_.end(), [&](const Version& other) { return other.object == at->object; });
    return Hasher().Add(at->object).Add(newer).value();
  }

  [[nodiscard]] uint64_t OfPosition(uint64_t version, std::string_view kind) const override {
    const uint64_t of_kind = HashOf(kind);
    // A sum: the order of commits of different objects is not seen.
    uint64_t sum = 1;
    for (const Version& each : versions_) {
      if (each.revision > version && each.kind == of_kind) sum += OfVersion(each.revision);
    }
    return sum;
  }

  [[nodiscard]] uint64_t OfCall(uint64_t call) const override {
    const auto at = std::ranges::find(calls_, call, &std::pair<uint64_t, uint64_t>::first);
    if (at != calls_.end()) return at->second;
    return call == 0 ? 0 : 1;  // None, or one that is over.
  }

  void NameCall(uint64_t call, uint64_t name) override { calls_.emplace_back(call, name); }

 private:
  const std::vector<Version>& versions_;
  std::vector<std::pair<uint64_t, uint64_t>> calls_;
};

Stage::Stage(std::shared_ptr<const Scenario> scenario, const sim::PlantedBugs& bugs)
    : scenario_(std::move(scenario)),
      bugs_(bugs),
      now_(kStart),
      server_(MakeServer()),
      scheduler_(OptionsOf(*scenario_, bugs)),
      next_action_(scenario_->users.size()),
      owners_(scenario_->owners),
      made_(scenario_->owners.size()) {
  if (!scenario_->group_controller) return;
  group_maker_.emplace(bugs_.tampering, now_);
  owners_.clear();  // They are made as objects.
}

Result<Stage> Stage::Make(std::shared_ptr<const Scenario> scenario, const sim::PlantedBugs& bugs) {
  Stage stage(std::move(scenario), bugs);
  if (Status done = stage.SetUp(); !done) return std::unexpected(done.error());
  return stage;
}

Status Stage::SetUp() {
  for (const std::string& body : scenario_->classes) {
    CHECK_EQ(Serve(Request(env::Method::kPost, std::string(kClassesTarget), body), {}).status, 201);
  }
  for (const Action& action : scenario_->set_up) {
    const env::HttpResponse response = Act(action);
    if (response.status < 300) continue;
    return Fail(ErrorCode::kInvalid,
                fmt::format("{}:{}: the API server refuses it: {}", scenario_->file, action.line,
                            response.body.view()));
  }
  for (const Owner& owner : scenario_->owners) {
    if (group_maker_) CHECK_EQ(MakeOwner(owner).status, 201);
    while (ActivePods(owner) < owner.replicas) Replace(owner);
  }
  if (scenario_->settled) Settle();
  return {};
}

// Everybody but users does what there is to do, first come first served.
void Stage::Settle() {
  for (int step = 0; step < kSettlingStepsMax; ++step) {
    std::vector<Choice> choices = Choices();
    std::erase_if(choices, [](const Choice& choice) {
      return choice.turn == Turn::kUser || choice.turn == Turn::kCrash ||
             choice.turn == Turn::kTimer || choice.fate != Fate::kDone;
    });
    if (choices.empty()) return;
    Take(choices.front());
  }
  CHECK(false);  // It does not come to rest.
}

// ---- What may happen -------------------------------------------------------------------------

std::vector<Choice> Stage::Choices() const {
  std::vector<Choice> choices = Events();
  if (group_maker_) {
    AddGroups(choices);
    return choices;
  }
  if (const auto only = NextOfUnchanging()) return {*only};
  AddArrivals(choices);
  for (uint32_t i = 0; i < watches_.size(); ++i) {
    if (watches_[i].waiting.empty()) continue;
    choices.push_back({.turn = Turn::kWatch,
                       .index = i,
                       .key = KeyOf(Turn::kWatch, Fate::kDone, watches_[i].target)});
  }
  const Instant wake = scheduler_.wake_at();
  if (wake <= now_) {
    choices.push_back({.turn = Turn::kTick, .key = KeyOf(Turn::kTick, Fate::kDone, "")});
  }
  const bool timer = wake > now_ && wake - now_ <= kTimersMax;
  if (timer && (choices.empty() || early_timers_ < scenario_->bounds.timers)) {
    choices.push_back({.turn = Turn::kTimer, .key = KeyOf(Turn::kTimer, Fate::kDone, "")});
  }
  if (!choices.empty() && crashes_ < scenario_->bounds.crashes) {
    choices.push_back({.turn = Turn::kCrash, .key = KeyOf(Turn::kCrash, Fate::kDone, "")});
  }
  return choices;
}

// What users, owners and kubelets may do.
std::vector<Choice> Stage::Events() const {
  std::vector<Choice> choices;
  for (uint32_t i = 0; i < scenario_->users.size(); ++i) {
    if (next_action_[i] == scenario_->users[i].actions.size()) continue;
    choices.push_back(
        {.turn = Turn::kUser,
         .index = i,
         .key = KeyOf(Turn::kUser, Fate::kDone, scenario_->users[i].name, next_action_[i])});
  }
  for (uint32_t i = 0; i < scenario_->owners.size(); ++i) {
    const Owner& owner = scenario_->owners[i];
    if (!Lacks(owner)) continue;
    choices.push_back({.turn = Turn::kReplace,
                       .index = i,
                       .key = KeyOf(Turn::kReplace, Fate::kDone, owner.name, made_[i])});
  }
  AddPods(choices);
  AddBudgets(choices);
  AddWorkloads(choices);
  return choices;
}

void Stage::AddPods(std::vector<Choice>& choices) const {
  uint32_t index = 0;
  for (const auto& [key, pod] : truth().pods()) {
    const auto add = [&](Turn turn) {
      choices.push_back({.turn = turn, .index = index, .key = KeyOf(turn, Fate::kDone, pod.uid)});
    };
    const bool homeless = Homeless(pod, truth());
    const bool kept = HasKubelet(pod.node_name) && !homeless;
    if (kept && Ending(pod)) add(Turn::kFinish);
    if (kept && scenario_->starts && Starting(pod)) add(Turn::kStart);
    if ((scenario_->collector && homeless && !Kept(pod)) || Unwanted(pod)) {
      add(Turn::kCollect);
    }
    ++index;
  }
}

void Stage::AddBudgets(std::vector<Choice>& choices) const {
  if (!scenario_->disruption) return;
  uint32_t index = 0;
  for (const auto& [key, document] : truth().others()) {
    if (key.starts_with(sim::kBudgetsPrefix) &&
        BudgetStatus(truth(), owners_, document.view()).has_value()) {
      choices.push_back(
          {.turn = Turn::kCount, .index = index, .key = KeyOf(Turn::kCount, Fate::kDone, key)});
    }
    ++index;
  }
}

// What is asked of what never changes is answered before all else: until the last list is there the
// scheduler decides and writes nothing, and when it does so then is another choice.
std::optional<Choice> Stage::NextOfUnchanging() const {
  for (uint32_t i = 0; i < calls_.size(); ++i) {
    const Call& call = calls_[i];
    if (call.orphan || IsWrite(*call.request)) continue;
    if (!scenario_->unchanging.contains(PluralOf(call.request->target))) continue;
    const Turn turn = call.answer ? Turn::kAnswer : Turn::kArrive;
    return Choice{.turn = turn,
                  .index = i,
                  .key = KeyOf(turn, Fate::kDone, WithoutQuery(call.request->target), call.twin)};
  }
  // That a watch of it is open is all that it ever tells.
  for (uint32_t i = 0; i < watches_.size(); ++i) {
    const Watch& watch = watches_[i];
    if (watch.waiting.empty() || !scenario_->unchanging.contains(PluralOf(watch.target))) continue;
    return Choice{
        .turn = Turn::kWatch, .index = i, .key = KeyOf(Turn::kWatch, Fate::kDone, watch.target)};
  }
  return std::nullopt;
}

void Stage::AddArrivals(std::vector<Choice>& choices) const {
  for (uint32_t i = 0; i < calls_.size(); ++i) {
    const Call& call = calls_[i];
    const uint64_t number = call.twin + (call.orphan ? 100 : 0);
    const auto add = [&](Turn turn, Fate fate) {
      choices.push_back({.turn = turn,
                         .fate = fate,
                         .index = i,
                         .key = KeyOf(turn, fate, WithoutQuery(call.request->target), number)});
    };
    if (call.answer) {
      add(Turn::kAnswer, Fate::kDone);
      continue;
    }
    add(Turn::kArrive, Fate::kDone);
    if (call.orphan) {
      add(Turn::kArrive, Fate::kLost);  // With the process that sent it.
    } else if (IsWrite(*call.request) && failures_ < scenario_->bounds.failures) {
      for (const Fate fate : scenario_->fates) add(Turn::kArrive, fate);
    }
  }
}

// The least that none of those on their way to the same target has: it stays while others end.
uint32_t Stage::TwinOf(std::string_view target) const {
  const auto taken = [&](uint32_t twin) {
    return std::ranges::any_of(calls_, [&](const Call& call) {
      return call.twin == twin && WithoutQuery(call.request->target) == WithoutQuery(target);
    });
  };
  uint32_t twin = 0;
  while (taken(twin)) ++twin;
  return twin;
}

bool Stage::HasKubelet(const std::string& node) const {
  const std::set<std::string>& some = scenario_->kubelet_nodes;
  return scenario_->kubelets && (some.empty() || some.contains(node));
}

uint32_t Stage::ActivePods(const Owner& owner) const {
  const std::string uid = UidOf(owner.name);
  return static_cast<uint32_t>(std::ranges::count_if(truth().pods(), [&](const auto& entry) {
    return entry.second.owner_uid == uid && entry.second.active();
  }));
}

bool Stage::Lacks(const Owner& owner) const {
  const auto there = std::ranges::find(owners_, owner.name, &Owner::name);
  return there != owners_.end() && ActivePods(owner) < there->replicas;
}

// Its owner is gone, or has more than it is to have.
bool Stage::Unwanted(const sim::Truth::PodFacts& pod) const {
  // Jobs are never gone.
  if (pod.owner_uid.empty() || pod.owner_uid.starts_with("job-") || pod.deleting) return false;
  const auto owner = std::ranges::find_if(
      owners_, [&](const Owner& each) { return UidOf(each.name) == pod.owner_uid; });
  if (owner == owners_.end()) return !group_maker_;  // Which collects it.
  return pod.active() && ActivePods(*owner) > owner->replicas;
}

// ---- Making it happen ------------------------------------------------------------------------

Footprint Stage::Take(const Choice& choice) {
  switch (choice.turn) {
    case Turn::kUser: {
      const Action& action = scenario_->users[choice.index].actions[next_action_[choice.index]++];
      const env::HttpResponse response = Act(action);
      if (response.status >= 300) Told(fmt::format("it is refused with {}", response.status));
      return FootprintOf(action);
    }
    case Turn::kReplace:
      Replace(scenario_->owners[choice.index]);
      return kTouchesPods;
    case Turn::kFinish:
    case Turn::kCollect: {
      const auto& [key, pod] = *std::next(truth().pods().begin(), choice.index);
      DeletePod(std::string(key),
                choice.turn == Turn::kFinish || Homeless(pod, truth()) || pod.node_name.empty());
      return kTouchesPods | kTouchesNodes;
    }
    case Turn::kStart:
      StartPod(std::next(truth().pods().begin(), choice.index)->first);
      return kTouchesPods | kTouchesNodes;
    case Turn::kCount:
      CountBudget(std::next(truth().others().begin(), choice.index)->first);
      return kTouchesPods;
    case Turn::kLetGo:
    case Turn::kMakePod:
    case Turn::kLetIn:
    case Turn::kMark:
    case Turn::kDecide:
      return TakeOfWorkload(choice.turn, std::next(truth().others().begin(), choice.index)->first);
    case Turn::kLate:
      return ArriveLate(choice.index);
    case Turn::kHear:
    case Turn::kPlan:
    case Turn::kWrite:
    case Turn::kAdmit:
      return TakeOfGroups(choice);
    case Turn::kArrive:
      return Arrive(choice.index, choice.fate);
    case Turn::kAnswer: {
      env::Input answer = std::move(*calls_[choice.index].answer);
      if (calls_[choice.index].request->method == env::Method::kGet)
        sim::TamperRead(bugs_.tampering, answer);
      calls_.erase(calls_.begin() + choice.index);
      if (!sim::TamperHeard(bugs_.tampering, now_ - kStart, sim::Party::kScheduler, answer))
        return kTouchesScheduler;
      return StepScheduler(std::move(answer));
    }
    case Turn::kWatch: {
      Watch& watch = watches_[choice.index];
      env::Input input = std::move(watch.waiting.front());
      watch.waiting.erase(watch.waiting.begin());
      if (std::holds_alternative<env::StreamEnded>(input)) {
        watches_.erase(watches_.begin() + choice.index);
      }
      if (!sim::TamperHeard(bugs_.tampering, now_ - kStart, sim::Party::kScheduler, input))
        return kTouchesScheduler;
      return StepScheduler(std::move(input));
    }
    case Turn::kTick:
      return StepScheduler(env::Tick{});
    case Turn::kTimer:
      if (Choices().size() > (crashes_ < scenario_->bounds.crashes ? 2u : 1u)) ++early_timers_;
      now_ = scheduler_.wake_at();
      return kTouchesAll;
    case Turn::kCrash:
      Crash();
      return kTouchesAll;
  }
  return kTouchesAll;
}

// Who has seen an object deletes that one, whatever has its name now.
env::HttpResponse Stage::DeleteSeen(const std::string& object) {
  const std::string seen = seen_[object];
  const std::string there =
      MemberIn(Serve(Request(env::Method::kGet, object, ""), {}).body.view(), "uid");
  env::HttpRequest request = Request(env::Method::kDelete, object,
                                     fmt::format(R"({{"preconditions":{{"uid":"{}"}}}})", seen));
  sim::TamperSent(bugs_.tampering, sim::Party::kControllers, request);
  env::HttpResponse response = Serve(request, {});
  if (response.status == 200 && there != seen)
    checkers_.Report(now_, fmt::format("{} is deleted, and another was meant", object));
  return response;
}

env::HttpResponse Stage::Act(const Action& action) {
  if (action.kind == Action::Kind::kOwner) return ActOnOwner(action);
  const std::string collection = CollectionOf(action.kind);
  const bool made = group_maker_ && action.kind == Action::Kind::kGroup;
  const std::string object =
      collection + "/" +
      (made ? std::string(api::kMadeGroupPrefix) + UidOf(action.name) : action.name);
  switch (action.verb) {
    case Action::Verb::kCreate: {
      env::HttpResponse response = Post(collection, action.body);
      if (response.status == 201) FollowUp(action.kind, object, /*ready=*/true);
      return response;
    }
    case Action::Verb::kSee:
      seen_[object] =
          MemberIn(Serve(Request(env::Method::kGet, object, ""), {}).body.view(), "uid");
      return {.status = 200, .headers = {}, .body = {}};
    case Action::Verb::kDelete:
      if (action.as_seen) return DeleteSeen(object);
      return Serve(Request(env::Method::kDelete, object, action.body), {});
    case Action::Verb::kPatch:
      return Patch(object, action.body);
    case Action::Verb::kPatchStatus: {
      env::HttpResponse response = Patch(object + "/status", action.body);
      if (response.status == 200)
        FollowUp(action.kind, object, !action.body.contains(R"("status":"False")"));
      return response;
    }
    case Action::Verb::kEvict:
      return Serve(Request(env::Method::kPost, object + "/eviction", action.body), {});
    case Action::Verb::kForge:
      return Forge(action);
    case Action::Verb::kDrop:
      return Drop(action.name);
    case Action::Verb::kTell:
    case Action::Verb::kAnswer:
      return ActOnStatus(action, object);
    case Action::Verb::kBind: {
      const env::HttpRequest request =
          Request(env::Method::kPost, object + "/binding", action.body);
      checkers_.OnSent(now_, sim::Party::kUsers, {.call = {}, .request = request});
      return Serve(request, {});
    }
  }
  return {};
}

env::HttpResponse Stage::Post(const std::string& target, const std::string& body) {
  return Serve(Request(env::Method::kPost, target, body), {});
}

env::HttpResponse Stage::Patch(const std::string& target, const std::string& body) {
  return Serve(Request(env::Method::kPatch, target, body, "application/merge-patch+json"), {});
}

// What the controller of nodes does when it hears whether one is ready, and who does a check.
void Stage::FollowUp(Action::Kind kind, const std::string& object, bool ready) {
  if (kind == Action::Kind::kNode) {
    Patch(
        object,
        ready
            ? R"({"spec":{"taints":null}})"
            : R"({"spec":{"taints":[{"key":"node.kubernetes.io/not-ready","effect":"NoSchedule"}]}})");
  } else if (kind == Action::Kind::kCheck) {
    Patch(
        object + "/status",
        R"({"status":{"conditions":[{"type":"Active","status":"True","reason":"Active","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}})");
  }
}

void Stage::Replace(const Owner& owner) {
  const auto index = static_cast<size_t>(&owner - scenario_->owners.data());
  const std::string name = NameOfNextPod(index);
  const std::string labels =
      owner.label.empty() ? "" : fmt::format(R"(,"labels":{{"example":"{}"}})", owner.label);
  Told(fmt::format("{} makes pod {}", owner.name, name));
  const env::HttpResponse response = Serve(
      Request(
          env::Method::kPost, std::string(kPodsTarget),
          fmt::format(
              R"({{"metadata":{{"name":"{}"{}{},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{}","uid":"{}","controller":true}}]}},"spec":{{{}{}}}}})",
              name, labels, MemberOf(owner.group), owner.name, UidOf(owner.name), owner.pod,
              group_maker_ ? R"(,"schedulerName":"volcano")" : "")),
      {});
  CHECK_EQ(response.status, 201);
}

void Stage::ReplaceAtOnce() {
  for (const Owner& owner : scenario_->owners) {
    const auto index = static_cast<size_t>(&owner - scenario_->owners.data());
    if (made_[index] < owner.replicas) continue;  // Still being set up.
    while (owner.at_once && Lacks(owner)) Replace(owner);
  }
}

// With its own grace, or at once.
void Stage::DeletePod(const std::string& key, bool at_once) {
  const std::string options =
      fmt::format(R"({{{}"preconditions":{{"uid":"{}"}}}})",
                  at_once ? R"("gracePeriodSeconds":0,)" : "", truth().pods().at(key).uid);
  Serve(Request(env::Method::kDelete, std::string(kPodsTarget) + "/" + NameOf(key), options), {});
}

void Stage::StartPod(const std::string& key) {
  const std::string status = StartedStatus(truth(), truth().pods().at(key), now_);
  if (status.contains("Failed")) Told("it does not fit, and fails");
  const env::HttpResponse response =
      Serve(Request(env::Method::kPatch, std::string(kPodsTarget) + "/" + NameOf(key) + "/status",
                    status, "application/strategic-merge-patch+json"),
            {});
  CHECK_EQ(response.status, 200);
}

void Stage::CountBudget(const std::string& key) {
  const std::optional<std::string> status =
      BudgetStatus(truth(), owners_, truth().others().at(key).view());
  CHECK(status.has_value());
  const env::HttpResponse response =
      Serve(Request(env::Method::kPatch,
                    fmt::format("{}/{}/status", kBudgetsTarget, key.substr(key.rfind('/') + 1)),
                    *status, "application/merge-patch+json"),
            {});
  CHECK_EQ(response.status, 200);
}

Footprint Stage::Arrive(size_t index, Fate fate) {
  const Call call = calls_[index];
  // Of an earlier life: it is judged as what a user sends. Of quota: by what the scheduler knows.
  const bool judged = call.orphan || call.request->target.contains("/workloads/");
  const Footprint touched =
      static_cast<Footprint>(FootprintOf(call.request->target) | (judged ? kTouchesScheduler : 0));
  const auto answer = [&](env::Input input) {
    if (call.orphan) {
      calls_.erase(calls_.begin() + static_cast<ptrdiff_t>(index));
    } else {
      calls_[index].answer = std::move(input);
    }
  };
  if (fate != Fate::kDone && !call.orphan) ++failures_;
  if (fate == Fate::kConflict || fate == Fate::kError || fate == Fate::kRefused) {
    answer(env::Response{.call = call.call, .response = Refusal(fate)});
    return touched | kTouchesBounds;
  }
  const env::Input lost = env::CallFailed{.call = call.call, .failure = env::CallFailure::kLost};
  if (fate == Fate::kLost) {
    answer(lost);
    return touched | kTouchesBounds;
  }
  if (call.stream) {
    calls_.erase(calls_.begin() + static_cast<ptrdiff_t>(index));
    Serve(*call.request, call.call);
    return touched;
  }
  if (call.request->method == env::Method::kDelete) {
    CheckEviction(call, fate == Fate::kDone);
  }
  by_scheduler_ = !call.orphan;
  env::HttpResponse response = Serve(*call.request, {});
  by_scheduler_ = false;
  if (response.status == 400 || response.status == 422) {
    checkers_.Report(now_, fmt::format("the scheduler's {} is not valid: {}", Words(*call.request),
                                       response.body.view()));
  }
  if (fate == Fate::kDoneUnheard) {
    answer(lost);
    return touched | kTouchesBounds;
  }
  Told(fmt::format("the API server answers {}", response.status));
  answer(env::Response{.call = call.call, .response = std::move(response)});
  return touched;
}

void Stage::CheckEviction(const Call& call, bool heard) {
  if (const auto wrong = promises_.OnEviction(truth(),
                                              {.target = call.request->target,
                                               .body = call.request->body.view(),
                                               .heard = heard && !call.orphan,
                                               .orphan = call.orphan},
                                              scenario_->evictions.value_or(0))) {
    checkers_.Report(now_, *wrong);
  }
}

// Carries a request out. With a call it opens a watch, and the answer goes there.
env::HttpResponse Stage::Serve(env::HttpRequest request, std::optional<env::CallId> call) {
  const env::ExchangeId exchange{next_exchange_++};
  if (call) {
    watches_.push_back({.call = *call,
                        .exchange = exchange,
                        .target = std::string(WithoutQuery(request.target)),
                        .waiting = {}});
  }
  if (request.method == env::Method::kPost) {
    const std::string made = fmt::format("{} {}", request.target, NameIn(request.body.view()));
    server_.Reseed(Hasher().Add(made).Add(++lives_[made]).value());
  }
  env::RequestArrived arrived{.exchange = exchange, .peer = {}, .request = std::move(request)};
  arrived.peer.user = call ? "system:scheduler" : "admin";
  arrived.peer.groups = {"system:masters", "system:authenticated"};
  std::vector<env::Respond> answers;
  ServerStep(std::move(arrived), answers);
  while (server_.wake_at() <= now_) ServerStep(env::Tick{}, answers);
  ReplaceAtOnce();
  if (call) return {};
  CHECK_EQ(answers.size(), 1u);
  return std::move(answers.front().response);
}

void Stage::ServerStep(env::Input input, std::vector<env::Respond>& answers) {
  env::Outbox out;
  server_.Step(now_, std::move(input), out);
  const auto watch_of = [&](env::ExchangeId exchange) {
    return std::ranges::find(watches_, exchange, &Watch::exchange);
  };
  for (env::Output& output : out) {
    if (auto* append = std::get_if<env::AppendJournal>(&output)) {
      for (const env::JournalRecord& record : append->records) OnCommitted(record);
      ServerStep(env::JournalAppended{.sequence = append->sequence}, answers);
    } else if (auto* respond = std::get_if<env::Respond>(&output)) {
      const auto watch = watch_of(respond->exchange);
      if (watch == watches_.end()) {
        answers.push_back(std::move(*respond));
        continue;
      }
      watch->waiting.emplace_back(
          env::Response{.call = watch->call, .response = std::move(respond->response)});
      if (!respond->stream) watch->waiting.emplace_back(env::StreamEnded{.call = watch->call});
    } else if (auto* frame = std::get_if<env::Frame>(&output)) {
      const auto watch = watch_of(frame->exchange);
      if (watch == watches_.end()) continue;
      const uint64_t bytes = frame->data.size();
      for (Bytes& event : EventsIn(frame->data))
        watch->waiting.emplace_back(env::StreamData{.call = watch->call, .data = std::move(event)});
      ServerStep(env::StreamDrained{.exchange = frame->exchange, .bytes = bytes}, answers);
    } else if (auto* end = std::get_if<env::EndStream>(&output)) {
      const auto watch = watch_of(end->exchange);
      if (watch != watches_.end()) {
        watch->waiting.emplace_back(env::StreamEnded{.call = watch->call});
      }
    }
  }
}

void Stage::OnCommitted(const env::JournalRecord& record) {
  versions_.push_back({.object = HashOf(record.key),
                       .kind = HashOf(record.key.substr(0, record.key.find_first_of("./"))),
                       .revision = record.revision});
  if (record.key.starts_with(sim::kNodesPrefix) && record.value.empty()) {
    promises_.OnNodeLost(truth(), std::string_view(record.key).substr(record.key.rfind('/') + 1));
  }
  checkers_.OnCommit(now_, record);
  if (group_maker_) {
    group_maker_->OnCommitted(record);
    Report(job_checks_.OnCommit(record, writer_));
  }
  if (!scenario_->quota) return;
  Report(reservations_.OnCommit(record, by_scheduler_, scheduler_.engine().state()));
  Report(workload_checks_.OnCommit(record, by_scheduler_));
  if (reservations_.preemptions() > scenario_->preemptions) {
    checkers_.Report(now_, fmt::format("{} are evicted for quota, where {} must be enough",
                                       Counted(reservations_.preemptions(), "workload"),
                                       scenario_->preemptions));
  }
  const uint32_t displaced = workload_checks_.displaced();
  if (scenario_->displaced && displaced > *scenario_->displaced) {
    checkers_.Report(now_, fmt::format("{} evicted for their nodes, where {} must be enough",
                                       Counted(displaced, "workload"), *scenario_->displaced));
  }
}

// Events that it writes are answered in the same step.
Footprint Stage::StepScheduler(env::Input input) {
  Footprint touched = kTouchesScheduler;
  std::vector<env::Input> inputs;
  inputs.push_back(std::move(input));
  for (size_t i = 0; i < inputs.size(); ++i) {
    checkers_.OnDelivered(sim::Party::kScheduler, inputs[i]);
    promises_.OnHeard(inputs[i]);
    if (scenario_->groups) gangs_.OnHeard(inputs[i]);
    if (scenario_->quota) workload_checks_.OnHeard(inputs[i]);
    env::Outbox out;
    scheduler_.Step(now_, std::move(inputs[i]), out);
    for (env::Output& output : out) {
      if (auto* send = std::get_if<env::SendRequest>(&output)) {
        // Before it is tampered with: what is planted is to show in what comes of it.
        Report(reservations_.OnSent(send->request, scheduler_.engine().state()));
        Report(workload_checks_.OnSent(send->request));
        if (IsWrite(send->request) && !scheduler_.synced() &&
            !send->request.target.starts_with(kEventsTarget)) {
          Report({Words(send->request) + " is sent before all is listed"});
        }
        sim::TamperSent(bugs_.tampering, sim::Party::kScheduler, send->request);
        checkers_.OnSent(now_, sim::Party::kScheduler, *send);
        promises_.OnSent(*send);
        if (scenario_->groups) gangs_.OnSent(*send);
        Told("the scheduler sends its " + Words(send->request));
        if (send->request.target.starts_with(kEventsTarget)) {
          inputs.emplace_back(env::Response{
              .call = send->call, .response = {.status = 201, .headers = {}, .body = Bytes("{}")}});
          continue;
        }
        const uint32_t twin = TwinOf(send->request.target);
        calls_.push_back(
            {.call = send->call,
             .twin = twin,
             .request = std::make_shared<const env::HttpRequest>(std::move(send->request)),
             .stream = send->stream,
             .orphan = false,
             .answer = {}});
      } else if (auto* cancel = std::get_if<env::CancelCall>(&output)) {
        std::erase_if(calls_,
                      [&](const Call& call) { return !call.orphan && call.call == cancel->call; });
        std::erase_if(watches_, [&](const Watch& watch) { return watch.call == cancel->call; });
        touched = kTouchesAll;
      } else if (auto* log = std::get_if<env::Log>(&output)) {
        Told("the scheduler says: " + log->text);
      }
    }
  }
  checkers_.OnSchedulerStep(now_, scheduler_.engine().state());
  if (const auto wrong = promises_.OnStep()) checkers_.Report(now_, *wrong);
  if (const auto wrong = gangs_.OnStep(promises_.heard())) checkers_.Report(now_, *wrong);
  return touched;
}

void Stage::Crash() {
  ++crashes_;
  for (const Watch& watch : watches_) {
    std::vector<env::Respond> answers;
    ServerStep(env::ExchangeAbandoned{.exchange = watch.exchange}, answers);
  }
  watches_.clear();
  // What it has sent may still arrive.
  std::erase_if(calls_, [](const Call& call) {
    return call.answer.has_value() || call.stream || !IsWrite(*call.request);
  });
  for (Call& call : calls_) call.orphan = true;
  scheduler_ = control::Scheduler(OptionsOf(*scenario_, bugs_));
  checkers_.OnSchedulerRestarted();
  promises_.OnRestart();
  gangs_ = {};
  reservations_.OnRestart();
  workload_checks_.OnRestart();
}

void Stage::Report(const std::vector<std::string>& findings) {
  for (const std::string& finding : findings) checkers_.Report(now_, finding);
}

// ---- Checks ----------------------------------------------------------------------------------

void Stage::Check(bool at_rest) {
  if (group_maker_) {
    if (at_rest) Report(GroupsAtRest(truth()));
    if (at_rest) Report(job_checks_.AtRest());
    return;
  }
  const cycle::Engine& engine = scheduler_.engine();
  for (const std::string& finding : model::Audit(engine.state())) {
    checkers_.Report(now_, "ledger audit: " + finding);
  }
  if (const uint64_t missed = engine.counters().missed_wakes + engine.CountMissedWakes();
      missed > 0) {
    checkers_.Report(now_,
                     fmt::format("a wake-up was missed, of {} in line or with a promise", missed));
  }
  // Not of a promise that it has just read in an object, whose victims it is yet to name.
  if (scenario_->evictions && scheduler_.synced() && scheduler_.wake_at() > now_) {
    if (const std::string over = OverPromised(engine.state()); !over.empty()) {
      checkers_.Report(now_, over);
    }
  }
  if (scenario_->quota && scheduler_.wake_at() > now_) {
    Report(StandingWrong(engine));
    if (!HasToHear()) Report(reservations_.Charged(engine.state()));
  }
  CompareWithObjects(at_rest);
  if (!at_rest) return;
  Report(FindingsAtRest(truth(), scheduler_, scenario_->evictions.has_value()));
  Report(checkers_.gangs().AtRest(truth()));
  Report(reservations_.AtRest(engine.state(), truth(), {.now = now_, .joint = scenario_->joint}));
  Report(workload_checks_.AtRest(truth(), now_));
  for (const auto& [key, document] : truth().others()) {
    if (!scenario_->joint || !key.starts_with(kWorkloadsPrefix)) continue;
    Report(PodsBesidePlaces(truth(), document.view()));
    if (IsAdmittedInVain(truth(), document.view())) {
      checkers_.Report(now_, fmt::format("at rest, {} is admitted, and pods of it wait", key));
    }
  }
}

// Whether a watch is to tell the scheduler more; one that is yet to be opened may.
bool Stage::HasToHear() const {
  return std::ranges::any_of(watches_, [](const Watch& w) { return !w.waiting.empty(); }) ||
         std::ranges::any_of(calls_, [](const Call& call) { return call.stream; });
}

// As World::CompareWithObjects.
void Stage::CompareWithObjects(bool at_rest) {
  const auto reached = [](const std::string& version, uint64_t revision) {
    const client::Version at = client::Version::Parse(version);
    return at.numeric && at.value >= revision;
  };
  const bool groups = scenario_->groups;
  // What its watches of quota have told it is not asked for by version.
  const bool unheard = scenario_->quota && HasToHear();
  const uint64_t pods = groups ? truth().pods_revision() : truth().live_pods_revision();
  if (unheard || !scheduler_.synced() || !reached(scheduler_.pods_version(), pods) ||
      (groups && (!reached(scheduler_.groups_version(), truth().groups_revision()) ||
                  !reached(scheduler_.classes_version(), truth().classes_revision()) ||
                  !reached(scheduler_.queues_version(), truth().queues_revision()))) ||
      !reached(scheduler_.nodes_version(), truth().nodes_revision()) ||
      (scenario_->evictions &&
       !reached(scheduler_.budgets_version(), truth().budgets_revision()))) {
    if (at_rest) checkers_.Report(now_, "at rest, the scheduler has not seen the last change");
    return;
  }
  const model::State objects = sim::StateOf(
      truth(), {.taking = {.scheduler_names = control::SchedulerOptions().scheduler_names,
                           .joint = scenario_->joint},
                .groups = groups,
                .quota = scenario_->quota});
  for (const std::string& finding : model::AuditAgainst(scheduler_.engine().state(), objects)) {
    checkers_.Report(now_, "ledger against objects: " + finding);
  }
}

// ---- Hash --------------------------------------------------------------------------

uint64_t Stage::Hash() const {
  Names names(versions_);
  Hasher hasher(&names);
  hasher.Add(now_.ns).Add(failures_).Add(crashes_).Add(early_timers_);
  for (const uint32_t next : next_action_) hasher.Add(next);
  for (const uint32_t made : made_) hasher.Add(made);
  for (const Owner& owner : owners_) {
    hasher.Add(std::string_view(owner.name)).Add(owner.replicas);
    hasher.Add(std::string_view(owner.uid));
  }
  if (group_maker_) group_maker_->AddTo(hasher);
  hasher.AddEach(lives_, [](Hasher& one, const auto& entry) {
    one.Add(std::string_view(entry.first)).Add(entry.second);
  });
  scheduler_.AddTo(hasher);
  checkers_.AddTo(hasher);
  promises_.AddTo(hasher);
  gangs_.AddTo(hasher);
  reservations_.AddTo(hasher);
  workload_checks_.AddTo(hasher);
  // Else it would keep states apart that are one.
  if (scenario_->displaced) hasher.Add(workload_checks_.displaced());
  const auto add_document = [](Hasher& one, const auto& entry) {
    one.AddDocument(entry.second.document.view());
  };
  hasher.AddEach(truth().pods(), add_document).AddEach(truth().nodes(), add_document);
  hasher.AddEach(truth().others(),
                 [](Hasher& one, const auto& entry) { one.AddDocument(entry.second.view()); });
  const auto add_input = [](Hasher& one, const env::Input& input) {
    one.Add(input.index());
    if (const auto* response = std::get_if<env::Response>(&input)) {
      one.Add(response->response.status).AddDocument(response->response.body.view());
    } else if (const auto* data = std::get_if<env::StreamData>(&input)) {
      one.AddDocument(data->data.view());
    }
  };
  hasher.AddEach(calls_, [&](Hasher& one, const Call& call) {
    one.Add(call.request->method).Add(WithoutQuery(call.request->target));
    one.AddDocument(call.request->body.view()).Add(call.stream).Add(call.orphan);
    one.Add(call.twin).Add(call.answer.has_value());
    if (call.answer) add_input(one, *call.answer);
    // Where a watch begins stands in its query.
    if (call.stream) {
      one.AddPosition(QueryValue(call.request->target, "resourceVersion"),
                      PluralOf(call.request->target));
    }
  });
  hasher.AddEach(late_, [](Hasher& one, const Late& late) {
    one.Add(std::string_view(late.request.target)).AddDocument(late.request.body.view());
  });
  for (const auto& [object, uid] : seen_)
    hasher.Add(std::string_view(object)).Add(std::string_view(uid));
  hasher.AddEach(watches_, [&](Hasher& one, const Watch& watch) {
    one.Add(std::string_view(watch.target)).Add(watch.waiting.size());
    for (const env::Input& input : watch.waiting) add_input(one, input);
  });
  return hasher.value();
}

}  // namespace berth::explore
