#include "service/csv_progress.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "base/untrusted_file.h"

namespace voda {

namespace {

std::vector<std::string> Split(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == ',') {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

std::optional<double> Number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<int> Whole(std::string_view text, int least) {
  const auto value = Number(text);
  if (!value || *value < least || *value > 1e9 || *value != std::floor(*value)) return std::nullopt;
  return static_cast<int>(*value);
}

}  // namespace

bool CsvProgress::Open() {
  auto opened = OpenUntrusted(path_);
  if (!opened || !opened->ok()) return false;
  struct stat found {};
  struct stat known {};
  const bool same = ::fstat(opened->get(), &found) == 0 && file_.ok() && ::fstat(file_.get(), &known) == 0 &&
                    known.st_ino == found.st_ino && known.st_dev == found.st_dev && found.st_size >= offset_;
  if (same) return true;
  file_ = std::move(*opened);
  offset_ = 0;
  columns_.clear();
  rest_.clear();
  skipping_ = false;
  return true;
}

CsvProgress::News CsvProgress::Look() {
  News news;
  if (!Open()) return news;
  std::array<char, 16384> buffer{};
  std::size_t taken = 0;
  while (taken < kBytesPerLook) {
    const ssize_t got = ::pread(file_.get(), buffer.data(), buffer.size(), offset_);
    if (got <= 0) break;
    offset_ += got;
    taken += static_cast<std::size_t>(got);
    for (const char c : std::string_view(buffer.data(), static_cast<std::size_t>(got))) {
      if (c == '\n') {
        if (!skipping_) Line(rest_, news);
        rest_.clear();
        skipping_ = false;
      } else if (!skipping_) {
        rest_ += c;
        if (rest_.size() > kLineMax) {
          news.faults.push_back(fmt::format("a row of more than {} bytes", kLineMax));
          rest_.clear();
          skipping_ = true;
        }
      }
    }
  }
  return news;
}

void CsvProgress::Line(const std::string& line, News& news) {
  if (line.empty() || line == "\r") return;
  const std::vector<std::string> cells = Split(line);
  if (columns_.empty()) {
    if (cells.front() != "epoch") {
      news.faults.push_back(fmt::format("the header begins with \"{:.40}\" instead of epoch", cells.front()));
      return;
    }
    columns_ = cells;
    return;
  }
  if (cells == columns_) return;  // a restarted job that wrote its header again
  if (cells.size() != columns_.size()) {
    news.faults.push_back(fmt::format("a row of {} cells, the header has {}", cells.size(), columns_.size()));
    return;
  }
  ProgressReport report;
  bool usable = false;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string& column = columns_[i];
    const std::string& cell = cells[i];
    const auto fault = [&] { report.faults.push_back(fmt::format("{}: \"{:.40}\"", column, cell)); };
    if (cell.empty()) continue;
    if (column == "epoch") {
      if (const auto epoch = Whole(cell, 0)) {
        report.epoch = *epoch;
        usable = true;
      } else {
        fault();
      }
    } else if (column == "epoch_time_sec") {
      const auto seconds = Number(cell);
      seconds&&* seconds > 0 && *seconds <= 1e9 ? void(report.epoch_seconds = seconds) : fault();
    } else if (column == "total_epochs") {
      const auto total = Whole(cell, 1);
      total ? void(report.total_epochs = total) : fault();
    } else if (column == "workers") {
      const auto workers = Whole(cell, 1);
      workers ? void(report.workers = workers) : fault();
    } else if (column == "loss") {
      const auto loss = Number(cell);
      loss ? void(report.loss = loss) : fault();
    }
  }
  if (usable) {
    news.reports.push_back(std::move(report));
  } else {
    news.faults.push_back(fmt::format("a row without a usable epoch: \"{:.60}\"", line));
  }
}

}  // namespace voda
