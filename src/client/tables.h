// What `voda get` prints: tables of jobs, nodes, algorithms and rounds from the server's answers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/json.h"

namespace voda {

// The reference's table (60 cells of name, 10 of everything else); scripts cut it by columns.
std::string JobHeader(bool wide);
std::string JobRow(const JsonValue& job, bool wide, bool color);

// Columns as wide as what is in them. Cells must be printable.
class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string Text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string NodeTable(const JsonValue& nodes);
std::string AlgorithmTable(const JsonValue& answer);
std::string RoundTable(const JsonValue& rounds);

// "a:2,b:1": the nodes of a job's workers; a worker that is down is "down".
std::string NodesOf(const JsonValue& job);
// "3/10 30%", "30%", or "<none>".
std::string ProgressOf(const JsonValue& job);
std::string EtaOf(const JsonValue& job);

// The colour of a status, as an escape sequence.
std::string_view StatusColor(std::string_view status);

}  // namespace voda
