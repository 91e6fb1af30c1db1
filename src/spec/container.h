// The container of a replica: command, args, environment, resources.
#pragma once

#include "document/field.h"
#include "spec/pod_template.h"

namespace voda::spec {

// Of a process that is started, something to run must be given.
void ReadContainer(const Field& field, const ReplicaRules& rules, Replica& replica);

}  // namespace voda::spec
