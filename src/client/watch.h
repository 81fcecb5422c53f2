#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/prng.h"
#include "base/time.h"
#include "client/identity.h"
#include "client/known_set.h"
#include "client/request.h"
#include "env/actor.h"

// One list-watch: a list in pages, a watch from the list's version, renewed when it ends, a relist
// when the server no longer has the version (410), and where it takes lists and refuses watches.
//
//          +------- 410, a frame that can't be read, a watch that is refused -------+
//          v                                                                        |
//   kWaiting(list) --> kListing --last page--> kOpening --200--> kStreaming --------+
//          ^              |                    |      ^              |
//          +---backoff----+               error|      |              |end
//                                              v      |              |
//                                           kWaiting(watch) <--------+
//                                             (backoff)
namespace berth::client {

// Names a list-watch of one client.
struct WatchId {
  uint32_t value = 0;
  constexpr auto operator<=>(const WatchId&) const = default;
};

enum class Change : uint8_t { kAdded, kModified, kDeleted };

// An object appeared, changed or went. What is told of one name is always consistent: kAdded, then
// kModified any number of times, then kDeleted of the same uid; a name that was given again during
// a gap is told as kDeleted of the old uid and kAdded of the new. Of two list-watches nothing is
// promised of the order.
//
// The first list is told as its pages come. Any later one is told when it is whole, in one step and
// deletions first: nobody meets half of a list, or what is new beside what it replaced. Only what
// was read by itself (Client::Learn) is told at once even then.
struct ObjectEvent {
  WatchId watch = {};
  Change change = Change::kAdded;
  std::string namespace_name = {};
  std::string name = {};
  std::string uid = {};
  // The object's JSON. For kDeleted its last state if the server told it, empty if the deletion was
  // found out by a relist.
  Bytes object = {};
};

// A list is complete: everything that existed has been told, and everything known before that no
// longer exists too.
struct Synced {
  WatchId watch = {};
  bool first = false;  // Of this list-watch.
};

// Something an operator should know; the list-watch goes on by itself.
struct WatchTrouble {
  WatchId watch = {};
  int status = 0;  // HTTP status or Status.code; 0 when it was none.
  std::string message = {};
  bool repeated = false;  // It is as the last one, and no watch was opened since: told already.
};

using WatchEvent = std::variant<ObjectEvent, Synced, WatchTrouble>;

struct WatchOptions {
  Resource resource = {};
  std::string namespace_name = {};  // Empty for all.
  std::string label_selector = {};
  std::string field_selector = {};
  // The server may not know the resource, now or ever: then there are no objects of it, and it is
  // looked for again, soon and then at the longest backoff.
  bool may_be_absent = false;
  // What it means that objects of what may be absent may not be listed (403): they are then as
  // absent, and that is told with it. One that was listed before keeps what it knows for a minute:
  // rights come and go while a server starts. Empty: the right is needed.
  std::string if_forbidden = {};
  // Of the objects nothing but their metadata is asked for.
  bool metadata_only = false;
  bool operator==(const WatchOptions&) const = default;
};

struct WatchLimits {
  int64_t page_limit = 500;
  Duration watch_timeout = Duration::Seconds(300);
  Duration backoff_initial = Duration::Milliseconds(200);
  Duration backoff_max = Duration::Seconds(30);
  bool planted_resume_after_gone = false;
};

// What a list-watch did, for metrics and for tests.
struct WatchCounters {
  uint64_t lists = 0;
  uint64_t pages = 0;
  uint64_t opened = 0;
  uint64_t gone = 0;  // 410s.
  uint64_t events = 0;
  uint64_t bookmarks = 0;
  uint64_t replays = 0;  // Events that told nothing new.
  uint64_t troubles = 0;
};

// What a step of a list-watch needs of its client.
struct WatchContext {
  Instant now;
  const WatchLimits& limits;
  Prng& prng;
  uint64_t& next_call;
  std::vector<WatchEvent>& events;
  // Requests to send: call, target, whether it is a stream; the client adds headers.
  struct Send {
    env::CallId call;
    std::string target;
    std::string_view accept;
    bool stream = false;
  };
  std::vector<Send>& sends;
  std::vector<env::CallId>& cancels;
};

// The delay before attempt `failures` + 1: doubling from initial to max, times a factor in [0.5,
// 1).
[[nodiscard]] Duration BackoffDelay(const WatchLimits& limits, uint32_t failures, Prng& prng);

// How many objects a list asks for at once: half as many after a page that did not come whole,
// which may have been too large or too slow; twice as many after one that came, up to what its
// client asks for. Where more fail right after fewer have come it is their number that fails: not
// so many are asked for until a list is whole.
class PageLimit {
 public:
  [[nodiscard]] int64_t Of(const WatchLimits& limits) const;
  void OnPage();
  void OnFailure(const WatchLimits& limits);
  void OnWholeList() { halvings_min_ = 0; }
  void AddTo(Hasher& hasher) const;

 private:
  uint32_t halvings_ = 0;
  uint32_t halvings_min_ = 0;
  bool doubled_ = false;  // By the last page, and no page came since.
};

// A copyable value.
class WatchState {
 public:
  WatchState(WatchId id, WatchOptions options);

