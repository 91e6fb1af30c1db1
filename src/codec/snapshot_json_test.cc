#include "codec/snapshot_json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "codec/allocation_json.h"
#include "model/guess.h"

namespace voda {
namespace {

Snapshot Parsed(std::string_view text) {
  auto snapshot = ParseSnapshot(text);
  EXPECT_TRUE(snapshot) << (snapshot ? "" : snapshot.error().message);
  return snapshot ? std::move(*snapshot) : Snapshot{};
}

std::string ErrorOf(std::string_view text) {
  const auto snapshot = ParseSnapshot(text);
  return snapshot ? "accepted" : snapshot.error().message;
}

// A snapshot with one job that has these fields beside its name.
std::string WithJob(std::string_view fields) {
  return fmt::format(R"({{"nodes": [{{"name": "n0", "gpus": 8}}], "jobs": [{{"name": "a", {}}}]}})", fields);
}

TEST(ParseSnapshot, ReadsEveryField) {
  const Snapshot snapshot = Parsed(R"({"now": 1000.5,
    "nodes": [{"name": "n0", "gpus": 8, "state": "ready"}, {"name": "n1", "gpus": 4, "state": "cordoned"},
              {"name": "n2", "gpus": 2, "state": "lost"}],
    "jobs": [{"name": "a", "submit_time": -5, "min": 1, "num": 2, "max": 8, "sizes": [1, 2, 4, 8],
      "gpus_per_worker": 3, "priority": -7, "first_start": 10, "attained_gpu_seconds": 1900, "waiting_seconds": 1,
      "running_seconds": 950, "remaining_seconds": 3600, "workers": ["n1", null],
      "speedup": {"8": 6, "1": 1, "2": 1.9, "4": 3.5, "3": 2.5}, "start_cost": 39, "rescale_cost": 110,
      "migration_cost": 97, "last_change": 11, "last_start": 12, "preemptible": false}]})");
  EXPECT_EQ(snapshot.now, 1000.5);
  ASSERT_EQ(snapshot.nodes.size(), 3u);
  EXPECT_EQ(snapshot.nodes[1].name, "n1");
  EXPECT_EQ(snapshot.nodes[1].gpus, 4);
  EXPECT_EQ(snapshot.nodes[1].state, NodeState::kCordoned);
  EXPECT_EQ(snapshot.nodes[2].state, NodeState::kLost);
  ASSERT_EQ(snapshot.jobs.size(), 1u);
  const Job& job = snapshot.jobs[0];
  EXPECT_EQ(job.submit_time, -5);
  EXPECT_EQ(job.num, 2);
  EXPECT_EQ(job.gpus_per_worker, 3);
  EXPECT_EQ(job.priority, -7);
  EXPECT_EQ(job.first_start, 10);
  EXPECT_EQ(job.attained_gpu_seconds, 1900);
  EXPECT_EQ(job.waiting_seconds, 1);
  EXPECT_EQ(job.running_seconds, 950);
  EXPECT_EQ(job.remaining_seconds, 3600);
  EXPECT_EQ(job.workers, (std::vector<NodeIndex>{1, kNoNode}));
  EXPECT_EQ(job.curve->count(), 4);
  EXPECT_EQ(job.curve->speedup(1), 1.9);
  EXPECT_EQ(job.curve->speedup(3), 6);
  EXPECT_EQ(job.start_cost, 39);
  EXPECT_EQ(job.rescale_cost, 110);
  EXPECT_EQ(job.migration_cost, 97);
  EXPECT_EQ(job.last_change, 11);
  EXPECT_EQ(job.last_start, 12);
  EXPECT_FALSE(job.preemptible);
}

TEST(ParseSnapshot, ReadsWhatPricesNeed) {
  const Snapshot snapshot =
      Parsed(WithJob(R"("min": 1, "max": 4, "remaining_seconds": 50, "total_seconds": 80,
    "stall_left": 7.5, "measured": [1, 3, 65536], "span_speedup": {"4@3": 2.5, "65536@65536": 9, "4@2": 2.8})"));
  const Job& job = snapshot.jobs[0];
  EXPECT_EQ(job.remaining_seconds, 50);
  EXPECT_EQ(job.total_seconds, 80);
  EXPECT_EQ(job.stall_left, 7.5);
  ASSERT_NE(job.measured, nullptr);
  EXPECT_EQ(*job.measured, (std::vector<int>{1, 3, 65536}));
  ASSERT_NE(job.spans, nullptr);
  ASSERT_EQ(job.spans->size(), 3u);
  EXPECT_EQ((*job.spans)[0].nodes, 2);
  EXPECT_EQ((*job.spans)[0].speedup, 2.8);
  EXPECT_EQ((*job.spans)[1].nodes, 3);
  EXPECT_EQ((*job.spans)[2].workers, 65536);
  EXPECT_EQ(SpeedupOver(*job.curve, job.spans.get(), 4, 1), 4);
  EXPECT_EQ(SpeedupOver(*job.curve, job.spans.get(), 4, 2), 2.8);
  EXPECT_EQ(SpeedupOver(*job.curve, job.spans.get(), 4, 4), 2.5);
}

TEST(ParseSnapshot, ReadsNothingMeasured) {
  const Job none = Parsed(WithJob(R"("min": 1, "max": 4, "measured": [], "span_speedup": {})")).jobs[0];
  ASSERT_NE(none.measured, nullptr);
  EXPECT_TRUE(none.measured->empty());
  EXPECT_EQ(none.spans, nullptr);
  EXPECT_EQ(Parsed(WithJob(R"("min": 1, "max": 4, "measured": null)")).jobs[0].measured, nullptr);
  // The fields of one job do not leak into the next.
  const Snapshot two = Parsed(R"({"nodes": [], "jobs": [
    {"name": "a", "min": 1, "max": 1, "measured": [1], "span_speedup": {"2@2": 1}, "total_seconds": 5},
    {"name": "b", "min": 1, "max": 1, "span_speedup": {"3@2": 1}, "remaining_seconds": 4}]})");
  EXPECT_EQ(two.jobs[1].measured, nullptr);
  EXPECT_EQ(two.jobs[1].spans->size(), 1u);
  EXPECT_EQ(two.jobs[0].total_seconds, 5);
  EXPECT_EQ(two.jobs[1].total_seconds, 4);
}

