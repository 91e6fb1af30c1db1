// EventRecorder: writes Events (events.k8s.io/v1) about objects, which `kubectl describe` shows. It is best
// effort on purpose: it never blocks and never fails its caller. Events are sent when no other write waits
// (lanes.h), so a burst of them is thinned: of an object the newest one waits, and of all of them the newest
// few hundred, warnings before the others. Those that are left out, that are too many for their object, or
// that the server refuses are counted (Counters::events_lost).
#pragma once

#include <memory>
#include <string>

#include "kube/counters.h"
#include "kube/event_series.h"
#include "kube/io.h"

namespace voda::kube {

struct EventOptions {
  std::string controller = "vodascheduler/voda";  // a qualified name
  std::string instance;                           // the pod or host
  EventRules rules;
  std::size_t waiting = 4096;  // events that were recorded and not yet looked at
  std::size_t unsent = 256;    // events that were looked at and wait to be sent
  int open = 8;                // events that were sent and not yet answered
};

class EventRecorder {
 public:
  EventRecorder(Io& io, Counters& counters, const EventOptions& options);
  ~EventRecorder();  // events that were not sent are lost
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  // Any thread.
  void Record(KubeEvent event);

 private:
  class Impl;
  Io& io_;
  std::shared_ptr<Impl> impl_;
};

}  // namespace voda::kube
