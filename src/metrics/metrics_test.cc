#include "metrics/metrics.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include "base/enum_array.h"
#include "metrics/label_text.h"
#include "metrics/process.h"
#include "metrics/series.h"
#include "support/check.h"
#include "support/test_data.h"

namespace voda {
namespace {

using Kind = SeriesInfo::Kind;
using Role = Metrics::Role;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The number behind `sample`, such as `voda_gpus{gpu_type="a",node="b"}`; NaN if it is not exported.
double Sample(const std::string& text, const std::string& sample) {
  const auto at = ("\n" + text).find("\n" + sample + " ");
  if (at == std::string::npos) return std::nan("");
  return std::strtod(text.c_str() + at + sample.size(), nullptr);
}

void Feed(Metrics& metrics, const SeriesInfo& info, Metrics::Labels labels) {
  switch (info.kind) {
    case Kind::kCounter:
      return metrics.Add(info.series, labels);
    case Kind::kGauge:
      return metrics.Set(info.series, labels, 1);
    case Kind::kHistogram:
      return metrics.Observe(info.series, labels, 0.5);
  }
}

// Puts something into every series.
void FeedAll(Metrics& metrics, std::string_view label) {
  for (const SeriesInfo& info : SeriesTable()) {
    switch (info.labels.size()) {
      case 0:
        Feed(metrics, info, {});
        break;
      case 1:
        Feed(metrics, info, {label});
        break;
      case 2:
        Feed(metrics, info, {label, label});
        break;
      default:
        Feed(metrics, info, {label, label, label});
    }
  }
}

// Returns promtool's output for the text, and its exit code.
std::pair<int, std::string> Promtool(const std::string& text) {
  const sim::TempDir folder;
  const std::string file = folder.Write("metrics", text);
  FILE* pipe = ::popen(("promtool check metrics < '" + file + "' 2>&1").c_str(), "r");
  std::string said;
  char chunk[4096];
  while (const auto got = std::fread(chunk, 1, sizeof chunk, pipe)) said.append(chunk, got);
  const int status = ::pclose(pipe);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == 127)
    said += " (promtool is missing: tools/bootstrap.sh test installs it with Debian's 'prometheus')";
  return {code, said};
}

TEST(MetricsTest, PromtoolTakesEveryRoleWithoutAWarning) {
  const auto refused = Promtool("# TYPE voda_bad counter\nvoda_bad 1\n");
  ASSERT_NE(refused.first, 0) << "promtool finds nothing wrong with what is wrong";
  ASSERT_NE(refused.first, 127) << refused.second;
  Metrics fresh("0.1.0");
  Metrics fed("0.1.0");
  FeedAll(fed, "plain");
  FeedAll(fed, "quote\" back\\slash new\nline \xff\xc3\x28 {}=,");
  for (const Role role : {Role::kAll, Role::kTrainingService, Role::kScheduler, Role::kAllocator}) {
    for (const Metrics* metrics : {&fresh, &fed}) {
      const auto [code, said] = Promtool(metrics->Text(role));
      EXPECT_EQ(code, 0) << said;
      EXPECT_EQ(said, "");
    }
  }
}

TEST(MetricsTest, AddsSetsObservesAndRemoves) {
  Metrics metrics("1.2.3");
  metrics.Add(Series::kJobsCreated, {"v100"});
  metrics.Add(Series::kJobsCreated, {"v100"}, 2);
  metrics.Add(Series::kJobsCreated, {"a100"});
  metrics.Set(Series::kGpus, {"v100", "n0"}, 4);
  metrics.Set(Series::kGpus, {"v100", "n0"}, 8);
  metrics.Set(Series::kGpus, {"v100", "n1"}, 2);
  metrics.Set(Series::kGpus, {"a100", "n2"}, 1);
  metrics.Set(Series::kInboxDepth, 7);
  metrics.Add(Series::kEventStreams);
  metrics.Add(Series::kEventStreams);
  metrics.Add(Series::kEventStreams, {}, -1);
  metrics.Observe(Series::kHttpRequestDuration, {"/training"}, 0.02);
  metrics.Observe(Series::kHttpRequestDuration, {"/training"}, 100);
  metrics.Observe(Series::kStoreCommitDuration, 0.001);

  std::string text = metrics.Text(Role::kAll);
  EXPECT_EQ(Sample(text, R"(voda_jobs_created_total{gpu_type="v100"})"), 3);
  EXPECT_EQ(Sample(text, R"(voda_jobs_created_total{gpu_type="a100"})"), 1);
  EXPECT_EQ(Sample(text, R"(voda_gpus{gpu_type="v100",node="n0"})"), 8);
  EXPECT_EQ(Sample(text, "voda_inbox_depth"), 7);
  EXPECT_EQ(Sample(text, "voda_event_streams"), 1);
  EXPECT_EQ(Sample(text, "voda_store_errors_total"), 0) << "there before the first error";
  EXPECT_EQ(Sample(text, R"(voda_build_info{version="1.2.3"})"), 1);
  EXPECT_EQ(Sample(text, R"(voda_http_request_duration_seconds_count{route="/training"})"), 2);
  EXPECT_EQ(Sample(text, R"(voda_http_request_duration_seconds_bucket{route="/training",le="0.025"})"), 1);
  EXPECT_EQ(Sample(text, R"(voda_http_request_duration_seconds_bucket{route="/training",le="+Inf"})"), 2);
  EXPECT_EQ(Sample(text, R"(voda_http_request_duration_seconds_sum{route="/training"})"), 100.02);
  EXPECT_EQ(Sample(text, "voda_store_commit_duration_seconds_count"), 1);
  EXPECT_TRUE(
      Has(text, "# HELP voda_jobs_created_total Jobs accepted.\n# TYPE voda_jobs_created_total counter\n"));
  EXPECT_LT(text.find(R"(voda_gpus{gpu_type="a100")"), text.find(R"(voda_gpus{gpu_type="v100",node="n0")"));
  EXPECT_FALSE(Has(text, "dropped"));

  metrics.Remove(Series::kGpus, {"v100", "n0"});
  metrics.Remove(Series::kGpus, {"v100", "never there"});
  text = metrics.Text(Role::kAll);
  EXPECT_TRUE(std::isnan(Sample(text, R"(voda_gpus{gpu_type="v100",node="n0"})")));
  EXPECT_EQ(Sample(text, R"(voda_gpus{gpu_type="v100",node="n1"})"), 2);
  metrics.RemoveAll(Series::kGpus, "v100");
  text = metrics.Text(Role::kAll);
  EXPECT_FALSE(Has(text, "v100\",node"));
  EXPECT_EQ(Sample(text, R"(voda_gpus{gpu_type="a100",node="n2"})"), 1);
}

TEST(MetricsTest, TheTableHasEachSeriesOnceInOrder) {
  ASSERT_EQ(SeriesTable().size(), PositionOf(Series::kCount));
  std::set<std::string_view> names;
  for (const SeriesInfo& info : SeriesTable()) {
    EXPECT_EQ(&SeriesTable()[info.series], &info) << info.name;
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(info.kind == Kind::kHistogram, !info.buckets.empty()) << info.name;
    EXPECT_TRUE(std::is_sorted(info.buckets.begin(), info.buckets.end())) << info.name;
  }
}

TEST(MetricsTest, EachRoleExportsItsSeriesAndAllIsTheirUnion) {
  Metrics metrics("0");
  FeedAll(metrics, "x");
  const std::string all = metrics.Text(Role::kAll);
  for (const SeriesInfo& info : SeriesTable()) {
    const std::string type = "# TYPE " + std::string(info.name) + " " + std::string(Name(info.kind)) + "\n";
    EXPECT_TRUE(Has(all, type)) << info.name;
    EXPECT_EQ(all.find(type), all.rfind(type)) << info.name << " twice";
    EXPECT_NE(info.roles, 0) << info.name;
    for (const Role role : {Role::kTrainingService, Role::kScheduler, Role::kAllocator}) {
      EXPECT_EQ(Has(metrics.Text(role), type), (info.roles & static_cast<int>(role)) != 0) << info.name;
    }
  }
}

TEST(MetricsTest, ValuesThatCannotBeAreDroppedAndCounted) {
  Metrics metrics("0");
  metrics.Add(Series::kJobsCreated, {"a"}, -1);
  metrics.Add(Series::kJobsCreated, {"a"}, std::nan(""));
  metrics.Set(Series::kInboxDepth, kInfinity);
  metrics.Observe(Series::kStoreReadDuration, std::nan(""));
  const std::string text = metrics.Text(Role::kAll);
  EXPECT_FALSE(Has(text, "voda_jobs_created_total{"));
  EXPECT_EQ(Sample(text, "voda_inbox_depth"), 0);
  EXPECT_EQ(Sample(text, "voda_store_read_duration_seconds_count"), 0);
  EXPECT_EQ(Sample(text, R"(voda_metrics_dropped_total{series="voda_jobs_created_total"})"), 2);
  EXPECT_EQ(Sample(text, R"(voda_metrics_dropped_total{series="voda_inbox_depth"})"), 1);
}

TEST(MetricsTest, LabelSetsAreBounded) {
  Metrics metrics("0");
  const auto over = static_cast<int>(Metrics::kMostLabelSets) + 5;
  for (int i = 0; i < over; ++i) metrics.Add(Series::kProgressRejected, {"reason" + std::to_string(i)});
  metrics.Add(Series::kProgressRejected, {"reason0"});
  const std::string text = metrics.Text(Role::kTrainingService);
  EXPECT_EQ(Sample(text, R"(voda_progress_rejected_total{reason="reason0"})"), 2) << "known ones still count";
  EXPECT_EQ(Sample(text, R"(voda_metrics_dropped_total{series="voda_progress_rejected_total"})"), 5);
  EXPECT_FALSE(Has(text, "reason" + std::to_string(over - 1)));

  metrics.Add(Series::kHttpRequests, {std::string(100'000, 'r'), "GET", "200"});
  EXPECT_TRUE(Has(metrics.Text(Role::kTrainingService),
                  "{route=\"" + std::string(Metrics::kMostLabelBytes, 'r') + "\",method"));
}

TEST(MetricsTest, AnyThreadMayWriteAndRead) {
  Metrics metrics("0");
  constexpr int kThreads = 4;
  constexpr int kEach = 2000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        metrics.Add(Series::kHttpRequests, {"/r" + std::to_string(i % 7), "GET", "200"});
        metrics.Observe(Series::kStoreCommitDuration, 0.001);
        metrics.Set(Series::kGpus, {"v100", std::to_string(t)}, i);
        if (i % 3 == 0) metrics.Remove(Series::kGpus, {"v100", std::to_string(t)});
        if (i % 200 == 0) {
          EXPECT_FALSE(metrics.Text(Role::kAll).empty());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = metrics.Text(Role::kAll);
  double total = 0;
  for (int i = 0; i < 7; ++i) {
    const std::string route = R"(voda_http_requests_total{route="/r)" + std::to_string(i);
    total += Sample(text, route + R"(",method="GET",code="200"})");
  }
  EXPECT_EQ(total, kThreads * kEach);
  EXPECT_EQ(Sample(text, "voda_store_commit_duration_seconds_count"), kThreads * kEach);
}

TEST(MetricsTest, LabelTextIsUtf8AndBounded) {
  EXPECT_EQ(LabelText("straße 日本 🚀", 100), "straße 日本 🚀");
  EXPECT_EQ(LabelText("a\xff"
                      "b",
                      100),
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(LabelText("\xc0\x80", 100), "\xef\xbf\xbd\xef\xbf\xbd") << "overlong";
  EXPECT_EQ(LabelText("\xed\xa0\x80", 100), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd") << "surrogate";
  EXPECT_EQ(LabelText("\xf4\x90\x80\x80", 100).size(), 12U) << "above U+10FFFF";
  EXPECT_EQ(LabelText("\xe6\x97", 100), "\xef\xbf\xbd\xef\xbf\xbd") << "cut";
  EXPECT_EQ(LabelText("ab日", 4), "ab") << "no half characters";
  testing::Check([] {
    const auto text = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
    const std::string once = LabelText(text, 50);
    RC_ASSERT(once.size() <= 50U);
    RC_ASSERT(LabelText(once, 50) == once);
  });
}

TEST(MetricsTest, ProcessFactsAreThoseOfThisProcess) {
  Metrics metrics("0");
  const std::string before = metrics.Text(Role::kAllocator);
  const double fds = Sample(before, "process_open_fds");
  EXPECT_GE(fds, 3);
  const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  std::vector<char> memory(std::size_t{64} << 20, 'x');
  const auto now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  std::string after;
  for (volatile int work = 0; Sample(after = metrics.Text(Role::kAllocator), "process_cpu_seconds_total") <=
                              Sample(before, "process_cpu_seconds_total");) {
    for (int i = 0; i < 1'000'000; ++i) work = work + 1;
  }
  EXPECT_EQ(Sample(after, "process_open_fds"), fds + 1);
  EXPECT_GT(Sample(after, "process_resident_memory_bytes"),
            Sample(before, "process_resident_memory_bytes") + 32.0 * (1 << 20));
  EXPECT_GT(Sample(after, "process_virtual_memory_bytes"), Sample(after, "process_resident_memory_bytes"));
  EXPECT_GE(Sample(after, "process_max_fds"), fds);
  EXPECT_LE(Sample(after, "process_start_time_seconds"), now + 2);
  EXPECT_GT(Sample(after, "process_start_time_seconds"), now - 3600);
  EXPECT_EQ(memory.back(), 'x');
  ::close(fd);
}

using MetricsDeathTest = ::testing::Test;

TEST(MetricsDeathTest, WrongUseIsADefectOfTheCaller) {
  Metrics metrics("0");
  EXPECT_DEATH(metrics.Add(Series::kJobsCreated), "invariant broken") << "labels are missing";
  EXPECT_DEATH(metrics.Add(Series::kJobsCreated, {"a", "b"}), "invariant broken");
  EXPECT_DEATH(metrics.Set(Series::kJobsCreated, {"a"}, 1), "invariant broken") << "a counter is not set";
  EXPECT_DEATH(metrics.Observe(Series::kInboxDepth, 1), "invariant broken");
}

// The documentation.

// Returns the cells of each table row between the heading and the next one.
std::vector<std::vector<std::string>> RowsUnder(const std::string& heading) {
  std::ifstream file(sim::kSourceDir / "docs/METRICS.md");
  EXPECT_TRUE(file) << "docs/METRICS.md";
  std::vector<std::vector<std::string>> rows;
  bool within = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) within = line == "## " + heading;
    if (!within || !line.starts_with("| ")) continue;
    std::vector<std::string> cells;
    std::istringstream rest(line.substr(2));
    for (std::string cell; std::getline(rest, cell, '|');) {
      const auto from = cell.find_first_not_of(' ');
      const auto to = cell.find_last_not_of(' ');
      cells.push_back(from == std::string::npos ? "" : cell.substr(from, to - from + 1));
    }
    rows.push_back(cells);
  }
  EXPECT_GT(rows.size(), 1U) << heading;
  if (!rows.empty()) rows.erase(rows.begin());  // the head
  return rows;
}

std::vector<std::string> Quoted(const std::string& cell) {
  static const std::regex pattern("`([^`]+)`");
  std::vector<std::string> names;
  for (std::sregex_iterator at(cell.begin(), cell.end(), pattern), end; at != end; ++at)
    names.push_back((*at)[1]);
  return names;
}

TEST(MetricsDocTest, TheTableIsTheCode) {
  std::vector<std::string> code;
  for (const SeriesInfo& info : SeriesTable()) {
    std::string labels;
    for (const std::string_view label : info.labels) {
      labels += (labels.empty() ? "`" : ", `") + std::string(label) + "`";
    }
    std::string roles;
    for (const auto& [role, letter] : {std::pair(Role::kTrainingService, "T"),
                                       std::pair(Role::kScheduler, "S"), std::pair(Role::kAllocator, "A")}) {
      if ((info.roles & static_cast<int>(role)) != 0) roles += letter;
    }
    std::ostringstream line;
    line << "`" << info.name << "` | " << Name(info.kind) << " | " << labels << " | " << roles << " | "
         << info.help;
    code.push_back(line.str());
  }
  std::vector<std::string> doc;
  for (const auto& row : RowsUnder("Series")) {
    ASSERT_EQ(row.size(), 5U) << row[0];
    doc.push_back(row[0] + " | " + row[1] + " | " + row[2] + " | " + row[3] + " | " + row[4]);
  }
  EXPECT_EQ(doc, code);
}

TEST(MetricsDocTest, EverySeriesIsSetSomewhere) {
  const auto read = [](const std::filesystem::path& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  std::string code;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(sim::kSourceDir / "src")) {
    const std::string name = entry.path().filename().string();
    const bool source = name.ends_with(".cc") || name.ends_with(".h");
    if (source && !name.ends_with("_test.cc") && name != "series.cc" && name != "metrics.h")
      code += read(entry.path());
  }
  std::string header = read(sim::kSourceDir / "src/metrics/metrics.h");
  header = header.substr(header.find("enum class Series"));
  header = header.substr(0, header.find("kCount"));
  static const std::regex series_of("\\n  (k[A-Za-z]+),");
  int series = 0;
  for (std::sregex_iterator at(header.begin(), header.end(), series_of), end; at != end; ++at, ++series) {
    const std::string used = "Series::" + (*at)[1].str();
    bool found = false;
    for (auto place = code.find(used); place != std::string::npos && !found;
         place = code.find(used, place + 1))
      found = std::isalpha(static_cast<unsigned char>(code[place + used.size()])) == 0;
    EXPECT_TRUE(found) << used;
  }
  EXPECT_EQ(series, static_cast<int>(Series::kCount));
}

TEST(MetricsDocTest, EverySeriesOfTheReferenceHasItsCounterpart) {
  const std::map<std::string, std::vector<std::string>> reference = {
      {"voda_scheduler_TYPE_scheduler_",
       {"info", "jobs_created_total", "jobs_deleted_total", "jobs_completed_total", "jobs_failed_total",
        "resched_total", "resched_duration_seconds", "resched_allocator_duration_seconds", "jobs_ready",
        "jobs_waiting", "jobs_running", "gpus", "gpus_inuse", "placement_algorithm_duration_seconds",
        "placement_workers_migrated", "placement_launchers_deleted", "placement_jobs_cross_node"}},
      {"voda_scheduler_resource_allocator_",
       {"info", "database_duration_seconds", "num_ready_jobs", "num_gpus",
        "scheduling_algorithm_duration_seconds", "labeled_num_ready_jobs", "labeled_num_gpus",
        "labeled_scheduling_algorithm_duration_seconds"}},
      {"voda_scheduler_training_service_",
       {"info", "jobs_created_total", "jobs_deleted_total", "create_job_duration_seconds",
        "create_job_success_duration_seconds", "delete_job_duration_seconds",
        "delete_job_success_duration_seconds"}},
  };
  std::set<std::string> ours;
  for (const SeriesInfo& info : SeriesTable()) ours.insert(std::string(info.name));

  std::set<std::string> mapped;
  for (const auto& row : RowsUnder("From the reference's series")) {
    ASSERT_GE(row.size(), 2U);
    for (const std::string& name : Quoted(row[0])) mapped.insert(name);
    int counterparts = 0;
    static const std::regex name_of("(voda|process)_[a-z_]+");
    for (const std::string& expression : Quoted(row[1])) {
      for (std::sregex_iterator at(expression.begin(), expression.end(), name_of), end; at != end; ++at) {
        std::string name = at->str();
        if (name.ends_with("_count")) name.resize(name.size() - 6);
        EXPECT_TRUE(ours.contains(name)) << row[0] << ": no series " << name;
        ++counterparts;
      }
    }
    EXPECT_GT(counterparts, 0) << row[0];
  }
  for (const auto& [prefix, names] : reference) {
    for (const std::string& name : names) EXPECT_TRUE(mapped.contains(prefix + name)) << prefix << name;
  }
}

}  // namespace
}  // namespace voda
