#!/usr/bin/env bash
# All benchmarks: fidelity to real runs, forecast error, speed of a decision, the large trace, and a whole server.
# Prints tables.
set -euo pipefail
build=$1
data=${VODA_DATA:-$(dirname "$0")/../../shared/data}
"$build/bench/fidelity_bench"
echo
"$build/bench/price_bench"
echo
"$build/bench/estimates_bench"
echo
echo "One decision, one core:"
"$build/bench/decision_bench"
echo
if [ -f "$data/philly/philly_jobs.csv.gz" ]; then
  echo "82,247 jobs of the Philly trace on 2,000 GPUs under Price (goal: 60 s, 1 GiB):"
  /usr/bin/env time -f '%e s, %M KiB at most' "$build/voda" simulate --cluster 250x8 --workload "$data/philly/philly_jobs.csv.gz" --format philly
else
  echo "LEFT OUT: the Philly trace is not in $data (set VODA_DATA)"
fi
echo
echo "A list of 50 MB from a Kubernetes API server, decoded:"
"$build/bench/kube_decode_bench"
echo
echo "A whole server under load:"
"$build/bench/load_bench" "$build/voda"
echo
echo "Requests and ends of workers while a policy takes 5 s for each decision:"
VODA_BINARY=$build/voda /usr/bin/python3 "$(dirname "$0")/../bench/external_policy_bench.py"
