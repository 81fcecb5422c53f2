#include "client/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/backoff.h"
#include "base/check.h"
#include "codec/scan.h"

namespace berth::client {

using codec::ArrayScanner;
using codec::Member;
using codec::ObjectScanner;
using codec::StringMember;
using codec::Unquote;
namespace {

// The longest line of a stream: an object of the largest size and its managed fields, escaped. A
// longer one is no watch event.
constexpr size_t kFrameBytesMax = 16 * 1024 * 1024;

// How long after its own time-out a stream may be silent: the server ends it before, if it is
// there.
constexpr Duration kSilence = Duration::Seconds(30);
// A watch from here tells what there is, in any order, and then what changes.
constexpr std::string_view kAnyVersion = "0";

constexpr std::string_view kWholeObjects = "application/json";
constexpr std::string_view kMetadataList =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
constexpr std::string_view kMetadataWatch =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

// A stream that lived this long was worth opening even if nothing happened.
constexpr Duration kUseful = Duration::Seconds(1);

// So long does a right that is refused count as given: longer than a server takes to come to know
// its roles.
constexpr Duration kForbiddenMax = Duration::Minutes(1);

int CodeOf(std::string_view status) {
  int code = 0;
  for (const char c : Member(status, "code")) {
    if (c < '0' || c > '9' || code > 99) return 0;
    code = code * 10 + (c - '0');
  }
  return code;
}

// A server that does not take the version (another cluster's, or later than what a restored backup
// holds: "Too large resource version", a 504) is asked for a list.
bool IsWrongVersion(int status) { return status == 400 || status == 504; }

// It will be answered alike until somebody changes something: a right is missing.
bool IsRefusal(int status) { return status / 100 == 4 && status != 429; }

struct FrameParts {
  std::string_view type;  // Unquoted.
  std::string_view object;
};

// {"type":"ADDED","object":{...}}: the form that servers write is cut without reading the object.
std::optional<FrameParts> CutFrame(std::string_view frame) {
  while (!frame.empty() && (frame.back() == '\r' || frame.back() == ' ')) frame.remove_suffix(1);
  constexpr std::string_view kHead = R"({"type":")";
  constexpr std::string_view kMiddle = R"(","object":{)";
  if (frame.starts_with(kHead) && frame.ends_with("}}")) {
    const size_t end = frame.find('"', kHead.size());
    if (end != std::string_view::npos && frame.substr(end).starts_with(kMiddle)) {
      const size_t start = end + kMiddle.size() - 1;
      return FrameParts{.type = frame.substr(kHead.size(), end - kHead.size()),
                        .object = frame.substr(start, frame.size() - 1 - start)};
    }
  }
  FrameParts parts;
  ObjectScanner scanner(frame);
  while (scanner.Next()) {
    if (scanner.key() == "type") parts.type = scanner.value();
    if (scanner.key() == "object") parts.object = scanner.value();
  }
  if (scanner.failed() || parts.type.size() < 2 || parts.object.empty()) return std::nullopt;
  parts.type = parts.type.substr(1, parts.type.size() - 2);
  return parts;
}

// The events of one watch ascend: one from before what was told already is a replay (D17: watches
// that went back after a reconnect), but where it tells what there is in any order. `told` becomes
// the version if it is not older.
bool IsReplay(const std::string& version, bool any_order, std::string& told) {
  const bool older = Version::Parse(version).OlderThan(Version::Parse(told));
  if (!older && !version.empty()) told = version;
  return older && !any_order;
}

}  // namespace

Duration BackoffDelay(const WatchLimits& limits, uint32_t failures, Prng& prng) {
  const Duration delay =
      Doubled(limits.backoff_initial, std::max<uint32_t>(failures, 1), limits.backoff_max);
  const int64_t half = std::max<int64_t>(delay.ns / 2, 1);
  return {half + static_cast<int64_t>(prng.Below(static_cast<uint64_t>(half)))};
}

int64_t PageLimit::Of(const WatchLimits& limits) const {
  return std::max<int64_t>(limits.page_limit >> halvings_, 1);
}

