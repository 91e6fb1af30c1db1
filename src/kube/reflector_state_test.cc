#include "kube/reflector_state.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <string>
#include <vector>

#include "support/check.h"

namespace voda::kube {
namespace {

using Step = ReflectorCommand::Kind;

ObjectHead Head(const std::string& name, const std::string& version, const std::string& uid = "u") {
  return {"ns", name, uid + name, version};
}

// What the sink was told, in words, and the copy that follows from it.
class Told : public ObjectSink {
 public:
  void OnAdd(const ObjectHead& head, const JsonView&) override {
    ASSERT_TRUE(copy.emplace(head.name, head.uid + "@" + head.resource_version).second);
    words.push_back("add " + head.name + "@" + head.resource_version);
  }
  void OnUpdate(const ObjectHead& head, const JsonView&) override {
    ASSERT_EQ(copy.count(head.name), 1U);
    copy[head.name] = head.uid + "@" + head.resource_version;
    words.push_back("update " + head.name + "@" + head.resource_version);
  }
  void OnDelete(const ObjectHead& head, const JsonView& object) override {
    ASSERT_EQ(copy.erase(head.name), 1U);
    words.push_back((object.present() ? "delete " : "vanish ") + head.name);
  }
  void OnSynced() override { words.push_back("synced"); }
  std::vector<std::string> Take() { return std::exchange(words, {}); }

  std::map<std::string, std::string> copy;
  std::vector<std::string> words;
};

struct Machine {
  explicit Machine(ReflectorRules rules = {}) : state(rules, 7, told) {}

  ReflectorCommand Page(const std::vector<ObjectHead>& items, const std::string& version,
                        const std::string& continue_token = {}) {
    for (const ObjectHead& item : items) state.OnListItem(item, View("{}"));
    return state.OnListPage({version, continue_token, items.size()});
  }
  // Has listed one object and watches from version 10.
  ReflectorCommand Watching() {
    state.Start();
    ReflectorCommand watch = Page({Head("a", "9")}, "10");
    told.Take();
    return watch;
  }
  std::optional<ReflectorCommand> Event(WatchType type, const ObjectHead& head) {
    return state.OnWatchEvent(now, {.type = type, .head = head, .object = View("{}")});
  }
  std::optional<ReflectorCommand> ErrorEvent(int code, const std::string& reason,
                                             const std::string& more = {}) {
    const std::string status =
        fmt::format(R"({{"kind":"Status","code":{},"reason":"{}","message":"m"{}}})", code, reason, more);
    return state.OnWatchEvent(now, {.type = WatchType::kError, .object = View(status)});
  }
  ReflectorCommand Ended(const std::optional<ApiError>& error = {}) { return state.OnWatchEnded(now, error); }

  JsonView View(std::string text) {
    AddPadding(text);
    return *document.Read(text);
  }

