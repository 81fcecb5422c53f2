#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "apiserver/problem.h"

namespace berth::apiserver {

// Where the next page of a list starts, in upstream's format: base64 of
// {"v":"meta.k8s.io/v1","rv":5,"start":"ns/name\u0000"}. A revision of -1 takes the rest as it is
// at the newest revision.
struct ContinueToken {
  int64_t revision = 0;
  std::string after_namespace;
  std::string after_name;
  bool operator==(const ContinueToken&) const = default;
};

// `list_namespace` is the namespace of the request's path, empty for all: the token's start is
// relative to it.
[[nodiscard]] std::string PrintContinueToken(const ContinueToken& token,
                                             std::string_view list_namespace);
// Problem: 400 for what this server did not print.
[[nodiscard]] Outcome<ContinueToken> ParseContinueToken(std::string_view text,
                                                        std::string_view list_namespace);

}  // namespace berth::apiserver
