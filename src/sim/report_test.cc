#include "sim/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/report_data.h"
#include "sim/report_text.h"
#include "sim/report_thin.h"

namespace voda::sim {
namespace {

using nlohmann::json;

JobResult Job(std::string name, double submit, double start, double end) {
  JobResult job;
  job.name = std::move(name);
  job.category = "vision";
  job.submit_time = submit;
  job.first_start = start;
  job.end = end;
  job.history = {{start, 2, 1}, {(start + end) / 2, 4, 2}, {end, 0, 0}};
  return job;
}

RunResult SampleRun(std::string algorithm) {
  RunResult run;
  run.algorithm = std::move(algorithm);
  run.completed = 2;
  run.makespan_s = 300;
  run.avg_jct_s = 200;
  run.jobs = {Job("a", 100, 110, 250), Job("b", 120, 250, 400)};
  run.usage = {{100, 8, 0}, {110, 8, 2}, {400, 8, 0}};
  return run;
}

size_t Count(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// The text of the data element, as a browser would take it: up to the first end tag.
json EmbeddedData(const std::string& html) {
  const std::string_view open = R"(<script type="application/json" id="report-data">)";
  const size_t begin = html.find(open) + open.size();
  return json::parse(html.substr(begin, html.find("</script", begin) - begin));
}

TEST(ReportTest, HoldsEveryAlgorithmAndItsFigures) {
  const std::set<std::string> want = {"FIFO", "ElasticFIFO", "AFS-L"};
  ReportInput input{.title = "T", .description = "d", .runs = {}};
  for (const std::string& name : want) input.runs.push_back(SampleRun(name));
  const json data = EmbeddedData(RenderReport(input));
  std::set<std::string> got;
  for (const json& run : data["runs"]) {
    got.insert(run["algorithm"]);
    EXPECT_EQ(run["jobs"], 2);
    EXPECT_EQ(run["avg_jct_s"], 200);
    EXPECT_EQ(run["rows"]["segments"][0], json::parse("[10,2,1,80,4,2,150,0,0]"));
    EXPECT_EQ(run["usage"], json::parse("[0,8,0,10,8,2,300,8,0]"));
    EXPECT_EQ(run["cdf"], json::parse("[150,0.5,280,1]"));
  }
  EXPECT_EQ(got, want);
  EXPECT_EQ(data["jobs"]["name"], json::parse(R"(["a","b"])")) << "jobs that the runs share are written once";
  EXPECT_TRUE(data["notes"].empty());
}

TEST(ReportTest, BoundIsInTheDataOnlyWhenGiven) {
  ReportInput input{.title = "T", .description = "d", .runs = {SampleRun("FIFO")}};
  const std::string without = RenderReport(input);
  EXPECT_FALSE(EmbeddedData(without).contains("bound"));
  input.bound = LowerBound{.avg_jct_s = 150.5, .makespan_s = 280.25, .jobs = 2};
  const std::string with = RenderReport(input);
  json data = EmbeddedData(with);
  EXPECT_EQ(data["bound"], json::parse(R"({"avg_jct_s":150.5,"makespan_s":280.25,"jobs":2})"));
  data.erase("bound");
  EXPECT_EQ(data, EmbeddedData(without)) << "a bound changes nothing else";
  input.bound.reset();
  EXPECT_EQ(RenderReport(input), without);
}

TEST(ReportTest, BoundThatIsNoNumberIsNull) {
  ReportInput input{.title = "T", .description = "", .runs = {SampleRun("FIFO")}};
  input.bound = LowerBound{.avg_jct_s = std::nan(""), .makespan_s = std::numeric_limits<double>::infinity()};
  EXPECT_EQ(EmbeddedData(RenderReport(input))["bound"],
            json::parse(R"({"avg_jct_s":null,"makespan_s":null,"jobs":0})"));
}

TEST(ReportTest, HostileNamesStayText) {
  const std::string names[] = {
      "</script><script>alert(1)</script>", "<!-- <script>", "{{js}}{{data}}", "]]>&amp;\"'\\",
      std::string("nul\0\x01\x7f", 6),      "日本語 🚀",      "\u2028\u2029"};
  const std::string plain = RenderReport({.title = "T", .description = "", .runs = {SampleRun("FIFO")}});
  for (const std::string& name : names) {
    ReportInput input{.title = name, .description = name, .runs = {SampleRun(name)}};
    input.runs[0].jobs[0].name = name;
    input.runs[0].jobs[1].category = name;
    const std::string html = RenderReport(input);
    EXPECT_EQ(Count(html, "<script"), Count(plain, "<script")) << name;
    EXPECT_EQ(Count(html, "</script"), Count(plain, "</script")) << name;
    EXPECT_EQ(Count(html, "<!--"), 0U) << name;
    const json data = EmbeddedData(html);
    EXPECT_EQ(data["runs"][0]["algorithm"], name);
    EXPECT_EQ(data["jobs"]["name"][0], name);
    EXPECT_EQ(data["categories"][1], name);
  }
}

TEST(ReportTest, BrokenUtf8AndLongNamesAreMended) {
  EXPECT_EQ(ValidUtf8("a\xff\xc3("), "a\uFFFD\uFFFD(");
  EXPECT_EQ(ValidUtf8("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD") << "surrogates are not characters";
  EXPECT_EQ(ValidUtf8("\xf0\x9f\x9a"), "\uFFFD\uFFFD\uFFFD") << "cut off";
  EXPECT_EQ(Shorten("abcä", 4), "abc…");
  ReportInput input{.title = "\xff", .description = "", .runs = {SampleRun("FIFO")}};
  input.runs[0].jobs[0].name = std::string(100'000, 'x');
  const std::string html = RenderReport(input);
  EXPECT_EQ(ValidUtf8(html), html);
  EXPECT_LT(html.size(), 150'000U);
}

TEST(ReportTest, NothingAtAllIsStillAReport) {
  for (const ReportInput& input :
       {ReportInput{}, ReportInput{.title = "", .description = "", .runs = {RunResult{}}}}) {
    const std::string html = RenderReport(input);
    EXPECT_EQ(EmbeddedData(html)["runs"].size(), input.runs.size());
    EXPECT_EQ(Count(html, "{{"), 0U);
    EXPECT_NE(html.find("</html>"), std::string::npos);
  }
}

TEST(ReportTest, AsksNothingOfTheNetwork) {
  const std::string html = RenderReport({.title = "T", .description = "", .runs = {SampleRun("FIFO")}});
  EXPECT_EQ(Count(html, "src="), 0U);
  EXPECT_EQ(Count(html, "url("), 0U);
  EXPECT_EQ(Count(html, "@import"), 0U);
  EXPECT_EQ(Count(html, "innerHTML"), 0U);
  EXPECT_EQ(Count(html, "http"), Count(html, "http-equiv") + Count(html, "http://www.w3.org/2000/svg"));
}

TEST(ReportTest, JobsWithoutEndStartOrHistory) {
  RunResult run = SampleRun("FIFO");
  run.jobs[0].end.reset();
  run.jobs[1] = JobResult();
  run.jobs[1].submit_time = 105;
  run.avg_jct_s = std::nan("");
  run.makespan_s = std::numeric_limits<double>::infinity();
  const json data = EmbeddedData(RenderReport({.title = "T", .description = "", .runs = {run}}));
  const json& rows = data["runs"][0]["rows"];
  EXPECT_TRUE(rows["end"][0].is_null());
  EXPECT_TRUE(rows["start"][1].is_null());
  EXPECT_TRUE(rows["segments"][1].empty());
  EXPECT_TRUE(data["runs"][0]["avg_jct_s"].is_null());
  EXPECT_TRUE(data["runs"][0]["cdf"].empty());
}

TEST(ReportTest, LargeRunsAreThinnedAndSaySo) {
  RunResult run = SampleRun("FIFO");
  run.jobs.clear();
  for (int i = 0; i < 100; ++i) {
    run.jobs.push_back(Job(std::to_string(i), i, i + 1, i + 100));
    run.jobs.back().history.clear();
    for (int k = 0; k < 50; ++k) run.jobs.back().history.push_back({i + 1.0 + k * 2, 1 + k % 3, 1});
    run.usage.push_back({400.0 + i, 8, i % 8});
  }
  const ReportLimits limits{
      .job_rows = 80, .segments = 800, .usage_points_per_run = 10, .cdf_points_per_run = 5};
  const json data = json::parse(ReportData({.title = "", .description = "", .runs = {run}}, limits));
  const json& got = data["runs"][0];
  EXPECT_EQ(got["jobs"], 100);
  EXPECT_EQ(got["rows"]["job"].size(), 80U);
  size_t segments = 0;
  for (const json& list : got["rows"]["segments"]) segments += list.size() / 3;
  EXPECT_LE(segments, 800U);
  EXPECT_EQ(got["usage"].size(), 11U * 3);
  EXPECT_EQ(got["cdf"].size(), 5U * 2);
  EXPECT_EQ(got["cdf"].back(), 1);
  EXPECT_EQ(data["notes"].size(), 3U);
}

TEST(ReportThinTest, LongestIntervalsAndBothEndsStay) {
  const std::vector<Segment> history = {{0, 1, 1}, {1, 2, 1}, {9, 3, 1}, {10, 4, 1}, {20, 5, 1}, {21, 0, 0}};
  const std::vector<Segment> kept = KeepLongest(history, 4);
  ASSERT_EQ(kept.size(), 4U);
  EXPECT_EQ(kept[0].from, 0);
  EXPECT_EQ(kept[1].from, 1);
  EXPECT_EQ(kept[2].from, 10);
  EXPECT_EQ(kept[3].from, 21);
  EXPECT_EQ(KeepLongest(history, 6).size(), 6U);
  EXPECT_EQ(Canonical(std::vector<Segment>{{0, 1, 1}, {5, 1, 1}, {6, 2, 1}, {6, 3, 1}}).size(), 2U);
}

TEST(ReportThinTest, CapKeepsWithinTheBudget) {
  EXPECT_EQ(CapPerJob({5, 6, 7}, 100), 7U);
  EXPECT_EQ(CapPerJob({2, 100, 100}, 102), 50U);
  EXPECT_EQ(CapPerJob({100, 100}, 0), 4U);
  EXPECT_EQ(CapPerJob({}, 10), 4U);
}

TEST(ReportThinTest, AveragesKeepTheArea) {
  std::vector<UsagePoint> usage;
  double area = 0;
  for (int i = 0; i <= 1000; ++i) {
    usage.push_back({i * 1.0, 10, (i * 7) % 11});
    if (i < 1000) area += (i * 7) % 11;
  }
  const std::vector<MeanUsage> mean = AverageUsage(usage, 37);
  ASSERT_EQ(mean.size(), 38U);
  double got = 0;
  for (size_t i = 0; i + 1 < mean.size(); ++i) got += mean[i].used * (mean[i + 1].from - mean[i].from);
  EXPECT_NEAR(got, area, 1e-6);
  EXPECT_NEAR(mean[5].capacity, 10, 1e-9);
}

}  // namespace
}  // namespace voda::sim
