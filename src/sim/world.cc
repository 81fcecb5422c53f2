#include "sim/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "client/known_set.h"
#include "env/recording.h"
#include "model/audit.h"
#include "sim/extender.h"

namespace berth::sim {
namespace {

// The simulated clock starts here, so that traces read the same: 2026-01-01T00:00:00Z.
constexpr Instant kStart = Instant::FromSeconds(1'767'225'600);
// A ready thread waits for the processor between these.
constexpr Duration kPulseMin = Duration::Microseconds(20);
constexpr Duration kPulseMax = Duration::Milliseconds(2);
// How often processes are given the chance to fail.
constexpr Duration kMishapEvery = Duration::Milliseconds(100);
constexpr Duration kServerDownMax = Duration::Seconds(10);
constexpr Duration kDiskFullMax = Duration::Seconds(8);
// A process also dies right after a message, before, while or after what it then wants done is
// done: this much rarer, since there are some hundred messages a second.
constexpr uint32_t kPerMessage = 8;
// Steps of the scheduler between two comparisons with the objects, each of which takes about as
// long as fifty steps.
constexpr uint32_t kCompareEvery = 250;
// Shorter and longer than the lease and its renewal.
constexpr Duration kPauseMax = Duration::Seconds(40);
// Of replicas: how likely it is, each time processes may fail, that something befalls the leader.
constexpr Ratio kLeaderDisturbed{1, 400};
constexpr uint64_t kStandbyCalls = uint64_t{1} << 40;
// Shorter and longer than the 40 s after which a node counts as lost.
constexpr Duration kNodeAwayMax = Duration::Seconds(120);

// Whether it changes something, other than the lease.
bool IsWrite(const env::Output& output) {
  const auto* send = std::get_if<env::SendRequest>(&output);
  return send != nullptr && send->request.method != env::Method::kGet &&
         !send->request.target.contains("/leases");
}

// What a client's step may send, beside lines of the log and the answer to a stop.
void AddUnsent(Hasher& hasher, const env::Output& output) {
  hasher.Add(output.index());
  if (const auto* send = std::get_if<env::SendRequest>(&output)) {
    hasher.Add(send->call.value).Add(send->request.method).Add(send->request.target);
    hasher.Add(send->request.body.view()).Add(send->not_after.ns);
  } else if (const auto* cancel = std::get_if<env::CancelCall>(&output)) {
    hasher.Add(cancel->call.value);
  }
}

apiserver::ApiServer MakeServer(uint64_t seed, const env::JournalContent& content) {
  apiserver::Options options;
  options.seed = seed;
  Result<apiserver::ApiServer> server = apiserver::ApiServer::Make(options, content);
  CHECK(server.has_value());
  return std::move(*server);
}

controllers::Options ControllersOptions(uint64_t seed, const PlantedBugs& bugs) {
  controllers::Options options;
  options.client.seed = seed;
  options.planted_forget_created = bugs.created_pod_forgotten;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 1> kZones = {
      {{"Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3"}}};
  options.zones = api::TimeZones::OfRules(kZones);
  return options;
}

nodes::Options NodesOptions(uint64_t seed, const WorldOptions& world) {
  nodes::Options options;
  options.client.seed = seed;
  options.planted_revive = world.bugs.ended_pod_revived;
  options.planted_start_again = world.bugs.running_pod_started_again;
  if (world.play) {
    options.nodes = world.play->nodes;
    return options;
  }
  options.registers_again = true;
  for (int64_t i = 0; i < world.load.nodes; ++i) {
    options.nodes.push_back({.name = Users::NodeName(i),
                             .labels = {},
                             .annotations = {},
                             .taints = {},
                             .capacity = {{"berth.dev/gpu-milli", "4000"},
                                          {"cpu", fmt::format("{}m", world.load.node_cpu_milli)},
                                          {"ephemeral-storage", "64Gi"},
                                          {"memory", "16Gi"},
                                          {"pods", "110"}},
                             .allocatable = {}});
  }
  return options;
}

Users MakeUsers(uint64_t seed, const WorldOptions& world) {
  if (world.play) return {seed, world.play->users};
  return {seed, world.load};
}

}  // namespace

control::SchedulerOptions SchedulerOptions(uint64_t seed, const PlantedBugs& bugs) {
  control::SchedulerOptions options;
  options.client.seed = seed;
  options.client.calls_apart_max = 192;  // As `berth run`.
  options.engine.preemption = true;
  options.groups = true;
  options.client.planted_resume_after_gone = bugs.watch_resumed_after_gone;
  options.planted_repeat_binding = bugs.binding_repeated_after_unknown;
  options.planted_anothers_node = bugs.binding_on_anothers_node;
  options.planted_queue_in_flight = bugs.in_flight_pod_queued_again;
  options.planted_outcome_by_name = bugs.failure_handled_by_name;
  options.planted_evict_again = bugs.victims_chosen_again;
  options.planted_keep_refused = bugs.refused_eviction_waited_for;
  options.planted_no_barrier = bugs.leads_without_barrier;
  options.planted_no_deadline = bugs.writes_leave_any_time;
  options.engine.faults = {.keep_claim_of_deleted_pod = bugs.claim_not_released_on_deletion,
                           .ledger_by_name = bugs.ledger_keyed_by_name,
                           .lose_event_while_evaluated = bugs.event_lost_while_evaluated,
                           .wake_index_misses_freed = bugs.wake_up_index_incomplete,
                           .narrow_from_too_late = bugs.woken_line_narrowed_too_late,
                           .miss_removal_of_terminating = bugs.pod_removal_lost,
                           .miss_uncordon = bugs.uncordon_missed,
                           .drop_touched_holder = bugs.holder_not_looked_at,
                           .drop_promise_when_tried = bugs.promise_dropped_when_looked_at,
                           .promise_when_observed = bugs.promise_known_once_written,
                           .keep_promise_of_deleted = bugs.promise_of_deleted_pod_kept,
                           .keep_promise_elsewhere = bugs.promise_kept_after_binding_elsewhere,
                           .keep_void_nominations = bugs.nomination_to_gone_node_kept,
                           .wait_for_overdue = bugs.overdue_victim_waited_for,
                           .deaf_while_preempting = bugs.wake_up_consumed_while_preempting,
                           .forget_nominations = bugs.reservation_forgotten_on_restart,
                           .drop_pods_with_their_node = bugs.pods_dropped_with_their_node,
                           .bind_victims = bugs.victim_bound,
                           .doubt_promises = bugs.promise_decided_anew,
                           .keep_promise_where_refused = bugs.promise_kept_where_refused,
                           .revoked_evict_no_more = bugs.revoked_holder_not_tried,
                           .clean_groups_by_name = bugs.group_cleaned_by_name,
                           .keep_half_gangs = bugs.half_gang_kept,
                           .forget_woken_gangs = bugs.woken_gang_not_tried,
                           .forget_quota_waiters = bugs.group_quota_wakes_nobody,
                           .drop_gang_promises = bugs.gang_reservation_dropped,
                           .reserve_in_full = bugs.group_quota_kept_in_full,
                           .reserve_less_who_leaves = bugs.group_quota_less_who_leaves,
                           .unmoved_by_others = bugs.bound_pod_waits,
                           .drop_quota_promise_when_tried = bugs.quota_promise_dropped,
                           .evict_for_nobody = bugs.evicted_for_nobody,
                           .forget_slots = bugs.slots_forgotten,
                           .drop_promised_places = bugs.promised_places_dropped,
                           .keep_lost_quota = bugs.lost_quota_kept,
                           .charge_resent_again = bugs.resent_charged_twice,
                           .charge_all_pods = bugs.fewer_pods_forgotten,
                           .second_pass_by_mark = bugs.second_pass_by_mark,
                           .second_pass_replayed = bugs.second_pass_replayed,
                           .pass_fails_fast = bugs.pass_fails_fast,
                           .stand_on_hold = bugs.stands_on_hold,
                           .readmit_at_once = bugs.readmitted_at_once,
                           .first_failure_alone = bugs.first_failure_alone,
                           .leave_places = bugs.places_left,
                           .unready_gets_quota = bugs.unready_gets_quota,
                           .unready_keeps_quota = bugs.unready_keeps_quota,
                           .admitted_without_mates = bugs.admitted_without_mates,
                           .no_pass_once_admitted = bugs.second_pass_missed,
                           .unfelt = bugs.unfelt};
  return options;
}

World::World(const WorldOptions& options)
    : options_(options),
      prng_(options.seed),
      now_(kStart),
      network_(prng_.Next()),
      journal_(prng_.Next()),
      next_mishap_(kStart + Duration::Seconds(5)),
      last_change_(kStart),
      server_(MakeServer(prng_.Next(), {})),
      scheduler_(DrawOptions()),
      controllers_(ControllersOptions(prng_.Next(), options_.bugs)),
      nodes_(NodesOptions(prng_.Next(), options)),
      users_(MakeUsers(prng_.Next(), options)) {
  if (options.replicas) {
    scheduler_ = MakeScheduler(Party::kScheduler);
    standby_.emplace(MakeScheduler(Party::kStandby));
  }
  if (options.play) off_ = options.play->off;
  for (const std::string& name : off_) CHECK(nodes_.SetOnline(name, false));
}

control::SchedulerOptions World::DrawOptions() {
  control::SchedulerOptions options = SchedulerOptions(prng_.Next(), options_.bugs);
  if (options_.extenders) options.extenders = {SimulatedExtender()};
  if (options_.adjust != nullptr) options_.adjust(options);
  return options;
}

control::Scheduler World::MakeScheduler(Party party) {
  control::SchedulerOptions options = DrawOptions();
  if (!options_.replicas) return control::Scheduler(std::move(options));
  if (party == Party::kStandby) options.client.first_call = kStandbyCalls;
  options.leader_election =
      control::LeaderElectionOptions{.identity = fmt::format("{}-{}", ToString(party), ++lives_),
                                     .client = {.seed = prng_.Next()},
                                     .planted_trusts_itself = options_.bugs.leader_trusts_itself};
  checkers_.OnReplicaStarted(party, options.leader_election->identity);
  return control::Scheduler(std::move(options));
}

env::Actor& World::ActorOf(Party party) {
  switch (party) {
    case Party::kScheduler:
      return scheduler_;
    case Party::kControllers:
      return controllers_;
    case Party::kNodes:
      return nodes_;
    case Party::kUsers:
      return users_;
    case Party::kStandby:
      return *standby_;
  }
  return users_;
}

const env::Actor& World::ActorOf(Party party) const {
  return const_cast<World*>(this)->ActorOf(party);  // NOLINT: one switch for both.
}

Instant World::TickAt(const env::Actor& actor, const Pulse& pulse) const {
  return std::max({actor.wake_at(), pulse.earliest, now_});
}

bool World::Step(Instant until) {
  // The earliest of all that may happen; ties go in the order of this list.
  Instant best = std::min(until, next_mishap_);
  enum class What : uint8_t {
    kMishap,
    kServerReturns,
    kJournal,
    kNetwork,
    kServerTick,
    kTick,
    kResume
  };
  What what = What::kMishap;
  Party whose = Party::kScheduler;
  const auto consider = [&](Instant at, What kind, Party party) {
    if (at >= best) return;
    best = at;
    what = kind;
    whose = party;
  };
  consider(server_returns_, What::kServerReturns, whose);
  consider(journal_.next_at(), What::kJournal, whose);
  consider(network_.next_at(), What::kNetwork, whose);
  if (server_up_) consider(TickAt(server_, server_pulse_), What::kServerTick, whose);
  for (size_t i = 0; i < kPartiesCount; ++i) {
    const auto party = static_cast<Party>(i);
    if (party == Party::kStandby && !standby_) continue;
    if (const auto pause = pauses_.find(party); pause != pauses_.end()) {
      consider(pause->second.until, What::kResume, party);
    } else {
      consider(TickAt(ActorOf(party), pulses_[i]), What::kTick, party);
    }
  }
  if (best >= until) {
    now_ = until;
    return false;
  }
  now_ = std::max(now_, best);
  ++steps_;
  switch (what) {
    case What::kMishap:
      MaybeFail();
      break;
    case What::kServerReturns:
      StartServer();
      break;
    case What::kJournal:
      StepJournal();
      break;
    case What::kNetwork:
      StepNetwork();
      break;
    case What::kServerTick:
      StepServer(env::Tick{});
      break;
    case What::kTick:
      StepParty(whose, env::Tick{});
      break;
    case What::kResume:
      Resume(whose);
      break;
  }
  return true;
}

void World::StepJournal() {
  if (IsDiskFull()) {
    const env::JournalRefused refused = journal_.Refuse();
    if (server_up_) StepServer(refused);
    return;
  }
  const Journal::Done done = journal_.Pop();
  for (const env::JournalRecord& record : done.records) OnCommitted(record);
  // What a dead server had sent becomes durable, and nobody is there to hear of it.
  if (server_up_) StepServer(done.appended);
}

void World::StepNetwork() {
  auto [at, delivery] = network_.Pop();
  if (!delivery) return;
  if (const auto pause = pauses_.find(delivery->to.party);
      !delivery->to.server && pause != pauses_.end()) {
    pause->second.held.push_back(std::move(delivery->input));
  } else if (!delivery->to.server) {
    StepParty(delivery->to.party, std::move(delivery->input));
  } else if (server_up_) {
    StepServer(std::move(delivery->input));
  }
}

void World::OnCommitted(const env::JournalRecord& record) {
  const bool of_pod = record.key.starts_with(kPodsPrefix);
  if (record.value.empty() && record.key.starts_with(kNodesPrefix)) {
    MarkPodsOf(record.key.substr(record.key.rfind('/') + 1));
  }
  const auto starts = [&](std::string_view prefix) { return record.key.starts_with(prefix); };
  if (of_pod || starts("deployments.apps/") || starts("replicasets.apps/") ||
      starts("jobs.batch/")) {
    last_change_ = now_;
  }
  checkers_.OnCommit(now_, record);
  if (options_.play && record.key.starts_with(kNodesPrefix)) SwitchMachine(record);
  if (!of_pod) return;
  // A scheduler that has not heard yet of a node's deletion binds to it: the pod's node is gone
  // from the start, and the collector of orphans takes it.
  const Truth& truth = checkers_.truth();
  const auto pod = truth.pods().find(record.key.substr(kPodsPrefix.size()));
  const bool bound = pod != truth.pods().end() && !pod->second.node_name.empty();
  if (bound && !truth.nodes().contains(pod->second.node_name)) lost_pods_.insert(pod->first);
  if (bound && checkers_.crowded(pod->second.node_name)) MarkPodsOf(pod->second.node_name);
  for (const auto& [index, returns] : lost_nodes_) MarkPodsOf(Users::NodeName(index));
}

// A machine is taken away with its node, and runs again once the node is made again.
void World::SwitchMachine(const env::JournalRecord& record) {
  const std::string name = record.key.substr(record.key.rfind('/') + 1);
  const bool gone = record.value.empty();
  if (gone == off_.contains(name)) return;
  if (gone) {
    off_.insert(name);
  } else {
    off_.erase(name);
  }
  static_cast<void>(nodes_.SetOnline(name, !gone));
}

void World::MarkPodsOf(const std::string& node) {
  for (const auto& [key, pod] : checkers_.truth().pods()) {
    if (pod.node_name == node) lost_pods_.insert(key);
  }
}

// Others fill the disk, and make room again after a while.
bool World::IsDiskFull() {
  if (now_ < disk_full_until_) return true;
  const Ratio chance = options_.faults[Fault::kDiskFull];
  if (chance.part == 0 || !prng_.Chance(chance)) return false;
  counts_.Add(Fault::kDiskFull);
  disk_full_until_ = now_ + Duration{prng_.Between(0, kDiskFullMax.ns)};
  return true;
}

// How many of its outputs a process still gets done before it dies; SIZE_MAX when it lives on.
size_t World::DrawCrash(Fault fault) {
  Ratio chance = options_.faults[fault];
  if (chance.part == 0) return SIZE_MAX;
  chance.whole *= kPerMessage;
  if (!prng_.Chance(chance)) return SIZE_MAX;
  return static_cast<size_t>(prng_.Below(outbox_.size() + 1));
}

void World::StepServer(env::Input input) {
  Note("server", input);
  server_.Step(now_, std::move(input), outbox_);
  server_pulse_.earliest = now_ + Duration{prng_.Between(kPulseMin.ns, kPulseMax.ns)};
  const size_t done = DrawCrash(Fault::kServerCrashed);
  const bool dies = done != SIZE_MAX;
  if (dies) outbox_.resize(done);
  for (env::Output& output : outbox_) {
    if (auto* respond = std::get_if<env::Respond>(&output)) {
      network_.Respond(now_, std::move(*respond));
    } else if (auto* frame = std::get_if<env::Frame>(&output)) {
      network_.Frame(now_, std::move(*frame), options_.faults);
    } else if (auto* end = std::get_if<env::EndStream>(&output)) {
      network_.EndStream(now_, *end);
    } else if (auto* append = std::get_if<env::AppendJournal>(&output)) {
      TamperWritten(options_.bugs.tampering, append->records);
      journal_.Append(now_, std::move(*append));
    }
  }
  outbox_.clear();
  if (dies) CrashServer();
}

void World::StepParty(Party party, env::Input input) {
  if (!TamperHeard(options_.bugs.tampering, now_ - kStart, party, input)) return;
  Note(ToString(party), input);
  checkers_.OnDelivered(party, input);
  const bool heard = !std::holds_alternative<env::Tick>(input);
  const bool records = options_.record && IsScheduler(party);
  env::Input recorded = records ? input : env::Tick{};
  ActorOf(party).Step(now_, std::move(input), outbox_);
  if (records) Record(party, std::move(recorded));
  if (options_.replicas && IsScheduler(party)) CheckLead(party);  // Before what it sends.
  pulses_[static_cast<size_t>(party)].earliest =
      now_ + Duration{prng_.Between(kPulseMin.ns, kPulseMax.ns)};
  const Fault crash = IsScheduler(party) ? Fault::kSchedulerCrashed : Fault::kClientCrashed;
  const size_t done = party == Party::kUsers ? SIZE_MAX : DrawCrash(crash);
  const bool dies = done != SIZE_MAX;
  if (dies) outbox_.resize(done);
  env::Outbox outbox = std::exchange(outbox_, {});
  const auto stall = stalls_.find(party);
  bool stopped = false;
  if (!dies && stall != stalls_.end() && std::ranges::any_of(outbox, IsWrite)) {
    pauses_[party] = {.until = now_ + stall->second, .unsent = std::move(outbox), .held = {}};
    stalls_.erase(stall);
  } else {
    stopped = CarryOut(party, std::move(outbox));
  }
  if (IsScheduler(party)) CheckScheduler(party);
  if (party == Party::kControllers && heard) checkers_.OnControllersStep(controllers_.objects());
  if (dies) counts_.Add(crash);
  if (dies || stopped) CrashParty(party);
}

bool World::CarryOut(Party party, env::Outbox outbox) {
  bool stopped = false;
  for (env::Output& output : outbox) {
    if (auto* send = std::get_if<env::SendRequest>(&output)) {
      SendOf(party, std::move(*send));
    } else if (auto* cancel = std::get_if<env::CancelCall>(&output)) {
      network_.Cancel(now_, party, cancel->call);
    } else if (auto* log = std::get_if<env::Log>(&output)) {
      if (options_.trace) {
        trace_ += fmt::format("{} {} logs: {}\n", (now_ - kStart).ns, ToString(party), log->text);
      }
    } else if (const auto* respond = std::get_if<env::Respond>(&output)) {
      stopped = stopped || respond->exchange == control::kStopExchange;
    }
  }
  return stopped;
}

void World::SendOf(Party party, env::SendRequest send) {
  // What is too late does not leave: the network tells it.
  if (now_ < send.not_after) {
    TamperSent(options_.bugs.tampering, party, send.request);
    checkers_.OnSent(now_, party, send);
  }
  // Users of a play do what they do once: nothing of it is lost.
  const bool spared = options_.play && party == Party::kUsers;
  network_.Send(now_, party, std::move(send), spared ? FaultPlan::None() : options_.faults);
}

void World::Record(Party party, env::Input input) {
  const auto [life, begins] = living_.try_emplace(party, recordings_.size());
  if (begins) {
    recordings_.push_back(
        {.options = SchedulerOf(party).options(), .file = env::RecordingStart("")});
  }
  std::string items;
  env::AppendStep({.now = now_, .input = std::move(input), .outputs = outbox_}, items);
  recordings_[life->second].file += env::SealBlock(items, env::BlockMethod::kStored);
}

void World::CheckScheduler(Party party) {
  const control::Scheduler& scheduler = SchedulerOf(party);
  for (const std::string& finding : model::Audit(scheduler.engine().state())) {
    checkers_.Report(now_, "ledger audit: " + finding);
  }
  checkers_.OnSchedulerStep(now_, scheduler.engine().state(), party);
  // What the scheduler found by itself, and what its watchdog would find.
  const cycle::Engine& engine = scheduler.engine();
  if (const uint64_t missed = engine.counters().missed_wakes + engine.CountMissedWakes();
      missed > 0) {
    checkers_.Report(now_,
                     fmt::format("a wake-up was missed, of {} in line or with a promise", missed));
  }
  if (++steps_uncompared_ >= kCompareEvery && CompareWithObjects(scheduler)) steps_uncompared_ = 0;
}

void World::CheckLead(Party party) {
  const control::Scheduler& scheduler = SchedulerOf(party);
  const bool leads = scheduler.may_write();
  if (leads == std::exchange(led_[party], leads) || !leads) return;
  ++terms_;
  checkers_.OnLeads(now_, party, client::Version::Parse(scheduler.pods_version()).value,
                    client::Version::Parse(scheduler.nodes_version()).value);
}

bool World::CompareWithObjects() {
  return CompareWithObjects(scheduler()) && (!standby_ || CompareWithObjects(scheduler_)) &&
         (!standby_ || CompareWithObjects(*standby_));
}

bool World::CompareWithObjects(const control::Scheduler& scheduler) {
  const auto reached = [](const std::string& version, uint64_t revision) {
    const client::Version at = client::Version::Parse(version);
    return at.numeric && at.value >= revision;
  };
  const Truth& truth = checkers_.truth();
  if (!scheduler.synced() || !reached(scheduler.pods_version(), truth.pods_revision()) ||
      !reached(scheduler.nodes_version(), truth.nodes_revision()) ||
      !reached(scheduler.budgets_version(), truth.budgets_revision()) ||
      !reached(scheduler.groups_version(), truth.groups_revision()) ||
      !reached(scheduler.classes_version(), truth.classes_revision()) ||
      !reached(scheduler.queues_version(), truth.queues_revision())) {
    return false;
  }
  const model::State objects = StateOf(
      truth,
      {.taking = {.scheduler_names = control::SchedulerOptions().scheduler_names}, .groups = true});
  for (const std::string& finding : model::AuditAgainst(scheduler.engine().state(), objects)) {
    checkers_.Report(now_, "ledger against objects: " + finding);
  }
  return true;
}

void World::MaybeFail() {
  next_mishap_ = now_ + kMishapEvery;
  ReturnNodes(/*all=*/false);
  const FaultPlan& faults = options_.faults;
  if (server_up_ && prng_.Chance(faults[Fault::kServerCrashed])) CrashServer();
  if (prng_.Chance(faults[Fault::kSchedulerCrashed])) {
    counts_.Add(Fault::kSchedulerCrashed);
    CrashParty(standby_ && prng_.Chance({1, 2}) ? Party::kStandby : Party::kScheduler);
  }
  if (standby_) DisturbLeader();
  if (prng_.Chance(faults[Fault::kClientCrashed])) {
    counts_.Add(Fault::kClientCrashed);
    CrashParty(prng_.Chance({1, 2}) ? Party::kControllers : Party::kNodes);
  }
  // A node is lost every some seconds, not every tenth of one.
  if (prng_.Chance(faults[Fault::kNodeLost]) && prng_.Chance({1, 20})) LoseNode();
}

// It is paused, asked to stop, or killed.
void World::DisturbLeader() {
  if (!disturbs_ || !prng_.Chance(kLeaderDisturbed)) return;
  const Party leader = led_[Party::kStandby] ? Party::kStandby : Party::kScheduler;
  if (!led_[leader] || pauses_.contains(leader)) return;
  switch (prng_.Below(4)) {
    case 0:
      pauses_[leader].until = now_ + Duration{prng_.Between(0, kPauseMax.ns)};
      return;
    case 1:
      stalls_[leader] = Duration{prng_.Between(0, kPauseMax.ns)};
      return;
    case 2:
      return StepParty(leader, env::RequestArrived{.exchange = control::kStopExchange,
                                                   .peer = {},
                                                   .request = {.method = env::Method::kPost,
                                                               .target = "/stop",
                                                               .headers = {},
                                                               .body = {}}});
    default:
      CrashParty(leader);
  }
}

void World::Resume(Party party) {
  Pause pause = std::move(pauses_.at(party));
  pauses_.erase(party);
  const uint64_t life = lives_;
  if (CarryOut(party, std::move(pause.unsent))) return CrashParty(party);
  for (env::Input& input : pause.held) {
    if (lives_ != life) return;  // It died: nothing of that reaches its successor.
    if (const auto again = pauses_.find(party); again != pauses_.end()) {
      again->second.held.push_back(std::move(input));
    } else {
      StepParty(party, std::move(input));
    }
  }
}

void World::CrashServer() {
  counts_.Add(Fault::kServerCrashed);
  server_up_ = false;
  network_.ServerDied(now_);
  network_.SetServerUp(false);
  server_returns_ = now_ + Duration{prng_.Between(0, kServerDownMax.ns)};
  if (options_.trace) trace_ += fmt::format("{} server crashes\n", (now_ - kStart).ns);
}

void World::StartServer() {
  server_returns_ = Instant::Never();
  server_up_ = true;
  Journal::Recovered recovered = journal_.Recover();
  for (const env::JournalRecord& record : recovered.survivors) OnCommitted(record);
  TamperRecovered(options_.bugs.tampering, recovered.records);
  server_ = MakeServer(prng_.Next(), recovered);
  server_pulse_ = {};
  network_.SetServerUp(true);
}

void World::CrashParty(Party party) {
  network_.ClientDied(now_, party);
  pauses_.erase(party);
  stalls_.erase(party);
  led_.erase(party);
  living_.erase(party);
  if (options_.trace) {
    trace_ += fmt::format("{} {} crash\n", (now_ - kStart).ns, ToString(party));
  }
  StartParty(party);
}

void World::StartParty(Party party) {
  switch (party) {
    case Party::kScheduler:
      scheduler_ = MakeScheduler(party);
      checkers_.OnSchedulerRestarted(party);
      break;
    case Party::kStandby:
      standby_ = MakeScheduler(party);
      checkers_.OnSchedulerRestarted(party);
      break;
    case Party::kControllers:
      controllers_ = controllers::Controllers(ControllersOptions(prng_.Next(), options_.bugs));
      checkers_.OnControllersRestarted();
      break;
    case Party::kNodes:
      nodes_ = nodes::Nodes(NodesOptions(prng_.Next(), options_));
      for (const std::string& name : off_) CHECK(nodes_.SetOnline(name, false));
      for (const auto& [index, returns] : lost_nodes_)
        static_cast<void>(nodes_.SetOnline(Users::NodeName(index), false));
      break;
    case Party::kUsers:
      CHECK(false);
  }
}

void World::LoseNode() {
  const int64_t index =
      static_cast<int64_t>(prng_.Below(static_cast<uint64_t>(options_.load.nodes)));
  if (std::ranges::any_of(lost_nodes_, [&](const auto& lost) { return lost.first == index; })) {
    return;
  }
  counts_.Add(Fault::kNodeLost);
  static_cast<void>(nodes_.SetOnline(Users::NodeName(index), false));
  lost_nodes_.emplace_back(index, now_ + Duration{prng_.Between(0, kNodeAwayMax.ns)});
  MarkPodsOf(Users::NodeName(index));
}

void World::ReturnNodes(bool all) {
  for (const auto& [index, returns] : lost_nodes_) {
    if (all || returns <= now_) {
      static_cast<void>(nodes_.SetOnline(Users::NodeName(index), true));
    }
  }
  std::erase_if(lost_nodes_, [&](const auto& lost) { return all || lost.second <= now_; });
}

void World::StopFaults() {
  options_.faults = FaultPlan::None();
  disturbs_ = false;
  disk_full_until_ = now_;
  ReturnNodes(/*all=*/true);
}

FaultCounts World::counts() const {
  FaultCounts sum = counts_;
  sum += network_.counts();
  sum += users_.counts();
  return sum;
}

void World::Note(std::string_view who, const env::Input& input) {
  Hasher hasher;
  hasher.Add(trace_hash_).Add(now_.ns).Add(who);
  AddTo(hasher, input);
  trace_hash_ = hasher.value();
  // Ticks are in the hash; in the text they would hide everything else.
  if (!options_.trace || std::holds_alternative<env::Tick>(input)) return;
  trace_ += fmt::format("{} {} {}\n", (now_ - kStart).ns, who, env::Describe(input));
}

uint64_t World::Hash() const {
  Hasher hasher;
  // What users want follows from the seed and the load.
  hasher.Add(options_.seed).Add(options_.load.nodes).Add(options_.load.node_cpu_milli);
  hasher.Add(options_.load.deployments).Add(options_.load.jobs).Add(options_.load.pods);
  hasher.Add(options_.load.operations).Add(options_.load.length.ns);
  for (const FaultPlan* plan : {&options_.load.faults, &options_.faults}) {
    for (const Ratio& chance : plan->chance) hasher.Add(chance.part).Add(chance.whole);
  }
  hasher.Add(now_.ns).Add(steps_).Add(prng_.fingerprint()).Add(server_up_).Add(trace_hash_);
  hasher.Add(server_returns_.ns).Add(next_mishap_.ns).Add(last_change_.ns);
  hasher.Add(server_pulse_.earliest.ns).Add(steps_uncompared_);
  hasher.Add(lost_nodes_.size());
  for (const auto& [index, returns] : lost_nodes_) hasher.Add(index).Add(returns.ns);
  for (const std::string& name : off_) hasher.Add(name);
  hasher.Add(lost_pods_.size());
  for (const std::string& key : lost_pods_) hasher.Add(key);
  for (const uint64_t fired : counts().fired) hasher.Add(fired);
  checkers_.AddTo(hasher);
  network_.AddTo(hasher);
  journal_.AddTo(hasher);
  hasher.Add(disk_full_until_.ns);
  server_.AddTo(hasher);
  for (size_t i = 0; i < kPartiesCount; ++i) {
    if (static_cast<Party>(i) == Party::kStandby && !standby_) continue;
    ActorOf(static_cast<Party>(i)).AddTo(hasher);
    hasher.Add(pulses_[i].earliest.ns);
  }
  for (const auto& [party, pause] : pauses_) {
    hasher.Add(party).Add(pause.until.ns).Add(pause.held.size());
    for (const env::Input& input : pause.held) sim::AddTo(hasher, input);
    hasher.Add(pause.unsent.size());
    for (const env::Output& output : pause.unsent) AddUnsent(hasher, output);
  }
  for (const auto& [party, length] : stalls_) hasher.Add(party).Add(length.ns);
  for (const auto& [party, led] : led_) hasher.Add(party).Add(led);
  hasher.Add(lives_).Add(terms_).Add(disturbs_);
  return hasher.value();
}

}  // namespace berth::sim
