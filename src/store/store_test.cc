// Goal: the store is a map with two views and a bounded past. Method: a naive twin that keeps every
// version of everything, driven by the same random writes, appends, acknowledgements and copies;
// then the edges one by one.
#include "store/store.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace berth::store {
namespace {

StoredObject Make(const Store& store, Table table, std::string ns, std::string name,
                  std::string text) {
  return {.table = table,
          .namespace_name = std::move(ns),
          .name = std::move(name),
          .uid = "u",
          .revision = store.next_revision(),
          .labels = {},
          .fields = {},
          .json = Bytes(std::move(text))};
}

Store::Options TwoTables(size_t events = 1000) {
  return {.tables = {"pods", "nodes"}, .log_events_max = events};
}

using Content = std::vector<std::string>;

std::string Describe(const StoredObject& object) {
  return std::to_string(object.table) + " " + object.namespace_name + "/" + object.name + "@" +
         std::to_string(object.revision) + " " + std::string(object.json.view());
}

Content Collect(const std::function<void(const Visit&)>& walk) {
  Content content;
  walk([&](const ObjectRef& object) {
    content.push_back(Describe(*object));
    return true;
  });
  return content;
}

// Every state the store ever had, whole.
class Twin {
 public:
  using Key = std::pair<std::string, std::string>;
  using State = std::map<std::pair<Table, Key>, std::string>;

  void Put(const StoredObject& object) {
    State next = states_.back();
    next[{object.table, {object.namespace_name, object.name}}] = Describe(object);
    states_.push_back(std::move(next));
  }
  void Delete(const StoredObject& object) {
    State next = states_.back();
    next.erase({object.table, {object.namespace_name, object.name}});
    states_.push_back(std::move(next));
  }
  [[nodiscard]] Content ListAt(uint64_t revision, const Range& range) const {
    Content content;
    for (const auto& [key, text] : states_[revision]) {
      if (key.first != range.table) continue;
      if (range.namespace_name && key.second.first != *range.namespace_name) continue;
      const Key after{range.after_namespace, range.after_name};
      if (after != Key{} && key.second <= after) continue;
      content.push_back(text);
    }
    return content;
  }
  void Discard(uint64_t durable) { states_.resize(durable + 1); }
  [[nodiscard]] uint64_t head() const { return states_.size() - 1; }

