#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/types.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/result.h"
#include "base/time.h"
#include "client/client.h"
#include "client/request.h"
#include "control/binder.h"
#include "control/extender_messages.h"
#include "env/actor.h"
#include "model/delta.h"
#include "model/vocabulary.h"

namespace berth::control {

// One of `extenders:` of kube-scheduler's configuration.
struct ExtenderOptions {
  std::string url;  // Without a slash at its end: what users know it by.
  std::shared_ptr<const env::Endpoint> to;
  std::string path;  // Of the URL, likewise.
  // Paths below that; empty: it is not asked.
  std::string filter_verb = {};
  std::string prioritize_verb = {};
  std::string preempt_verb = {};
  std::string bind_verb = {};
  int64_t weight = 1;  // Of its scores.
  Duration timeout = Duration::Seconds(5);
  bool takes_names = false;  // Of nodes; else it is sent the objects.
  bool ignorable = false;
  // It is interested in pods that ask for one of these; empty: in all.
  std::vector<std::string> managed = {};
};

// Asks extenders about pods over HTTP, and has them bind (docs/design/0028-extenders.md).
//
//   Ask ─> filter of the 1st ─> of the 2nd, about the nodes that the 1st left ─> ┐
//                 │ fails, and it is not ignorable              more than one is left
//                 v                                                             v
//            kFailed              TakeVerdicts <── all have answered <── prioritize, all at once
//
// Asked about victims: preempt of the 1st, of the 2nd about what the 1st left, and so on.
//
// What is asked is an output and what is answered an input: nothing waits. A question ends with its
// extender's time-out; how many there are at once is up to who asks, and how many of them are on
// their way is bounded for each extender. A copyable value.
class Extenders {
 public:
  static constexpr size_t kExtendersMax = 32;  // Bits of a mask.
  static constexpr size_t kAnswerBytesMax = env::Endpoint::kAnswerBytesMax;
  // Words of an extender's that are kept: of one text, different ones of a verdict, and in all.
  // Whoever puts a number into each must not fill the memory.
  static constexpr size_t kWordsBytesMax = 256;
  static constexpr size_t kWordsOfVerdictMax = 64;
  static constexpr size_t kWordsMax = 4'096;
  // What is told and kept of one failure: as much as an event holds.
  static constexpr size_t kFailureBytesMax = client::kEventNoteBytesMax;
  // Questions to one extender that are under way: more wait here, and their time-outs don't run,
  // rather than for one of the connections to it (net::ClientOptions).
  static constexpr size_t kQuestionsMax = 16;
  // Bindings under way: as many as 100 connections carry in 5 s where each takes a second. One more
  // is refused at once, or the API server's where the extender is ignorable: one that doesn't
  // answer delays its own pods alone.
  static constexpr size_t kBindingsMax = 512;
  // One that answers now and then fills no log: of each verb a line in so long.
  static constexpr Duration kQuiet = Duration::Seconds(10);

  // REQUIRES: at most kExtendersMax, in the order in which they are asked.
  explicit Extenders(std::vector<ExtenderOptions> options);

  // Which are interested in such a pod, as bits. O(resources that it names x managed ones).
  [[nodiscard]] uint32_t InterestedIn(const api::PodSpec& spec) const;
  // Whether one of these filters, scores, or is asked about victims.
  [[nodiscard]] bool AreAsked(uint32_t interested) const;
  [[nodiscard]] bool AreAskedAboutVictims(uint32_t interested) const;

  // As the API server has them. Nodes are kept where one of the extenders is sent them.
  void ObserveNode(const std::string& name, const Bytes& document);
  void ForgetNode(const std::string& name);
  // A pod that waits, and that these are interested in.
  void ObservePod(const std::string& uid, const Bytes& document, uint32_t interested);
  // One that has a node. It is kept where one of the extenders is sent victims.
  void ObservePlaced(const std::string& uid, const Bytes& document);
  // Nothing more is asked about it, and it is no victim.
  void ForgetPod(std::string_view uid, env::Outbox& out);

  struct Query {
    std::string uid = {};
    uint64_t number = 0;
    std::vector<std::string> nodes = {};
    // Or where evictions would make room, and of whom: `nodes` is empty.
    bool about_victims = false;
    std::vector<ShownVictims> victims = {};
  };
  // In place of what is being asked about the pod. REQUIRES: it is observed.
  void Ask(Query query, env::Outbox& out);

  // Has the pod bound by the one that binds, if it is interested: the call. REQUIRES: no device
  // goes with the binding, for which there is no place in what it is told. It leaves before
  // `not_after` or not at all (env::SendRequest).
  std::optional<env::CallId> Bind(Instant now, const Binder::Attempt& attempt, Instant not_after,
                                  env::Outbox& out);

  // Takes one input, if it is of a call of this.
  void Handle(Instant now, const env::Input& input, env::Outbox& out);

  struct Verdict {
    std::string uid = {};
    uint64_t query = 0;
    std::string failure = {};  // Of an extender that must answer; empty: the rest is the answer.
    struct Node {
      std::string name = {};
      bool permitted = false;
      bool unresolvable = false;
      std::string why = {};
      int64_t score = 0;
    };
    std::vector<Node> nodes = {};
    bool about_victims = false;
    std::vector<ShownVictims> victims = {};  // That are permitted.
  };
  [[nodiscard]] std::vector<Verdict> TakeVerdicts() { return std::exchange(verdicts_, {}); }
  // As the core takes it; within the bounds of words.
  [[nodiscard]] model::ExternalVerdict FactOf(const Verdict& verdict, Instant now,
                                              model::Vocabulary& vocabulary);

