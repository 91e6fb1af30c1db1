#include "sim/workload_csv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>

#include "sim/assets.h"
#include "sim/load_workload.h"
#include "support/test_data.h"

namespace voda::sim {
namespace {

constexpr std::string_view kHeader = "name,category,submit_s,min,num,max,work_s\n";
constexpr std::string_view kProfiles =
    "profile,workers,nodes,speedup\nnet,1,,1\nnet,2,0,1.8\nnet,4,,3\nnet,4,2,2\nwide,2,1,1.5\nwide,2,2,1.2\n";

ProfileTable Table() {
  return *ParseProfiles("p.csv", kProfiles);
}

Result<Workload> Parse(const std::string& text, const ProfileTable& profiles = {}) {
  return ParseWorkloadCsv("w.csv", text, profiles);
}

std::string ErrorOf(const std::string& text) {
  const Result<Workload> workload = Parse(text, Table());
  return workload ? "" : workload.error().message;
}

void ExpectSame(const Workload& a, const Workload& b) {
  ASSERT_EQ(a.jobs.size(), b.jobs.size());
  for (const JobNumber i : a.jobs.indices()) {
    const WorkloadJob& x = a.jobs[i];
    const WorkloadJob& y = b.jobs[i];
    EXPECT_EQ(x.name, y.name);
    EXPECT_EQ(x.category, y.category);
    EXPECT_EQ(x.submit_time, y.submit_time);
    EXPECT_EQ(x.min, y.min);
    EXPECT_EQ(x.num, y.num);
    EXPECT_EQ(x.max, y.max);
    EXPECT_EQ(x.gpus_per_worker, y.gpus_per_worker);
    EXPECT_EQ(x.priority, y.priority);
    EXPECT_EQ(x.preemptible, y.preemptible);
    EXPECT_EQ(x.work_seconds, y.work_seconds);
    EXPECT_EQ(x.epochs, y.epochs);
    EXPECT_EQ(x.start_cost, y.start_cost);
    EXPECT_EQ(x.rescale_cost, y.rescale_cost);
    EXPECT_EQ(x.migration_cost, y.migration_cost);
    ASSERT_EQ(x.curve->count(), y.curve->count()) << x.name;
    for (int k = 0; k < x.curve->count(); ++k) {
      EXPECT_EQ(x.curve->size(k), y.curve->size(k));
      EXPECT_EQ(x.curve->speedup(k), y.curve->speedup(k));
    }
    ASSERT_EQ(x.spans == nullptr, y.spans == nullptr) << x.name;
    if (!x.spans) continue;
    ASSERT_EQ(x.spans->size(), y.spans->size());
    for (std::size_t k = 0; k < x.spans->size(); ++k) {
      EXPECT_EQ((*x.spans)[k].workers, (*y.spans)[k].workers);
      EXPECT_EQ((*x.spans)[k].nodes, (*y.spans)[k].nodes);
      EXPECT_EQ((*x.spans)[k].speedup, (*y.spans)[k].speedup);
    }
  }
}

Workload RoundTrip(const Workload& workload) {
  std::ostringstream out;
  WriteWorkloadCsv(workload, out);
  const Result<Workload> back = Parse(out.str());
  EXPECT_TRUE(back) << back.error().message;
  return back ? *back : Workload();
}

TEST(WorkloadCsv, ReadsARowWithDefaultsAndSortsBySubmission) {
  const Result<Workload> workload =
      Parse(std::string(kHeader) + "b,c,5,1,2,4,100\na,c,5,1,1,1,1e3\nz,c,0,2,2,3,0.5\n");
  ASSERT_TRUE(workload) << workload.error().message;
  ASSERT_EQ(workload->jobs.size(), 3U);
  EXPECT_EQ(workload->jobs[0].name, "z");
  EXPECT_EQ(workload->jobs[1].name, "a");
  const WorkloadJob& job = workload->jobs[2];
  EXPECT_EQ(job.name, "b");
  EXPECT_EQ(job.num, 2);
  EXPECT_EQ(job.work_seconds, 100);
  EXPECT_EQ(job.gpus_per_worker, 1);
  EXPECT_EQ(job.epochs, 10);
  EXPECT_TRUE(job.preemptible);
  EXPECT_FALSE(job.start_cost);
  EXPECT_TRUE(job.curve->linear());
  EXPECT_EQ(job.curve->max(), 4);
}

TEST(WorkloadCsv, CurvesComeFromFormulasTablesAndTheRow) {
  const Result<Workload> workload = Parse(
      "name,category,submit_s,min,num,max,work_s,sizes,curve\n"
      "a,x,0,1,1,8,1,,power:0.5\n"
      "b,x,1,1,1,8,1,1;4;8,1:1;2:1.9;4:3.5\n"
      "c,x,2,1,1,8,1,,net\n"
      "d,net,3,1,1,4,1,,\n"
      "e,x,4,1,1,2,1,,wide\n",
      Table());
  ASSERT_TRUE(workload) << workload.error().message;
  const auto speedup = [&](JobNumber job, int size) {
    const Curve& curve = *workload->jobs[job].curve;
    return curve.speedup(curve.IndexOf(size));
  };
  EXPECT_EQ(speedup(0, 4), 2);
  EXPECT_EQ(workload->jobs[1].curve->count(), 3);
  EXPECT_EQ(speedup(1, 4), 3.5);
  EXPECT_EQ(speedup(1, 8), 3.5 * std::sqrt(2.0)) << "beyond the largest measured size";
  EXPECT_DOUBLE_EQ(speedup(2, 3), 2.4) << "between measured sizes";
  EXPECT_EQ(speedup(3, 2), 1.8) << "a profile named as the category";
  ASSERT_TRUE(workload->jobs[2].spans);
  ASSERT_EQ(workload->jobs[2].spans->size(), 1U);
  EXPECT_EQ(workload->jobs[2].spans->front().nodes, 2);
  EXPECT_EQ(speedup(4, 2), 1.5) << "the fewest nodes listed count as packed";
  EXPECT_EQ(workload->jobs[2].spans, workload->jobs[3].spans) << "shared";
}

TEST(WorkloadCsv, JobsOfOneKindShareACurve) {
  const Result<Workload> workload = ParseWorkloadCsv(
      "w", std::string(kHeader) + "a,c,0,1,2,4,9\nb,c,0,1,2,4,9\nc,c,0,1,2,5,9\n", {}, "power:0.8");
  ASSERT_TRUE(workload);
  EXPECT_EQ(workload->jobs[0].curve, workload->jobs[1].curve);
  EXPECT_NE(workload->jobs[0].curve, workload->jobs[2].curve);
}

TEST(WorkloadCsv, RoundTripsEveryField) {
  const Result<Workload> workload = Parse(
      "name,category,submit_s,min,num,max,work_s,gpus_per_worker,priority,epochs,sizes,curve,start_cost,"
      "rescale_cost,"
      "migration_cost,preemptible\n"
      "a,net,0.1,1,2,4,3600.25,2,-7,13,1;2;4,net,1.5,0,3,false\n"
      "\"b,\"\"x\"\"\",y,1e9,2,4,64,1e-3,,,,,power:0.8,,,,true\n"
      "c,y,3,1,1,65536,9,,,,,linear,,,,\n",
      Table());
  ASSERT_TRUE(workload) << workload.error().message;
  ExpectSame(*workload, RoundTrip(*workload));
}

TEST(WorkloadCsv, RefusesEachWrongFieldByName) {
  const auto row = [](const std::string& text) { return ErrorOf(std::string(kHeader) + text + "\n"); };
  EXPECT_EQ(row("a,c,0,3,2,4,9"), "w.csv:2: column num: '2' is less than min 3; min <= num <= max");
  EXPECT_EQ(row("a,c,0,1,5,4,9"), "w.csv:2: column max: '4' is less than num 5; min <= num <= max");
  EXPECT_EQ(row("a,c,0,0,1,1,9"), "w.csv:2: column min: '0' is not a whole number from 1 to 65536");
  EXPECT_EQ(row("a,c,0,1,1,65537,9"), "w.csv:2: column max: '65537' is not a whole number from 1 to 65536");
  EXPECT_EQ(row("a,c,-1,1,1,1,9"), "w.csv:2: column submit_s: '-1' is not a number from 0 to 10000000000");
  EXPECT_EQ(row("a,c,nan,1,1,1,9"), "w.csv:2: column submit_s: 'nan' is not a number from 0 to 10000000000");
  EXPECT_EQ(row("a,c,0,1,1,1,0"),
            "w.csv:2: column work_s: '0' is not more than 0; give the seconds of work on one worker");
  EXPECT_EQ(row("a,c,0,1,1,1,inf"), "w.csv:2: column work_s: 'inf' is not a number from 0 to 1000000000000");
  EXPECT_EQ(row(",c,0,1,1,1,1"),
            "w.csv:2: column name: '' is not 1 to 253 visible ASCII characters without spaces");
  EXPECT_EQ(row("a,\xc3\xa9,0,1,1,1,1"),
            "w.csv:2: column category: '\\xc3\\xa9' is not 1 to 253 visible ASCII characters without spaces");
  EXPECT_EQ(row("a,c,0,1,1,1,1\na,c,0,1,1,1,1"),
            "w.csv:3: column name: 'a' names a second job; names are unique");
  EXPECT_EQ(row("a,c,0,1,1,1"), "w.csv:2: 6 fields where the header has 7");
}

TEST(WorkloadCsv, RefusesEachWrongOptionalField) {
  const auto field = [](const std::string& column, const std::string& value) {
    return ErrorOf("name,category,submit_s,min,num,max,work_s," + column + "\na,c,0,1,2,4,9," + value + "\n");
  };
  const std::string at = "w.csv:2: column ";
  EXPECT_EQ(field("gpus_per_worker", "0"), at + "gpus_per_worker: '0' is not a whole number from 1 to 1024");
  EXPECT_EQ(field("priority", "high"),
            at + "priority: 'high' is not a whole number from -1000000000 to 1000000000");
  EXPECT_EQ(field("epochs", "0"), at + "epochs: '0' is not a whole number from 1 to 100000");
  EXPECT_EQ(field("preemptible", "yes"), at + "preemptible: 'yes' is not true or false");
  EXPECT_EQ(field("start_cost", "-1"), at + "start_cost: '-1' is not a number from 0 to 10000000");
  EXPECT_EQ(field("rescale_cost", "nan"), at + "rescale_cost: 'nan' is not a number from 0 to 10000000");
  EXPECT_EQ(field("migration_cost", "x"), at + "migration_cost: 'x' is not a number from 0 to 10000000");
  EXPECT_EQ(field("sizes", "1;4"), at + "sizes: '1;4' lacks 2; min, num and max are allowed sizes");
  for (const char* bad : {"1;2;8", "2;1;4", "1;;4", "1;2;2;4", "1;2;4;", "x"}) {
    EXPECT_NE(field("sizes", bad).find("is not a list of ascending sizes from 1 to 4"), std::string::npos)
        << bad;
  }
  for (const char* bad :
       {"power:", "power:x", "power:-1", "power:2", "1:1;2", "1:1;2:0", "1:1;2:-1", "1:1;2:nan", "1:1;1:1",
        "0:1", "1:2", "2@3:1", "2@0:1", "1:1;", "nosuch", "99999:1", "99999999999:1"}) {
    EXPECT_NE(field("curve", bad).find(at + "curve: '" + bad + "' "), std::string::npos)
        << field("curve", bad);
  }
  EXPECT_NE(field("curve", "nosuch").find("net, wide"), std::string::npos) << "lists the profiles there are";
  EXPECT_NE(field("colour", "red").find("unknown column 'colour'"), std::string::npos);
}

TEST(WorkloadCsv, BoundsTheMemoryOfCurves) {
  std::string text = "name,category,submit_s,min,num,max,work_s,curve\n";
  for (int i = 0; i < 400; ++i) {
    text += "j" + std::to_string(i) + ",c,0,1,1,65536,1,power:0." + std::to_string(1000 + i) + "\n";
  }
  EXPECT_NE(ErrorOf(text).find("over 20000000 points"), std::string::npos);
}

TEST(Profiles, RefusesWrongTables) {
  const auto error = [](const std::string& rows) {
    const Result<ProfileTable> table = ParseProfiles("p.csv", "profile,workers,nodes,speedup\n" + rows);
    return table ? "" : table.error().message;
  };
  EXPECT_EQ(error("a,0,,1\n"), "p.csv:2: column workers: '0' is not a whole number from 1 to 65536");
  EXPECT_EQ(error("a,2,,inf\n"), "p.csv:2: column speedup: 'inf' is not a number from 0 to 1000000000");
  EXPECT_EQ(error("a,2,,0\n"),
            "p.csv:2: profile a has speed-up 0 at 2 workers; it must be positive and finite");
  EXPECT_EQ(error("a,1,,2\n"),
            "p.csv:2: profile a has speed-up 2 at 1 worker; speed-ups are over one worker, so that is 1");
  EXPECT_EQ(error("a,2,3,1\n"), "p.csv:2: profile a has 2 workers on 3 nodes; a worker is on one node");
  EXPECT_NE(error("a,2,,1\na,2,0,1\n").find("profile a has 2 workers twice"), std::string::npos);
  EXPECT_NE(error("linear,2,,1\n").find("cannot name a profile"), std::string::npos);
  EXPECT_NE(error("a:b,2,,1\n").find("cannot name a profile"), std::string::npos);
}

TEST(Profiles, TheBuiltInTableIsTheShippedOne) {
  std::ifstream file(kSourceDir / "examples/workloads/speedups.csv");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), kEmbedSpeedupsCsv);
}

