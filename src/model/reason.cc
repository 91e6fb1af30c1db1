#include "model/reason.h"

namespace voda {

std::string_view Name(ReasonCode code) {
  switch (code) {
    case ReasonCode::kRunsAtNum:
      return "runs_at_num";
    case ReasonCode::kRunsAtMin:
      return "runs_at_min";
    case ReasonCode::kGrew:
      return "grew_on_spare";
    case ReasonCode::kOptimum:
      return "optimum";
    case ReasonCode::kPriced:
      return "priced";
    case ReasonCode::kPricedOut:
      return "priced_out";
    case ReasonCode::kShrankForQueue:
      return "shrank_for_queue";
    case ReasonCode::kWaits:
      return "waits_for_gpus";
    case ReasonCode::kNeverFits:
      return "never_fits";
    case ReasonCode::kHeld:
      return "held";
    case ReasonCode::kBackingOff:
      return "backing_off";
    case ReasonCode::kGaveWay:
      return "gave_way_on_nodes";
    case ReasonCode::kSeatedLate:
      return "seated_on_freed";
    case ReasonCode::kGuarded:
      return "guarded";
    case ReasonCode::kExternal:
      return "external_policy";
    case ReasonCode::kPolicyFailed:
      return "policy_failed";
  }
  return "";
}

std::string_view Name(Ceiling ceiling) {
  switch (ceiling) {
    case Ceiling::kNone:
      return "";
    case Ceiling::kNotFaster:
      return "not_faster";
    case Ceiling::kUnmeasured:
      return "unmeasured";
    case Ceiling::kTrial:
      return "trial";
    case Ceiling::kReach:
      return "reach";
    case Ceiling::kStall:
      return "stall";
  }
  return "";
}

}  // namespace voda
