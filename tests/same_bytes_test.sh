#!/usr/bin/env bash
# Determinism: the same command twice, and the gcc and the clang build, print the same bytes (decision times aside).
# Usage: same_bytes_test.sh VODA VODA_OF_THE_OTHER_COMPILER
set -euo pipefail
one=$(realpath "$1")
[ -x "$2" ] || { echo "$2 is missing: make compilers builds it"; exit 1; }
two=$(realpath "$2")
cd "$(dirname "$0")/.."
passed=0 failed=0
without_times() { sed -E 's/, "decision_ms_p(50|99)": [^,}]*//g'; }
same() {
  local name=$1 first again other
  shift
  first=$("$one" "$@" 2>&1 | without_times | sha256sum)
  again=$("$one" "$@" 2>&1 | without_times | sha256sum)
  other=$("$two" "$@" 2>&1 | without_times | sha256sum)
  if [ "$first" = "$again" ] && [ "$first" = "$other" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1)); echo "FAILED: $name: twice: $first / $again; other compiler: $other"
  fi
}
for estimates in oracle linear learned; do
  for placement in stable repack; do
    same "bursty $estimates $placement" simulate --cluster 4x8 --workload examples/workloads/bursty.csv --algorithm all \
      --estimates "$estimates" --placement "$placement" -o json --jobs
  done
done
same generated simulate --cluster 16x8 --workload 'gen:poisson?jobs=400&load=1.1&gpus=128' --seed 7 --algorithm all -o json --jobs
same bursts simulate --cluster 8x8,4x4 --workload 'gen:bursts?jobs=300' --seed 3 --algorithm all -o json --jobs
for input in tests/golden/plan/*.snapshot.json; do
  for algorithm in ElasticFIFO ElasticTiresias FfDLOptimizer AFS-L; do
    same "plan $(basename "$input") $algorithm" plan --algorithm "$algorithm" -f "$input"
  done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
