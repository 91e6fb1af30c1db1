// StopFile: room on the disk that is kept for stopping jobs. When the disk is full, the store takes nothing,
// and the job that fills the disk could not even be stopped. That a job is to be held or deleted is then
// written here, in place, into bytes that the file has already, until the store takes it over.
//
// The file is a line for each job, "hold NAME" or "delete NAME", and zeros up to its end. On a file system
// that never writes in place (btrfs, zfs) the room is no promise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/fd.h"

namespace voda {

enum class Stop : std::uint8_t { kHold, kDelete };

class StopFile {
 public:
  static constexpr std::size_t kBytes = std::size_t{64} << 10;

  // Reads what an earlier run left and reserves the room.
  explicit StopFile(std::string path);

  // Makes the room where it is missing, as after a start on a full disk.
  void Reserve();
  // Whether it is durable now. A deletion stays one.
  bool Put(const std::string& job, Stop stop);
  // The store has them all.
  void Clear();
  const std::map<std::string, Stop>& all() const { return stops_; }

 private:
  void Read();
  bool Overwrite(std::size_t at, const std::string& bytes) const;

  std::string path_;
  Fd file_;
  bool reserved_ = false;
  std::size_t used_ = 0;
  std::map<std::string, Stop> stops_;
};

}  // namespace voda
