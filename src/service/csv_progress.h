// The reference's progress file: METRICS_DIR/JOB_NAME.csv, a header and one row for each epoch
// (docs/PROGRESS.md). Read on from where the last look ended; a row without its line end is left for the next
// look.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "service/progress.h"

namespace voda {

class CsvProgress {
 public:
  explicit CsvProgress(std::string path) : path_(std::move(path)) {}

  struct News {
    std::vector<ProgressReport> reports;  // those that can be used
    std::vector<std::string> faults;      // one for each row that cannot
  };
  // At most kBytesPerLook of the file.
  News Look();

  static constexpr std::size_t kBytesPerLook = std::size_t{1} << 20;
  static constexpr std::size_t kLineMax = 65536;

 private:
  bool Open();
  void Line(const std::string& line, News& news);

  std::string path_;
  std::int64_t offset_ = 0;
  Fd file_;  // kept open, so that another file under the name is known by its inode
  std::vector<std::string> columns_;
  std::string rest_;       // of a row whose end has not been written yet
  bool skipping_ = false;  // a row that is too long
};

}  // namespace voda
