// PlainPath: another name for a folder whose own name a shell would take apart, as at a space. Manifests name
// the script of an MPIJob inside shell commands, in quotes of any kind or in none, and Horovod hands the name
// to a shell once more: no way of quoting suits all of them.
#pragma once

#include <string>

#include "base/result.h"

namespace voda::local {

// The folder itself where its path is plain: letters, digits, and "/._-". Otherwise a link to it in /tmp,
// which is made where it is missing and is the same at every call, so that it outlives Voda as the jobs do.
Result<std::string> PlainPath(const std::string& folder);

// Whether no shell and no word of a manifest takes the character for the end of a path.
bool PlainInPath(char c);

}  // namespace voda::local
