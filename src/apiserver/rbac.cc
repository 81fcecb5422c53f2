#include "apiserver/rbac.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "api/field_error.h"
#include "api/object.h"

namespace berth::apiserver {

namespace {

using api::Json;
using api::TextsAt;

bool Has(const std::vector<std::string>& set, std::string_view element) {
  return std::ranges::find(set, element) != set.end();
}

bool HasOrAll(const std::vector<std::string>& set, std::string_view element) {
  return Has(set, "*") || Has(set, element);
}

bool ResourceMatches(const Rule& rule, const Attributes& wanted) {
  if (wanted.subresource.empty()) return HasOrAll(rule.resources, wanted.resource);
  return HasOrAll(rule.resources, fmt::format("{}/{}", wanted.resource, wanted.subresource)) ||
         Has(rule.resources, fmt::format("*/{}", wanted.subresource));
}

// Whether a pattern of paths covers a path, or another pattern.
bool UrlCovers(std::string_view pattern, std::string_view path) {
  if (pattern == path) return true;
  if (!pattern.ends_with('*')) return false;
  // Upstream takes all stars off the end.
  const size_t end = pattern.find_last_not_of('*');
  return path.starts_with(pattern.substr(0, end == std::string_view::npos ? 0 : end + 1));
}

bool ResourceCovers(const Rule& held, const std::string& resource) {
  if (HasOrAll(held.resources, resource)) return true;
  const size_t slash = resource.find('/');
  return slash != std::string::npos && Has(held.resources, "*" + resource.substr(slash));
}

// REQUIRES: `wanted` is one of those that TakeApart makes.
bool Covers(const Rule& held, const Rule& wanted) {
  if (!HasOrAll(held.verbs, wanted.verbs.front())) return false;
  if (!wanted.urls.empty()) {
    // A rule for some names is none of paths.
    return held.names.empty() && std::ranges::any_of(held.urls, [&](const std::string& pattern) {
             return UrlCovers(pattern, wanted.urls.front());
           });
  }
  if (!HasOrAll(held.groups, wanted.groups.front())) return false;
  if (!ResourceCovers(held, wanted.resources.front())) return false;
  if (held.names.empty()) return true;
  return !wanted.names.empty() && Has(held.names, wanted.names.front());
}

void TakeApart(const Rule& rule, std::vector<Rule>& out) {
  for (const std::string& group : rule.groups) {
    for (const std::string& resource : rule.resources) {
      for (const std::string& verb : rule.verbs) {
        Rule single{
            .verbs = {verb}, .groups = {group}, .resources = {resource}, .names = {}, .urls = {}};
        if (rule.names.empty()) out.push_back(single);
        for (const std::string& name : rule.names) {
          single.names = {name};
          out.push_back(single);
        }
      }
    }
  }
  for (const std::string& url : rule.urls) {
    for (const std::string& verb : rule.verbs) {
      out.push_back({.verbs = {verb}, .groups = {}, .resources = {}, .names = {}, .urls = {url}});
    }
  }
}

bool SameButVerbs(const Rule& a, const Rule& b) {
  return a.urls.empty() && b.urls.empty() && a.groups == b.groups && a.resources == b.resources &&
         a.names == b.names;
}

std::string Quoted(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) {
    if (!out.empty()) out += ' ';
    out += api::QuoteGo(text);
  }
  return fmt::format("[{}]", out);
}

std::string Told(const Rule& rule) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view name, const std::vector<std::string>& texts) {
    if (!texts.empty()) parts.push_back(fmt::format("{}:{}", name, Quoted(texts)));
  };
  add("APIGroups", rule.groups);
  add("Resources", rule.resources);
  add("NonResourceURLs", rule.urls);
  add("ResourceNames", rule.names);
  add("Verbs", rule.verbs);
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

}  // namespace

std::vector<Rule> ParseRules(const Json& role) {
  std::vector<Rule> rules;
  for (const Json& rule : api::ArrayAt(role, "rules")) {
    rules.push_back({.verbs = TextsAt(rule, "verbs"),
                     .groups = TextsAt(rule, "apiGroups"),
                     .resources = TextsAt(rule, "resources"),
                     .names = TextsAt(rule, "resourceNames"),
                     .urls = TextsAt(rule, "nonResourceURLs")});
  }
  return rules;
}

bool Allows(const Rule& rule, const Attributes& wanted) {
  if (!HasOrAll(rule.verbs, wanted.verb)) return false;
  if (!wanted.of_resource) {
    return std::ranges::any_of(
        rule.urls, [&](const std::string& pattern) { return UrlCovers(pattern, wanted.path); });
  }
  return HasOrAll(rule.groups, wanted.group) && ResourceMatches(rule, wanted) &&
         (rule.names.empty() || Has(rule.names, wanted.name));
}

std::vector<Rule> NotCovered(std::span<const Rule* const> held, std::span<const Rule> wanted) {
  std::vector<Rule> singles;
  for (const Rule& rule : wanted) TakeApart(rule, singles);
  std::erase_if(singles, [&](const Rule& single) {
    return std::ranges::any_of(held, [&](const Rule* rule) { return Covers(*rule, single); });
  });
  return singles;
}

std::string Describe(std::vector<Rule> rules) {
  std::vector<Rule> together;
  for (Rule& rule : rules) {
    const auto known = std::ranges::find_if(
        together, [&](const Rule& other) { return SameButVerbs(other, rule); });
    if (known == together.end()) {
      together.push_back(std::move(rule));
    } else {
      known->verbs.insert(known->verbs.end(), rule.verbs.begin(), rule.verbs.end());
    }
  }
  std::vector<std::string> lines;
  for (const Rule& rule : together) lines.push_back(Told(rule));
  std::ranges::sort(lines);
  lines.erase(std::ranges::unique(lines).begin(), lines.end());
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace berth::apiserver
