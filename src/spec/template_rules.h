// Rules for what a submitted job must not ask of a cluster unless whoever runs Voda allows it.
//
// Voda creates a job's object with its own rights, which reach further than those of most users. What a user
// with the right to create jobs in one namespace could not safely be given is refused here: what Pod
// Security's baseline level forbids, names by which pods take the rights or the place of others, and keys by
// which Voda and the operators know their objects. Allowed to all or to none: the names of the rules that are
// switched off come from a flag.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "document/value.h"

namespace voda {

struct RuleInfo {
  std::string_view name;  // as Kubernetes calls the field: "hostPath"
  std::string_view what;  // "mounts a folder of the node"
  std::string_view fix;   // "use a PersistentVolumeClaim"
};

// All of them, in the order of the documentation.
const std::vector<RuleInfo>& TemplateRules();

// Fails with the names that are of no rule, and what was probably meant.
Status CheckRuleNames(const std::vector<std::string>& names);

// What the job breaks of the rules that are not allowed, one message each with the field, the value and the
// fix, at most 20 and then their number; empty: nothing. `document` is one job.
std::vector<std::string> DangersOf(const Value& document, const std::set<std::string, std::less<>>& allowed);

}  // namespace voda
