// The two ways in which policies hand out what is spare after admission. A step that does not fit once never
// will, because nothing is given back while jobs grow.
#pragma once

#include <vector>

#include "policy/accounts.h"

namespace voda {

// Gives one step to each job in turn, in the order given, as long as a step fits somewhere. O(J + K).
void GrowInTurn(Accounts& accounts, const std::vector<JobIndex>& order);

// Gives one step at a time to the job with the largest gain in speed-up per GPU among the steps that fit; of
// equal gains the earlier job takes it. O((J + K) log J).
void GrowByGain(Accounts& accounts);

}  // namespace voda
