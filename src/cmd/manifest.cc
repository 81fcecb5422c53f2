#include "cmd/manifest.h"

#include <fmt/format.h>

#include <utility>

#include "codec/yaml.h"
#include "net/certificates.h"

namespace berth::cmd {

Result<api::Json> ReadManifest(const std::string& path, std::string_view what) {
  const auto fail = [&](const std::string& why) {
    return Fail(ErrorCode::kInvalid, fmt::format("{}: {}", path, why));
  };
  const Result<std::string> text = net::ReadFile(path);
  if (!text) return std::unexpected(text.error());
  auto documents = codec::ParseYaml(*text);
  if (!documents) return fail(documents.error().message);
  if (documents->empty() || (documents->size() == 1 && documents->front().is_null()))
    return fail(fmt::format("is empty; it must be a {}", what));
  if (documents->size() > 1)
    return fail(fmt::format("holds {} documents; it must be one {}", documents->size(), what));
  if (!documents->front().is_object()) return fail(fmt::format("must be a {}", what));
  return std::move(documents->front());
}

}  // namespace berth::cmd