TEST(ParseSnapshot, HasDefaults) {
  const Snapshot snapshot = Parsed(WithJob(R"("min": 2, "max": 5.0, "remaining_seconds": 0)"));
  EXPECT_EQ(snapshot.now, 0);
  EXPECT_EQ(snapshot.nodes[0].state, NodeState::kReady);
  const Job& job = snapshot.jobs[0];
  EXPECT_EQ(job.num, 2);
  EXPECT_EQ(job.max, 5);
  EXPECT_EQ(job.gpus_per_worker, 1);
  EXPECT_FALSE(job.first_start);
  EXPECT_TRUE(std::isinf(job.last_change));
  EXPECT_TRUE(job.preemptible);
  EXPECT_TRUE(job.workers.empty());
  EXPECT_TRUE(job.curve->linear());
  EXPECT_EQ(job.curve->count(), 4);
  EXPECT_EQ(job.start_cost, 0);
  EXPECT_EQ(job.rescale_cost, 0);
  EXPECT_EQ(job.migration_cost, 0);
  EXPECT_EQ(job.stall_left, 0);
  EXPECT_EQ(job.measured, nullptr);
  EXPECT_EQ(job.spans, nullptr);
  EXPECT_EQ(Parsed(WithJob(R"("min": 1, "max": 1, "remaining_seconds": 9)")).jobs[0].total_seconds, 9);
}

TEST(ParseSnapshot, AcceptsWhatIsUnusual) {
  EXPECT_EQ(Parsed(R"({"jobs": [], "nodes": []})").jobs.size(), 0u);
  EXPECT_EQ(Parsed(WithJob(R"("min": 1, "max": 65536)")).jobs[0].curve->count(), 65536);
  EXPECT_FALSE(
      Parsed(WithJob(R"("min": 1, "max": 1, "first_start": null, "last_change": null)")).jobs[0].first_start);
  // Times are not checked against each other, and an observed count need not be an allowed size.
  Parsed(WithJob(R"("min": 2, "max": 4, "submit_time": 100, "first_start": 1, "workers": ["n0"])"));
  Parsed(WithJob(R"("priority": -2147483648, "min": 1, "max": 1)"));
  Parsed(WithJob(R"("min": 1, "max": 1, "speedup": {"1": 1, "70000": 3, "123456789012345678": 4})"));
}

TEST(ParseSnapshot, NodesOnlyWorkersNameAreLost) {
  // Jobs before nodes, so names are resolved at the end.
  const Snapshot snapshot =
      Parsed(R"({"jobs": [{"name": "a", "min": 1, "max": 4, "workers": ["gone", "n0", "gone"]}],
    "nodes": [{"name": "n0", "gpus": 8}]})");
  ASSERT_EQ(snapshot.nodes.size(), 2u);
  EXPECT_EQ(snapshot.nodes[0].name, "n0");
  EXPECT_EQ(snapshot.nodes[1].name, "gone");
  EXPECT_EQ(snapshot.nodes[1].gpus, 0);
  EXPECT_EQ(snapshot.nodes[1].state, NodeState::kLost);
  EXPECT_EQ(snapshot.jobs[0].workers, (std::vector<NodeIndex>{1, 0, 1}));
}

TEST(ParseSnapshot, JobsWithEqualCurvesShareOne) {
  const Snapshot snapshot = Parsed(R"({"nodes": [], "jobs": [
    {"name": "a", "min": 1, "max": 2, "speedup": {"1": 1, "2": 1.5}},
    {"name": "b", "min": 1, "max": 2, "speedup": {"2": 1.5, "1": 1}},
    {"name": "c", "min": 1, "max": 2, "speedup": {"2": 1.6, "1": 1}},
    {"name": "d", "min": 1, "max": 2}, {"name": "e", "min": 1, "max": 2}, {"name": "f", "min": 1, "max": 3}]})");
  EXPECT_EQ(snapshot.jobs[0].curve, snapshot.jobs[1].curve);
  EXPECT_NE(snapshot.jobs[0].curve, snapshot.jobs[2].curve);
  EXPECT_EQ(snapshot.jobs[3].curve, snapshot.jobs[4].curve);
  EXPECT_NE(snapshot.jobs[3].curve, snapshot.jobs[5].curve);
}

