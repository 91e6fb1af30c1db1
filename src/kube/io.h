// Io: the one thread on which the Kubernetes client lives, as the drivers (reflector, lease, events) see it.
// Transport is the real one; tests may bring another.
//
// Every callback runs on the I/O thread and must not block. Any thread may call Send, Stream, After, Cancel
// and Post.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "kube/api_error.h"
#include "kube/request.h"
#include "kube/time.h"

namespace voda::kube {

// The callbacks of a stream. on_end is the last call; it has no error if the server ended the stream in
// order.
struct StreamCallbacks {
  std::function<void()> on_open;                  // the server answered with HTTP 200
  std::function<bool(std::string_view)> on_data;  // return false to end the stream without an error
  std::function<void(std::optional<ApiError>)> on_end;
};

class Io {
 public:
  enum class Ticket : std::uint64_t { kNone = 0 };
  using Done = std::function<void(Reply)>;

  virtual ~Io() = default;
  virtual TimePoint Now() const = 0;
  virtual WallTime Wall() const = 0;

  // `done` is called once, unless the ticket is canceled first.
  virtual Ticket Send(Request request, Done done) = 0;
  // A stream has no time limit but the idle one, and no retries: the caller knows where to go on.
  virtual Ticket Stream(Request request, StreamCallbacks callbacks) = 0;
  virtual Ticket After(Duration delay, std::function<void()> then) = 0;
  // Once Cancel has returned on the I/O thread, the callbacks of the ticket are not called any more; when
  // Cancel is called from another thread, one of them may still be running. A ticket that is done is
  // ignored. A canceled write may have been carried out.
  virtual void Cancel(Ticket ticket) = 0;
  virtual void Post(std::function<void()> then) = 0;
  // Runs `what` on the I/O thread and returns when it is done; on the I/O thread itself it runs at once.
  virtual void RunAndWait(const std::function<void()>& what) = 0;
};

}  // namespace voda::kube