void PageLimit::OnPage() {
  doubled_ = halvings_ > halvings_min_;
  if (doubled_) --halvings_;
}

void PageLimit::OnFailure(const WatchLimits& limits) {
  if (Of(limits) > 1) ++halvings_;
  if (std::exchange(doubled_, false)) halvings_min_ = halvings_;
}

void PageLimit::AddTo(Hasher& hasher) const {
  hasher.Add(halvings_).Add(halvings_min_).Add(doubled_);
}

WatchState::WatchState(WatchId id, WatchOptions options) : id_(id), options_(std::move(options)) {}

std::string WatchState::Query() const {
  std::string query;
  if (!options_.label_selector.empty()) {
    query += "&labelSelector=" + PercentEncode(options_.label_selector);
  }
  if (!options_.field_selector.empty()) {
    query += "&fieldSelector=" + PercentEncode(options_.field_selector);
  }
  return query;
}

void WatchState::OnTick(WatchContext& context) {
  if (context.now < at_) return;
  if (phase_ == Phase::kWaiting) {
    if (list_needed_) {
      SendList(context);
    } else {
      SendWatch(context);
    }
    return;
  }
  if (phase_ == Phase::kStreaming) {
    context.cancels.push_back(call_);
    Trouble(context, 0, "the watch was silent past its time-out");
    Wait(context, /*relist=*/false, /*failed=*/true);
  }
}

void WatchState::SendList(WatchContext& context) {
  if (continue_token_.empty()) {
    told_at_end_ = synced_ || known_.size() > 0;
    listed_.clear();
    known_.BeginList();
    ++counters_.lists;
  }
  std::string target =
      PathOf(options_.resource,
             {.namespace_name = options_.namespace_name, .name = {}, .subresource = {}});
  std::string query = Query();
  if (!whole_list_) query += fmt::format("&limit={}", page_limit_.Of(context.limits));
  if (!continue_token_.empty()) query += "&continue=" + PercentEncode(continue_token_);
  if (!query.empty()) target += "?" + query.substr(1);
  call_ = env::CallId{context.next_call++};
  phase_ = Phase::kListing;
  at_ = Instant::Never();
  context.sends.push_back({.call = call_,
                           .target = std::move(target),
                           .accept = options_.metadata_only ? kMetadataList : kWholeObjects,
                           .stream = false});
}

void WatchState::SendWatch(WatchContext& context) {
  const int64_t base = std::max<int64_t>(context.limits.watch_timeout.seconds(), 1);
  const int64_t seconds =
      base + static_cast<int64_t>(context.prng.Below(static_cast<uint64_t>(base)));
  std::string target =
      PathOf(options_.resource,
             {.namespace_name = options_.namespace_name, .name = {}, .subresource = {}});
  target += fmt::format("?watch=true&allowWatchBookmarks=true&timeoutSeconds={}", seconds);
  if (!version_.empty()) target += "&resourceVersion=" + PercentEncode(version_);
  target += Query();
  call_ = env::CallId{context.next_call++};
  phase_ = Phase::kOpening;
  at_ = Instant::Never();
  partial_.clear();
  fruitful_ = false;
  from_any_ = version_ == kAnyVersion;
  ++counters_.opened;
  // Kept for OnResponse, which starts the stream's own clock.
  silent_after_ = Duration::Seconds(seconds) + kSilence;
  context.sends.push_back({.call = call_,
                           .target = std::move(target),
                           .accept = options_.metadata_only ? kMetadataWatch : kWholeObjects,
                           .stream = true});
}

void WatchState::Wait(WatchContext& context, bool relist, bool failed) {
  phase_ = Phase::kWaiting;
  call_ = {};
  partial_.clear();
  whole_list_ = false;
  if (relist) {
    list_needed_ = true;
    continue_token_.clear();
  }
  if (!failed) {
    at_ = context.now;
    return;
  }
  ++failures_;
  at_ = context.now + BackoffDelay(context.limits, failures_, context.prng);
}