 private:
  std::vector<State> states_{State{}};
};

Range RandomRange() {
  Range range{.table = static_cast<Table>(*rc::gen::inRange(0, 2)), .namespace_name = {}};
  if (*rc::gen::inRange(0, 2) == 0) {
    range.namespace_name = "n" + std::to_string(*rc::gen::inRange(0, 3));
  }
  if (*rc::gen::inRange(0, 2) == 0) {
    range.after_namespace = "n" + std::to_string(*rc::gen::inRange(0, 3));
    range.after_name = "o" + std::to_string(*rc::gen::inRange(0, 6));
  }
  return range;
}

void CompareViews(const Store& store, const Twin& twin) {
  const Range range = RandomRange();
  RC_ASSERT(Collect([&](const Visit& visit) { store.WalkHead(range, visit); }) ==
            twin.ListAt(twin.head(), range));
  RC_ASSERT(Collect([&](const Visit& visit) { store.Walk(range, visit); }) ==
            twin.ListAt(store.durable_revision(), range));
  const uint64_t revision =
      *rc::gen::inRange(store.compacted_revision(), store.durable_revision() + 1);
  RC_ASSERT(Collect([&](const Visit& visit) { store.WalkAt(revision, range, visit); }) ==
            twin.ListAt(revision, range));
}

void RandomWrite(Store& store, Twin& twin) {
  const auto table = static_cast<Table>(*rc::gen::inRange(0, 2));
  const std::string ns = "n" + std::to_string(*rc::gen::inRange(0, 3));
  const std::string name = "o" + std::to_string(*rc::gen::inRange(0, 6));
  StoredObject object = Make(store, table, ns, name, "v" + std::to_string(store.next_revision()));
  if (*rc::gen::inRange(0, 3) == 0 && store.FindHead(table, KeyOf(object)) != nullptr) {
    twin.Delete(object);
    store.Delete(std::move(object));
    return;
  }
  twin.Put(object);
  store.Put(std::move(object));
}

RC_GTEST_PROP(Store, AgreesWithATwinThatKeepsEverything, ()) {
  Store store(TwoTables(*rc::gen::inRange<size_t>(1, 30)));
  Twin twin;
  uint64_t sequence = 0;
  const int steps = *rc::gen::inRange(1, 80);
  for (int i = 0; i < steps; ++i) {
    switch (*rc::gen::inRange(0, 7)) {
      case 0:
        if (store.has_unsent() && !store.append_in_flight()) sequence = store.TakeAppend().sequence;
        break;
      case 1:
        if (store.append_in_flight()) store.MarkDurable(sequence);
        break;
      case 2:
        if (!store.append_in_flight() || *rc::gen::inRange(0, 3) != 0) break;
        store.Discard(sequence);
        twin.Discard(store.durable_revision());
        break;
      case 3: {
        // A fork goes its own way; the original must not notice.
        Store fork = store;
        Twin fork_twin = twin;
        for (int j = 0; j < 5; ++j) RandomWrite(fork, fork_twin);
        CompareViews(fork, fork_twin);
        break;
      }
      default:
        RandomWrite(store, twin);
    }
    CompareViews(store, twin);
  }
}

RC_GTEST_PROP(Store, RecoversWhatTheJournalHas, ()) {
  Store store(TwoTables());
  Twin twin;
  std::vector<env::JournalRecord> journal;
  for (int i = *rc::gen::inRange(1, 60); i > 0; --i) {
    RandomWrite(store, twin);
    if (*rc::gen::inRange(0, 4) != 0) continue;
    const env::AppendJournal append = store.TakeAppend();
    journal.insert(journal.end(), append.records.begin(), append.records.end());
    store.MarkDurable(append.sequence);
  }
  const auto decode = [](Table table, const env::JournalRecord& record) -> Result<StoredObject> {
    const size_t first = record.key.find('/');
    const size_t second = record.key.find('/', first + 1);
    return StoredObject{.table = table,
                        .namespace_name = record.key.substr(first + 1, second - first - 1),
                        .name = record.key.substr(second + 1),
                        .uid = "u",
                        .revision = record.revision,
                        .labels = {},
                        .fields = {},
                        .json = record.value};
  };
  // Once as a full history, once as a key-value file that has forgotten all but the last record of
  // each key.
  std::map<std::string, env::JournalRecord> last;
  for (const auto& record : journal) last[record.key] = record;
  std::vector<env::JournalRecord> kept;
  for (const auto& [key, record] : last) {
    if (!record.value.empty()) kept.push_back(record);
  }
  for (const auto& content :
       {env::JournalContent{.records = journal},
        env::JournalContent{.records = kept, .last_revision = store.durable_revision()}}) {
    const Result<Store> recovered = Store::Recover(TwoTables(), content, decode);
    RC_ASSERT(recovered.has_value());
    RC_ASSERT(recovered->durable_revision() == store.durable_revision());
    RC_ASSERT(recovered->next_revision() == store.durable_revision() + 1);
    const Range range = RandomRange();
    RC_ASSERT(Collect([&](const Visit& visit) { recovered->WalkHead(range, visit); }) ==
              twin.ListAt(store.durable_revision(), range));
  }
}

TEST(Store, ADeleteCreateDeleteInOneGroupLeavesNothing) {
  Store store(TwoTables());
  store.Put(Make(store, 0, "n", "a", "1"));
  store.Delete(Make(store, 0, "n", "a", "2"));
  store.Put(Make(store, 0, "n", "a", "3"));
  store.Delete(Make(store, 0, "n", "a", "4"));
  EXPECT_EQ(store.FindHead(0, {"n", "a"}), nullptr);
  const env::AppendJournal append = store.TakeAppend();
  EXPECT_EQ(append.records.size(), 4u);
  store.Put(Make(store, 0, "n", "a", "5"));
  EXPECT_EQ(store.Find(0, {"n", "a"}), nullptr);
  const RevisionRange visible = store.MarkDurable(append.sequence);
  EXPECT_EQ(visible.first, 1u);
  EXPECT_EQ(visible.last, 4u);
  EXPECT_EQ(store.Find(0, {"n", "a"}), nullptr);
  ASSERT_NE(store.FindHead(0, {"n", "a"}), nullptr);
  EXPECT_TRUE(store.has_unsent());
}

TEST(Store, TheLogForgetsByBytesToo) {
  Store store({.tables = {"pods"}, .log_bytes_max = 10'000});
  for (int i = 0; i < 10; ++i) {
    store.Put(Make(store, 0, "n", "o" + std::to_string(i), std::string(2000, 'x')));
    store.MarkDurable(store.TakeAppend().sequence);
  }
  EXPECT_GT(store.compacted_revision(), 4u);
  EXPECT_LT(store.compacted_revision(), 10u);
  EXPECT_EQ(store.EventAt(10).object->name, "o9");
}

TEST(Store, ADamagedRecordIsNamed) {
  const auto decode = [](Table, const env::JournalRecord&) -> Result<StoredObject> {
    return Fail(ErrorCode::kDamaged, "not JSON");
  };
  const auto recover = [&](std::string key, uint64_t revision) {
    return Store::Recover(TwoTables(),
                          {.records = {{std::move(key), revision, Bytes(std::string("{"))}}},
                          decode)
        .error()
        .message;
  };
  EXPECT_EQ(recover("pods/n/a", 1), "journal record \"pods/n/a\": not JSON");
  EXPECT_EQ(recover("ghosts/n/a", 1), "journal record \"ghosts/n/a\": unknown kind of object");
  EXPECT_EQ(recover("pods", 1), "journal record \"pods\": the key is not table/namespace/name");
  EXPECT_EQ(recover("pods/n/a", 0), "journal record \"pods/n/a\": no revision");
}

TEST(ObjectTable, StaysSortedThroughManySplitsAndMerges) {
  ObjectTable table;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 3000; ++i) {
      auto object = std::make_shared<StoredObject>();
      object->name = std::to_string((i * 7919) % 3000);
      table.Put(object);
    }
    EXPECT_EQ(table.size(), 3000u);
    std::string last;
    size_t seen = 0;
    for (auto cursor = table.LowerBound({}); table.At(cursor) != nullptr; table.Next(cursor)) {
      const std::string& name = (*table.At(cursor))->name;
      EXPECT_TRUE(seen == 0 || last < name);
      last = name;
      ++seen;
    }
    EXPECT_EQ(seen, 3000u);
    for (int i = 0; i < 3000; ++i) {
      if (i % 50 != 0) {
        EXPECT_TRUE(table.Erase({"", std::to_string(i)}));
      }
    }
    EXPECT_FALSE(table.Erase({"", "1"}));
    EXPECT_EQ(table.size(), 60u);
  }
}

}  // namespace
}  // namespace berth::store
