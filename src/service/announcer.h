// Announcer: what happens, as the streams of events and their metrics tell it.
#pragma once

#include <string>

#include "api/event_hub.h"
#include "metrics/metrics.h"

namespace voda {

class Announcer {
 public:
  // With `namespaces`, whoever is told of a job must not learn of jobs in other namespaces.
  Announcer(EventHub& events, Metrics& metrics, bool namespaces)
      : events_(events), metrics_(metrics), namespaces_(namespaces) {}

  // `fields` are members of the event's JSON object.
  void Publish(const std::string& type, const std::string& gpu_type, const std::string& job,
               const std::string& fields = {});
  // The text as it is told of this job: without the names of jobs in other namespaces.
  std::string ToldOf(const std::string& job, const std::string& text) const;

 private:
  EventHub& events_;
  Metrics& metrics_;
  bool namespaces_;
};

}  // namespace voda
