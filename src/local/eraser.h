// Eraser: removes folders on a thread of its own, because the folder of a job may hold millions of files.
//
// A folder is first moved into a trash folder, in one step. Then its name is free, and after a crash its
// files are still in the trash, where the next run removes them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace voda::local {

class Eraser {
 public:
  // The trash must be on the same file system as the folders to erase. Removes what an earlier run has left
  // there.
  explicit Eraser(std::string trash);
  // Leaves what is not removed yet to the next run.
  ~Eraser();
  Eraser(const Eraser&) = delete;
  Eraser& operator=(const Eraser&) = delete;

  // Moves the folder to the trash; its files are removed later. A missing folder is no error. A folder that
  // cannot be moved is removed on the spot.
  void Erase(const std::string& folder);

 private:
  void Run();
  void EmptyTrash();
  bool Remove(int trash, const std::string& name);
  bool MoveIntoTrash(int from, const char* name, int trash);

  const std::string path_;
  std::atomic<std::uint64_t> next_name_;
  std::atomic<bool> stop_ = false;

  std::mutex mutex_;  // guards the two below
  std::condition_variable wake_;
  bool more_ = true;  // whether there may be something in the trash

  std::thread thread_;
};

}  // namespace voda::local