  JsonDocument document;
  Told told;
  ReflectorState state;
  TimePoint now{Duration(1'000'000)};
};

using Words = std::vector<std::string>;

TEST(ReflectorRules, Rule01FirstListIsConsistentAndInPages) {
  Machine m;
  ReflectorCommand c = m.state.Start();
  EXPECT_EQ(c.kind, Step::kList);
  EXPECT_EQ(c.resource_version, "");
  EXPECT_EQ(c.limit, 500);
  c = m.Page({Head("a", "3")}, "10", "token-1");
  EXPECT_EQ(c.kind, Step::kList);
  EXPECT_EQ(c.continue_token, "token-1");
  EXPECT_EQ(c.resource_version, "");
  EXPECT_EQ(c.limit, 500);
  EXPECT_FALSE(m.state.synced());
  c = m.Page({Head("b", "4")}, "10");
  EXPECT_EQ(c.kind, Step::kWatch);
  EXPECT_EQ(c.resource_version, "10");
  EXPECT_EQ(m.told.Take(), (Words{"add a@3", "add b@4", "synced"}));
}

TEST(ReflectorRules, Rule01AnyStateWillDoForTheFirstListWhereAllowed) {
  Machine m({.consistent_first_list = false});
  const ReflectorCommand c = m.state.Start();
  EXPECT_EQ(c.resource_version, "0");
  EXPECT_EQ(c.limit, 0);
}

TEST(ReflectorRules, Rule01LaterListsAskForNothingOlderThanSeen) {
  Machine m;
  m.Watching();
  m.Event(WatchType::kBookmark, {.resource_version = "77"});
  const auto wait = m.ErrorEvent(403, "Forbidden");
  ASSERT_EQ(wait->kind, Step::kWait);
  const ReflectorCommand list = m.state.OnTimer();
  EXPECT_EQ(list.kind, Step::kList);
  EXPECT_EQ(list.resource_version, "77");
  EXPECT_EQ(list.limit, 0);
}

TEST(ReflectorRules, Rule01GoneContinueTokenLeadsToAFullList) {
  Machine m;
  m.state.Start();
  m.Page({Head("a", "1"), Head("b", "1")}, "10", "token");
  const ReflectorCommand c = m.state.OnListFailed(m.now, {.reason = Reason::kExpired, .code = 410});
  EXPECT_EQ(c.kind, Step::kList);
  EXPECT_EQ(c.resource_version, "");
  EXPECT_EQ(c.continue_token, "");
  EXPECT_EQ(c.limit, 0);
  EXPECT_EQ(m.Page({Head("a", "1")}, "20").kind, Step::kWatch);
  EXPECT_EQ(m.told.Take(), (Words{"add a@1", "add b@1", "vanish b", "synced"}));
}

TEST(ReflectorRules, Rule02WatchesForFiveToTenMinutesAndGoesOnWhereItEnded) {
  Machine m;
  std::set<int> seconds;
  ReflectorCommand c = m.Watching();
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(c.kind, Step::kWatch);
    EXPECT_GE(c.timeout_seconds, 300);
    EXPECT_LT(c.timeout_seconds, 600);
    seconds.insert(c.timeout_seconds);
    m.state.OnWatchOpened(m.now);
    m.Event(WatchType::kModified, Head("a", std::to_string(100 + i)));
    m.now += Duration(300'000);
    c = m.Ended();
    EXPECT_EQ(c.resource_version, std::to_string(100 + i));
  }
  EXPECT_GT(seconds.size(), 20U);
}

TEST(ReflectorRules, Rule03EveryEventMovesTheVersion) {
  Machine m;
  m.Watching();
  for (const auto& [type, version] : std::vector<std::pair<WatchType, std::string>>{
           {WatchType::kAdded, "11"}, {WatchType::kModified, "12"}, {WatchType::kDeleted, "13"}}) {
    EXPECT_FALSE(m.Event(type, Head("b", version)));
    EXPECT_EQ(m.state.resource_version(), version);
  }
  EXPECT_FALSE(m.Event(WatchType::kBookmark, {.resource_version = "500"}));
  EXPECT_EQ(m.state.resource_version(), "500");
  EXPECT_EQ(m.told.Take(), (Words{"add b@11", "update b@12", "delete b"}));
}

TEST(ReflectorRules, Rule04ExpiredInsideTheStreamLeadsToANewListOfTheNewest) {
  Machine m;
  m.Watching();
  m.state.OnWatchOpened(m.now);
  auto c = m.ErrorEvent(410, "Expired");
  ASSERT_TRUE(c);
  EXPECT_EQ(c->kind, Step::kList);  // at once, because nothing else went wrong lately
  EXPECT_EQ(c->resource_version, "");
  EXPECT_EQ(c->limit, 500);
  m.Page({Head("a", "9")}, "30");
  c = m.ErrorEvent(410, "Expired");
  EXPECT_EQ(c->kind, Step::kWait);  // so soon again, it waits
  EXPECT_EQ(m.state.OnTimer().resource_version, "");
  EXPECT_EQ(m.told.Take(), Words{});  // it was the same object all the time
}

TEST(ReflectorRules, Rule04ExpiredAsAnAnswer) {
  Machine m;
  m.Watching();
  EXPECT_EQ(m.Ended(ApiError{.reason = Reason::kExpired, .code = 410}).kind, Step::kList);
}

TEST(ReflectorRules, Rule04TooManyRequestsInsideTheStreamKeepsTheVersion) {
  Machine m;
  m.Watching();
  const auto c = m.ErrorEvent(429, "TooManyRequests", R"(,"details":{"retryAfterSeconds":7})");
  ASSERT_EQ(c->kind, Step::kWait);
  EXPECT_GE(c->wait, Duration(7000));
  const ReflectorCommand watch = m.state.OnTimer();
  EXPECT_EQ(watch.kind, Step::kWatch);
  EXPECT_EQ(watch.resource_version, "10");
}

TEST(ReflectorRules, Rule04InternalErrorsAreRetriedSomeTimes) {
  Machine m;
  m.Watching();
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(m.ErrorEvent(500, "InternalError")->kind, Step::kWait);
    ASSERT_EQ(m.state.OnTimer().kind, Step::kWatch);
  }
  ASSERT_EQ(m.ErrorEvent(500, "InternalError")->kind, Step::kWait);
  EXPECT_EQ(m.state.OnTimer().kind, Step::kList);
}

TEST(ReflectorRules, Rule04AnEventBetweenInternalErrorsStartsTheCountAgain) {
  Machine m;
  m.Watching();
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(m.ErrorEvent(500, "InternalError")->kind, Step::kWait);
    ASSERT_EQ(m.state.OnTimer().kind, Step::kWatch);
    m.Event(WatchType::kBookmark, {.resource_version = "20"});
  }
}

