// The tables of `voda get`: jobs, nodes, algorithms and rounds, from the server's answers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "document/value.h"

namespace voda {

// The reference's table, which scripts cut by columns: 60 cells for the name, 10 for everything else, and
// more where the content of a column needs it.
class JobTable {
 public:
  JobTable(bool wide, bool color);
  void Fit(const Value& job);  // from now on its columns have room for this job
  std::string Header() const;
  std::string Row(const Value& job) const;

 private:
  std::vector<std::string> Cells(const Value& job) const;
  std::string Line(const std::vector<std::string>& cells) const;

  bool wide_;
  bool color_;
  std::vector<int> widths_;
};

// A table whose columns are as wide as their content. Cells must be printable.
class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string Text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string NodeTable(const Value& nodes, bool wide);
std::string AlgorithmTable(const Value& answer);
std::string RoundTable(const Value& rounds);

// "a:2,b:1": the nodes of a job's workers, with "down" for a worker that is down.
std::string NodesOf(const Value& job);
// "3/10 30%", "30%", or "<none>".
std::string ProgressOf(const Value& job);
// Whether its remaining time is a guess, since it has reported nothing.
bool IsGuessed(const Value& job);
// "1m5s", "~1h0m0s" where that is a guess, "held" or "<none>".
std::string EtaOf(const Value& job);

}  // namespace voda
