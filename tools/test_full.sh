#!/usr/bin/env bash
# The long suites: thousands of seeds of the fault simulation, twenty times the property cases, and fuzzing of every
# parser. About half an hour on two cores.
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

stage "fuzzing, $seconds s each"
cmake --preset fuzz >/dev/null
cmake --build build/fuzz -j "$(nproc)" -- --quiet
for target in build/fuzz/fuzz/*_fuzz; do
  name=$(basename "$target" _fuzz)
  corpus=build/fuzz/corpus/$name
  mkdir -p "$corpus"
  "$target" -max_total_time="$seconds" -rss_limit_mb=4096 -timeout=20 -max_len=16384 -print_final_stats=1 -verbosity=0 \
    "$corpus" "fuzz/corpus/$name" 2>&1 | grep -E 'number_of_executed|ERROR|SUMMARY|Test unit' || true
done