TEST(ParseSnapshot, JobsWithEqualMeasurementsShareThem) {
  const Snapshot snapshot = Parsed(R"({"nodes": [], "jobs": [
    {"name": "a", "min": 1, "max": 2, "measured": [1, 2], "span_speedup": {"2@2": 1.5, "2@1": 2}},
    {"name": "b", "min": 1, "max": 4, "measured": [1, 2], "span_speedup": {"2@1": 2, "2@2": 1.5}},
    {"name": "c", "min": 1, "max": 2, "measured": [1], "span_speedup": {"2@1": 2, "2@2": 1.6}}]})");
  EXPECT_EQ(snapshot.jobs[0].measured, snapshot.jobs[1].measured);
  EXPECT_NE(snapshot.jobs[0].measured, snapshot.jobs[2].measured);
  EXPECT_EQ(snapshot.jobs[0].spans, snapshot.jobs[1].spans);
  EXPECT_NE(snapshot.jobs[0].spans, snapshot.jobs[2].spans);
}

struct BadCase {
  std::string text;
  std::string want_field;    // how the message begins
  std::string want_problem;  // and what else it says
};

TEST(ParseSnapshot, NamesTheFieldThatIsWrong) {
  const std::string a = " (job \"a\"): ";
  const auto root = [](std::string_view text) { return std::string(text); };
  const auto node = [](std::string_view fields) {
    return fmt::format(R"({{"nodes": [{{{}}}], "jobs": []}})", fields);
  };
  const std::vector<BadCase> cases = {
      {root(""), "snapshot: not JSON", "line 1"},
      {root("nonsense"), "snapshot: not JSON", "line 1, column 2"},
      {root("[]"), "snapshot: an array is not an object", "give an object"},
      {root("7"), "snapshot: 7 is not an object", ""},
      {root("null"), "snapshot: null is not an object", ""},
      {root("{}"), "nodes: missing", "give an array"},
      {root(R"({"nodes": []})"), "jobs: missing", ""},
      {root(R"({"nodes": [], "jobs": []} x)"), "snapshot: not JSON", ""},
      {root(R"({"nodes": [], "jobs": [],})"), "snapshot: not JSON", ""},
      {root(R"({"nodes": [], "jobs": [)"), "jobs[0]: not JSON", ""},
      {root(R"({"nodes": {}, "jobs": []})"), "nodes: an object is not an array", ""},
      {root(R"({"nodes": null, "jobs": []})"), "nodes: null is not an array", ""},
      {root(R"({"nodes": [], "jobs": [], "extra": 1})"), "snapshot: unknown field \"extra\"",
       "known are now, nodes, jobs"},
      {root(R"({"nodes": [], "nodes": [], "jobs": []})"), "nodes: given twice", ""},
      {root(R"({"now": "1", "nodes": [], "jobs": []})"), "now: \"1\" is not a finite number", ""},
      {root(R"({"now": 1e999, "nodes": [], "jobs": []})"), "now: out of range", "1e999"},
      {root(R"({"now": [[[[1]]]], "nodes": [], "jobs": []})"), "now: an array is not a finite number", ""},
      {root("{\"nodes\": [], \"jobs\": [{\"name\": \"\xff\"}]}"), "jobs[0].name: not JSON", "UTF-8"},
      {node(R"("gpus": 1)"), "nodes[0].name: missing", ""},
      {node(R"("name": "n")"), "nodes[0].gpus (node \"n\"): missing", ""},
      {node(R"("name": "", "gpus": 1)"), "nodes[0].name: the name is empty", ""},
      {node(R"("name": 5, "gpus": 1)"), "nodes[0].name: 5 is not a string", ""},
      {node(R"("name": "n", "gpus": -1)"), "nodes[0].gpus (node \"n\"): -1 is out of range", "0 to 65536"},
      {node(R"("name": "n", "gpus": 65537)"), "nodes[0].gpus (node \"n\"): 65537 is out of range", ""},
      {node(R"("name": "n", "gpus": 1.5)"), "nodes[0].gpus (node \"n\"): 1.5 is not a whole number", ""},
      {node(R"("name": "n", "gpus": 99999999999999999999999)"), "nodes[0].gpus (node \"n\"): 1e+23", ""},
      {node(R"("name": "n", "gpus": "8")"), "nodes[0].gpus (node \"n\"): \"8\" is not a whole number", ""},
      {node(R"("name": "n", "gpus": 1, "state": "down")"), "nodes[0].state (node \"n\"): \"down\"",
       "ready, cordoned, lost"},
      {node(R"("name": "n", "gpus": 1, "state": null)"), "nodes[0].state (node \"n\"): null", ""},
      {node(R"("name": "n", "gpus": 1, "gpu": 1)"), "nodes[0] (node \"n\"): unknown field \"gpu\"",
       "name, gpus, state"},
      {node(R"("name": "n", "gpus": 1}, {"name": "n", "gpus": 1)"),
       "nodes[1].name (node \"n\"): nodes[0] has this name", ""},
      {root(R"({"nodes": [7], "jobs": []})"), "nodes[0]: 7 is not an object", ""},
      {root(R"({"nodes": [], "jobs": [[]]})"), "jobs[0]: an array is not an object", ""},
      {root(R"({"nodes": [], "jobs": [{"min": 1, "max": 1}]})"), "jobs[0].name: missing", ""},
      {root(R"({"nodes": [], "jobs": [{"name": "", "min": 1, "max": 1}]})"),
       "jobs[0].name: the name is empty", ""},
      {root(
           R"({"nodes": [], "jobs": [{"name": "x", "min": 1, "max": 1}, {"name": "x", "min": 1, "max": 1}]})"),
       "jobs[1].name (job \"x\"): jobs[0] has this name", "unique"},
      {WithJob(R"("max": 1)"), "jobs[0].min" + a + "missing", ""},
      {WithJob(R"("min": 1)"), "jobs[0].max" + a + "missing", ""},
      {WithJob(R"("min": 0, "max": 1)"), "jobs[0].min" + a + "0 is out of range", "1 to 65536"},
      {WithJob(R"("min": -3, "max": 1)"), "jobs[0].min" + a + "-3 is out of range", ""},
      {WithJob(R"("min": NaN, "max": 1)"), "jobs[0].min" + a + "not JSON", "NaN"},
      {WithJob(R"("min": 1, "max": Infinity)"), "jobs[0].max" + a + "not JSON", ""},
      {WithJob(R"("min": 1, "max": 65537)"), "jobs[0].max" + a + "65537 is out of range", ""},
      {WithJob(R"("min": 1, "max": null)"), "jobs[0].max" + a + "null is not a whole number", ""},
      {WithJob(R"("min": 3, "max": 2)"), "jobs[0].min" + a + "3 is above max, 2", "give min <= max"},
      {WithJob(R"("min": 2, "max": 4, "num": 1)"), "jobs[0].num" + a + "1 is outside", "min 2 to max 4"},
      {WithJob(R"("min": 2, "max": 4, "num": 5)"), "jobs[0].num" + a + "5 is outside", ""},
      {WithJob(R"("min": 1, "max": 2, "min": 1)"), "jobs[0].min" + a + "given twice", ""},
      {WithJob(R"("min": 1, "max": 2, "gpus_per_worker": 0)"), "jobs[0].gpus_per_worker" + a + "0 is out",
       "1 to 1024"},
      {WithJob(R"("min": 1, "max": 2, "gpus_per_worker": 1025)"),
       "jobs[0].gpus_per_worker" + a + "1025 is out", ""},
      {WithJob(R"("min": 1, "max": 2, "priority": 2147483648)"), "jobs[0].priority" + a + "2147483648 is out",
       ""},
      {WithJob(R"("min": 1, "max": 2, "priority": 0.5)"), "jobs[0].priority" + a + "0.5 is not a whole", ""},
      {WithJob(R"("min": 1, "max": 2, "submit_time": null)"), "jobs[0].submit_time" + a + "null is not", ""},
      {WithJob(R"("min": 1, "max": 2, "first_start": "x")"), "jobs[0].first_start" + a + "\"x\" is not",
       "or null"},
      {WithJob(R"("min": 1, "max": 2, "remaining_seconds": -1)"),
       "jobs[0].remaining_seconds" + a + "-1 is neg", ""},
      {WithJob(R"("min": 1, "max": 2, "waiting_seconds": -0.5)"),
       "jobs[0].waiting_seconds" + a + "-0.5 is neg", ""},
      {WithJob(R"("min": 1, "max": 2, "start_cost": -1)"), "jobs[0].start_cost" + a + "-1 is neg", ""},
      {WithJob(R"("min": 1, "max": 2, "preemptible": 1)"),
       "jobs[0].preemptible" + a + "1 is not true or false", ""},
      {WithJob(R"("min": 1, "max": 2, "colour": 1)"), "jobs[0]" + a + "unknown field \"colour\"",
       "gpus_per_worker"},
      {WithJob(R"("min": 1, "max": 4, "sizes": [])"), "jobs[0].sizes" + a + "empty", ""},
      {WithJob(R"("min": 1, "max": 4, "sizes": 4)"), "jobs[0].sizes" + a + "4 is not an array", ""},
      {WithJob(R"("min": 1, "max": 4, "sizes": [1, 2.5, 4])"), "jobs[0].sizes[1]" + a + "2.5 is not", ""},
      {WithJob(R"("min": 1, "max": 4, "sizes": [1, 4, 2])"), "jobs[0].sizes[2]" + a + "2 after 4", ""},
      {WithJob(R"("min": 1, "max": 4, "sizes": [1, 1, 4])"), "jobs[0].sizes[1]" + a + "1 after 1", ""},
      {WithJob(R"("min": 1, "max": 4, "sizes": [2, 4])"), "jobs[0].sizes" + a + "1 is missing, which is min",
       ""},
      {WithJob(R"("min": 1, "max": 4, "sizes": [1, 2])"), "jobs[0].sizes" + a + "4 is missing, which is max",
       ""},
      {WithJob(R"("min": 1, "max": 4, "num": 3, "sizes": [1, 4])"), "jobs[0].sizes" + a + "3 is missing",
       "num"},
      {WithJob(R"("min": 1, "max": 4, "sizes": [1, 4, 5])"), "jobs[0].sizes[2]" + a + "5 is outside", ""},
      {WithJob(R"("min": 2, "max": 4, "sizes": [1, 2, 4])"), "jobs[0].sizes[0]" + a + "1 is outside", ""},
      {WithJob(R"("min": 1, "max": 2, "workers": ["n0", "n0", "n0"])"), "jobs[0].workers" + a + "3 workers",
       "max, 2"},
      {WithJob(R"("min": 1, "max": 2, "workers": [0])"),
       "jobs[0].workers[0]" + a + "0 is not the name of a node", ""},
      {WithJob(R"("min": 1, "max": 2, "workers": [""])"), "jobs[0].workers[0]" + a + "the name is empty", ""},
      {WithJob(R"("min": 1, "max": 2, "workers": "n0")"), "jobs[0].workers" + a + "\"n0\" is not an array",
       ""},
      {WithJob(R"("min": 1, "max": 2, "speedup": {"1": 1})"), "jobs[0].speedup" + a + "no value for 2", ""},
      {WithJob(R"("min": 1, "max": 1, "speedup": {"1": 0})"), "jobs[0].speedup.1" + a + "0 is not above 0",
       ""},
      {WithJob(R"("min": 1, "max": 1, "speedup": {"1": -2})"), "jobs[0].speedup.1" + a + "-2 is not above 0",
       ""},
      {WithJob(R"("min": 1, "max": 1, "speedup": {"1": 1e-400})"),
       "jobs[0].speedup.1" + a + "0 is not above 0", ""},
      {WithJob(R"("min": 1, "max": 1, "speedup": {"1": 1e999})"), "jobs[0].speedup.1" + a + "out of range",
       ""},
      {WithJob(R"("min": 1, "max": 1, "speedup": {"1": 1, "1": 1})"), "jobs[0].speedup.1" + a + "given twice",
       ""},
      {WithJob(R"("min": 1, "max": 1, "speedup": {"1": 1, "x": 1})"), "jobs[0].speedup" + a + "key \"x\"",
       ""},
      {WithJob(R"("min": 1, "max": 1, "speedup": {"1": 1, "1.5": 1})"), "jobs[0].speedup" + a + "key \"1.5\"",
       ""},
      {WithJob(R"("min": 1, "max": 1, "speedup": {"01": 1})"), "jobs[0].speedup" + a + "key \"01\"", ""},
      {WithJob(R"("min": 1, "max": 1, "speedup": {"0": 1})"), "jobs[0].speedup" + a + "key \"0\"", ""},
      {WithJob(R"("min": 1, "max": 1, "speedup": {"": 1})"), "jobs[0].speedup" + a + "key \"\"", ""},
      {WithJob(R"("min": 1, "max": 1, "speedup": [1])"), "jobs[0].speedup" + a + "an array is not an object",
       ""},
      {WithJob(R"("min": 1, "max": 1, "speedup": {"1": {}})"), "jobs[0].speedup.1" + a + "an object is not",
       ""},
      {WithJob(R"("min": 1, "max": 1, "speedup": null)"), "jobs[0].speedup" + a + "null is not an object",
       ""},
  };
  for (const BadCase& bad : cases) {
    const std::string message = ErrorOf(bad.text);
    EXPECT_EQ(message.substr(0, bad.want_field.size()), bad.want_field) << bad.text;
    EXPECT_NE(message.find(bad.want_problem), std::string::npos) << bad.text << "\n" << message;
  }
}

