#include "client/top_view.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "client/text.h"
#include "document/documents.h"
#include "support/check.h"

namespace voda {
namespace {

TopData Sample() {
  TopData data;
  data.server = "http://127.0.0.1:55587";
  data.algorithm = "Price";
  data.info = *ParseJson(R"({"gpus": 8, "gpus_used": 3, "jobs": {"Running": 2, "Waiting": 1}})");
  data.nodes = ParseJson(R"([
    {"name": "a", "gpu_type": "cpu", "gpus": 4, "used": 3, "state": "ready", "jobs": [{"name": "x-1", "workers": 1}, {"name": "y-2", "workers": 1}]},
    {"name": "b", "gpu_type": "cpu", "gpus": 4, "used": 0, "state": "cordoned", "jobs": []}])")
                   ->items();
  data.jobs = ParseJson(R"([
    {"id": 1, "name": "x-1", "status": "Running", "workers": 1, "planned": 2, "min": 1, "max": 4, "gpus_per_worker": 1,
     "progress": {"fraction": 0.5}, "remaining_seconds": 65},
    {"id": 2, "name": "y-2", "status": "Running", "workers": 1, "planned": 1, "min": 1, "max": 1, "gpus_per_worker": 2,
     "estimate": "guessed", "remaining_seconds": 3600},
    {"id": 3, "name": "z-3", "status": "Waiting", "workers": 0, "planned": 0, "min": 2, "max": 4, "gpus_per_worker": 1},
    {"id": 4, "name": "w-4", "status": "Completed", "workers": 0, "min": 2, "max": 4}])")
                  ->items();
  data.rounds =
      ParseJson(
          R"([{"time": 0, "changes": [{"job": "y-2", "from": 2, "to": 1, "reason": "the price rose"}]}])")
          ->items();
  return data;
}

std::vector<std::string> Lines(const TopData& data, const TopView& view) {
  std::vector<std::string> lines;
  for (const ScreenLine& line : RenderTop(data, view).lines) lines.push_back(ToPlain(line));
  return lines;
}

bool Shows(const std::vector<std::string>& lines, const std::string& text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != line.npos; });
}

TEST(TopView, FitsEightyByTwentyFour) {
  const auto lines = Lines(Sample(), {});
  ASSERT_EQ(lines.size(), 24U);
  EXPECT_EQ(lines[0].substr(0, 65), " voda 127.0.0.1:55587  Price  GPUs 3/8  Running 2 Waiting 1  Gues");
  EXPECT_TRUE(Shows(lines, "a    3/4       [ABB.]"));  // one letter for each GPU
  EXPECT_TRUE(Shows(lines, "b    0/4       [----] cordoned"));
  EXPECT_TRUE(
      Shows(lines, "A x-1      Running   1/1-4     [#+..]        [#########..........]  50%     1m5s"))
      << lines[4];
  EXPECT_TRUE(Shows(lines, "C z-3      Waiting   0/2-4     [....]"));
  EXPECT_TRUE(Shows(lines, "  w-4      Completed"));
  EXPECT_TRUE(Shows(lines, "y-2 2->1 the price rose"));
  EXPECT_NE(lines.back().find("q quit"), std::string::npos);
}

TEST(TopView, ALostConnectionIsSaidAndTheRestStays) {
  TopData data = Sample();
  data.trouble = "no route";
  const auto lines = Lines(data, {});
  EXPECT_EQ(lines[1], "connection lost: no route");
  EXPECT_TRUE(Shows(lines, "A x-1"));
}

TEST(TopView, ScrollsWithinTheJobs) {
  TopData data = Sample();
  for (int i = 10; i < 60; ++i) {
    data.jobs.push_back(Value::Map{{"id", i}, {"name", fmt::format("job-{}", i)}, {"status", "Waiting"}});
  }
  const TopPicture first = RenderTop(data, {});
  EXPECT_EQ(first.scroll, 0);
  const TopPicture last = RenderTop(data, {.scroll = 1000});
  EXPECT_EQ(last.scroll, 54 - last.page);
  const auto lines = Lines(data, {.scroll = 1000});
  EXPECT_TRUE(Shows(lines, "job-59"));
  EXPECT_FALSE(Shows(lines, "x-1  "));
  EXPECT_TRUE(Shows(lines, fmt::format("jobs {}-54 of 54", 54 - last.page + 1)));
}

TEST(TopView, HelpTellsTheKeys) {
  EXPECT_TRUE(Shows(Lines(Sample(), {.help = true}), "Ctrl-C"));
}

TEST(TopView, LettersStayWhenOthersEnd) {
  TopData data = Sample();
  const auto before = JobLetters(data.jobs);
  EXPECT_EQ(before.count("w-4"), 0U);
  data.jobs.erase(data.jobs.begin());
  const auto after = JobLetters(data.jobs);
  EXPECT_EQ(before.at("z-3"), after.at("z-3"));
  Value::List many;
  for (int i = 1; i <= 100; ++i) {
    many.push_back(Value::Map{{"id", i}, {"name", std::to_string(i)}, {"status", "Running"}});
  }
  EXPECT_EQ(JobLetters(many).size(), 52U);
}

