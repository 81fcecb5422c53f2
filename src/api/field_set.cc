#include "api/field_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/system/error_code.hpp>
#include <charconv>
#include <optional>
#include <utility>

#include "api/field_error.h"

namespace berth::api {
namespace {

using Nodes = std::vector<FieldSetNode>;

int Sign(bool less, bool greater) { return static_cast<int>(greater) - static_cast<int>(less); }

int KindRank(std::string_view element) {
  switch (element.empty() ? ' ' : element.front()) {
    case 'f':
      return 0;
    case 'k':
      return 1;
    case 'v':
      return 2;
    default:
      return 3;
  }
}

// Floats, integers, texts, flags, null.
int ValueRank(const Json& value) {
  switch (value.kind()) {
    case boost::json::kind::double_:
    case boost::json::kind::int64:
    case boost::json::kind::uint64:
      return 0;
    case boost::json::kind::string:
      return 1;
    case boost::json::kind::bool_:
      return 2;
    default:
      return 3;
  }
}

int CompareValues(const Json& a, const Json& b) {
  const int rank = ValueRank(a);
  if (rank != ValueRank(b)) return Sign(rank<ValueRank(b), rank> ValueRank(b));
  if (a.is_int64() && b.is_int64()) {
    return Sign(a.get_int64() < b.get_int64(), a.get_int64() > b.get_int64());
  }
  if (a.is_number() && b.is_number()) {
    const double x = a.to_number<double>();
    const double y = b.to_number<double>();
    return Sign(x<y, x> y);
  }
  if (a.is_string() && b.is_string()) return a.get_string().compare(b.get_string());
  if (a.is_bool() && b.is_bool())
    return Sign(!a.get_bool() && b.get_bool(), a.get_bool() && !b.get_bool());
  return 0;
}

Json ParseText(std::string_view text) {
  boost::system::error_code error;
  Json value = boost::json::parse(text, error);
  return error ? Json() : value;
}

// Keys of an item: by name, then value; fewer come first.
int CompareKeys(const Json& a, const Json& b) {
  if (!a.is_object() || !b.is_object()) return 0;
  const JsonObject& x = a.get_object();
  const JsonObject& y = b.get_object();
  for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
    const auto& left = *(x.begin() + static_cast<std::ptrdiff_t>(i));
    const auto& right = *(y.begin() + static_cast<std::ptrdiff_t>(i));
    if (const int names = left.key().compare(right.key()); names != 0) return names;
    if (const int values = CompareValues(left.value(), right.value()); values != 0) return values;
  }
  return Sign(x.size() < y.size(), x.size() > y.size());
}

// ---- The same without parsing, of what nearly all elements are ----------------------------------

std::optional<int64_t> IntegerAt(std::string_view json) {
  int64_t value = 0;
  const auto [rest, error] = std::from_chars(json.data(), json.data() + json.size(), value);
  const bool whole =
      error == std::errc() && (rest == json.data() + json.size() || *rest == ',' || *rest == '}');
  return whole ? std::optional(value) : std::nullopt;
}

// Of two keys or two values (`k:{"name":"a","port":80}`, `v:"a"`) that first differ within a text
// without escapes, or in an integer of 64 bits. Nothing for all others.
std::optional<int> ComparePlain(std::string_view a, std::string_view b) {
  const size_t common = std::min(a.size(), b.size());
  bool quoted = false;
  size_t value = 2;  // Where the value that is read begins.
  size_t i = 2;
  for (; i < common && a[i] == b[i]; ++i) {
    const char c = a[i];
    if (c == '\\') return std::nullopt;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == ':') value = i + 1;
    if (c == '[' || (c == '{' && i > 2)) return std::nullopt;
  }
  if (i >= common) return std::nullopt;
  if (quoted) {
    const char x = a[i];
    const char y = b[i];
    if (x == '\\' || y == '\\') return std::nullopt;
    // Where one ends it comes first.
    if (x == '"' || y == '"') return x == '"' ? -1 : 1;
    return static_cast<unsigned char>(x) < static_cast<unsigned char>(y) ? -1 : 1;
  }
  const std::optional<int64_t> x = IntegerAt(a.substr(value));
  const std::optional<int64_t> y = IntegerAt(b.substr(value));
  return x && y && *x != *y ? std::optional(*x < *y ? -1 : 1) : std::nullopt;
}

