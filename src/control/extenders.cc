#include "control/extenders.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "base/check.h"
#include "client/request.h"
#include "control/extender_messages.h"
#include "control/say.h"
#include "env/recorded_actor.h"

namespace berth::control {
namespace {

// Calls of the scheduler's clients, and of who operates it, begin far below.
constexpr uint64_t kFirstCall = uint64_t{3} << 48;
static_assert(kFirstCall < env::kCallsOfALife);

// From 0 to 10 of an extender to 0 to 100.
constexpr int64_t kScoreScale = 10;
// Beyond these no sum of them could be told from an overflow: 32 x 10^9 x 10^6 x 10 is 3.2 x 10^17.
constexpr int64_t kScoreMax = 1'000'000'000;
constexpr int64_t kWeightMax = 1'000'000;

int64_t ScaledScore(int64_t score, int64_t weight) {
  return std::clamp(score, -kScoreMax, kScoreMax) * std::min(weight, kWeightMax) * kScoreScale;
}

bool Names(const api::Container& container, const std::vector<std::string>& managed) {
  return std::ranges::any_of(managed, [&](const std::string& name) {
    return api::Find(container.requests, name) || api::Find(container.limits, name);
  });
}

// An extender may answer megabytes of error; a node's name that nobody knows may be as long.
std::string Cut(std::string_view failure) {
  return std::string(client::CutUtf8(failure, Extenders::kFailureBytesMax));
}

std::string StatusText(std::string_view message) {
  return fmt::format(R"({{"kind":"Status","apiVersion":"v1","status":"Failure","message":{}}})",
                     client::JsonString(message));
}

}  // namespace

Extenders::Extenders(std::vector<ExtenderOptions> options)
    : options_(std::move(options)), states_(options_.size()), next_call_(kFirstCall) {
  CHECK_LE(options_.size(), kExtendersMax);
  // Of extenders at one server, and of what is asked of one, none waits for another's connections.
  uint32_t lanes = 0;
  const auto in_lane = [&](const env::Endpoint& to) {
    env::Endpoint own = to;
    own.lane = lanes++;
    return std::make_shared<const env::Endpoint>(std::move(own));
  };
  for (size_t i = 0; i < options_.size(); ++i) {
    ExtenderOptions& one = options_[i];
    CHECK(one.to != nullptr);
    states_[i].binds_at = in_lane(*one.to);
    one.to = in_lane(*one.to);
    const bool is_asked = !one.filter_verb.empty() || !one.prioritize_verb.empty();
    keeps_nodes_ = keeps_nodes_ || (is_asked && !one.takes_names);
    keeps_placed_ = keeps_placed_ || (!one.preempt_verb.empty() && !one.takes_names);
  }
}

// ---- Observing ---------------------------------------------------------------------------------

uint32_t Extenders::InterestedIn(const api::PodSpec& spec) const {
  uint32_t interested = 0;
  for (size_t i = 0; i < options_.size(); ++i) {
    const std::vector<std::string>& managed = options_[i].managed;
    const auto names = [&](const api::Container& container) { return Names(container, managed); };
    if (managed.empty() || std::ranges::any_of(spec.containers, names) ||
        std::ranges::any_of(spec.init_containers, names)) {
      interested |= uint32_t{1} << i;
    }
  }
  return interested;
}

bool Extenders::AreAsked(uint32_t interested) const {
  for (size_t i = 0; i < options_.size(); ++i) {
    const bool is_asked = !options_[i].filter_verb.empty() || !options_[i].prioritize_verb.empty();
    if ((interested >> i & 1) != 0 && is_asked) return true;
  }
  return AreAskedAboutVictims(interested);
}

bool Extenders::AreAskedAboutVictims(uint32_t interested) const {
  for (size_t i = 0; i < options_.size(); ++i) {
    if ((interested >> i & 1) != 0 && !options_[i].preempt_verb.empty()) return true;
  }
  return false;
}

void Extenders::ObserveNode(const std::string& name, const Bytes& document) {
  if (keeps_nodes_) nodes_[name] = document;
}

void Extenders::ForgetNode(const std::string& name) { nodes_.erase(name); }

void Extenders::ObservePod(const std::string& uid, const Bytes& document, uint32_t interested) {
  pods_[uid] = {.document = document, .interested = interested};
}

void Extenders::ObservePlaced(const std::string& uid, const Bytes& document) {
  if (keeps_placed_) placed_[uid] = document;
}

void Extenders::ForgetPod(std::string_view uid, env::Outbox& out) {
  if (const auto pod = placed_.find(uid); pod != placed_.end()) placed_.erase(pod);
  if (const auto pod = pods_.find(uid); pod != pods_.end()) pods_.erase(pod);
  const auto asked = asked_.find(uid);
  if (asked == asked_.end()) return;
  Cancel(asked->second, out);
  asked_.erase(asked);
}

// ---- Asking ------------------------------------------------------------------------------------

const std::string& Extenders::VerbOf(size_t extender, Verb verb) const {
  const ExtenderOptions& options = options_[extender];
  switch (verb) {
    case Verb::kFilter:
      return options.filter_verb;
    case Verb::kPrioritize:
      return options.prioritize_verb;
    case Verb::kPreempt:
      return options.preempt_verb;
    case Verb::kBind:
      break;
  }
  return options.bind_verb;
}

std::string Extenders::UrlOf(size_t extender, Verb verb) const {
  return fmt::format("{}/{}", options_[extender].url, VerbOf(extender, verb));
}

uint64_t Extenders::Send(Call call, std::string body, Instant not_after, env::Outbox& out) {
  const ExtenderOptions& options = options_[call.extender];
  const uint64_t id = next_call_++;
  env::SendRequest request{
      .call = {id},
      .request = {.method = env::Method::kPost,
                  .target = fmt::format("{}/{}", options.path, VerbOf(call.extender, call.verb)),
                  .headers = {{"content-type", "application/json"},
                              {"accept", "application/json"},
                              {"user-agent", "berth"}},
                  .body = Bytes(std::move(body))},
      .timeout = options.timeout,
      .to = call.verb == Verb::kBind ? states_[call.extender].binds_at : options.to,
      .not_after = not_after,
      .once = call.verb == Verb::kBind};
  State& state = states_[call.extender];
  ++state.counters[static_cast<size_t>(call.verb)].calls;
  const size_t extender = call.extender;
  const bool is_question = call.verb != Verb::kBind;
  calls_.emplace(id, std::move(call));
  if (is_question) {
    state.waiting.push_back(std::move(request));
    SendNext(extender, out);
  } else {
    out.emplace_back(std::move(request));
  }
  return id;
}

// The questions that wait and may be under way.
void Extenders::SendNext(size_t extender, env::Outbox& out) {
  State& state = states_[extender];
  while (!state.waiting.empty() && state.questions < kQuestionsMax) {
    ++state.questions;
    out.emplace_back(std::move(state.waiting.front()));
    state.waiting.pop_front();
  }
}

std::string Extenders::ArgsFor(size_t extender, const Asked& asked) const {
  if (options_[extender].takes_names) return ExtenderArgs(asked.document.view(), asked.query.nodes);
  std::vector<Bytes> documents;
  for (const std::string& name : asked.query.nodes) {
    // One that went meanwhile passes nobody by.
    if (const auto node = nodes_.find(name); node != nodes_.end())
      documents.push_back(node->second);
  }
  return ExtenderArgs(asked.document.view(), documents);
}

std::string Extenders::VictimArgsFor(size_t extender, const Asked& asked) const {
  const std::vector<ShownVictims>& victims = asked.query.victims;
  if (options_[extender].takes_names) return ExtenderPreemptionArgs(asked.document.view(), victims);
  std::vector<std::vector<Bytes>> documents;
  for (const ShownVictims& node : victims) {
    std::vector<Bytes>& pods = documents.emplace_back();
    for (const std::string& uid : node.uids) {
      // One whose document says no node yet, or that went meanwhile, is told by its uid.
      const auto placed = placed_.find(uid);
      pods.push_back(placed != placed_.end() ? placed->second
                                             : Bytes(fmt::format(R"({{"metadata":{{"uid":{}}}}})",
                                                                 client::JsonString(uid))));
    }
  }
  return ExtenderPreemptionArgs(asked.document.view(), victims, documents);
}

void Extenders::Ask(Query query, env::Outbox& out) {
  const auto pod = pods_.find(query.uid);
  CHECK(pod != pods_.end());
  const std::string uid = query.uid;
  if (const auto before = asked_.find(uid); before != asked_.end()) Cancel(before->second, out);
  asked_[uid] = {.query = std::move(query),
                 .document = pod->second.document,
                 .interested = pod->second.interested};
  Advance(uid, out);
}

// On to the next that is asked about what the last left, or what follows when there is none.
void Extenders::Advance(const std::string& uid, env::Outbox& out) {
  Asked& asked = asked_.at(uid);
  CHECK(asked.calls.empty());
  const bool about_victims = asked.query.about_victims;
  const Verb verb = about_victims ? Verb::kPreempt : Verb::kFilter;
  const bool any_left = about_victims ? !asked.query.victims.empty() : !asked.query.nodes.empty();
  for (; asked.next < options_.size() && any_left; ++asked.next) {
    const bool interested = (asked.interested >> asked.next & 1) != 0;
    if (!interested || VerbOf(asked.next, verb).empty()) continue;
    asked.calls.insert(
        Send({.extender = asked.next, .verb = verb, .uid = uid},
             about_victims ? VictimArgsFor(asked.next, asked) : ArgsFor(asked.next, asked),
             Instant::Never(), out));
    return;
  }
  // Of one node no score matters.
  if (asked.query.nodes.size() > 1) Prioritize(asked, out);
  if (asked.calls.empty()) Finish(uid);
}

void Extenders::Prioritize(Asked& asked, env::Outbox& out) {
  for (size_t i = 0; i < options_.size(); ++i) {
    if ((asked.interested >> i & 1) == 0 || options_[i].prioritize_verb.empty()) continue;
    asked.calls.insert(Send({.extender = i, .verb = Verb::kPrioritize, .uid = asked.query.uid},
                            ArgsFor(i, asked), Instant::Never(), out));
  }
}

void Extenders::Finish(const std::string& uid) {
  const auto found = asked_.find(uid);
  Asked& asked = found->second;
  Verdict verdict{.uid = uid, .query = asked.query.number, .failure = {}};
  for (const std::string& name : asked.query.nodes) {
    const auto score = asked.scores.find(name);
    verdict.nodes.push_back({.name = name,
                             .permitted = true,
                             .score = score == asked.scores.end() ? 0 : score->second});
  }
  for (auto& [name, node] : asked.refused) verdict.nodes.push_back(std::move(node));
  verdict.about_victims = asked.query.about_victims;
  verdict.victims = std::move(asked.query.victims);
  verdicts_.push_back(std::move(verdict));
  asked_.erase(found);
}

void Extenders::Cancel(Asked& asked, env::Outbox& out) {
  for (const uint64_t id : std::exchange(asked.calls, {})) {
    const auto call = calls_.find(id);
    const size_t extender = call->second.extender;
    calls_.erase(call);
    State& state = states_[extender];
    const auto of_it = [&](const env::SendRequest& request) { return request.call.value == id; };
    if (std::erase_if(state.waiting, of_it) > 0) continue;
    out.emplace_back(env::CancelCall{.call = {id}});
    --state.questions;
    SendNext(extender, out);
  }
}

std::vector<model::ExternalVerdict> Extenders::WithdrawAll(Instant now, env::Outbox& out) {
  std::vector<model::ExternalVerdict> facts;
  const auto withdrawn = [&](const std::string& uid, uint64_t query, bool about_victims) {
    facts.push_back({.uid = uid,
                     .query = query,
                     .end = model::ExternalVerdict::End::kWithdrawn,
                     .nodes = {},
                     .about_victims = about_victims,
                     .at = now});
  };
  for (const Verdict& verdict : std::exchange(verdicts_, {}))
    withdrawn(verdict.uid, verdict.query, verdict.about_victims);
  // First those that have not left: none does in the place of one that is cancelled.
  for (State& state : states_) {
    for (const env::SendRequest& request : std::exchange(state.waiting, {})) {
      const auto call = calls_.find(request.call.value);
      asked_.find(call->second.uid)->second.calls.erase(request.call.value);
      calls_.erase(call);
    }
  }
  for (auto& [uid, asked] : asked_) {
    Cancel(asked, out);
    withdrawn(uid, asked.query.number, asked.query.about_victims);
  }
  asked_.clear();
  // Decided by one who leads no more.
  for (auto& [call, node] : bindings_) node.clear();
  return facts;
}

void Extenders::GiveUpBindingsTo(std::string_view node) {
  for (auto& [call, to] : bindings_) {
    if (to == node) to.clear();
  }
}

// ---- Answers -----------------------------------------------------------------------------------

void Extenders::Handle(Instant now, const env::Input& input, env::Outbox& out) {
  now_ = now;
  if (const auto* response = std::get_if<env::Response>(&input)) {
    const auto call = calls_.find(response->call.value);
    if (call == calls_.end()) return;
    const int status = response->response.status;
    const Bytes& body = response->response.body;
    if (status != 200) {
      const std::string& verb = VerbOf(call->second.extender, call->second.verb);
      return OnAnswer(response->call,
                      Fail(ErrorCode::kRefused,
                           fmt::format("failed {} with extender at URL {}, code {}", verb,
                                       UrlOf(call->second.extender, call->second.verb), status)),
                      /*sent=*/true, out);
    }
    if (body.size() > kAnswerBytesMax) {
      return OnAnswer(
          response->call,
          Fail(ErrorCode::kTooLarge, fmt::format("the answer of {} has {} bytes, more than {}",
                                                 UrlOf(call->second.extender, call->second.verb),
                                                 body.size(), kAnswerBytesMax)),
          /*sent=*/true, out);
    }
    return OnAnswer(response->call, body.view(), /*sent=*/true, out);
  }
  if (const auto* failed = std::get_if<env::CallFailed>(&input)) {
    const auto call = calls_.find(failed->call.value);
    if (call == calls_.end()) return;
    const std::string_view why = !failed->why.empty() ? std::string_view(failed->why)
                                 : failed->failure == env::CallFailure::kTimeout
                                     ? "context deadline exceeded"
                                     : "connection lost";
    OnAnswer(
        failed->call,
        Fail(ErrorCode::kUnavailable,
             fmt::format("Post \"{}\": {}", UrlOf(call->second.extender, call->second.verb), why)),
        failed->failure != env::CallFailure::kNotSent, out);
  }
}

void Extenders::OnAnswer(env::CallId id, const Answer& answer, bool sent, env::Outbox& out) {
  const auto found = calls_.find(id.value);
  const Call call = std::move(found->second);
  calls_.erase(found);
  if (call.verb == Verb::kBind) return OnBinding(id, call, answer, sent, out);
  --states_[call.extender].questions;
  SendNext(call.extender, out);
  asked_.find(call.uid)->second.calls.erase(id.value);
  if (call.verb == Verb::kPrioritize) return OnPriorities(call, answer, out);
  OnLeft(call, answer, out);
}

// Of a call that has ended.
void Extenders::Note(const Call& call, const std::string& failure, env::Outbox& out) {
  State& state = states_[call.extender];
  if (!failure.empty()) ++state.counters[static_cast<size_t>(call.verb)].failures;
  Tell(call, failure, out);
}

// Trouble is told of when it begins, is another, and ends: not with every pod, nor too often.
void Extenders::Tell(const Call& call, const std::string& failure, env::Outbox& out) {
  State& state = states_[call.extender];
  std::string& told = state.told[static_cast<size_t>(call.verb)];
  Instant& quiet_until = state.quiet_until[static_cast<size_t>(call.verb)];
  bool& untold = state.untold[static_cast<size_t>(call.verb)];
  untold = untold || told != failure;
  if (!untold || now_ < quiet_until) return;
  untold = false;
  if (told.empty() && failure.empty()) return;
  told = failure;
  quiet_until = now_ + kQuiet;
  if (failure.empty()) {
    Say(out, env::LogLevel::kInfo,
        fmt::format("extender {} answers again", UrlOf(call.extender, call.verb)));
  } else {
    Say(out, env::LogLevel::kWarning,
        fmt::format("extender {}: {}{}", options_[call.extender].url, failure,
                    options_[call.extender].ignorable ? "; it is ignorable" : ""));
  }
}

// Of one of several that are asked one after the other: what it left is the next one's question.
void Extenders::OnLeft(const Call& call, const Answer& answer, env::Outbox& out) {
  Asked& asked = asked_.at(call.uid);
  Status taken;
  if (!answer) {
    taken = std::unexpected(answer.error());
  } else if (asked.query.about_victims) {
    taken = TakeVictims(call.extender, *answer, asked);
  } else {
    taken = TakeFilter(call.extender, *answer, asked);
  }
  std::string failure = taken ? "" : Cut(taken.error().message);
  Note(call, failure, out);
  if (!taken && !options_[call.extender].ignorable) return Failed(call, std::move(failure));
  ++asked.next;
  Advance(call.uid, out);
}

// Of what must be answered: there is no verdict.
void Extenders::Failed(const Call& call, std::string failure) {
  const Asked& asked = asked_.at(call.uid);
  verdicts_.push_back({.uid = call.uid,
                       .query = asked.query.number,
                       .failure = std::move(failure),
                       .about_victims = asked.query.about_victims});
  asked_.erase(call.uid);
}

// Nothing is changed by an answer that is none.
Status Extenders::TakeFilter(size_t extender, std::string_view text, Asked& asked) const {
  const std::string url = UrlOf(extender, Verb::kFilter);
  const Result<FilterAnswer> read = ReadFilterAnswer(text, options_[extender].takes_names);
  if (!read)
    return Fail(read.error().code, fmt::format("answer of {}: {}", url, read.error().message));
  if (!read->error.empty()) return Fail(ErrorCode::kRefused, read->error);
  std::vector<std::string>& nodes = asked.query.nodes;
  const std::set<std::string_view> known(nodes.begin(), nodes.end());
  std::set<std::string_view> passed;
  for (const std::string& name : read->nodes) {
    if (!known.contains(name)) {
      return Fail(ErrorCode::kInvalid,
                  fmt::format("extender \"{}\" claims a filtered node \"{}\" which is not found in "
                              "the input node list",
                              options_[extender].url, name));
    }
    passed.insert(name);
  }
  std::vector<std::string> left;
  for (const std::string& name : nodes) {
    if (passed.contains(name)) {
      left.push_back(name);
      continue;
    }
    const auto forever = read->unresolvable.find(name);
    const auto failed = read->failed.find(name);
    Verdict::Node node{.name = name, .unresolvable = failed == read->failed.end()};
    if (forever != read->unresolvable.end()) {
      node.unresolvable = true;
      node.why = client::CutUtf8(forever->second, kWordsBytesMax);
    } else if (failed != read->failed.end()) {
      node.why = client::CutUtf8(failed->second, kWordsBytesMax);
    }
    asked.refused.emplace(name, std::move(node));
  }
  nodes = std::move(left);
  return {};
}

// Likewise.
Status Extenders::TakeVictims(size_t extender, std::string_view text, Asked& asked) const {
  Result<std::vector<ShownVictims>> read = ReadPreemptionAnswer(text);
  if (!read) {
    return Fail(read.error().code, fmt::format("answer of {}: {}", UrlOf(extender, Verb::kPreempt),
                                               read.error().message));
  }
  std::set<std::string_view> known;
  for (const ShownVictims& one : asked.query.victims) known.insert(one.node);
  for (const ShownVictims& one : *read) {
    if (!known.contains(one.node)) {
      return Fail(
          ErrorCode::kInvalid,
          fmt::format("extender \"{}\" names victims on node \"{}\", which it was not asked "
                      "about",
                      options_[extender].url, one.node));
    }
    if (one.uids.empty() && !options_[extender].ignorable) {
      return Fail(ErrorCode::kInvalid,
                  fmt::format("expected at least one victim pod on node \"{}\"", one.node));
    }
  }
  std::erase_if(*read, [](const ShownVictims& one) { return one.uids.empty(); });
  asked.query.victims = *std::move(read);
  return {};
}

void Extenders::OnPriorities(const Call& call, const Answer& answer, env::Outbox& out) {
  Asked& asked = asked_.at(call.uid);
  const auto scores = answer
                          ? ScoresOf(call.extender, *answer)
                          : Result<std::map<std::string, int64_t>>(std::unexpected(answer.error()));
  Note(call, scores ? "" : Cut(scores.error().message), out);
  if (scores) {
    for (const auto& [name, score] : *scores) asked.scores[name] += score;
  }
  if (asked.calls.empty()) Finish(call.uid);
}

Result<std::map<std::string, int64_t>> Extenders::ScoresOf(size_t extender,
                                                           std::string_view text) const {
  const Result<std::vector<HostPriority>> read = ReadPriorities(text);
  if (!read) {
    return Fail(
        read.error().code,
        fmt::format("answer of {}: {}", UrlOf(extender, Verb::kPrioritize), read.error().message));
  }
  std::map<std::string, int64_t> out;
  // One that is named twice has both, as upstream.
  for (const HostPriority& one : *read) {
    int64_t& score = out[one.host];
    score = std::clamp(score + ScaledScore(one.score, options_[extender].weight),
                       ScaledScore(-kScoreMax, kWeightMax), ScaledScore(kScoreMax, kWeightMax));
  }
  return out;
}

// ---- Verdicts ----------------------------------------------------------------------------------

model::NameId Extenders::Words(std::string_view text, std::set<std::string>& of_verdict,
                               model::Vocabulary& vocabulary) {
  if (text.empty()) return {};
  std::string words(client::CutUtf8(text, kWordsBytesMax));
  if (!of_verdict.contains(words)) {
    if (of_verdict.size() >= kWordsOfVerdictMax) return {};
    of_verdict.insert(words);
  }
  if (!words_.contains(words)) {
    if (words_.size() >= kWordsMax) return {};
    words_.insert(words);
  }
  return vocabulary.names.Intern(words);
}

model::ExternalVerdict Extenders::FactOf(const Verdict& verdict, Instant now,
                                         model::Vocabulary& vocabulary) {
  model::ExternalVerdict fact{.uid = verdict.uid, .query = verdict.query, .nodes = {}, .at = now};
  if (!verdict.failure.empty()) fact.end = model::ExternalVerdict::End::kFailed;
  fact.about_victims = verdict.about_victims;
  for (const ShownVictims& one : verdict.victims) {
    if (const model::NameId name = vocabulary.names.Find(one.node); name.valid()) {
      fact.victims.push_back(
          {.node = name, .uids = one.uids, .pdb_violations = one.pdb_violations});
    }
  }
  std::set<std::string> of_verdict;
  for (const Verdict::Node& node : verdict.nodes) {
    const model::NameId name = vocabulary.names.Find(node.name);
    if (!name.valid()) continue;  // It is unknown to who asked, too.
    fact.nodes.push_back({.node = name,
                          .permitted = node.permitted,
                          .unresolvable = node.unresolvable,
                          .why = Words(node.why, of_verdict, vocabulary),
                          .score = node.score});
  }
  return fact;
}

// ---- Binding -----------------------------------------------------------------------------------

std::optional<env::CallId> Extenders::Bind(Instant now, const Binder::Attempt& attempt,
                                           Instant not_after, env::Outbox& out) {
  CHECK(attempt.devices.none());
  const auto pod = pods_.find(attempt.pod.uid);
  if (pod == pods_.end()) return std::nullopt;
  for (size_t i = 0; i < options_.size(); ++i) {
    if ((pod->second.interested >> i & 1) == 0 || options_[i].bind_verb.empty()) continue;
    const Call call = {.extender = i, .verb = Verb::kBind, .uid = attempt.pod.uid};
    if (bindings_.size() >= kBindingsMax) {
      if (options_[i].ignorable) return std::nullopt;
      now_ = now;
      const env::CallId id = {next_call_++};
      std::string why =
          fmt::format("{} bindings by extender {} are under way", kBindingsMax, options_[i].url);
      Tell(call, why, out);
      FinishBinding(id, std::move(why), client::Outcome::kRefused);
      return id;
    }
    const uint64_t id = Send(call, ExtenderBindingArgs(attempt.pod, attempt.node), not_after, out);
    bindings_.emplace(id, attempt.node);
    return env::CallId{id};
  }
  return std::nullopt;
}

// What was surely not sent is refused; an error that the extender tells of may stand beside a
// binding that was written.
void Extenders::OnBinding(env::CallId id, const Call& call, const Answer& answer, bool sent,
                          env::Outbox& out) {
  const auto binding = bindings_.find(id.value);
  const bool still = !binding->second.empty();
  bindings_.erase(binding);
  std::string failure;
  if (!answer) {
    failure = answer.error().message;
  } else if (const Result<std::string> read = ReadBindingAnswer(*answer); !read) {
    failure =
        fmt::format("answer of {}: {}", UrlOf(call.extender, Verb::kBind), read.error().message);
  } else {
    failure = *read;
  }
  failure = Cut(failure);
  const client::Outcome outcome = failure.empty() ? client::Outcome::kDone
                                  : sent          ? client::Outcome::kUnknown
                                                  : client::Outcome::kRefused;
  Note(call, failure, out);
  const bool others_turn = !failure.empty() && options_[call.extender].ignorable && still;
  FinishBinding(id, std::move(failure), outcome).ignorable = others_turn;
}

Extenders::Bound& Extenders::FinishBinding(env::CallId id, std::string failure,
                                           client::Outcome outcome) {
  Bound& bound = bound_.emplace_back(Bound{.done = {.call = id, .outcome = outcome}});
  if (!failure.empty())
    bound.done.response = {.status = 0, .headers = {}, .body = Bytes(StatusText(failure))};
  bound.message = std::move(failure);
  return bound;
}

void Extenders::AddTo(Hasher& hasher) const {
  hasher.Add(nodes_.size());
  for (const auto& [name, document] : nodes_) hasher.Add(name).AddDocument(document.view());
  hasher.Add(pods_.size());
  for (const auto& [uid, pod] : pods_)
    hasher.Add(uid).AddDocument(pod.document.view()).Add(pod.interested);
  hasher.Add(placed_.size());
  for (const auto& [uid, document] : placed_) hasher.Add(uid).AddDocument(document.view());
  hasher.Add(asked_.size());
  for (const auto& [uid, asked] : asked_) {
    hasher.Add(uid).AddHistory(asked.query.number).Add(asked.next).Add(asked.interested);
    hasher.AddDocument(asked.document.view());
    hasher.Add(asked.query.nodes.size());
    for (const std::string& name : asked.query.nodes) hasher.Add(name);
    hasher.Add(asked.query.about_victims).Add(asked.query.victims.size());
    for (const ShownVictims& one : asked.query.victims) {
      hasher.Add(one.node).Add(one.pdb_violations).Add(one.uids.size());
      for (const std::string& victim : one.uids) hasher.Add(victim);
    }
    hasher.Add(asked.refused.size());
    for (const auto& [name, node] : asked.refused)
      hasher.Add(name).Add(node.unresolvable).Add(node.why);
    hasher.Add(asked.scores.size());
    for (const auto& [name, score] : asked.scores) hasher.Add(name).Add(score);
  }
  hasher.Add(calls_.size());
  hasher.AddEach(calls_, [](Hasher& one, const auto& entry) {
    one.AddHistory(entry.first).Add(entry.second.extender).Add(entry.second.verb);
    one.Add(entry.second.uid);
  });
  hasher.AddEach(bindings_, [](Hasher& one, const auto& entry) {
    one.AddHistory(entry.first).Add(entry.second);
  });
  hasher.Add(verdicts_.size()).Add(bound_.size());
  for (const State& state : states_) {
    hasher.Add(state.questions).Add(state.waiting.size());
    for (const env::SendRequest& request : state.waiting) hasher.AddHistory(request.call.value);
    for (size_t verb = 0; verb < kVerbs; ++verb) {
      hasher.AddHistory(state.counters[verb].calls).AddHistory(state.counters[verb].failures);
      hasher.Add(state.told[verb]).Add(state.untold[verb]);
      hasher.AddHistory(state.quiet_until[verb].ns);
    }
  }
  hasher.Add(words_.size());
  hasher.AddHistory(next_call_);
}

}  // namespace berth::control