TEST(ReflectorRules, Rule04AnyOtherErrorLeadsToAList) {
  Machine m;
  m.Watching();
  ASSERT_EQ(m.ErrorEvent(400, "BadRequest")->kind, Step::kWait);
  EXPECT_EQ(m.state.OnTimer().kind, Step::kList);
  m.Page({}, "11");
  ASSERT_EQ(m.state.OnWatchEvent(m.now, {.type = WatchType::kError, .object = m.View("{}")})->kind,
            Step::kWait);
  EXPECT_EQ(m.state.OnTimer().kind, Step::kList);
}

TEST(ReflectorRules, Rule04VersionTooLargeAsksForTheNewest) {
  const ApiError error{.reason = Reason::kResourceVersionTooLarge, .code = 504};
  Machine m;
  m.Watching();
  ReflectorCommand c = m.Ended(error);
  EXPECT_EQ(c.kind, Step::kList);
  EXPECT_EQ(c.resource_version, "");

  Machine of_list;
  of_list.Watching();
  of_list.ErrorEvent(403, "Forbidden");
  EXPECT_EQ(of_list.state.OnTimer().resource_version, "10");
  c = of_list.state.OnListFailed(of_list.now, error);
  EXPECT_EQ(c.kind, Step::kList);
  EXPECT_EQ(c.resource_version, "");
  EXPECT_EQ(of_list.state.OnListFailed(of_list.now, error).kind, Step::kWait);  // no hot loop
}