bool Precedes(const FieldSetNode& node, std::string_view element) {
  return ComparePathElements(node.element, element) < 0;
}

Nodes UnionOf(const Nodes& a, const Nodes& b) {
  Nodes out;
  out.reserve(std::max(a.size(), b.size()));
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const int order = ComparePathElements(a[i].element, b[j].element);
    if (order < 0) {
      out.push_back(a[i++]);
    } else if (order > 0) {
      out.push_back(b[j++]);
    } else {
      out.push_back({.element = a[i].element,
                     .member = a[i].member || b[j].member,
                     .children = UnionOf(a[i].children, b[j].children)});
      ++i;
      ++j;
    }
  }
  out.insert(out.end(), a.begin() + static_cast<std::ptrdiff_t>(i), a.end());
  out.insert(out.end(), b.begin() + static_cast<std::ptrdiff_t>(j), b.end());
  return out;
}

void Keep(FieldSetNode node, Nodes& out) {
  if (node.member || !node.children.empty()) out.push_back(std::move(node));
}

Nodes IntersectionOf(const Nodes& a, const Nodes& b) {
  Nodes out;
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const int order = ComparePathElements(a[i].element, b[j].element);
    if (order < 0) {
      ++i;
    } else if (order > 0) {
      ++j;
    } else {
      Keep({.element = a[i].element,
            .member = a[i].member && b[j].member,
            .children = IntersectionOf(a[i].children, b[j].children)},
           out);
      ++i;
      ++j;
    }
  }
  return out;
}

Nodes DifferenceOf(const Nodes& a, const Nodes& b) {
  Nodes out;
  out.reserve(a.size());
  size_t j = 0;
  for (const FieldSetNode& node : a) {
    while (j < b.size() && ComparePathElements(b[j].element, node.element) < 0) ++j;
    if (j == b.size() || b[j].element != node.element) {
      out.push_back(node);
      continue;
    }
    Keep({.element = node.element,
          .member = node.member && !b[j].member,
          .children = DifferenceOf(node.children, b[j].children)},
         out);
  }
  return out;
}

FieldSetNode* FindField(Nodes& nodes, std::string_view name) {
  PathElement element = "f:";
  element += name;
  const FieldSetNode* found = FindNode(nodes, element);
  return found == nullptr ? nullptr : &nodes[static_cast<size_t>(found - nodes.data())];
}

void RemovePathOf(Nodes& nodes, std::string_view path) {
  const size_t dot = path.find('.');
  FieldSetNode* node = FindField(nodes, path.substr(0, dot));
  if (node == nullptr) return;
  if (dot == std::string_view::npos) {
    node->member = false;
  } else {
    RemovePathOf(node->children, path.substr(dot + 1));
  }
  if (!node->member && node->children.empty()) nodes.erase(nodes.begin() + (node - nodes.data()));
}

void RemoveTreeOf(Nodes& nodes, std::string_view path) {
  const size_t dot = path.find('.');
  FieldSetNode* node = FindField(nodes, path.substr(0, dot));
  if (node == nullptr) return;
  if (dot != std::string_view::npos) {
    RemoveTreeOf(node->children, path.substr(dot + 1));
    if (node->member || !node->children.empty()) return;
  }
  nodes.erase(nodes.begin() + (node - nodes.data()));
}

void Visit(const Nodes& nodes, std::vector<PathElement>& path,
           const std::function<void(const std::vector<PathElement>&)>& visit) {
  for (const FieldSetNode& node : nodes) {
    if (!node.member) continue;
    path.push_back(node.element);
    visit(path);
    path.pop_back();
  }
  for (const FieldSetNode& node : nodes) {
    if (node.children.empty()) continue;
    path.push_back(node.element);
    Visit(node.children, path, visit);
    path.pop_back();
  }
}

void AppendNodes(const Nodes& nodes, bool self, std::string& out) {
  out += '{';
  if (self && !nodes.empty()) out += "\".\":{}";
  for (const FieldSetNode& node : nodes) {
    if (out.back() != '{') out += ',';
    AppendQuoted(node.element, out);
    out += ':';
    AppendNodes(node.children, node.member, out);
  }
  out += '}';
}

