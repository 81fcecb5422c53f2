#include "codec/decode_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/json.h"
#include "api/quantity.h"
#include "api/timestamp.h"
#include "base/limits.h"
#include "codec/json.h"

namespace berth::codec::reader {
namespace {

void ReadOwner(Errors& errors, const Element& element, api::OwnerReference& out) {
  constexpr std::string_view kField = "metadata.ownerReferences";
  ForMembers(errors, kField, element, [&](std::string_view key, const Element& value) {
    if (key == "apiVersion") {
      Read(errors, kField, value, out.api_version);
    } else if (key == "kind") {
      Read(errors, kField, value, out.kind);
    } else if (key == "name") {
      Read(errors, kField, value, out.name);
    } else if (key == "uid") {
      Read(errors, kField, value, out.uid);
    } else if (key == "controller") {
      Read(errors, kField, value, out.controller);
    } else if (key == "blockOwnerDeletion") {
      Read(errors, kField, value, out.block_owner_deletion);
    }
  });
}

std::string NumberText(const Element& element) {
  std::string text;
  AppendText(element, false, text);
  return text;
}

}  // namespace

void Errors::Add(std::string_view field, std::string_view what) {
  if (first) return;
  first = Error{ErrorCode::kInvalid, fmt::format("{} must be {}", field, what)};
}

void Read(Errors& errors, std::string_view field, const Element& element, std::string& out) {
  std::string_view text;
  if (element.get(text) == simdjson::SUCCESS) {
    out.assign(text);
  } else if (!element.is_null()) {
    errors.Add(field, "a string");
  }
}

void Read(Errors& errors, std::string_view field, const Element& element, bool& out) {
  if (element.get(out) != simdjson::SUCCESS && !element.is_null()) errors.Add(field, "a boolean");
}

void Read(Errors& errors, std::string_view field, const Element& element, int64_t& out) {
  if (element.get(out) != simdjson::SUCCESS && !element.is_null()) errors.Add(field, "an integer");
}

void Read(Errors& errors, std::string_view field, const Element& element, Instant& out) {
  std::string_view text;
  if (element.get(text) != simdjson::SUCCESS) {
    if (!element.is_null()) errors.Add(field, "a string");
    return;
  }
  const Result<Instant> time = api::ParseTimestamp(text);
  if (!time) {
    errors.Add(field, "a time: " + time.error().message);
    return;
  }
  out = *time;
}

void Read(Errors& errors, std::string_view field, const Element& element, api::StringMap& out) {
  Object object;
  if (element.get(object) == simdjson::SUCCESS) out.reserve(out.size() + object.size());
  ForMembers(errors, field, element, [&](std::string_view key, const Element& value) {
    Read(errors, field, value, out.emplace_back(key, std::string()).second);
  });
  SortUnique(out, [](const auto& item) { return std::string_view(item.first); });
}

namespace {

// Where it is below 0 `out` stays as it is, and the text is returned.
std::string ReadAmountAboveZero(Errors& errors, std::string_view field, std::string_view resource,
                                const Element& element, int64_t& out) {
  std::string_view text;
  std::string number;
  if (element.get(text) != simdjson::SUCCESS) {
    if (!element.is_number()) {
      if (!element.is_null()) errors.Add(fmt::format("{}[{}]", field, resource), "a quantity");
      return {};
    }
    number = NumberText(element);
    text = number;
  }
  const Result<int64_t> amount = api::ParseScaled(text, resource == "cpu" ? -3 : 0);
  if (!amount) {
    errors.Add(fmt::format("{}[{}]", field, resource),
               fmt::format("a quantity, and {} is none: {}", text, amount.error().message));
    return {};
  }
  if (*amount < 0) return std::string(text);
  out = *amount;
  return {};
}

}  // namespace

void ReadAmount(Errors& errors, std::string_view field, std::string_view resource,
                const Element& element, int64_t& out) {
  const std::string below = ReadAmountAboveZero(errors, field, resource, element, out);
  if (!below.empty()) {
    errors.Add(fmt::format("{}[{}]", field, resource), fmt::format("at least 0, and is {}", below));
  }
}

void ReadAsked(Errors& errors, std::string_view field, const Element& element,
               api::ResourceList& out) {
  ForMembers(errors, field, element, [&](std::string_view key, const Element& value) {
    api::ResourceAmount& read = out.emplace_back(std::string(key), 0);
    ReadAmountAboveZero(errors, field, key, value, read.amount);
    read.amount = std::min(read.amount, limits::kAmountMax);
  });
  SortUnique(out, [](const api::ResourceAmount& item) { return std::string_view(item.name); });
}

void ReadAmounts(Errors& errors, std::string_view field, const Element& element, int64_t most,
                 api::ResourceList& out) {
  ForMembers(errors, field, element, [&](std::string_view key, const Element& value) {
    api::ResourceAmount& read = out.emplace_back(std::string(key), 0);
    ReadAmount(errors, field, key, value, read.amount);
    read.amount = std::min(read.amount, most);
  });
  SortUnique(out, [](const api::ResourceAmount& item) { return std::string_view(item.name); });
}

void Read(Errors& errors, std::string_view field, const Element& element, api::ResourceList& out) {
  ReadAmounts(errors, field, element, limits::kAmountMax, out);
}

void Read(Errors& errors, std::string_view field, const Element& element, api::IntOrPercent& out) {
  if (element.get(out.value) == simdjson::SUCCESS) {
    out.percent = false;
    return;
  }
  std::string_view text;
  if (element.get(text) != simdjson::SUCCESS || !text.ends_with('%')) {
    errors.Add(field, "an integer or a percentage");
    return;
  }
  text.remove_suffix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.value);
  if (error != std::errc() || end != text.data() + text.size()) {
    errors.Add(field, "an integer or a percentage");
  }
  out.percent = true;
}