  void OnTick(WatchContext& context);
  void OnResponse(WatchContext& context, const env::HttpResponse& response);
  void OnData(WatchContext& context, std::string_view data);
  void OnEnded(WatchContext& context);
  void OnFailed(WatchContext& context, const env::CallFailed& failed);
  // The same is worth telling again.
  void ForgetTrouble() { trouble_.clear(); }
  // Whether its last request ended without an answer.
  [[nodiscard]] bool unanswered() const { return unanswered_; }
  // An object that was read by itself.
  void Learn(WatchContext& context, std::string_view object);
  // Lists again from the beginning, whatever it is doing, in the same step.
  void Relist(WatchContext& context);
  // Ends it: nothing is under way, due or known any more.
  void Stop(WatchContext& context);

  [[nodiscard]] bool owns(env::CallId call) const { return call_ == call && call.value != 0; }
  [[nodiscard]] Instant wake_at() const { return at_; }
  [[nodiscard]] bool synced() const { return synced_; }
  // The server didn't know the resource when it was last asked, or did not let it be listed.
  [[nodiscard]] bool absent() const { return absent_; }
  // Whether a list that is answered so says that there is nothing.
  [[nodiscard]] bool MeansAbsent(int status) const {
    return options_.may_be_absent &&
           (status == 404 || (status == 403 && !options_.if_forbidden.empty()));
  }
  [[nodiscard]] bool stopped() const { return stopped_; }
  // No list has ended since Relist().
  [[nodiscard]] bool relisting() const { return relisting_; }
  // From when the server first refused the watch (no right to it), or a list of what may be absent,
  // to when it did last, and has not opened a watch since; zero: it did not. What is known is then
  // as old as the last list.
  [[nodiscard]] Duration refused_for() const {
    return refused_since_ == Instant::Never() ? Duration{} : refused_at_ - refused_since_;
  }
  [[nodiscard]] const KnownSet& known() const { return known_; }
  [[nodiscard]] const WatchCounters& counters() const { return counters_; }
  [[nodiscard]] const WatchOptions& options() const { return options_; }
  [[nodiscard]] const std::string& version() const { return version_; }
  void AddTo(Hasher& hasher) const;
  // For a hash that merges: its call is the one of this list-watch in this phase.
  void NameCall(HashNames& names) const;

 private:
  enum class Phase : uint8_t { kWaiting, kListing, kOpening, kStreaming };

  struct Listed {
    Identity identity;
    Bytes object;
  };

  void SendList(WatchContext& context);
  void SendWatch(WatchContext& context);
  void OnPage(WatchContext& context, const env::HttpResponse& response);
  // No answer came in time, or no whole one.
  void OnNoPage(const WatchContext& context);
  void OnListEnd(WatchContext& context, const Version& version);
  void OnFrame(WatchContext& context, std::string_view frame);
  void OnErrorFrame(WatchContext& context, std::string_view object);
  void OnGone(WatchContext& context);
  void OnAbsent(WatchContext& context);
  // Of a list that may be refused.
  void OnForbidden(WatchContext& context, const env::HttpResponse& response);
  enum class Shown : uint8_t { kByList, kByWatch, kByRead };
  void Observe(WatchContext& context, std::string_view object, Shown shown);
  // What an object that is shown changes of what is known; tells what it replaced.
  std::optional<Change> Note(WatchContext& context, const Identity& identity, Shown shown);
  void Tell(WatchContext& context, Change change, Identity identity, Bytes object);
  void Removed(WatchContext& context, std::string_view object);
  void Trouble(WatchContext& context, int status, std::string message);
  // Leaves what is under way and waits: for a list when `relist`, else for the watch.
  void Wait(WatchContext& context, bool relist, bool failed);
  [[nodiscard]] std::string Query() const;

  // Immutable after construction.
  WatchId id_;
  WatchOptions options_;

  Phase phase_ = Phase::kWaiting;
  env::CallId call_;       // Under way; 0 when none.
  Instant at_{0};          // kWaiting: when to go on. kStreaming: when a silent stream is given up.
  Duration silent_after_;  // Of the stream that is opened: how long it may live.
  bool list_needed_ = true;
  bool whole_list_ = false;  // The server lost a page's continuation: list without pages.
  PageLimit page_limit_;
  std::string continue_token_;  // Of the next page; empty at a list's start.
  bool told_at_end_ = false;    // The list that is read.
  // What it showed and is not as it was known: what of a relist changed, never the whole of it.
  std::vector<Listed> listed_;
  std::string version_;    // Where the watch goes on.
  std::string partial_;    // The begun line of a stream.
  bool fruitful_ = false;  // The stream has told something.
  bool from_any_ = false;  // The stream began at version 0: what there is comes in any order.
  bool synced_ = false;
  bool absent_ = false;
  bool stopped_ = false;
  bool relisting_ = false;
  uint32_t failures_ = 0;
  std::string trouble_;  // The last one, until a watch is opened.
  bool unanswered_ = false;
  Instant refused_since_ = Instant::Never();
  Instant refused_at_;
  KnownSet known_;
  WatchCounters counters_;
};

}  // namespace berth::client
