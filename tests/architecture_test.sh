#!/usr/bin/env bash
# The direction of the arrows (docs/ARCHITECTURE.md): which folder may include which, and that no decision reads a clock,
# chance or the environment.
set -euo pipefail
cd "$(dirname "$0")/../src"
passed=0 failed=0
check() {  # description, command that prints offending lines
  local found
  found=$(eval "$2" || true)
  if [ -z "$found" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); printf 'FAILED: %s\n%s\n' "$1" "$found"; fi
}
may() {  # folder, the folders it may include
  local folder=$1 allowed="$1"
  shift
  for name in "$@"; do allowed+="|$name"; done
  check "$folder includes only $allowed" \
    "grep -rnE '^#include \"' $folder --include=*.h --include=*.cc | grep -vE '_(test\.cc|contract\.h):' | grep -vE '\"($allowed)/'"
}
may base
may document base
may os base
may http base
may model base
may policy base model
may placement base model
may estimate base model
may core base model policy placement estimate
may codec base document model policy placement estimate core
may exec base document os model policy codec core
may sim base document model policy placement estimate core
may spec base document model
may store base
may ledger base document model spec store
may history base model ledger store
may cluster base model core spec ledger
may local base os model core spec cluster
may kube base document os http
may kubeflow base document model core spec kube ledger cluster
may api base document
may metrics base
may client base document http model
may service base document os model policy placement estimate core codec exec sim spec http store ledger history cluster local kube kubeflow api metrics
# The log stamps its lines with the time, and no decision reads them back. base/clock is for the folders that face the
# outside world: no other file of base and none from model to codec may include it.
for folder in base document model policy placement estimate core codec; do
  check "$folder reads no clock, chance or environment" \
    "grep -rnE '(system|steady)_clock::now|clock_gettime|random_device|std::rand\b|getenv|time\(nullptr' $folder | grep -vE '_test\.cc:|^base/(log|clock)\.cc:'"
  check "$folder does not include base/clock.h" "grep -rn 'include \"base/clock\.h\"' $folder | grep -v '^base/clock\.cc:'"
done
# The shim forks its worker itself: there is more to do before that becomes a program. And who tries whether namespaces
# can be made does so in a process that becomes none.
check "programs are started in os alone" \
  "grep -rnE '\b(posix_spawnp?|fork|vfork|popen|exec[lv][a-z]*) ?\(' --include=*.h --include=*.cc . | grep -vE '_test\.cc:|^\./os/|^\./local/(shim|network)\.cc:'"
check "heavy headers stay out of ours" "grep -rnE '#include [<\"](nlohmann/json.hpp|CLI/CLI.hpp|yaml-cpp|boost|curl|sqlite3|simdjson|prometheus|gtest|rapidcheck)' --include=*.h . | grep -vE '_contract\.h:|/test_'"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