void Read(Errors& errors, std::string_view /*field*/, const Element& element,
          api::ObjectMeta& out) {
  ForMembers(errors, "metadata", element, [&](std::string_view key, const Element& value) {
    if (key == "name") {
      Read(errors, "metadata.name", value, out.name);
    } else if (key == "namespace") {
      Read(errors, "metadata.namespace", value, out.namespace_name);
    } else if (key == "uid") {
      Read(errors, "metadata.uid", value, out.uid);
    } else if (key == "resourceVersion") {
      Read(errors, "metadata.resourceVersion", value, out.resource_version);
    } else if (key == "generateName") {
      Read(errors, "metadata.generateName", value, out.generate_name);
    } else if (key == "generation") {
      Read(errors, "metadata.generation", value, out.generation);
    } else if (key == "creationTimestamp") {
      Read(errors, "metadata.creationTimestamp", value, out.creation_time);
    } else if (key == "deletionTimestamp") {
      Read(errors, "metadata.deletionTimestamp", value, out.deletion_time);
    } else if (key == "deletionGracePeriodSeconds") {
      Read(errors, "metadata.deletionGracePeriodSeconds", value, out.deletion_grace_seconds);
    } else if (key == "labels") {
      Read(errors, "metadata.labels", value, out.labels);
    } else if (key == "annotations") {
      Read(errors, "metadata.annotations", value, out.annotations);
    } else if (key == "ownerReferences") {
      ForItems(errors, "metadata.ownerReferences", value,
               [&](const Element& item) { ReadOwner(errors, item, out.owners.emplace_back()); });
    } else if (key == "finalizers") {
      Read(errors, "metadata.finalizers", value, out.finalizers);
    }
  });
}

void Read(Errors& errors, std::string_view field, const Element& element, api::Requirement& out) {
  ForMembers(errors, field, element, [&](std::string_view key, const Element& value) {
    if (key == "key") {
      Read(errors, field, value, out.key);
    } else if (key == "operator") {
      Read(errors, field, value, out.op);
    } else if (key == "values") {
      Read(errors, field, value, out.values);
    }
  });
}

void Read(Errors& errors, std::string_view field, const Element& element, api::LabelSelector& out) {
  ForMembers(errors, field, element, [&](std::string_view key, const Element& value) {
    if (key == "matchLabels") {
      Read(errors, field, value, out.match_labels);
    } else if (key == "matchExpressions") {
      Read(errors, field, value, out.match_expressions);
    }
  });
}

