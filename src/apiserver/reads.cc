#include "apiserver/reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "api/object.h"
#include "apiserver/continue_token.h"
#include "apiserver/selection.h"
#include "apiserver/writes.h"

namespace berth::apiserver {

namespace {

using api::FieldErrors;

std::unexpected<Problem> InvalidListOptions(const FieldErrors& errors) {
  return InvalidOptions("ListOptions", errors);
}

// Which combinations of resourceVersion, resourceVersionMatch, continue and sendInitialEvents make
// sense (apimachinery meta/internalversion/validation).
Outcome<void> CheckListOptions(const Query& query) {
  constexpr std::array<std::string_view, 3> kSupported = {"Exact", "NotOlderThan", ""};
  const std::string_view match = query.Text("resourceVersionMatch");
  const std::string_view version = query.Text("resourceVersion");
  FieldErrors errors;
  const auto forbid = [&](std::string why) {
    errors.push_back(api::ForbiddenField("resourceVersionMatch", std::move(why)));
  };
  if (!match.empty()) {
    if (version.empty())
      forbid("resourceVersionMatch is forbidden unless resourceVersion is provided");
    if (!query.Text("continue").empty())
      forbid("resourceVersionMatch is forbidden when continue is provided");
    if (match != "Exact" && match != "NotOlderThan")
      errors.push_back(api::NotSupportedField("resourceVersionMatch", match, kSupported));
    if (match == "Exact" && version == "0")
      forbid("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
  }
  if (query.Find("sendInitialEvents")) {
    errors.push_back(
        api::ForbiddenField("sendInitialEvents", "sendInitialEvents is forbidden for list"));
  }
  if (!errors.empty()) return InvalidListOptions(errors);
  return {};
}

// The same of a watch.
Outcome<void> CheckWatchOptions(const Query& query) {
  constexpr std::array<std::string_view, 1> kSupported = {"NotOlderThan"};
  const std::string_view match = query.Text("resourceVersionMatch");
  const bool sends = query.Find("sendInitialEvents").has_value();
  FieldErrors errors;
  const auto forbid = [&](std::string why) {
    errors.push_back(api::ForbiddenField("resourceVersionMatch", std::move(why)));
  };
  if (sends && match != "NotOlderThan")
    forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
  const std::string_view version = query.Text("resourceVersion");
  const bool continued = !query.Text("continue").empty();
  // What begins with what there is sends that, and so is taken to have said it.
  if (!sends && match.empty() && continued && (version.empty() || version == "0"))
    forbid("resourceVersionMatch is forbidden when continue is provided");
  if (!match.empty()) {
    if (!sends)
      forbid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    if (match != "NotOlderThan")
      errors.push_back(api::NotSupportedField("resourceVersionMatch", match, kSupported));
    if (continued) forbid("resourceVersionMatch is forbidden when continue is provided");
  }
  if (!errors.empty()) return InvalidListOptions(errors);
  return {};
}

// Where a list stands: at which revision, and after which object.
struct ListPosition {
  uint64_t revision = 0;
  std::string after_namespace;
  std::string after_name;
};

Outcome<ListPosition> ContinuePosition(const store::Store& store, const ResourceRequest& request,
                                       std::string_view text) {
  if (!request.query.Text("resourceVersion").empty()) {
    return BadRequest("specifying resource version is not allowed when using continue");
  }
  Outcome<ContinueToken> token = ParseContinueToken(text, request.namespace_name);
  if (!token) return std::unexpected(std::move(token.error()));
  ListPosition position{.revision = store.durable_revision(),
                        .after_namespace = std::move(token->after_namespace),
                        .after_name = std::move(token->after_name)};
  if (token->revision < 0) return position;  // Takes the rest as it is now.
  position.revision = static_cast<uint64_t>(token->revision);
  if (position.revision > store.durable_revision()) {
    return VersionTooLarge(position.revision, store.durable_revision());
  }
  if (position.revision < store.compacted_revision()) {
    auto problem = Expired(
        "The provided continue parameter is too old to display a consistent list result. You can "
        "start a new list without the continue parameter, or use the continue token in this "
        "response "
        "to retrieve the remainder of the results. Continuing with the provided token results in "
        "an "
        "inconsistent list - objects that were created, modified, or deleted between the time the "
        "first chunk was returned and now may show up in the list.");
    problem.error().continue_token =
        PrintContinueToken({.revision = -1,
                            .after_namespace = position.after_namespace,
                            .after_name = position.after_name},
                           request.namespace_name);
    return problem;
  }
  return position;
}

Outcome<ListPosition> StartPosition(const store::Store& store, const ResourceRequest& request) {
  const std::string_view continued = request.query.Text("continue");
  if (!continued.empty()) return ContinuePosition(store, request, continued);
  ListPosition position{
      .revision = store.durable_revision(), .after_namespace = {}, .after_name = {}};
  const std::string_view text = request.query.Text("resourceVersion");
  if (text.empty()) return position;
  const std::optional<uint64_t> revision = ParseRevision(text);
  if (!revision) return BadVersion(text);
  if (*revision > store.durable_revision()) {
    return VersionTooLarge(*revision, store.durable_revision());
  }
  if (request.query.Text("resourceVersionMatch") == "Exact") {
    if (*revision < store.compacted_revision()) {
      return Expired("The resourceVersion for the provided list is too old.");
    }
    position.revision = *revision;
  }
  return position;
}

std::unexpected<Problem> NoList(const api::Kind& kind) {
  if (kind.custom) return Unclassified("content is not a list");
  // Both kinds of events are one there.
  const api::Kind& told = kind.id == api::KindId::kEventsEvent ? api::KindOf(kind.storage) : kind;
  const std::string_view package = told.group.substr(0, told.group.find('.'));
  return NotAcceptable(
      fmt::format("you requested PartialObjectMetadataList, but the requested object is not a list "
                  "(*{}.{})",
                  package.empty() ? "core" : package, kind.name));
}

std::string ListMetadata(const ListPosition& position, const std::string& token,
                         int64_t remaining) {
  std::string out = fmt::format("\"resourceVersion\":\"{}\"", position.revision);
  if (token.empty()) return out;
  out += fmt::format(",\"continue\":\"{}\"", token);
  if (remaining > 0) out += fmt::format(",\"remainingItemCount\":{}", remaining);
  return out;
}

}  // namespace

Outcome<env::HttpResponse> Get(Instant now, const store::Store& store,
                               const ResourceRequest& request) {
  const Outcome<Shape> shape = Negotiate(request, AnswerKind::kOne);
  // Who asks for a list of one object is told so once there is the object.
  const bool as_list = !shape && Negotiate(request, AnswerKind::kList).has_value();
  if (!shape && !as_list) return std::unexpected(shape.error());
  if (const std::string_view text = request.query.Text("resourceVersion"); !text.empty()) {
    const std::optional<uint64_t> revision = ParseRevision(text);
    // Events are read from where they are stored, past upstream's cache.
    if (!revision && request.kind->storage == api::KindId::kEvent)
      return BadRequest(fmt::format("invalid resource version: {}", NoRevision(text)));
    if (!revision) return Unclassified(NoRevision(text));
    if (*revision > store.durable_revision()) {
      return VersionTooLarge(*revision, store.durable_revision());
    }
  }
  const store::ObjectRef object = store.Find(
      TableOf(*request.kind), {.namespace_name = request.namespace_name, .name = request.name});
  if (object == nullptr) return NotFound(request.subject());
  if (as_list) return NoList(*request.kind);
  if (request.subpart == Subpart::kScale) {
    const Outcome<std::string> scale = ShownScale(*request.kind, *object);
    if (!scale) return std::unexpected(scale.error());
    return Answer(200, shape->syntax, *scale);
  }
  return AnswerStored(200, *shape, object->json, now);
}

Outcome<Listing> FindListed(const store::Store& store, const ResourceRequest& request, View view) {
  const Outcome<std::optional<int64_t>> limit = ParseIntegerParameter(request.query, "limit");
  if (!limit) return std::unexpected(limit.error());
  const auto timeout = ParseIntegerParameter(request.query, "timeoutSeconds");
  if (!timeout) return std::unexpected(timeout.error());
  const Outcome<Selection> selection = Selection::Parse(request);
  if (!selection) return std::unexpected(selection.error());
  if (Outcome<void> fine = CheckListOptions(request.query); !fine) {
    return std::unexpected(std::move(fine.error()));
  }
  Outcome<ListPosition> position = StartPosition(store, request);
  if (!position) return std::unexpected(std::move(position.error()));

  // A list at "any" revision is whole, as upstream's cache answers it.
  const bool whole = request.query.Text("resourceVersion") == "0";
  const int64_t most = limit->value_or(0) > 0 && !whole ? **limit : INT64_MAX;
  store::Range range = selection->range();
  range.after_namespace = position->after_namespace;
  range.after_name = position->after_name;
  Listing listing;
  int64_t remaining = 0;
  const auto visit = [&](const store::ObjectRef& object) {
    if (!selection->Matches(*object)) return true;
    if (static_cast<int64_t>(listing.objects.size()) == most) {
      ++remaining;
      // How many more is only told where it is cheap to know, as upstream does.
      return selection->all_in_namespace();
    }
    listing.objects.push_back(object);
    return true;
  };
  const bool newest =
      request.query.Text("continue").empty() && request.query.Text("resourceVersion").empty();
  if (view == View::kHead && newest) {
    position->revision = store.next_revision() - 1;
    store.WalkHead(range, visit);
  } else {
    store.WalkAt(position->revision, range, visit);
  }
  std::string token;
  if (remaining > 0) {
    token = PrintContinueToken({.revision = static_cast<int64_t>(position->revision),
                                .after_namespace = listing.objects.back()->namespace_name,
                                .after_name = listing.objects.back()->name},
                               request.namespace_name);
    if (!selection->all_in_namespace()) remaining = 0;
  }
  listing.metadata = ListMetadata(*position, token, remaining);
  return listing;
}

Outcome<ListRenderer> List(Instant now, const store::Store& store, const ResourceRequest& request) {
  const Outcome<Shape> shape = Negotiate(request, AnswerKind::kList);
  if (!shape) return std::unexpected(shape.error());
  const Outcome<Listing> listing = FindListed(store, request, View::kDurable);
  if (!listing) return std::unexpected(listing.error());
  ListRenderer list(*shape, now);
  for (const store::ObjectRef& object : listing->objects) list.Add(object->json);
  list.Start(listing->metadata);
  return list;
}

Outcome<WatchStart> ParseWatch(Instant now, const ResourceRequest& request, Prng& prng) {
  const Outcome<Shape> shape = Negotiate(request, AnswerKind::kWatch);
  if (!shape) return std::unexpected(shape.error());
  const Query& query = request.query;
  const auto timeout = ParseIntegerParameter(query, "timeoutSeconds");
  if (!timeout) return std::unexpected(timeout.error());
  Outcome<Selection> selection = Selection::Parse(request);
  if (!selection) return std::unexpected(std::move(selection.error()));
  if (Outcome<void> fine = CheckWatchOptions(query); !fine) {
    return std::unexpected(std::move(fine.error()));
  }
  const std::string_view text = query.Text("resourceVersion");
  const std::optional<uint64_t> revision = text.empty() ? 0 : ParseRevision(text);
  if (!revision) return Unclassified(NoRevision(text));
  const bool send = ParseFlagParameter(query, "sendInitialEvents");
  const bool told = query.Find("sendInitialEvents").has_value();
  // Without a word the server ends a watch after half an hour to an hour, so that they don't all
  // return at once.
  const int64_t told_seconds = timeout->value_or(0);
  const int64_t seconds =
      told_seconds != 0 ? std::max<int64_t>(told_seconds, 0) : prng.Between(1800, 3600);
  return WatchStart{.shape = *shape,
                    .selection = std::move(*selection),
                    // Unset and "0" mean: what there is, then what comes; or that alone.
                    .listing = told ? send : *revision == 0,
                    .after = *revision == 0 ? std::nullopt : revision,
                    .bookmarks = ParseFlagParameter(query, "allowWatchBookmarks"),
                    .initial_events_end = send,
                    .deadline = now + Duration::Seconds(seconds)};
}

}  // namespace berth::apiserver