TEST(ReflectorRules, Rule05WaitsDoubleUpToThirtySecondsAndStartAgainAfterTwoQuietMinutes) {
  Machine m;
  m.state.Start();
  const ApiError refused{.reason = Reason::kConnection, .refused = true};
  Duration base{800};
  for (int i = 0; i < 10; ++i) {
    const ReflectorCommand c = m.state.OnListFailed(m.now, refused);
    ASSERT_EQ(c.kind, Step::kWait);
    EXPECT_GE(c.wait, base) << i;
    EXPECT_LT(c.wait, base * 2) << i;
    base = std::min(base * 2, Duration(30'000));
    m.now += c.wait;
    EXPECT_EQ(m.state.OnTimer().kind, Step::kList);
  }
  m.now += Duration(121'000);
  EXPECT_LT(m.state.OnListFailed(m.now, refused).wait, Duration(1600));
}

TEST(ReflectorRules, Rule05RefusedAndThrottledWatchesAreOpenedAgainWithoutAList) {
  Machine m;
  m.Watching();
  for (const ApiError& error :
       {ApiError{.reason = Reason::kConnection, .refused = true},
        ApiError{.reason = Reason::kTooManyRequests, .code = 429}, ApiError{.reason = Reason::kNoAnswer}}) {
    ASSERT_EQ(m.Ended(error).kind, Step::kWait);
    const ReflectorCommand watch = m.state.OnTimer();
    EXPECT_EQ(watch.kind, Step::kWatch);
    EXPECT_EQ(watch.resource_version, "10");
  }
}

TEST(ReflectorRules, Rule05AServerThatStartsIsWaitedForAndThenListed) {
  Machine m;
  m.Watching();
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(m.Ended(ApiError{.reason = Reason::kServiceUnavailable, .code = 503}).kind, Step::kWait);
    ASSERT_EQ(m.state.OnTimer().kind, Step::kWatch);
  }
  m.Ended(ApiError{.reason = Reason::kServiceUnavailable, .code = 503});
  EXPECT_EQ(m.state.OnTimer().kind, Step::kList);
}

TEST(ReflectorRules, Rule06AWatchThatEndsAtOnceCountsAsAnError) {
  Machine m;
  m.Watching();
  m.state.OnWatchOpened(m.now);
  m.now += Duration(999);
  EXPECT_EQ(m.Ended().kind, Step::kWait);
  EXPECT_EQ(m.state.OnTimer().kind, Step::kWatch);
  m.state.OnWatchOpened(m.now);
  m.now += Duration(1000);
  EXPECT_EQ(m.Ended().kind, Step::kWatch);
  m.state.OnWatchOpened(m.now);
  m.Event(WatchType::kBookmark, {.resource_version = "11"});
  EXPECT_EQ(m.Ended().kind, Step::kWatch);  // short, but something came
  EXPECT_EQ(m.Ended().kind, Step::kWait);   // never opened
}

TEST(ReflectorRules, Rule06AConnectionLostAfterAWhileIsAnEnd) {
  Machine m;
  m.Watching();
  m.state.OnWatchOpened(m.now);
  m.now += Duration(5000);
  EXPECT_EQ(m.Ended(ApiError{.reason = Reason::kConnection}).kind, Step::kWatch);
  EXPECT_EQ(m.Ended(ApiError{.reason = Reason::kConnection}).kind, Step::kWait);
}

TEST(ReflectorRules, Rule07AnObjectThatStopsMatchingIsDeletedAndMayComeBack) {
  Machine m;
  m.Watching();
  m.Event(WatchType::kDeleted, Head("a", "15"));  // old content, new version
  EXPECT_EQ(m.state.resource_version(), "15");
  m.Event(WatchType::kAdded, Head("a", "16"));
  EXPECT_EQ(m.told.Take(), (Words{"delete a", "add a@16"}));
}

TEST(ReflectorRules, Rule08AListTellsWhatVanishedChangedAndCame) {
  Machine m;
  m.state.Start();
  m.Page({Head("a", "1"), Head("b", "2"), Head("c", "3")}, "10");
  m.told.Take();
  m.ErrorEvent(410, "Expired");
  m.Page({Head("b", "2"), Head("c", "8"), Head("d", "9")}, "20");
  EXPECT_EQ(m.told.Take(), (Words{"update c@8", "add d@9", "vanish a"}));
  EXPECT_EQ(m.state.objects(), 3U);
}

TEST(ReflectorRules, Rule08SameNameAndAnotherUidIsADeleteAndAnAdd) {
  Machine m;
  m.Watching();
  m.Event(WatchType::kModified, Head("a", "12", "other"));
  EXPECT_EQ(m.told.Take(), (Words{"vanish a", "add a@12"}));
  m.ErrorEvent(410, "Expired");
  m.Page({Head("a", "13", "third")}, "20");
  EXPECT_EQ(m.told.Take(), (Words{"vanish a", "add a@13"}));
  m.Event(WatchType::kDeleted, Head("a", "21", "other"));  // about an object that is long gone
  EXPECT_EQ(m.told.Take(), Words{});
}

TEST(ReflectorRules, Rule09SyncedOnceAndOnlyAfterTheWholeFirstList) {
  Machine m;
  m.state.Start();
  EXPECT_EQ(m.state.OnListFailed(m.now, {.reason = Reason::kNoAnswer}).kind, Step::kWait);
  m.state.OnTimer();
  m.Page({Head("a", "1")}, "10", "more");
  EXPECT_EQ(m.state.OnListFailed(m.now, {.reason = Reason::kInternalError, .code = 500}).kind, Step::kWait);
  EXPECT_FALSE(m.state.synced());
  EXPECT_EQ(m.state.OnTimer().continue_token, "");  // the list begins anew
  m.Page({Head("a", "1")}, "11");
  EXPECT_TRUE(m.state.synced());
  m.ErrorEvent(410, "Expired");
  m.Page({Head("a", "1")}, "12");
  EXPECT_EQ(m.told.Take(), (Words{"add a@1", "synced"}));
}

TEST(ReflectorRules, Rule10VersionsAreOpaque) {
  Machine m;
  m.Watching();
  m.Event(WatchType::kModified, Head("a", "not-a-number"));
  EXPECT_EQ(m.Ended().kind, Step::kWait);
  EXPECT_EQ(m.state.OnTimer().resource_version, "not-a-number");
  m.Event(WatchType::kModified, Head("a", "not-a-number"));  // an echo
  EXPECT_EQ(m.told.Take(), Words{"update a@not-a-number"});
}

TEST(ReflectorRules, Rule11WatchListIsNotUsed) {
  Machine m;
  const ReflectorCommand c = m.state.Start();
  EXPECT_EQ(c.kind,
            Step::kList);  // a list is understood by every server; the stream of initial events is optional
}

TEST(ReflectorRules, Rule12TheCopyKnowsWhetherItHasSeenAWrite) {
  Machine m;
  EXPECT_FALSE(m.state.HasSeen("1"));
  m.Watching();
  EXPECT_TRUE(m.state.HasSeen("10"));
  EXPECT_TRUE(m.state.HasSeen("9"));
  EXPECT_FALSE(m.state.HasSeen("11"));
  EXPECT_FALSE(m.state.HasSeen("100"));
  m.Event(WatchType::kModified, Head("a", "99999999999999999999"));
  EXPECT_TRUE(m.state.HasSeen("99999999999999999998"));
  EXPECT_FALSE(m.state.HasSeen("x"));
}

// A server with a store, and everything that may go wrong on the way: in the end the copy equals the store.
TEST(ReflectorState, WhateverGoesWrongTheCopyBecomesTheStore) {
  voda::testing::Check(
      [] {
        Machine m;
        std::map<std::string, std::pair<std::string, std::string>> store;  // name: uid, version
        std::vector<std::pair<WatchType, ObjectHead>> log;
        int version = 100;
        const auto change = [&] {
          const std::string name(1, *rc::gen::inRange('a', 'f'));
          const std::string next = std::to_string(++version);
          if (store.count(name) == 0) {
            store[name] = {"u" + next, next};
            log.emplace_back(WatchType::kAdded, ObjectHead{"ns", name, "u" + next, next});
          } else if (*rc::gen::arbitrary<bool>()) {
            store[name].second = next;
            log.emplace_back(WatchType::kModified, ObjectHead{"ns", name, store[name].first, next});
          } else {
            log.emplace_back(WatchType::kDeleted, ObjectHead{"ns", name, store[name].first, next});
            store.erase(name);
          }
        };
        ReflectorCommand c = m.state.Start();
        const int steps = *rc::gen::inRange(1, 60);
        for (int step = 0; step < steps + 40; ++step) {
          const bool calm = step >= steps;
          if (!calm) change();
          const int luck = calm ? 9 : *rc::gen::inRange(0, 10);
          m.now += Duration(200'000);
          if (c.kind == Step::kWait) {
            c = m.state.OnTimer();
          } else if (c.kind == Step::kList) {
            if (luck < 3) {
              c = m.state.OnListFailed(m.now, {.reason = luck == 0 ? Reason::kExpired : Reason::kConnection});
              continue;
            }
            for (const auto& [name, object] : store) {
              m.state.OnListItem({"ns", name, object.first, object.second}, m.View("{}"));
            }
            c = m.state.OnListPage({std::to_string(version), "", store.size()});
          } else {
            m.state.OnWatchOpened(m.now);
            const int from = std::stoi(c.resource_version);
            std::optional<ReflectorCommand> next;
            for (const auto& [type, head] : log) {
              if (std::stoi(head.resource_version) <= from) continue;
              if (luck == 1 && *rc::gen::arbitrary<bool>()) break;  // cut in the middle
              next = m.Event(type, head);
            }
            if (luck == 2) next = m.ErrorEvent(410, "Expired");
            if (luck == 3) next = m.ErrorEvent(500, "InternalError");
            c = next ? *next
                     : m.Ended(luck == 4 ? std::optional(ApiError{.reason = Reason::kConnection})
                                         : std::nullopt);
          }
        }
        std::map<std::string, std::string> want;
        for (const auto& [name, object] : store) want[name] = object.first + "@" + object.second;
        RC_ASSERT(m.told.copy == want);
      },
      300);
}

}  // namespace
}  // namespace voda::kube