TEST(TopView, RunningThenWaitingThenTheLatestEnded) {
  Value::List jobs = ParseJson(R"([{"id": 1, "name": "a", "status": "Completed", "ended": 5},
    {"id": 2, "name": "b", "status": "Waiting"}, {"id": 3, "name": "c", "status": "Failed", "ended": 9},
    {"id": 4, "name": "d", "status": "Running"}, {"id": 5, "name": "e", "status": "Submitted"}])")
                         ->items();
  SortForTop(jobs);
  std::string order;
  for (const Value& job : jobs) order += job["name"].Text();
  EXPECT_EQ(order, "dbeca");
}

TEST(TopView, AnsiHasColoursOnlyWhenAsked) {
  const ScreenLine line = {{"a", {.job = 0}}, {"b", {.tone = Style::Tone::kBad, .bold = true}}, {"c", {}}};
  EXPECT_EQ(ToAnsi(line, true), "\x1b[32ma\x1b[0m\x1b[1;31mb\x1b[0mc");
  EXPECT_EQ(ToAnsi(line, false), "a\x1b[1mb\x1b[0mc");
}

Value Name() {
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      return *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
    case 1:
      return std::string(*rc::gen::inRange(0, 200), 'n');
    case 2:
      return "\u4f60\u597d\x1b[2J";
    default:
      return {};
  }
}

Value Count() {
  return *rc::gen::element<Value>(0, 1, 2, 5, 64, 65536, -3, std::int64_t{1} << 62, 0.5, -1e300, Value(),
                                  "x");
}

// Nothing that a server could say makes a line wider than the screen, or another number of lines.
TEST(TopView, AnyDataFitsAnyScreen) {
  testing::Check(
      [] {
        TopData data;
        data.server = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
        data.algorithm = Name().Text();
        if (*rc::gen::arbitrary<bool>()) data.trouble = Name().Text();
        data.now = *rc::gen::element(0.0, 1.7e9, -1e300, 1e300);
        data.info =
            Value::Map{{"gpus", Count()}, {"gpus_used", Count()}, {"jobs", Value::Map{{"Running", Count()}}}};
        const int nodes = *rc::gen::inRange(0, 30);
        const int jobs = *rc::gen::inRange(0, 30);
        std::vector<Value> names;
        for (int i = 0; i < jobs; ++i) names.push_back(Name());
        for (const Value& name : names) {
          const char* status = *rc::gen::element("Running", "Waiting", "Completed", "Failed", "");
          data.jobs.push_back(Value::Map{
              {"id", Count()},
              {"name", name},
              {"status", status},
              {"workers", Count()},
              {"planned", Count()},
              {"min", Count()},
              {"max", Count()},
              {"gpus_per_worker", Count()},
              {"progress", Value::Map{{"fraction", *rc::gen::element(0.0, 0.5, 1.0, -1.0, 1e300)}}},
              {"remaining_seconds", Count()},
              {"held", *rc::gen::arbitrary<bool>()}});
          data.rounds.push_back(Value::Map{
              {"time", Count()},
              {"changes", Value::List{Value::Map{
                              {"job", name}, {"from", Count()}, {"to", Count()}, {"reason", Name()}}}}});
        }
        for (int i = 0; i < nodes; ++i) {
          Value::List held;
          for (const Value& name : names) {
            if (*rc::gen::inRange(0, 4) == 0)
              held.push_back(Value::Map{{"name", name}, {"workers", Count()}});
          }
          data.nodes.push_back(
              Value::Map{{"name", Name()},
                         {"gpu_type", Name()},
                         {"gpus", Count()},
                         {"used", Count()},
                         {"state", *rc::gen::element("ready", "lost", "draining", "cordoned", "?")},
                         {"jobs", held}});
        }
        const TopView view{.width = *rc::gen::element(1, 2, 7, 20, 40, 79, 80, 81, 120, 200, 500),
                           .height = *rc::gen::inRange(1, 70),
                           .scroll = *rc::gen::element(0, 1, 5, 1000, -4),
                           .help = *rc::gen::inRange(0, 10) == 0,
                           .ascii = *rc::gen::arbitrary<bool>()};
        const TopPicture picture = RenderTop(data, view);
        RC_ASSERT(static_cast<int>(picture.lines.size()) == view.height);
        RC_ASSERT(picture.scroll >= 0);
        for (const ScreenLine& line : picture.lines) {
          const std::string text = ToPlain(line);
          RC_ASSERT(CellWidth(text) <= view.width);
          RC_ASSERT(Printable(text, view.ascii) == text);
        }
      },
      400);
}

}  // namespace
}  // namespace voda