// The element in canonical form, or "" of one that says nothing here. False: none at all.
bool ReadElement(std::string_view text, PathElement& element) {
  element.clear();
  if (text.size() < 2 || text[1] != ':') return false;
  const std::string_view rest = text.substr(2);
  switch (text.front()) {
    case 'f':
      element = text;
      return true;
    case 'v': {
      boost::system::error_code error;
      const Json value = boost::json::parse(rest, error);
      if (error) return false;
      element = "v:";
      AppendScalar(value, element);
      return true;
    }
    case 'k': {
      Json keys = ParseText(rest);
      if (!keys.is_object()) return false;
      std::vector<std::pair<std::string_view, const Json*>> sorted;
      for (const auto& item : keys.get_object()) sorted.emplace_back(item.key(), &item.value());
      std::ranges::sort(sorted);
      element = "k:{";
      for (const auto& [name, value] : sorted) {
        if (element.back() != '{') element += ',';
        AppendQuoted(name, element);
        element += ':';
        AppendScalar(*value, element);
      }
      element += '}';
      return true;
    }
    case 'i':
      element = text;
      return !rest.empty() && rest.find_first_not_of("0123456789") == std::string_view::npos;
    default:
      return true;
  }
}

// False: no FieldsV1. `self` is whether the set has the path that leads here.
bool ReadNodes(const Json& json, Nodes& nodes, bool& self) {
  self = false;
  const JsonObject* members = json.if_object();
  if (members == nullptr) return false;
  for (const auto& item : *members) {
    if (item.key() == ".") {
      self = true;
      continue;
    }
    FieldSetNode node;
    if (!ReadElement(item.key(), node.element)) return false;
    if (node.element.empty()) continue;
    if (!ReadNodes(item.value(), node.children, node.member)) return false;
    AddNode(nodes, std::move(node));
  }
  SortNodes(nodes);
  if (nodes.empty()) self = true;
  return true;
}

}  // namespace

int ComparePathElements(std::string_view a, std::string_view b) {
  const int rank = KindRank(a);
  const int other = KindRank(b);
  if (rank != other) return Sign(rank<other, rank> other);
  if (rank == 0) return a.compare(b);
  if (a == b) return 0;
  if (rank < 3) {
    if (const std::optional<int> order = ComparePlain(a, b)) return *order;
  }
  const Json left = ParseText(a.substr(2));
  const Json right = ParseText(b.substr(2));
  const int order = rank == 1 ? CompareKeys(left, right) : CompareValues(left, right);
  return order != 0 ? order : a.compare(b);
}

namespace {

// A value as upstream shows it in a path: maps without braces.
std::string ValueText(const Json& value) {
  if (value.is_string()) return QuoteGo(value.get_string());
  std::string text;
  if (const JsonObject* members = value.if_object()) {
    for (const auto& member : *members)
      text += fmt::format("{}={}", std::string_view(member.key()), ValueText(member.value()));
  } else if (const JsonArray* items = value.if_array()) {
    for (const Json& item : *items)
      text += fmt::format("{}{}", text.empty() ? "" : ",", ValueText(item));
    text = fmt::format("[{}]", text);
  } else {
    AppendScalar(value, text);
  }
  return text;
}

}  // namespace

std::string PathElementText(std::string_view element) {
  switch (KindRank(element)) {
    case 0:
      return fmt::format(".{}", element.substr(2));
    case 1: {
      std::string out = "[";
      const Json keys = ParseText(element.substr(2));
      if (keys.is_object()) {
        for (const auto& item : keys.get_object()) {
          if (out.size() > 1) out += ',';
          out += fmt::format("{}={}", std::string_view(item.key()), ValueText(item.value()));
        }
      }
      return out + "]";
    }
    case 2:
      return fmt::format("[={}]", ValueText(ParseText(element.substr(2))));
    default:
      return fmt::format("[{}]", element.substr(2));
  }
}

void InsertPath(FieldSet& set, const std::vector<PathElement>& path) {
  Nodes* nodes = &set.nodes;
  for (size_t i = 0; i < path.size(); ++i) {
    const auto at = std::lower_bound(nodes->begin(), nodes->end(), path[i], &Precedes);
    const auto node = at != nodes->end() && at->element == path[i]
                          ? at
                          : nodes->insert(at, FieldSetNode{.element = path[i], .children = {}});
    if (i + 1 == path.size()) node->member = true;
    nodes = &node->children;
  }
}