void Read(Errors& errors, std::string_view field, const Element& element, api::Toleration& out) {
  ForMembers(errors, field, element, [&](std::string_view key, const Element& value) {
    if (key == "key") {
      Read(errors, field, value, out.key);
    } else if (key == "operator") {
      Read(errors, field, value, out.op);
    } else if (key == "value") {
      Read(errors, field, value, out.value);
    } else if (key == "effect") {
      Read(errors, field, value, out.effect);
    } else if (key == "tolerationSeconds") {
      Read(errors, field, value, out.seconds);
    }
  });
}

void Read(Errors& errors, std::string_view field, const Element& element, api::Taint& out) {
  ForMembers(errors, field, element, [&](std::string_view key, const Element& value) {
    if (key == "key") {
      Read(errors, field, value, out.key);
    } else if (key == "value") {
      Read(errors, field, value, out.value);
    } else if (key == "effect") {
      Read(errors, field, value, out.effect);
    } else if (key == "timeAdded") {
      Read(errors, field, value, out.added);
    }
  });
}

void Read(Errors& errors, std::string_view field, const Element& element, api::Condition& out) {
  ForMembers(errors, field, element, [&](std::string_view key, const Element& value) {
    if (key == "type") {
      Read(errors, field, value, out.type);
    } else if (key == "status") {
      Read(errors, field, value, out.status);
    } else if (key == "reason") {
      Read(errors, field, value, out.reason);
    } else if (key == "message") {
      Read(errors, field, value, out.message);
    } else if (key == "lastUpdateTime" || key == "lastProbeTime") {
      Read(errors, field, value, out.updated);
    } else if (key == "lastTransitionTime") {
      Read(errors, field, value, out.transition);
    } else if (key == "observedGeneration") {
      Read(errors, field, value, out.observed_generation);
    }
  });
}

void AppendText(const Element& element, bool sorted, std::string& out) {
  switch (element.type()) {
    case simdjson::dom::element_type::OBJECT: {
      std::vector<std::pair<std::string_view, Element>> members;
      Object object;
      if (element.get(object) != simdjson::SUCCESS) return;
      for (const auto& [key, value] : object) {
        if (!sorted || !value.is_null()) members.emplace_back(key, value);
      }
      if (sorted) SortUnique(members, [](const auto& member) { return member.first; });
      out += '{';
      for (size_t i = 0; i < members.size(); ++i) {
        if (i > 0) out += ',';
        AppendJsonString(members[i].first, out);
        out += ':';
        AppendText(members[i].second, sorted, out);
      }
      out += '}';
      return;
    }
    case simdjson::dom::element_type::ARRAY: {
      Array array;
      if (element.get(array) != simdjson::SUCCESS) return;
      out += '[';
      bool first = true;
      for (const Element& item : array) {
        if (!first) out += ',';
        first = false;
        AppendText(item, sorted, out);
      }
      out += ']';
      return;
    }
    case simdjson::dom::element_type::STRING: {
      std::string_view text;
      if (element.get(text) == simdjson::SUCCESS) AppendJsonString(text, out);
      return;
    }
    case simdjson::dom::element_type::INT64: {
      int64_t number = 0;
      if (element.get(number) == simdjson::SUCCESS) AppendJson(number, out);
      return;
    }
    case simdjson::dom::element_type::UINT64: {
      uint64_t number = 0;
      if (element.get(number) == simdjson::SUCCESS) AppendJson(number, out);
      return;
    }
    case simdjson::dom::element_type::DOUBLE: {
      double number = 0;
      if (element.get(number) == simdjson::SUCCESS) AppendJson(number, out);
      return;
    }
    case simdjson::dom::element_type::BOOL: {
      bool flag = false;
      if (element.get(flag) == simdjson::SUCCESS) out += flag ? "true" : "false";
      return;
    }
    case simdjson::dom::element_type::NULL_VALUE:
      out += "null";
      return;
  }
}

}  // namespace berth::codec::reader
