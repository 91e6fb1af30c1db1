#!/usr/bin/env bash
# voda simulate as its user meets it: what it prints, and what it says of wrong input.
set -euo pipefail
voda=$(realpath "$1")
cd "$(dirname "$0")/.."
passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAILED: $*"; }

small=(--cluster 3x4 --workload examples/workloads/small.csv)
refuses() {  # exit code, text the message must hold, arguments
  local code=$1 text=$2 rc=0
  shift 2
  "$voda" simulate "$@" >"$work/out" 2>"$work/err" || rc=$?
  if [ "$rc" -eq "$code" ] && [ ! -s "$work/out" ] && grep -qF -- "$text" "$work/err"; then ok; else
    bad "$* gave $rc: $(head -c 300 "$work/err")"; fi
}
refuses 2 "--cluster is required" --workload examples/workloads/small.csv
refuses 2 "--workload is required" --cluster 3x4
refuses 2 "is not NODESxGPUS" --cluster 3by4 --workload examples/workloads/small.csv
refuses 2 "is not NODESxGPUS" --cluster 0x4 --workload examples/workloads/small.csv
refuses 2 "is not NODESxGPUS" --cluster 1000000x65536 --workload examples/workloads/small.csv
refuses 2 "unknown algorithm \"Elastic\"" "${small[@]}" --algorithm FIFO,Elastic
refuses 2 "known are FIFO, ElasticFIFO" "${small[@]}" --algorithm nope
refuses 2 "has the option \"threshold\"" "${small[@]}" --algorithm FIFO --option threshold=1
refuses 2 "option threshold" "${small[@]}" --algorithm Tiresias --option threshold=-1
refuses 2 "unknown placement" "${small[@]}" --placement best
refuses 2 "unknown estimates" "${small[@]}" --estimates perfect
refuses 2 "--reporting and --steps go with --estimates learned, not with none" "${small[@]}" --estimates none --reporting 0.5
refuses 2 "--reporting and --steps go with --estimates learned, not with none" "${small[@]}" --estimates none --steps
refuses 2 "--reporting and --steps go with --estimates learned, not with oracle" "${small[@]}" --estimates oracle --steps
refuses 2 "--reporting: 1.5 is not a share from 0 to 1" "${small[@]}" --reporting 1.5
refuses 2 "--estimate-error: with --estimates none nobody tells remaining times" "${small[@]}" --estimates none --estimate-error 2
refuses 2 "--rate-limit" "${small[@]}" --rate-limit soon
refuses 2 "--start-cost" "${small[@]}" --start-cost -5
refuses 2 "unknown output" "${small[@]}" -o yaml
refuses 2 "no-such-file" --cluster 3x4 --workload no-such-file.csv
refuses 2 "format" --cluster 3x4 --workload examples/workloads/small.csv --format xml
refuses 2 "--frobnicate" "${small[@]}" --frobnicate
printf 'time_s,node,change\n5,n0,explode\n' >"$work/nodes.csv"
refuses 2 "nodes.csv:2: column change" "${small[@]}" --node-events "$work/nodes.csv"
head -c 100000 /dev/urandom >"$work/rubbish.csv"
refuses 2 "rubbish.csv" --cluster 3x4 --workload "$work/rubbish.csv"

out=$("$voda" simulate "${small[@]}" --algorithm all -o json)
for key in algorithm jobs completed makespan_s avg_jct_s p50_jct_s p95_jct_s p99_jct_s avg_wait_s gpu_utilization rescales \
           preemptions migrated_workers rounds decision_ms_p50 decision_ms_p99; do
  [ "$(grep -o "\"$key\": " <<<"$out" | wc -l)" -eq 9 ] && ok || bad "JSON lacks $key for some of nine runs"
done
python3 -c 'import json,sys; r=json.load(sys.stdin)["runs"]; assert len(r)==9 and all(x["completed"]==x["jobs"] for x in r)' <<<"$out" && ok || bad "JSON"
rows=$("$voda" simulate "${small[@]}" -o csv --jobs | wc -l)
[ "$rows" -eq "$(wc -l <examples/workloads/small.csv)" ] && ok || bad "a CSV row per job, got $rows"
"$voda" simulate --cluster 1x1 --workload examples/workloads/bursty.csv >"$work/out" 2>"$work/err" && grep -q "never completed" "$work/err" && ok ||
  bad "jobs that can never be seated"
"$voda" simulate "${small[@]}" --report "$work/none/report.html" >/dev/null 2>"$work/err" && bad "report into a missing folder" || ok
printf 'time_s,node,change\n600,n0,remove\n1200,n0,add:4\n1800,n1,cordon\n2400,n1,uncordon\n3000,n2,gpus:2\n' >"$work/nodes.csv"
"$voda" simulate "${small[@]}" --algorithm all --node-events "$work/nodes.csv" -o json |
  python3 -c 'import json,sys; assert all(x["completed"]==x["jobs"] for x in json.load(sys.stdin)["runs"])' && ok || bad "nodes come and go"
"$voda" simulate "${small[@]}" --min-runtime 10m --cooldown 5m >/dev/null && ok || bad "guards"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
