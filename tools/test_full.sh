#!/usr/bin/env bash
# The long suites: thousands of seeds of the fault simulation, twenty times the property cases, a hundred kills of the
# server, ten minutes of attacks on it, many requests made from the API's document, and fuzzing of every parser. About an
# hour on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${VODA_FUZZ_SECONDS:-120}

stage() { printf '\n== %s (%s)\n' "$1" "$(date +%T)"; }

stage "static analyzer"
VODA_ANALYZER=1 tools/lint.sh

stage "fault simulation, ${VODA_SEEDS:-3000} seeds"
VODA_SEEDS=${VODA_SEEDS:-3000} build/release/tests/simulation_test --gtest_brief=1

stage "properties, 20 times the cases"
for suite in policy placement core; do
  VODA_PROPERTY_FACTOR=20 build/release/tests/${suite}_test --gtest_brief=1
done

stage "kill -9 of voda up, ${VODA_KILLS:-100} times"
export VODA_BINARY=build/release/voda PYTHONDONTWRITEBYTECODE=1
VODA_KILLS=${VODA_KILLS:-100} /usr/bin/python3 tests/live/kill_test.py

stage "attacks on voda up, ${VODA_ATTACK_SECONDS:-600} s"
/usr/bin/python3 tests/live/attack_test.py --seed "${VODA_SEED:-7}" --seconds "${VODA_ATTACK_SECONDS:-600}"

stage "requests made from docs/openapi.json"
VODA_FUZZ_EXAMPLES=${VODA_FUZZ_EXAMPLES:-200} VODA_SEED=${VODA_SEED:-7} /usr/bin/python3 tests/live/openapi_test.py

stage "Kubernetes: every algorithm, every fault, a kill at every write, real training, the chart"
tests/kubernetes/build.sh helm
for suite in schedule faults training image chart; do
  echo "-- $suite"
  /usr/bin/python3 -W ignore "tests/kubernetes/${suite}_test.py"
done
/usr/bin/python3 -W ignore tests/kubernetes/cluster_test.py

stage "fuzzing, $seconds s each"
cmake --preset fuzz >/dev/null
cmake --build build/fuzz -j "$(nproc)" -- --quiet
for target in build/fuzz/fuzz/*_fuzz; do
  name=$(basename "$target" _fuzz)
  corpus=build/fuzz/corpus/$name
  mkdir -p "$corpus"
  log=build/fuzz/$name.log
  if ! "$target" -max_total_time="$seconds" -rss_limit_mb=4096 -timeout=20 -max_len=16384 -print_final_stats=1 \
       -verbosity=0 -artifact_prefix=build/fuzz/ "$corpus" "fuzz/corpus/$name" >"$log" 2>&1; then
    tail -n 40 "$log"
    echo "test-full: $name found the input above; it lies in build/fuzz" >&2
    exit 1
  fi
  echo "$name: $(grep -oE 'number_of_executed_units: [0-9]+' "$log")"
done
