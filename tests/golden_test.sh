#!/usr/bin/env bash
# Golden files: what `voda plan` and `voda simulate` print for the inputs under tests/golden, byte for byte (decision
# times aside). After a wanted change: VODA_BLESS=1 tests/golden_test.sh build/release/voda, then read the diff.
set -euo pipefail
voda=$(realpath "$1")
cd "$(dirname "$0")/.."
passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

compare() {  # golden file; output on stdin
  cat >"$work/out"
  if [ -n "${VODA_BLESS:-}" ]; then mkdir -p "$(dirname "$1")"; cp "$work/out" "$1"; fi
  if diff -u "$1" "$work/out" >"$work/diff" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1)); echo "FAILED: $1"; head -n 40 "$work/diff"
  fi
}
without_times() { sed -E 's/, "decision_ms_p(50|99)": [^,}]*//g'; }

algorithms=$("$voda" algorithms -o json | grep -oE '"name": "[A-Za-z-]+"' | cut -d'"' -f4 | sort -u | grep -vE '^(threshold|knob|compaction|timeout)$')
for input in tests/golden/plan/*.snapshot.json; do
  name=$(basename "$input" .snapshot.json)
  for algorithm in $algorithms; do
    for placement in stable repack; do
      compare "tests/golden/plan/$name.$algorithm.$placement.json" \
        < <("$voda" plan --algorithm "$algorithm" --placement "$placement" <"$input" 2>&1)
    done
  done
done
simulate() {  # golden name, arguments
  local name=$1
  shift
  compare "tests/golden/simulate/$name.json" < <("$voda" simulate "$@" -o json --jobs | without_times)
}
simulate small --cluster 3x4 --workload examples/workloads/small.csv --algorithm all
simulate small-repack --cluster 3x4 --workload examples/workloads/small.csv --algorithm all --placement repack --estimates oracle
simulate bursty --cluster 4x8 --workload examples/workloads/bursty.csv --algorithm all --rate-limit 60s
simulate bursty-nodes --cluster 4x8 --workload examples/workloads/bursty.csv --algorithm ElasticFIFO,AFS-L --node-events tests/golden/simulate/nodes.csv
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -ge 50 ]