bool HasPath(const FieldSet& set, const std::vector<PathElement>& path) {
  const Nodes* nodes = &set.nodes;
  for (size_t i = 0; i < path.size(); ++i) {
    const FieldSetNode* node = FindNode(*nodes, path[i]);
    if (node == nullptr) return false;
    if (i + 1 == path.size()) return node->member;
    nodes = &node->children;
  }
  return false;
}

const FieldSetNode* FindNode(const Nodes& siblings, std::string_view element) {
  const auto at = std::lower_bound(siblings.begin(), siblings.end(), element, &Precedes);
  return at != siblings.end() && at->element == element ? &*at : nullptr;
}

void AddNode(Nodes& siblings, FieldSetNode node) {
  if (node.member || !node.children.empty()) siblings.push_back(std::move(node));
}

void SortNodes(Nodes& siblings) {
  const auto before = [](const FieldSetNode& a, const FieldSetNode& b) {
    return Precedes(a, b.element);
  };
  const auto unordered = std::ranges::adjacent_find(
      siblings,
      [&](const FieldSetNode& a, const FieldSetNode& b) { return !Precedes(a, b.element); });
  if (unordered == siblings.end()) return;
  std::ranges::stable_sort(siblings, before);
  Nodes joined;
  joined.reserve(siblings.size());
  for (FieldSetNode& node : siblings) {
    if (joined.empty() || joined.back().element != node.element) {
      joined.push_back(std::move(node));
      continue;
    }
    joined.back().member = joined.back().member || node.member;
    joined.back().children = UnionOf(joined.back().children, node.children);
  }
  siblings = std::move(joined);
}

FieldSet Union(const FieldSet& a, const FieldSet& b) { return {UnionOf(a.nodes, b.nodes)}; }

void RemovePath(FieldSet& set, std::string_view path) { RemovePathOf(set.nodes, path); }

FieldSet Intersection(const FieldSet& a, const FieldSet& b) {
  return {IntersectionOf(a.nodes, b.nodes)};
}

FieldSet Difference(const FieldSet& a, const FieldSet& b) {
  return {DifferenceOf(a.nodes, b.nodes)};
}

void RemoveTree(FieldSet& set, std::string_view path) { RemoveTreeOf(set.nodes, path); }

void ForEachPath(const FieldSet& set,
                 const std::function<void(const std::vector<PathElement>&)>& visit) {
  std::vector<PathElement> path;
  Visit(set.nodes, path, visit);
}

std::string PathText(const std::vector<PathElement>& path) {
  std::string out;
  for (const PathElement& element : path) out += PathElementText(element);
  return out;
}

void AppendFieldsV1(const FieldSet& set, std::string& out) { AppendNodes(set.nodes, false, out); }

bool FieldSetFrom(const Json& fields_v1, FieldSet& set) {
  bool self = false;
  set.nodes.clear();
  return ReadNodes(fields_v1, set.nodes, self);
}

void AppendQuoted(std::string_view text, std::string& out) {
  const auto plain = [](char c) {
    return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20;
  };
  out += '"';
  while (!text.empty()) {
    const auto end = std::ranges::find_if_not(text, plain);
    const auto count = static_cast<size_t>(end - text.begin());
    out += text.substr(0, count);
    if (count == text.size()) break;
    const char c = text[count];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    }
    text.remove_prefix(count + 1);
  }
  out += '"';
}

void AppendScalar(const Json& value, std::string& out) {
  if (value.is_structured()) {
    // Of a key that should be a scalar.
    out += boost::json::serialize(value);
    return;
  }
  switch (value.kind()) {
    case boost::json::kind::string:
      AppendQuoted(value.get_string(), out);
      return;
    case boost::json::kind::bool_:
      out += value.get_bool() ? "true" : "false";
      return;
    case boost::json::kind::int64:
      out += std::to_string(value.get_int64());
      return;
    case boost::json::kind::uint64:
      out += std::to_string(value.get_uint64());
      return;
    case boost::json::kind::double_:
      out += fmt::format("{}", value.get_double());
      return;
    default:
      out += "null";
      return;
  }
}

}  // namespace berth::api
