#include "kube/event_recorder.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kube/fake_io.h"

namespace voda::kube {
namespace {

using testing::FakeIo;

KubeEvent Event(const std::string& name = "job", const std::string& reason = "Scaled") {
  return {.regarding = {.api_version = "kubeflow.org/v1",
                        .kind = "PyTorchJob",
                        .name_space = "ns",
                        .name = name,
                        .uid = "u"},
          .reason = reason,
          .action = "Scale",
          .note = "from 2 to 4 workers"};
}

TEST(KubeEvents, NotesAreCutBetweenCharacters) {
  EXPECT_EQ(CutText("short", 10), "short");
  EXPECT_EQ(CutText("0123456789", 8), "01234...");
  EXPECT_EQ(CutText("ééééé", 8), "éé...");
  EXPECT_EQ(CutText(std::string(5000, 'x'), 1024).size(), 1024U);
}

class KubeEventSeries : public ::testing::Test {
 protected:
  std::optional<EventWrite> Record(const KubeEvent& event) {
    return series.Record(now, wall + (now - start), event);
  }
  const TimePoint start{Duration(1'000'000)};
  TimePoint now = start;
  const WallTime wall{std::chrono::seconds(1'700'000'000)};
  EventSeries series{{}, "vodascheduler/voda", "pod-1"};
};

TEST_F(KubeEventSeries, TheFirstIsAnObject) {
  const auto write = Record(Event());
  ASSERT_TRUE(write);
  EXPECT_TRUE(write->create);
  EXPECT_EQ(write->name_space, "ns");
  EXPECT_EQ(
      write->body,
      R"({"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":")" + write->name +
          R"(","namespace":"ns"},"eventTime":"2023-11-14T22:13:20.000000Z","reportingController":"vodascheduler/voda",)"
          R"("reportingInstance":"pod-1","action":"Scale","reason":"Scaled","type":"Normal","note":"from 2 to 4 workers",)"
          R"("regarding":{"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","namespace":"ns","name":"job","uid":"u"}})");
  const auto other = Record(Event("job", "Halted"));
  ASSERT_TRUE(other);
  EXPECT_NE(other->name, write->name);  // at the same moment
}

TEST_F(KubeEventSeries, RepeatsBecomeACount) {
  const auto first = Record(Event());
  for (int i = 0; i < 100; ++i) {
    now += Duration(100);
    EXPECT_FALSE(Record(Event()));
  }
  EXPECT_TRUE(series.waiting());
  EXPECT_TRUE(series.Flush(now).empty());
  now = start + Duration(30'000);
  const auto writes = series.Flush(now);
  ASSERT_EQ(writes.size(), 1U);
  EXPECT_FALSE(writes[0].create);
  EXPECT_EQ(writes[0].name, first->name);
  EXPECT_EQ(writes[0].body, R"({"series":{"count":101,"lastObservedTime":"2023-11-14T22:13:30.000000Z"}})");
  EXPECT_FALSE(series.waiting());
  now += Duration(31'000);
  EXPECT_EQ(Record(Event())->body,
            R"({"series":{"count":102,"lastObservedTime":"2023-11-14T22:14:21.000000Z"}})");
  now += Duration(360'001);
  EXPECT_TRUE(Record(Event())->create);  // that series has ended
}

TEST_F(KubeEventSeries, AnEventThatIsGoneIsMadeAgain) {
  const auto first = Record(Event());
  series.Gone(first->name);
  EXPECT_TRUE(Record(Event())->create);
}

TEST_F(KubeEventSeries, AnObjectHasItsShare) {
  int written = 0;
  for (int i = 0; i < 100; ++i) written += Record(Event("job", "R" + std::to_string(i))) ? 1 : 0;
  EXPECT_EQ(written, 25);
  EXPECT_EQ(series.dropped(), 75U);
  EXPECT_TRUE(Record(Event("other")));
  now += Duration(300'000);
  EXPECT_TRUE(Record(Event("job", "Later")));
}

TEST(KubeEvents, MemoryIsBounded) {
  EventSeries series({.objects = 10, .series = 20}, "c", "i");
  const TimePoint now{Duration(1)};
  int written = 0;
  for (int i = 0; i < 100; ++i) written += series.Record(now, {}, Event("job" + std::to_string(i))) ? 1 : 0;
  EXPECT_EQ(written, 10);
  const TimePoint later = now + Duration(361'000);
  EXPECT_TRUE(series.Record(later, {}, Event("new")));
}

// Whoever looks at a job wants to know what became of it last.
TEST(KubeEventRecorder, ABurstIsThinnedToTheNewestAndToWarnings) {
  FakeIo io;
  Counters counters;
  EventRecorder recorder(io, counters, {.instance = "i", .unsent = 100, .open = 2});
  KubeEvent warning = Event("job0", "Stuck");
  warning.type = EventType::kWarning;
  recorder.Record(warning);
  recorder.Record(warning);
  for (const char* reason : {"Accepted", "Started"}) {
    for (int i = 0; i < 1000; ++i) recorder.Record(Event("job" + std::to_string(i), reason));
    warning.reason = "Refused";
    recorder.Record(warning);
  }
  io.RunPosted();
  std::vector<std::string> sent;
  while (!io.open.empty()) {
    ASSERT_LE(io.open.size(), 2U);
    sent.push_back(io.Asked().body);
    io.Answer(201, "{}");
  }
  EXPECT_EQ(counters.events_sent, sent.size());
  EXPECT_EQ(counters.events_sent + counters.events_lost + 2, 2004U) << "two repeat others";
  EXPECT_LE(sent.size(), 110U);
  const auto told = [&](const char* job, const char* reason) {
    return std::any_of(sent.begin(), sent.end(), [&](const std::string& body) {
      return body.find(std::string("\"name\":\"") + job + "\"") != std::string::npos &&
             body.find(reason) != std::string::npos;
    });
  };
  EXPECT_TRUE(told("job0", "Stuck"));
  EXPECT_TRUE(told("job0", "Refused"));
  EXPECT_TRUE(told("job999", "Started"));
  EXPECT_FALSE(told("job999", "Accepted")) << "it was over before it could be sent";
}

// This is the queue of Transport in virtual time: a thousand jobs are started, and Events tell of each.
TEST(KubeEventRecorder, EventsDelayNoOtherWrite) {
  Lanes lanes(DefaultLanes());
  Lanes::Id id = 0;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(lanes.Add(Lane::kEvent, "", ++id));
    ASSERT_TRUE(lanes.Add(Lane::kWrite, "", 10'000 + id));
    ASSERT_TRUE(lanes.Add(Lane::kStatus, "", 20'000 + id));
  }
  const auto others = [&] { return lanes.waiting(Lane::kWrite) + lanes.waiting(Lane::kStatus); };
  TimePoint now{Duration(1)};
  std::size_t events = 0;
  while (events == 0) {
    for (const Lanes::Id taken : lanes.Take(now)) {
      events += taken < 10'000 ? 1 : 0;
      lanes.Finished(taken < 10'000 ? Lane::kEvent : taken < 20'000 ? Lane::kWrite : Lane::kStatus);
    }
    EXPECT_TRUE(events == 0 || others() == 0) << "an Event was sent while others waited";
    ASSERT_TRUE(lanes.NextAt(now));
    now = std::max(now + Duration(1), *lanes.NextAt(now));
  }
}

TEST(KubeEventRecorder, SendsCountsAndNeverBlocks) {
  FakeIo io;
  Counters counters;
  {
    EventRecorder recorder(io, counters, {.instance = "i", .waiting = 3});
    for (int i = 0; i < 5; ++i) recorder.Record(Event());
    EXPECT_EQ(counters.events_lost, 2U);
    io.RunPosted();
    ASSERT_EQ(io.open.size(), 1U);
    EXPECT_EQ(io.Asked().path, "/apis/events.k8s.io/v1/namespaces/ns/events");
    EXPECT_EQ(io.Asked().lane, Lane::kEvent);
    io.Answer(201, "{}");
    io.Pass(Duration(30'000));
    EXPECT_EQ(io.Asked().verb, Verb::kPatch);
    EXPECT_EQ(io.Asked().content_type, "application/merge-patch+json");
    EXPECT_NE(io.Asked().body.find(R"("count":3)"), std::string::npos);
    io.Answer(404, "");
    EXPECT_EQ(counters.events_sent, 1U);
    EXPECT_EQ(counters.events_lost, 3U);
    recorder.Record(Event());
    io.RunPosted();
    EXPECT_EQ(io.Asked().verb, Verb::kCreate);
    recorder.Record(Event());
  }
  EXPECT_EQ(counters.events_lost, 4U);
  io.RunPosted();
  io.Answer(201, "{}");  // the answer comes after the recorder has gone
  EXPECT_EQ(io.timers(), 0U);
}

}  // namespace
}  // namespace voda::kube
