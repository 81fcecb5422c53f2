#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/kinds.h"
#include "apiserver/definitions.h"
#include "apiserver/problem.h"
#include "apiserver/request.h"
#include "env/http.h"

namespace berth::apiserver {

// What the server tells about itself: health, version, the groups and resources it serves (plain
// and aggregated), OpenAPI. All of it is made of the tables of kinds and schema and of users'
// definitions: a cache, no state.
class Discovery {
 public:
  // A target that is no resource; nothing when it is one, or below one.
  [[nodiscard]] std::optional<Outcome<env::HttpResponse>> Answer(const Target& target,
                                                                 const env::HttpRequest& http,
                                                                 const Definitions& definitions);

  // Definitions changed: what was made of them is made anew.
  void Forget() { documents_.clear(); }

  // Paths that need no credentials: those of upstream's role system:public-info-viewer.
  [[nodiscard]] static bool IsPublic(std::string_view path);

 private:
  struct Document {
    std::string path;
    std::string text;
    std::string etag;  // Of the whole text, without quotes.
  };
  const Document& Cached(std::string_view path, const std::function<std::string()>& make);
  // Valid until the next one is kept.
  const Document& Keep(std::string_view path, std::string text);
  Outcome<env::HttpResponse> OpenApiV2(const env::HttpRequest& http,
                                       std::span<const api::Kind* const> all);
  Outcome<env::HttpResponse> OpenApi(const Target& target, const env::HttpRequest& http,
                                     std::span<const api::Kind* const> all);

  std::vector<Document> documents_;
};

}  // namespace berth::apiserver