  // What became of a binding: Done, Refused (nothing was sent) or Unknown (it may have bound). The
  // response's body is a Status, whose message says what went wrong.
  struct Bound {
    client::CallDone done = {};
    bool ignorable = false;  // It went wrong, and that is nothing: the API server is to bind.
    std::string message = {};
  };
  [[nodiscard]] std::vector<Bound> TakeBound() { return std::exchange(bound_, {}); }
  // Something is to be taken: verdicts, or what became of bindings.
  [[nodiscard]] bool has_results() const { return !verdicts_.empty() || !bound_.empty(); }

  // The node is another by now, or gone: whatever becomes of bindings to it that are under way, no
  // other is sent in their place.
  void GiveUpBindingsTo(std::string_view node);

  // Nothing is asked any more; of each pod that was the verdict is that nobody waits for it. What
  // binds goes on.
  [[nodiscard]] std::vector<model::ExternalVerdict> WithdrawAll(Instant now, env::Outbox& out);

  [[nodiscard]] size_t asked_count() const { return asked_.size(); }
  [[nodiscard]] size_t bindings_count() const { return bindings_.size(); }
  struct Counters {
    uint64_t calls = 0;
    uint64_t failures = 0;
  };
  // Of each extender.
  enum class Verb : uint8_t { kFilter, kPrioritize, kPreempt, kBind };
  static constexpr size_t kVerbs = 4;
  [[nodiscard]] const Counters& counters(size_t extender, Verb verb) const {
    return states_[extender].counters[static_cast<size_t>(verb)];
  }
  [[nodiscard]] const std::vector<ExtenderOptions>& options() const { return options_; }

  void AddTo(Hasher& hasher) const;

 private:
  struct Pod {
    Bytes document;
    uint32_t interested = 0;
  };
  struct Asked {
    Query query;  // Of the nodes those that passed so far.
    Bytes document;
    uint32_t interested = 0;
    size_t next = 0;           // Whose filter is next, or under way.
    std::set<uint64_t> calls;  // Under way.
    std::map<std::string, Verdict::Node> refused;
    std::map<std::string, int64_t> scores;
  };
  struct Call {
    size_t extender = 0;
    Verb verb = Verb::kFilter;
    std::string uid;
  };
  // What is known of one extender.
  struct State {
    Counters counters[kVerbs];
    std::string told[kVerbs];  // What the log was told last of its trouble; empty: it has none.
    Instant quiet_until[kVerbs] = {};  // Of it the log is told nothing before,
    bool untold[kVerbs] = {};          // though it was another in between.
    size_t questions = 0;              // Under way.
    std::deque<env::SendRequest> waiting = {};
    // Where it binds: questions and bindings share no connection. Immutable after construction.
    std::shared_ptr<const env::Endpoint> binds_at = {};
  };

  [[nodiscard]] const std::string& VerbOf(size_t extender, Verb verb) const;
  [[nodiscard]] std::string UrlOf(size_t extender, Verb verb) const;
  [[nodiscard]] std::string ArgsFor(size_t extender, const Asked& asked) const;
  [[nodiscard]] std::string VictimArgsFor(size_t extender, const Asked& asked) const;
  uint64_t Send(Call call, std::string body, Instant not_after, env::Outbox& out);
  void SendNext(size_t extender, env::Outbox& out);
  void Advance(const std::string& uid, env::Outbox& out);
  void Prioritize(Asked& asked, env::Outbox& out);
  void Finish(const std::string& uid);
  void Cancel(Asked& asked, env::Outbox& out);
  void Note(const Call& call, const std::string& failure, env::Outbox& out);
  void Tell(const Call& call, const std::string& failure, env::Outbox& out);
  using Answer = Result<std::string_view>;
  void OnAnswer(env::CallId id, const Answer& answer, bool sent, env::Outbox& out);
  void OnLeft(const Call& call, const Answer& answer, env::Outbox& out);
  void Failed(const Call& call, std::string failure);
  void OnPriorities(const Call& call, const Answer& answer, env::Outbox& out);
  void OnBinding(env::CallId id, const Call& call, const Answer& answer, bool sent,
                 env::Outbox& out);
  Bound& FinishBinding(env::CallId id, std::string failure, client::Outcome outcome);
  [[nodiscard]] Status TakeFilter(size_t extender, std::string_view text, Asked& asked) const;
  [[nodiscard]] Status TakeVictims(size_t extender, std::string_view text, Asked& asked) const;
  [[nodiscard]] Result<std::map<std::string, int64_t>> ScoresOf(size_t extender,
                                                                std::string_view text) const;
  [[nodiscard]] model::NameId Words(std::string_view text, std::set<std::string>& of_verdict,
                                    model::Vocabulary& vocabulary);

  std::vector<ExtenderOptions> options_;  // Immutable after construction, as the next.
  bool keeps_nodes_ = false;
  bool keeps_placed_ = false;
  std::map<std::string, Bytes, std::less<>> nodes_;
  std::map<std::string, Pod, std::less<>> pods_;      // By uid.
  std::map<std::string, Bytes, std::less<>> placed_;  // Likewise.
  std::map<std::string, Asked, std::less<>> asked_;   // Likewise.
  std::map<uint64_t, Call> calls_;
  // Calls, and to which node. Empty: it is not bound there in another way.
  std::map<uint64_t, std::string> bindings_;
  std::vector<Verdict> verdicts_;
  std::vector<Bound> bound_;
  std::vector<State> states_;
  Instant now_;  // Of the input that is being handled.
  std::set<std::string, std::less<>> words_;
  uint64_t next_call_;
};

}  // namespace berth::control
