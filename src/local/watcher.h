// Watcher: waits for the reports and ends of shims, for a call from another thread, or for a time. Shims
// need not be our children.
#pragma once

#include <memory>
#include <utility>

#include "base/result.h"
#include "local/worker_processes.h"

namespace voda::local {

class Watcher final : public DescriptorWatch {
 public:
  static Result<std::unique_ptr<Watcher>> Make();

  bool Add(int descriptor) override;
  void Remove(int descriptor) override;

  // Waits until a descriptor is readable, another thread calls Wake, or `seconds` have passed.
  void Wait(double seconds);
  // May be called from any thread.
  void Wake();

 private:
  Watcher(Fd poll, Fd wake) : poll_(std::move(poll)), wake_(std::move(wake)) {}

  Fd poll_;
  Fd wake_;
};

}  // namespace voda::local
