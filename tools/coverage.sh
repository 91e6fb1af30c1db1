#!/usr/bin/env bash
# Runs the fast tests of build/coverage and prints which share of the lines of each folder of src they ran. The table of
# files is left in build/coverage/files.csv. What a process does after fork and before exec, and what it did when it was
# killed, is not counted.
set -euo pipefail
cd "$(dirname "$0")/.."

find build/coverage -name '*.gcda' -delete
VODA_PROPERTY_FACTOR=${VODA_PROPERTY_FACTOR:-0.1} VODA_SEEDS=${VODA_SEEDS:-10} \
  ctest --test-dir build/coverage -L fast "$@" -j "$(nproc)" --progress
gcovr --root . --object-directory build/coverage --filter 'src/' --exclude '.*_test\.cc' --exclude '.*test.*\.h' \
  -j "$(nproc)" --csv >build/coverage/files.csv

awk -F, '
  NR > 1 { split($1, part, "/"); lines[part[2]] += $2; ran[part[2]] += $3; all += $2; all_ran += $3 }
  END {
    printf "%-12s %7s %7s %7s\n", "FOLDER", "LINES", "RAN", "SHARE"
    for (folder in lines) {
      printf "%-12s %7d %7d %6.1f%%\n", folder, lines[folder], ran[folder], 100 * ran[folder] / lines[folder] | "sort"
    }
    close("sort")
    printf "%-12s %7d %7d %6.1f%%\n", "all", all, all_ran, 100 * all_ran / all
  }' build/coverage/files.csv
