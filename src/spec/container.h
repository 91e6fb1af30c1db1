// The container of a replica: command, args, environment, resources.
#pragma once

#include "spec/field.h"
#include "spec/pod_template.h"

namespace voda::spec {

// `runs`: its process is started, so something to run must be given.
void ReadContainer(const Field& field, bool runs, Replica& replica);

}  // namespace voda::spec
