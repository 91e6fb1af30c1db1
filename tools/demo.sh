#!/usr/bin/env bash
# The demo: the project's sample workload under all eight algorithms, the table, and the report.
set -euo pipefail
voda=$1
report=build/demo-report.html
echo "24 elastic training jobs on 3 nodes of 4 GPUs, scheduled by each algorithm (times in seconds):"
echo
"$voda" simulate --cluster 3x4 --workload examples/workloads/small.csv --algorithm all --report "$report"
echo
echo "Open $report in a browser: GPUs per job over time, utilisation and completion times per algorithm."