TEST(LoadWorkload, ReadsTheShippedSamples) {
  const std::string folder = (kSourceDir / "examples/workloads/").string();
  const Result<Workload> small = LoadWorkload({.path = folder + "small.csv"});
  ASSERT_TRUE(small) << small.error().message;
  EXPECT_EQ(small->jobs.size(), 24U);
  const Result<Workload> bursty = LoadWorkload({.path = folder + "bursty.csv"});
  ASSERT_TRUE(bursty) << bursty.error().message;
  EXPECT_EQ(bursty->jobs.size(), 60U);
  ExpectSame(*bursty, RoundTrip(*bursty));
  bool falls = false, wide = false, powers = false, urgent = false, pinned = false;
  for (const WorkloadJob& job : bursty->jobs) {
    for (int i = 1; i < job.curve->count(); ++i)
      falls = falls || job.curve->speedup(i) < job.curve->speedup(i - 1);
    wide = wide || job.gpus_per_worker == 2;
    powers = powers || job.curve->IndexOf(3) < 0;
    urgent = urgent || job.priority > 0;
    pinned = pinned || !job.preemptible;
  }
  EXPECT_TRUE(falls && wide && powers && urgent && pinned);
}

TEST(LoadWorkload, NamesTheKnownFormats) {
  EXPECT_EQ(LoadWorkload({.path = "x.csv", .format = "swf"}).error().message,
            "unknown workload format 'swf'; known are voda, thesis, philly, itp, pollux");
  const TempDir dir;
  EXPECT_NE(LoadWorkload({.path = dir.Write("w.csv", kHeader)}).error().message.find("holds no jobs"),
            std::string::npos);
  EXPECT_NE(LoadWorkload({.path = "x.csv", .format = "thesis", .curve = "linear"})
                .error()
                .message.find("brings its own curves"),
            std::string::npos);
}

}  // namespace
}  // namespace voda::sim
