#include "client/tables.h"

#include <gtest/gtest.h>

#include "client/text.h"
#include "document/documents.h"

namespace voda {
namespace {

Value Job() {
  return *ParseJson(R"({"name": "tensorflow2-keras-mnist-elastic-20211015-035048", "status": "Running",
    "workers": 1, "gpu_type": "default", "waiting_seconds": 0.2, "running_seconds": 28.4, "total_seconds": 28.6,
    "priority": 3, "min": 1, "max": 4, "nodes": ["a", "b", "a", ""], "remaining_seconds": 63.0,
    "progress": {"epoch": 3, "total_epochs": 10, "fraction": 0.399}})");
}

TEST(Tables, JobsLookAsTheReferencePrintsThem) {
  EXPECT_EQ(
      JobTable(false, false).Header(),
      "NAME                                                         STATUS     WORKERS    SCHEDULER  WAITING "
      "   RUNNING    TOTAL     \n");
  EXPECT_EQ(
      JobTable(false, false).Row(Job()),
      "tensorflow2-keras-mnist-elastic-20211015-035048              Running    1          default    0s      "
      "   28s        28s       \n");
}

TEST(Tables, WideHasMore) {
  const std::string row = JobTable(true, false).Row(Job());
  EXPECT_NE(row.find(" 3          1      4      a:2,b:1,down:1       3/10 39%       1m3s\n"), row.npos)
      << row;
  EXPECT_EQ(JobTable(true, false).Header().substr(0, 126), JobTable(false, false).Header().substr(0, 126));
}

TEST(Tables, ColoursTakeNoCells) {
  const std::string row = JobTable(false, true).Row(Job());
  EXPECT_NE(row.find("\x1b[32mRunning   \x1b[0m 1          default"), row.npos) << row;
}

TEST(Tables, HostileTextStaysInItsCell) {
  const Value job = *ParseJson(R"({"name": "\u001b[2Jx", "status": "Run\nning", "gpu_type": "t"})");
  EXPECT_EQ(JobTable(false, false).Row(job).substr(0, 72), PadRight("?[2Jx", 60) + " Run ning   ");
}

TEST(Tables, WhatIsUnknownIsSaid) {
  EXPECT_EQ(ProgressOf(*ParseJson(R"({"progress": null})")), "<none>");
  EXPECT_EQ(ProgressOf(*ParseJson(R"({"progress": {"epoch": 2, "total_epochs": null}})")), "2/?");
  EXPECT_EQ(ProgressOf(*ParseJson(R"({"progress": {"fraction": 7}})")), "100%");
  EXPECT_EQ(EtaOf(*ParseJson(R"({"status": "Waiting", "held": true})")), "held");
  EXPECT_EQ(EtaOf(*ParseJson(R"({"status": "Completed", "remaining_seconds": 3})")), "<none>");
  EXPECT_EQ(EtaOf(*ParseJson(R"({"status": "Running", "remaining_seconds": 3600, "estimate": "guessed"})")),
            "~1h0m0s");
  EXPECT_EQ(EtaOf(*ParseJson(R"({"status": "Running", "remaining_seconds": 6039, "estimate": "guessed"})")),
            "~1h41m0s");
  EXPECT_EQ(EtaOf(*ParseJson(R"({"status": "Running", "remaining_seconds": 6039, "estimate": "learned"})")),
            "1h40m39s");
  EXPECT_EQ(EtaOf(*ParseJson(R"({"status": "Running", "remaining_seconds": 3600, "estimate": "learned"})")),
            "1h0m0s");
  EXPECT_EQ(NodesOf(*ParseJson(R"({"nodes": []})")), "<none>");
}

TEST(Tables, ColumnsGrowWithTheirContent) {
  Value job = Job();
  const Value long_type = *ParseJson(R"({"name": "x", "status": "Running", "gpu_type": "nvidia-h200"})");
  JobTable table(false, true);
  table.Fit(job);
  const std::string narrow = table.Header();
  table.Fit(long_type);
  EXPECT_EQ(table.Header().find("WAITING"), narrow.find("WAITING") + 1);
  const auto plain = [](std::string row) {
    for (std::size_t at = 0; (at = row.find('\x1b')) != row.npos;) row.erase(at, row.find('m', at) - at + 1);
    return row;
  };
  EXPECT_EQ(plain(table.Row(long_type)).find("0s"), table.Header().find("WAITING"));
  EXPECT_EQ(plain(table.Row(job)).find("0s"), table.Header().find("WAITING"));
}

TEST(Tables, NodesAlgorithmsAndRounds) {
  const Value nodes = *ParseJson(
      R"([{"name": "a", "state": "ready", "gpu_type": "cpu", "gpus": 4, "used": 3, "devices": [1, 0],
    "jobs": [{"name": "x", "workers": 3}]}, {"name": "long-name", "state": "lost", "gpu_type": "", "gpus": 10, "used": 0}])");
  EXPECT_EQ(NodeTable(nodes, true),
            "NAME        STATE   GPU-TYPE   GPUS   USED   FREE   DEVICES   JOBS\n"
            "a           ready   cpu        4      3      1      1,0       x:3\n"
            "long-name   lost    <none>     10     0      0      <none>    <none>\n");
  EXPECT_EQ(NodeTable(nodes, false),
            "NAME        STATE   GPU-TYPE   GPUS   USED   JOBS\n"
            "a           ready   cpu        4      3      x:3\n"
            "long-name   lost    <none>     10     0      <none>\n");
  EXPECT_EQ(AlgorithmTable(*ParseJson(R"({"algorithms": [{"name": "A", "summary": "s t", "options":
    [{"name": "k", "default": "1"}, {"name": "l", "default": 2}]}], "default": "A"})")),
            "NAME   DEFAULT   OPTIONS   SUMMARY\nA      yes       k=1,l=2   s t\n");
  const std::string rounds =
      RoundTable(*ParseJson(R"([{"round": 7, "time": 0, "gpu_type": "cpu", "algorithm": "A",
    "trigger": "t", "seconds": 0.002, "changes": [{"job": "x", "from": 1, "to": 2}]}])"));
  EXPECT_NE(rounds.find("cpu        A           2ms    x:1->2    t\n"), rounds.npos) << rounds;
}

}  // namespace
}  // namespace voda