void WatchState::Trouble(WatchContext& context, int status, std::string message) {
  ++counters_.troubles;
  const bool repeated = trouble_ == message;
  trouble_ = message;
  context.events.emplace_back(WatchTrouble{
      .watch = id_, .status = status, .message = std::move(message), .repeated = repeated});
}

void WatchState::OnFailed(WatchContext& context, const env::CallFailed& failed) {
  unanswered_ = true;
  Trouble(context, 0,
          fmt::format("{} of {}: {}", phase_ == Phase::kListing ? "list" : "watch",
                      options_.resource.plural, TextOf(failed.failure, failed.why)));
  if (failed.failure != env::CallFailure::kNotSent) OnNoPage(context);
  // A list goes on at the page that failed; its continuation stays good, of whatever limit, or is
  // answered with 410.
  Wait(context, /*relist=*/false, /*failed=*/true);
}

// A list of all at once says nothing of pages.
void WatchState::OnNoPage(const WatchContext& context) {
  if (phase_ == Phase::kListing && !whole_list_) page_limit_.OnFailure(context.limits);
}

void WatchState::OnResponse(WatchContext& context, const env::HttpResponse& response) {
  CHECK(phase_ == Phase::kListing || phase_ == Phase::kOpening);
  unanswered_ = false;
  const bool listing = phase_ == Phase::kListing;
  if (response.status == 200) {
    if (listing) {
      OnPage(context, response);
      return;
    }
    phase_ = Phase::kStreaming;
    at_ = context.now + silent_after_;
    trouble_.clear();
    refused_since_ = Instant::Never();
    return;
  }
  if (listing && MeansAbsent(response.status)) {
    response.status == 403 ? OnForbidden(context, response) : OnAbsent(context);
    return;
  }
  const ApiStatus status = StatusOf(response);
  if (response.status == 410) {
    OnGone(context);
    return;
  }
  Trouble(context, response.status,
          fmt::format("{} of {}: {}", listing ? "list" : "watch", options_.resource.plural,
                      status.message.empty() ? "refused" : status.message));
  if (response.status == 504) OnNoPage(context);  // Says a proxy.
  const bool refused = !listing && IsRefusal(response.status);
  if (refused) {
    refused_since_ = std::min(refused_since_, context.now);
    refused_at_ = context.now;
  }
  // While there is no watch, lists tell what changes.
  Wait(context, /*relist=*/refused || IsWrongVersion(response.status), /*failed=*/true);
  if (const auto after = env::FindHeader(response.headers, "retry-after")) {
    int64_t seconds = 0;
    for (const char c : *after) {
      if (c < '0' || c > '9' || seconds > 3'600) break;
      seconds = seconds * 10 + (c - '0');
    }
    at_ = std::max(at_, context.now + Duration::Seconds(std::min<int64_t>(seconds, 3'600)));
  }
}

void WatchState::OnAbsent(WatchContext& context) {
  OnListEnd(context, Version::Parse(""));
  if (!synced_) context.events.emplace_back(Synced{.watch = id_, .first = true});
  synced_ = true;
  absent_ = true;
  refused_since_ = Instant::Never();
  Wait(context, /*relist=*/true, /*failed=*/false);
  at_ = context.now +
        Doubled(context.limits.backoff_initial, ++failures_, context.limits.backoff_max);
}

void WatchState::OnForbidden(WatchContext& context, const env::HttpResponse& response) {
  const Resource& resource = options_.resource;
  const ApiStatus status = StatusOf(response);
  Trouble(context, response.status,
          fmt::format("no right to list and watch {}{}{}: without it {}: {}", resource.plural,
                      resource.group.empty() ? "" : ".", resource.group, options_.if_forbidden,
                      status.message.empty() ? "refused" : status.message));
  refused_since_ = std::min(refused_since_, context.now);
  refused_at_ = context.now;
  if (!synced_ || absent_ || refused_for() >= kForbiddenMax) return OnAbsent(context);
  Wait(context, /*relist=*/true, /*failed=*/true);
}

void WatchState::OnGone(WatchContext& context) {
  ++counters_.gone;
  if (phase_ == Phase::kListing) {
    // The server compacted the list's snapshot between two pages: the next try asks for all at
    // once. One try alone: where all is more than it can give, pages may do.
    const bool whole = !continue_token_.empty();
    Wait(context, /*relist=*/true, /*failed=*/failures_ > 0);
    whole_list_ = whole;
    ++failures_;
    return;
  }
  if (context.limits.planted_resume_after_gone) {
    version_.clear();
    Wait(context, /*relist=*/false, /*failed=*/true);
    return;
  }
  // The first relist is at once; a server that answers each watch with 410 is not asked in a loop.
  const bool again = failures_ > 0;
  Wait(context, /*relist=*/true, /*failed=*/again);
  if (!again) ++failures_;
}

void WatchState::OnPage(WatchContext& context, const env::HttpResponse& response) {
  std::string_view metadata;
  std::string_view items;
  ObjectScanner scanner(response.body.view());
  while (scanner.Next()) {
    if (scanner.key() == "metadata") metadata = scanner.value();
    if (scanner.key() == "items") items = scanner.value();
  }
  const std::string version = StringMember(metadata, "resourceVersion");
  if (scanner.failed() || version.empty()) {
    Trouble(context, 200,
            fmt::format("list of {}: the answer is no list", options_.resource.plural));
    Wait(context, /*relist=*/true, /*failed=*/true);
    return;
  }
  ++counters_.pages;
  if (!whole_list_) page_limit_.OnPage();
  if (items != "null" && !items.empty()) {
    ArrayScanner array(items);
    while (array.Next()) Observe(context, array.value(), Shown::kByList);
    if (array.failed()) {
      Trouble(context, 200,
              fmt::format("list of {}: its items are damaged", options_.resource.plural));
      Wait(context, /*relist=*/true, /*failed=*/true);
      return;
    }
  }
  continue_token_ = StringMember(metadata, "continue");
  if (!continue_token_.empty()) {
    SendList(context);
    return;
  }
  OnListEnd(context, Version::Parse(version));
  page_limit_.OnWholeList();
  version_ = version;
  list_needed_ = false;
  whole_list_ = false;
  context.events.emplace_back(Synced{.watch = id_, .first = !synced_});
  synced_ = true;
  if (std::exchange(absent_, false)) failures_ = 0;
  SendWatch(context);
}

void WatchState::OnListEnd(WatchContext& context, const Version& version) {
  relisting_ = false;
  const auto first = static_cast<std::ptrdiff_t>(context.events.size());
  for (Listed& listed : std::exchange(listed_, {})) {
    if (const auto change = Note(context, listed.identity, Shown::kByList)) {
      Tell(context, *change, std::move(listed.identity), std::move(listed.object));
    }
  }
  for (KnownSet::Object& gone : known_.EndList(version)) {
    const size_t slash = gone.key.find('/');
    Identity identity{.namespace_name = {}, .name = {}, .uid = std::move(gone.uid)};
    if (slash != std::string::npos) identity.namespace_name = gone.key.substr(0, slash);
    identity.name = slash == std::string::npos ? gone.key : gone.key.substr(slash + 1);
    Tell(context, Change::kDeleted, std::move(identity), {});
  }
  std::stable_partition(context.events.begin() + first, context.events.end(),
                        [](const WatchEvent& event) {
                          const auto* object = std::get_if<ObjectEvent>(&event);
                          return object != nullptr && object->change == Change::kDeleted;
                        });
}

void WatchState::OnData(WatchContext& context, std::string_view data) {
  if (phase_ != Phase::kStreaming) return;
  const env::CallId call = call_;
  while (!data.empty()) {
    const size_t end = data.find('\n');
    if (end == std::string_view::npos) {
      partial_.append(data);
      break;
    }
    if (partial_.empty()) {
      OnFrame(context, data.substr(0, end));
    } else {
      partial_.append(data.substr(0, end));
      const std::string frame = std::exchange(partial_, {});
      OnFrame(context, frame);
    }
    if (call_ != call) return;  // The frame ended the stream.
    data.remove_prefix(end + 1);
  }
  if (partial_.size() > kFrameBytesMax) {
    context.cancels.push_back(call_);
    Trouble(context, 0,
            fmt::format("watch of {}: a line of over {} bytes", options_.resource.plural,
                        kFrameBytesMax));
    Wait(context, /*relist=*/true, /*failed=*/true);
  }
}

void WatchState::OnFrame(WatchContext& context, std::string_view frame) {
  if (frame.find_first_not_of(" \r\t") == std::string_view::npos) return;
  const auto parts = CutFrame(frame);
  if (!parts) {
    context.cancels.push_back(call_);
    Trouble(context, 0,
            fmt::format("watch of {}: a frame that is no event: {}", options_.resource.plural,
                        CutUtf8(frame, 100)));
    Wait(context, /*relist=*/true, /*failed=*/true);
    return;
  }
  if (parts->type == "ERROR") {
    OnErrorFrame(context, parts->object);
    return;
  }
  ++counters_.events;
  if (parts->type == "BOOKMARK") {
    const std::string version =
        Unquote(Member(parts->object, "metadata", "resourceVersion")).value_or("");
    if (version.empty()) {
      Trouble(context, 0, "a bookmark without a resourceVersion");
      return;
    }
    ++counters_.bookmarks;
    if (!Version::Parse(version).OlderThan(Version::Parse(version_))) version_ = version;
    fruitful_ = true;
    failures_ = 0;
    return;
  }
  if (parts->type == "ADDED" || parts->type == "MODIFIED") {
    Observe(context, parts->object, Shown::kByWatch);
  } else if (parts->type == "DELETED") {
    Removed(context, parts->object);
  } else {
    Trouble(context, 0,
            fmt::format("watch of {}: an event of unknown type {}", options_.resource.plural,
                        CutUtf8(parts->type, 40)));
    return;
  }
  fruitful_ = true;
  failures_ = 0;
}

void WatchState::OnErrorFrame(WatchContext& context, std::string_view object) {
  context.cancels.push_back(call_);
  const int code = CodeOf(object);
  const std::string reason = StringMember(object, "reason");
  const std::string message = StringMember(object, "message");
  if (code == 410 || reason == "Expired" || reason == "Gone") {
    OnGone(context);
    return;
  }
  Trouble(context, code, fmt::format("watch of {}: {}", options_.resource.plural, message));
  Wait(context, /*relist=*/IsWrongVersion(code), /*failed=*/true);
}

void WatchState::Observe(WatchContext& context, std::string_view object, Shown shown) {
  constexpr std::string_view kShown[] = {"list", "watch", "get"};
  auto identity = ReadIdentity(object);
  if (!identity || identity->uid.empty() || identity->resource_version.empty()) {
    Trouble(context, 0,
            fmt::format("{} of {}: an object without name, uid or resourceVersion: {}",
                        kShown[static_cast<size_t>(shown)], options_.resource.plural,
                        CutUtf8(object, 100)));
    return;
  }
  if (shown == Shown::kByWatch && IsReplay(identity->resource_version, from_any_, version_)) {
    ++counters_.replays;
    return;
  }
  // The watch has told all up to its version: what it does not know by then and is no newer was
  // deleted, or no longer selected, after it was read. Nothing would ever take it back.
  if (shown == Shown::kByRead) {
    const Version told = Version::Parse(version_);
    const Version read = Version::Parse(identity->resource_version);
    const bool past = told.numeric && read.numeric && read.value <= told.value;
    if (past &&
        !known_.Contains(KnownSet::Key(identity->namespace_name, identity->name), identity->uid)) {
      ++counters_.replays;
      return;
    }
  }
  if (shown == Shown::kByList && told_at_end_) {
    if (known_.Confirm(*identity)) return;
    listed_.push_back({.identity = std::move(*identity), .object = Bytes(std::string(object))});
    return;
  }
  if (const auto change = Note(context, *identity, shown)) {
    Tell(context, *change, std::move(*identity), Bytes(std::string(object)));
  }
}

std::optional<Change> WatchState::Note(WatchContext& context, const Identity& identity,
                                       Shown shown) {
  KnownSet::Result result = known_.Observe(identity, shown == Shown::kByList);
  switch (result.seen) {
    case KnownSet::Seen::kSame:
    case KnownSet::Seen::kStale:
      if (shown == Shown::kByWatch) ++counters_.replays;
      return std::nullopt;
    case KnownSet::Seen::kChanged:
      return Change::kModified;
    case KnownSet::Seen::kAdded:
      return Change::kAdded;
    case KnownSet::Seen::kRecreated:
      break;
  }
  Identity old = identity;
  old.uid = std::move(result.old_uid);
  Tell(context, Change::kDeleted, std::move(old), {});
  return Change::kAdded;
}

void WatchState::Tell(WatchContext& context, Change change, Identity identity, Bytes object) {
  context.events.emplace_back(ObjectEvent{.watch = id_,
                                          .change = change,
                                          .namespace_name = std::move(identity.namespace_name),
                                          .name = std::move(identity.name),
                                          .uid = std::move(identity.uid),
                                          .object = std::move(object)});
}

void WatchState::Learn(WatchContext& context, std::string_view object) {
  if (synced_) Observe(context, object, Shown::kByRead);
}

void WatchState::Relist(WatchContext& context) {
  if (stopped_) return;
  if (call_.value != 0) context.cancels.push_back(call_);
  relisting_ = true;
  Wait(context, /*relist=*/true, /*failed=*/false);
  SendList(context);
}

void WatchState::Stop(WatchContext& context) {
  if (call_.value != 0) context.cancels.push_back(call_);
  *this = WatchState(id_, std::move(options_));
  at_ = Instant::Never();
  synced_ = true;
  stopped_ = true;
}

void WatchState::Removed(WatchContext& context, std::string_view object) {
  auto identity = ReadIdentity(object);
  if (!identity) {
    Trouble(context, 0,
            fmt::format("watch of {}: a deleted object without a name: {}",
                        options_.resource.plural, CutUtf8(object, 100)));
    return;
  }
  if (IsReplay(identity->resource_version, from_any_, version_) || !known_.Remove(*identity)) {
    ++counters_.replays;
    return;
  }
  Tell(context, Change::kDeleted, std::move(*identity), Bytes(std::string(object)));
}

void WatchState::OnEnded(WatchContext& context) {
  // Renewed at once if it was of use; a server that opens and ends streams is not asked in a loop.
  const Instant opened = at_ - silent_after_;
  const bool useful = fruitful_ || context.now - opened >= kUseful;
  if (useful) failures_ = 0;
  Wait(context, /*relist=*/false, /*failed=*/!useful);
}

// Counters and troubles are only shown. A list-watch that takes the place of a stopped one may be
// of another resource.
void WatchState::AddTo(Hasher& hasher) const {
  hasher.Add(id_.value).Add(options_.resource.plural).Add(options_.resource.group);
  hasher.Add(options_.resource.version).Add(phase_).AddCall(call_.value);
  // When a silent stream is given up is drawn.
  phase_ == Phase::kStreaming ? hasher.AddHistory(at_.ns) : hasher.Add(at_.ns);
  hasher.AddHistory(silent_after_.ns);
  hasher.Add(list_needed_).Add(whole_list_).Add(continue_token_);
  page_limit_.AddTo(hasher);
  hasher.AddPosition(version_, options_.resource.plural);
  hasher.Add(partial_);
  hasher.Add(fruitful_).Add(from_any_).Add(synced_).Add(absent_).Add(stopped_).Add(failures_).Add(
      relisting_);
  hasher.Add(refused_since_.ns).Add(refused_for().ns);
  known_.AddTo(hasher);
  hasher.Add(told_at_end_).Add(listed_.size());
  // Uid, version and names are in the object.
  for (const Listed& listed : listed_) hasher.AddDocument(listed.object.view());
}

void WatchState::NameCall(HashNames& names) const {
  if (call_.value == 0) return;
  names.NameCall(call_.value, Hasher().Add("watch").Add(id_.value).Add(phase_).value());
}

}  // namespace berth::client
