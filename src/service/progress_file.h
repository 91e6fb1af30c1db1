// ProgressFile: a job's progress file, read on another thread. It may lie on storage that jobs share, and
// storage that hangs must not hold up the scheduler.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "service/csv_progress.h"
#include "service/thread_pool.h"

namespace voda {

class ProgressFile : public std::enable_shared_from_this<ProgressFile> {
 public:
  explicit ProgressFile(std::string path) : csv_(std::move(path)) {}

  // What the last look brought, if it is over; the next one begins. At most one is under way.
  CsvProgress::News Take(ThreadPool& readers) {
    CsvProgress::News news;
    {
      const std::lock_guard lock(mutex_);
      if (looking_) return news;
      news = std::exchange(news_, {});
      looking_ = true;
    }
    if (!readers.Post([self = shared_from_this()] { self->Look(); })) {
      const std::lock_guard lock(mutex_);
      looking_ = false;
    }
    return news;
  }

 private:
  void Look() {
    CsvProgress::News news = csv_.Look();
    const std::lock_guard lock(mutex_);
    news_ = std::move(news);
    looking_ = false;
  }

  std::mutex mutex_;
  bool looking_ = false;
  CsvProgress::News news_;
  CsvProgress csv_;  // of whoever looks
};

}  // namespace voda
