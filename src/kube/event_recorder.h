// EventRecorder: Events (events.k8s.io/v1) about objects, what `kubectl describe` shows. Best effort on
// purpose: it never blocks and never fails its caller; what is lost is counted (Counters::events_lost).
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
  std::size_t waiting = 1024;  // recorded and not yet looked at
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