TEST(ParseSnapshot, NamesTheMeasurementThatIsWrong) {
  const std::string a = " (job \"a\"): ";
  const std::string too_many = [] {
    std::string entries;
    for (int nodes = 1; nodes <= 65536; ++nodes) entries += fmt::format(R"("65536@{}": 1, )", nodes);
    return entries + R"("4@2": 1)";
  }();
  const std::vector<BadCase> cases = {
      {R"("stall_left": -1)", "stall_left" + a + "-1 is negative", "at least 0"},
      {R"("stall_left": null)", "stall_left" + a + "null is not a finite number", ""},
      {R"("stall_left": 1e999)", "stall_left" + a + "out of range", ""},
      {R"("stall_left": 1, "stall_left": 1)", "stall_left" + a + "given twice", ""},
      {R"("total_seconds": -0.5)", "total_seconds" + a + "-0.5 is negative", "at least 0"},
      {R"("total_seconds": "9")", "total_seconds" + a + "\"9\" is not a finite number", ""},
      {R"("total_seconds": [9])", "total_seconds" + a + "an array is not a finite number", ""},
      {R"("measured": 4)", "measured" + a + "4 is not an array", "or null"},
      {R"("measured": {"4": 1})", "measured" + a + "an object is not an array", ""},
      {R"("measured": [0])", "measured[0]" + a + "0 is out of range", "1 to 65536"},
      {R"("measured": [1, 65537])", "measured[1]" + a + "65537 is out of range", ""},
      {R"("measured": [1, 2.5])", "measured[1]" + a + "2.5 is not a whole number", ""},
      {R"("measured": ["1"])", "measured[0]" + a + "\"1\" is not a whole number", ""},
      {R"("measured": [null])", "measured[0]" + a + "null is not a whole number", ""},
      {R"("measured": [[1]])", "measured[0]" + a + "an array is not a whole number", ""},
      {R"("measured": [2, 1])", "measured[1]" + a + "1 after 2 is not ascending", ""},
      {R"("measured": [2, 2])", "measured[1]" + a + "2 after 2 is not ascending", "once"},
      {R"("measured": null, "measured": [1])", "measured" + a + "given twice", ""},
      {R"("span_speedup": null)", "span_speedup" + a + "null is not an object", "4@2"},
      {R"("span_speedup": [1])", "span_speedup" + a + "an array is not an object", ""},
      {R"("span_speedup": {"4": 1})", "span_speedup" + a + "key \"4\" is not WORKERS@NODES", "\"4@2\""},
      {R"("span_speedup": {"": 1})", "span_speedup" + a + "key \"\" is not", ""},
      {R"("span_speedup": {"@": 1})", "span_speedup" + a + "key \"@\" is not", ""},
      {R"("span_speedup": {"4@": 1})", "span_speedup" + a + "key \"4@\" is not", ""},
      {R"("span_speedup": {"@2": 1})", "span_speedup" + a + "key \"@2\" is not", ""},
      {R"("span_speedup": {"4@0": 1})", "span_speedup" + a + "key \"4@0\" is not", ""},
      {R"("span_speedup": {"04@2": 1})", "span_speedup" + a + "key \"04@2\" is not", ""},
      {R"("span_speedup": {"-4@2": 1})", "span_speedup" + a + "key \"-4@2\" is not", ""},
      {R"("span_speedup": {"4 @2": 1})", "span_speedup" + a + "key \"4 @2\" is not", ""},
      {R"("span_speedup": {"4@2@1": 1})", "span_speedup" + a + "key \"4@2@1\" is not", ""},
      {R"("span_speedup": {"2@4": 1})", "span_speedup" + a + "key \"2@4\" has more nodes than workers", ""},
      {R"("span_speedup": {"65537@2": 1})", "span_speedup" + a + "key \"65537@2\" is out of range", "65536"},
      {R"("span_speedup": {"99999999999999999999@2": 1})", "span_speedup" + a + "key \"9999", ""},
      {R"("span_speedup": {"4@2": 0})", "span_speedup.4@2" + a + "0 is not above 0", ""},
      {R"("span_speedup": {"4@2": -1})", "span_speedup.4@2" + a + "-1 is not above 0", ""},
      {R"("span_speedup": {"4@2": 1e999})", "span_speedup.4@2" + a + "out of range", ""},
      {R"("span_speedup": {"4@2": NaN})", "span_speedup.4@2" + a + "not JSON", ""},
      {R"("span_speedup": {"4@2": "2"})", "span_speedup.4@2" + a + "\"2\" is not a finite number above 0",
       ""},
      {R"("span_speedup": {"4@2": {}})", "span_speedup.4@2" + a + "an object is not", ""},
      {R"("span_speedup": {"4@2": 1, "3@2": 1, "4@2": 1})", "span_speedup.4@2" + a + "given twice", ""},
      {R"("span_speedup": {)" + too_many + "}", "span_speedup.4@2" + a + "too many sizes", "65536"},
  };
  for (const BadCase& bad : cases) {
    const std::string message = ErrorOf(WithJob(R"("min": 1, "max": 4, )" + bad.text));
    const std::string want = "jobs[0]." + bad.want_field;
    EXPECT_EQ(message.substr(0, want.size()), want) << bad.text.substr(0, 200);
    EXPECT_NE(message.find(bad.want_problem), std::string::npos) << message;
  }
}

