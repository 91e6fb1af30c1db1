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
    "grep -rnE '^#include \"' $folder --include=*.h --include=*.cc | grep -v '_test\.cc:' | grep -vE '\"($allowed)/'"
}
may base
may model base
may policy base model
may placement base model
may estimate base model
may core base model policy placement estimate
may codec base model policy placement estimate core
may exec base model policy codec core
may sim base model policy placement estimate core
may spec base model codec
may store base
may cluster base core spec
may local base model core spec cluster
may kube base spec
may kubeflow base model core spec kube cluster
may api base codec
may metrics base
may client base codec
may service base model policy placement estimate core codec exec sim spec store cluster local kube kubeflow api metrics
# The log stamps its lines with the time; no decision reads them back.
for folder in base model policy placement estimate core codec; do
  check "$folder reads no clock, chance or environment" \
    "grep -rnE '(system|steady)_clock::now|random_device|std::rand\b|getenv|time\(nullptr' $folder | grep -vE '_test\.cc:|^base/log\.cc:'"
done
check "heavy headers stay out of ours" "grep -rnE '#include [<\"](nlohmann/json.hpp|CLI/CLI.hpp|yaml-cpp|boost|curl|sqlite3|simdjson|prometheus|gtest|rapidcheck)' --include=*.h ."
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
