// The two ways in which policies hand out what is spare after admission. What does not fit once never will:
// nothing is given back while growing.
#pragma once

#include <vector>

#include "policy/ledger.h"

namespace voda {

// One step each in turn, in the order given, as long as a step fits somewhere. O(J + K).
void GrowInTurn(Ledger& ledger, const std::vector<JobIndex>& order);

// One step at a time to the largest gain in speed-up per GPU among the steps that fit; ties to the earlier
// job. O((J + K) log J).
void GrowByGain(Ledger& ledger);

}  // namespace voda
