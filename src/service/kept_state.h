// KeptState: what of a job's record must outlive Voda where the cluster keeps jobs, as the text that stands
// on the job's object: what users asked for since they submitted it, and the totals that policies and people
// count by. Whoever leads next reads it back.
#pragma once

#include <string>
#include <string_view>

#include "store/database.h"

namespace voda {

std::string WriteKeptState(const JobRecord& record);

// The job that a text was written for; empty: it cannot be read.
std::string KeptName(std::string_view text);

// What users asked for (held, priority, sizes) comes from the text. Totals only where they are newer than
// those of the record. Text that cannot be read changes nothing; false then, if it is not empty.
bool ReadKeptState(std::string_view text, JobRecord& record);

}  // namespace voda
