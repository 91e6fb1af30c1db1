// Names of jobs and categories.
#pragma once

#include <string>
#include <string_view>

namespace voda::spec {

// RFC 1123: at most 63 of a-z, 0-9 and '-', beginning and ending with a letter or digit.
bool IsLabel(std::string_view text);
// A label value of Kubernetes: at most 63 of letters, digits and "-_.", a letter or digit at both ends.
bool IsLabelValue(std::string_view text);

// The longest metadata.name with which every pod of the job still has a name: Voda adds a time and perhaps a
// number ("-20260101-120000-12"), the operators "-launcher" or "-worker-4095".
int LongestJobName(int max_workers, bool named);

// The name less what the API server made of a generateName, or less a time that Voda added before.
std::string CategoryOf(std::string_view name, std::string_view generate_name);

}  // namespace voda::spec
