#include "model/event.h"

#include <fmt/format.h>

namespace voda {

namespace {

struct Describer {
  std::string operator()(const JobArrived& e) const { return fmt::format("job {} arrived", e.job.name); }
  std::string operator()(const JobCompleted& e) const { return fmt::format("job {} completed", e.job); }
  std::string operator()(const JobFailed& e) const { return fmt::format("job {} failed", e.job); }
  std::string operator()(const JobDeleted& e) const { return fmt::format("job {} was deleted", e.job); }
  std::string operator()(const JobHeld& e) const { return fmt::format("job {} was held", e.job); }
  std::string operator()(const JobResumed& e) const { return fmt::format("job {} was resumed", e.job); }
  std::string operator()(const JobChanged& e) const { return fmt::format("job {} was changed", e.job); }
  std::string operator()(const NodeAdded& e) const { return fmt::format("node {} was added", e.node.name); }
  std::string operator()(const NodeRemoved& e) const { return fmt::format("node {} was removed", e.node); }
  std::string operator()(const NodeChanged& e) const { return fmt::format("node {} changed", e.node); }
  std::string operator()(const MetricsUpdated&) const { return "metrics were updated"; }
  std::string operator()(const WorkersObserved& e) const {
    return fmt::format("workers of job {} changed", e.job);
  }
  std::string operator()(const ActionDone&) const { return "an action was done"; }
  std::string operator()(const ActionFailed&) const { return "an action failed"; }
  std::string operator()(const ActionTimedOut&) const { return "an action timed out"; }
  std::string operator()(const Wake&) const { return "the policy asked to be woken"; }
  std::string operator()(const Tick&) const { return "time passed"; }
};

}  // namespace

std::string Describe(const Event& event) {
  return std::visit(Describer{}, event);
}

}  // namespace voda
