// EventRecorder: Events (events.k8s.io/v1) about objects, what `kubectl describe` shows. Best effort on
// purpose: it never blocks and never fails its caller. Those of a burst wait their turn in the lane of
// Events, for minutes if need be; lost are those that find a queue full, are too many of one object, or that
// the server does not take, and they are counted (Counters::events_lost).
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
  std::size_t waiting = 4096;  // recorded and not yet looked at
};

class EventRecorder {
 public:
  EventRecorder(Io& io, Counters& counters, const EventOptions& options);
  ~EventRecorder();  // what was not sent is lost
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
