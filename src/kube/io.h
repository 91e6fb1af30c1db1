// Io: the one thread on which the Kubernetes client lives, as the drivers (reflector, lease, events) see it.
// Transport is the real one; tests may bring another.
//
// Every callback runs on the I/O thread and must not block. Send, Stream, After, Cancel, Post may be called
// from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "kube/api_error.h"
#include "kube/request.h"
#include "kube/time.h"

namespace voda::kube {

// What becomes of a stream. on_end is the last call: without an error the server ended it in order.
struct StreamCallbacks {
  std::function<void()> on_open;                  // HTTP 200 has come
  std::function<bool(std::string_view)> on_data;  // false: enough, end it (on_end follows, without an error)
  std::function<void(std::optional<ApiError>)> on_end;
};

class Io {
 public:
  enum class Ticket : std::uint64_t { kNone = 0 };
  using Done = std::function<void(Reply)>;

  virtual ~Io() = default;
  virtual TimePoint Now() const = 0;
  virtual WallTime Wall() const = 0;

  // `done` is called once; see Cancel.
  virtual Ticket Send(Request request, Done done) = 0;
  // No time limit but the idle one, and no retries: whoever watches knows where to go on.
  virtual Ticket Stream(Request request, StreamCallbacks callbacks) = 0;
  virtual Ticket After(Duration delay, std::function<void()> then) = 0;
  // The callbacks of a canceled ticket are not called any more once Cancel has returned on the I/O thread;
  // called from another thread, one may still be running. A ticket that is done is ignored. A write that was
  // canceled may have been carried out.
  virtual void Cancel(Ticket ticket) = 0;
  virtual void Post(std::function<void()> then) = 0;
  // Runs it on the I/O thread and returns when it is done; at once if this is the I/O thread.
  virtual void RunAndWait(const std::function<void()>& what) = 0;
};

}  // namespace voda::kube
