// Watcher: waits for the ends of processes, for a call from another thread, or for a time. Shims need not be
// our children.
#pragma once

#include <memory>
#include <utility>

#include "base/result.h"
#include "local/workers.h"

namespace voda::local {

class Watcher final : public ProcessWatch {
 public:
  static Result<std::unique_ptr<Watcher>> Make();

  void Add(const Shim& shim) override;
  void Remove(const Shim& shim) override;

  // Until a process has ended, somebody called Wake, or `seconds` have passed.
  void Wait(double seconds);
  // From any thread.
  void Wake();

 private:
  Watcher(Fd poll, Fd wake) : poll_(std::move(poll)), wake_(std::move(wake)) {}

  Fd poll_;
  Fd wake_;
};

}  // namespace voda::local