TEST(ParseSnapshot, LimitsAreBeforeMemory) {
  const std::string deep(100'000, '[');
  EXPECT_EQ(ErrorOf(deep).substr(0, 9), "snapshot:");
  EXPECT_EQ(ErrorOf("{\"nodes\": " + deep).substr(0, 9), "nodes[0]:");
  EXPECT_EQ(ErrorOf(WithJob("\"sizes\": " + deep)).substr(0, 25), "jobs[0].sizes[0] (job \"a\"");
  EXPECT_NE(ErrorOf(std::string(kMaxSnapshotBytes + 1, ' ')).find("larger than 256 MiB"), std::string::npos);
  EXPECT_NE(ErrorOf("{\"" + std::string(70'000, 'x') + "\": 1}").find("longer than 65536"),
            std::string::npos);
  EXPECT_NE(ErrorOf("{\"now\": " + std::string(70'000, '1') + "}").find("longer than 65536"),
            std::string::npos);
  // A long name is shown in part.
  EXPECT_LT(ErrorOf(WithJob("\"" + std::string(60'000, 'x') + "\": 1")).size(), 1000u);

  std::string nodes = R"({"jobs": [], "nodes": [)";
  for (int i = 0; i <= 16384; ++i)
    nodes += fmt::format(R"({}{{"name": "{}", "gpus": 65536}})", i == 0 ? "" : ",", i);
  EXPECT_EQ(ErrorOf(nodes + "]}").substr(0, 17), "nodes[16384].gpus");
}

TEST(SnapshotToJson, RoundTrips) {
  const std::vector<std::string> texts = {
      R"({"now": 0.1, "nodes": [], "jobs": []})",
      R"({"now": 1000, "nodes": [{"name": "n\"0\u0001", "gpus": 8}, {"name": "ü", "gpus": 0, "state": "lost"}],
          "jobs": [{"name": "a", "min": 1, "max": 8, "sizes": [1, 2, 4, 8], "workers": ["gone", null, "ü"]},
                   {"name": "b", "min": 2, "max": 4, "speedup": {"2": 0.1, "3": 1e-300, "4": 1e300}, "first_start": 0},
                   {"name": "c", "min": 3, "max": 60000, "last_change": -1.5, "last_start": 3, "preemptible": false,
                    "priority": -2147483648, "submit_time": 1e15, "start_cost": 1, "rescale_cost": 2,
                    "migration_cost": 3}]})"};
  for (const std::string& text : texts) {
    const Snapshot first = Parsed(text);
    const std::string written = SnapshotToJson(first);
    const Snapshot second = Parsed(written);
    EXPECT_EQ(SnapshotToJson(second), written);
    ASSERT_EQ(second.jobs.size(), first.jobs.size());
    for (const JobIndex i : first.jobs.indices()) {
      EXPECT_EQ(second.jobs[i].workers, first.jobs[i].workers);
      EXPECT_EQ(second.jobs[i].last_change, first.jobs[i].last_change);
      const Curve& a = *first.jobs[i].curve;
      const Curve& b = *second.jobs[i].curve;
      ASSERT_EQ(a.count(), b.count());
      for (int k = 0; k < a.count(); ++k) {
        EXPECT_EQ(a.size(k), b.size(k));
        EXPECT_EQ(a.speedup(k), b.speedup(k));
      }
    }
  }
}

TEST(SnapshotToJson, RoundTripsWhatPricesNeed) {
  const std::string text = SnapshotToJson(Parsed(
      WithJob(R"("min": 1, "max": 4, "remaining_seconds": 0.1, "total_seconds": 0.3, "stall_left": 1e-9,
    "measured": [2, 7, 60000], "span_speedup": {"7@3": 1e-300, "4@2": 2.8, "7@2": 1e300})")));
  EXPECT_NE(text.find(R"("total_seconds": 0.3)"), std::string::npos);
  EXPECT_NE(text.find(R"("stall_left": 1e-09)"), std::string::npos);
  EXPECT_NE(text.find(R"("measured": [2, 7, 60000])"), std::string::npos);
  EXPECT_NE(text.find(R"("span_speedup": {"4@2": 2.8, "7@2": 1e+300, "7@3": 1e-300})"), std::string::npos);
  EXPECT_EQ(SnapshotToJson(Parsed(text)), text);

  // Nothing measured is not the same as all measured.
  const std::string none = SnapshotToJson(Parsed(WithJob(R"("min": 1, "max": 4, "measured": [])")));
  EXPECT_NE(none.find(R"("measured": [])"), std::string::npos);
  EXPECT_EQ(SnapshotToJson(Parsed(none)), none);
  // A total of 0 is not the default where work is left.
  const std::string zero =
      SnapshotToJson(Parsed(WithJob(R"("min": 1, "max": 4, "remaining_seconds": 5, "total_seconds": 0)")));
  EXPECT_EQ(Parsed(zero).jobs[0].total_seconds, 0);

  const std::string plain = SnapshotToJson(Parsed(WithJob(R"("min": 1, "max": 4, "remaining_seconds": 5)")));
  for (const auto* field : {"total_seconds", "stall_left", "measured", "span_speedup"}) {
    EXPECT_EQ(plain.find(field), std::string::npos) << field;
  }
}

TEST(SnapshotToJson, IsSmallForJobsOfManySizes) {
  EXPECT_LT(SnapshotToJson(Parsed(WithJob(R"("min": 1, "max": 65536)"))).size(), 600u);
}

TEST(SnapshotToJson, MendsWhatIsNotUtf8) {
  Snapshot snapshot;
  snapshot.nodes.push_back({"n\xff", 1, NodeState::kReady});
  EXPECT_EQ(Parsed(SnapshotToJson(snapshot)).nodes[0].name, "n\xEF\xBF\xBD");
}

TEST(PlanToJson, HasJobsInNameOrder) {
  const Snapshot snapshot = Parsed(R"({"nodes": [{"name": "n0", "gpus": 2}], "jobs": [
    {"name": "z", "min": 1, "max": 2, "workers": ["gone"], "remaining_seconds": 1},
    {"name": "b", "min": 1, "max": 1, "remaining_seconds": 1}]})");
  Plan plan;
  plan.allocation.workers = {2, 0};
  plan.allocation.reasons = {{.code = ReasonCode::kRunsAtNum}, {.code = ReasonCode::kExternal}};
  plan.allocation.promoted = {0, 1};
  plan.placement.seats = {0, 0};
  plan.placement.first = {0, 2, 2};
  plan.placement.migrations = {{.job = 0, .worker = 0, .from = 1, .to = 0}};
  const std::string expected = R"({
  "algorithm": "FIFO",
  "allocation": {
    "b": 0,
    "z": 2
  },
  "placement": {
    "b": [],
    "z": ["n0", "n0"]
  },
  "migrations": [
    {"job": "z", "worker": 0, "from": "gone", "to": "n0"}
  ],
  "promotions": [
    "b",
    "z"
  ],
  "reasons": {
    "b": {"code": "external_policy", "text": "waits: the external policy gave it nothing"},
    "z": {"code": "runs_at_num", "text": "runs on 2 workers (2 GPUs), the size it asked for"}
  })";
  EXPECT_EQ(PlanToJson("FIFO", snapshot, plan), expected + "\n}");
  plan.allocation.wake_at = 12.5;
  plan.allocation.note = "so \"it\" is";
  EXPECT_EQ(PlanToJson("FIFO", snapshot, plan), expected + R"(,
  "wake_at": 12.5,
  "note": "so \"it\" is"
})");
  Plan empty;
  empty.placement.first = {0};
  EXPECT_EQ(PlanToJson("FIFO", Snapshot{}, empty), R"({
  "algorithm": "FIFO",
  "allocation": {},
  "placement": {},
  "migrations": [],
  "promotions": [],
  "reasons": {}
})");
}

TEST(ParseAllocation, ReadsAndRefuses) {
  const auto good = ParseAllocation(R"({"allocation": {"a": 4, "b": 2.0}})");
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, (NamedWorkers{{"a", 4}, {"b", 2}}));
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "answer: not JSON"},
      {"hello", "answer: not JSON"},
      {"[]", "answer: an array is not an object"},
      {"{}", "allocation: missing"},
      {R"({"alloc": {}})", "unknown field \"alloc\""},
      {R"({"allocation": []})", "answer: an array is not an object"},
      {R"({"allocation": 3})", "answer: 3 is not an object"},
      {R"({"allocation": {}, "allocation": {}})", "allocation: given twice"},
      {R"({"allocation": {"a": 1, "a": 1}})", "allocation of job \"a\": given twice"},
      {R"({"allocation": {"a": 1.5}})", "allocation of job \"a\": 1.5 is not a whole number"},
      {R"({"allocation": {"a": "1"}})", "allocation of job \"a\": \"1\" is not a whole number"},
      {R"({"allocation": {"a": {}}})", "allocation of job \"a\": an object"},
      {R"({"allocation": {"a": 1e999}})", "allocation of job \"a\": out of range"},
  };
  for (const auto& [text, want] : bad) {
    const auto answer = ParseAllocation(text);
    ASSERT_FALSE(answer) << text;
    EXPECT_EQ(answer.error().message.substr(0, want.size()), want);
  }
}

TEST(SnapshotJson, AJobThatDoesNotSayWhatIsLeftIsGuessed) {
  const Job job =
      Parsed(WithJob(R"("min": 1, "max": 4, "running_seconds": 100, "workers": ["n0", "n0"])")).jobs[0];
  EXPECT_TRUE(job.guessed);
  EXPECT_DOUBLE_EQ(job.work_done, 100 * GuessedSpeedup(2));
  EXPECT_DOUBLE_EQ(job.remaining_seconds, 3600);
  EXPECT_DOUBLE_EQ(job.total_seconds, 3600 + job.work_done);
  EXPECT_DOUBLE_EQ(job.curve->speedup(3), GuessedSpeedup(4));
  ASSERT_TRUE(job.measured);
  EXPECT_TRUE(job.measured->empty());
  EXPECT_FALSE(Parsed(WithJob(R"("min": 1, "max": 4, "remaining_seconds": 0)")).jobs[0].guessed);
  EXPECT_FALSE(Parsed(WithJob(R"("min": 1, "max": 4, "guessed": false)")).jobs[0].guessed);
}

TEST(SnapshotJson, WhatIsSaidOfAGuessedJobHolds) {
  const Job told =
      Parsed(WithJob(R"("min": 1, "max": 2, "guessed": true, "work_done": 9000, "remaining_seconds": 5,
      "speedup": {"1": 1, "2": 1.5})"))
          .jobs[0];
  EXPECT_DOUBLE_EQ(told.remaining_seconds, 5);
  EXPECT_DOUBLE_EQ(told.total_seconds, 9005);
  EXPECT_DOUBLE_EQ(told.curve->speedup(1), 1.5);
  EXPECT_EQ(told.measured, nullptr) << "a told speed-up is believed";
  const Job guessed = Parsed(WithJob(R"("min": 1, "max": 2, "work_done": 9000)")).jobs[0];
  EXPECT_DOUBLE_EQ(guessed.remaining_seconds, 9000);
  for (const char* fields :
       {R"("min": 1, "max": 4)", R"("min": 1, "max": 4, "sizes": [1, 2, 4], "work_done": 7)",
        R"("min": 1, "max": 2, "guessed": true, "speedup": {"1": 1, "2": 2}, "measured": null)"}) {
    const std::string json = SnapshotToJson(Parsed(WithJob(fields)));
    EXPECT_EQ(SnapshotToJson(Parsed(json)), json) << fields;
    EXPECT_NE(json.find("\"guessed\": true"), std::string::npos) << json;
  }
}

}  // namespace
}  // namespace voda
