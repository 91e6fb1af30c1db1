// Decisions as the API and the metrics see them: how long one took, and questions about them. A question is
// put on the engine's thread, where it takes a view and what else it needs to know; it is answered on any
// other.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/view.h"
#include "history/records.h"

namespace voda {

class JsonWriter;

struct Decision {
  Plan plan;
  double seconds = 0;
  double policy_seconds = 0;  // of them; the guards may ask a policy several times
};

Decision DecideTimed(const Snapshot& world, const Policy& policy, const CoreConfig& config);

// Who decides on what.
struct Decider {
  View view;
  std::shared_ptr<const Policy> policy;
};

// Has a round decided on another thread; the answer goes to Service::FinishRound, on the engine's.
using DecideElsewhere =
    std::function<void(const std::string& gpu_type, std::shared_ptr<const Decider> decider)>;

class Question {
 public:
  virtual ~Question() = default;
  // The answer as JSON of docs/API.md; takes as long as a decision, or as several.
  virtual std::string Json() const = 0;
  // Whether an external policy is asked for it.
  virtual bool External() const = 0;
};

// Why a job has what it has.
class ExplainQuestion final : public Question {
 public:
  std::string job;
  JobStatus status = JobStatus::kWaiting;
  bool held = false;
  std::string message;                     // of the record
  std::string stuck;                       // what its latest change waits for
  std::optional<SizeRecord> last_change;   // of its size
  std::optional<std::string> name_space;   // given: jobs of others are not named
  std::shared_ptr<const Decider> decider;  // null: the job has ended
  JobIndex index = kNoJob;                 // in the view

  std::string Json() const override;
  bool External() const override { return decider != nullptr && decider->policy->External(); }

 private:
  // When a waiting job should start: the scheduler run forward, not for ever.
  std::optional<double> ExpectedStart() const;
  bool RestsOnGuesses() const;
};

// What the latest plan gives to whom.
class PlanQuestion final : public Question {
 public:
  std::string gpu_type;
  std::string algorithm;
  double last_round = 0;
  std::shared_ptr<const Decider> decider;

  std::string Json() const override;
  bool External() const override { return decider->policy->External(); }
};

// What jobs would get, each of them alone, if they were submitted now.
class DryRunQuestion final : public Question {
 public:
  struct Submission {
    Job job;
    std::string fields;  // JSON of the job as it would be accepted
    std::shared_ptr<const Decider> decider;
  };
  std::vector<Submission> submissions;
  bool by_namespace = false;  // a job's reason names no jobs of other namespaces

  std::string Json() const override;
  bool External() const override;
};

void WriteSize(JsonWriter& out, const SizeRecord& size);

}  // namespace voda
