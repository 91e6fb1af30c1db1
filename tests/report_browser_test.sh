#!/usr/bin/env bash
# Opens a simulation report in a real browser and checks that its script drew it.
# Usage: report_browser_test.sh VODA   (the binary; it writes the report of the sample workload)
set -euo pipefail

fail() { echo "report_browser_test: FAILED: $*" >&2; exit 1; }

[[ $# -eq 1 ]] || fail "usage: $0 VODA"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
  fail "no chromium here; apt-get install -y --no-install-recommends chromium fonts-dejavu-core"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
report=$work/report.html
"$1" simulate --cluster 3x4 --workload "$(dirname "$0")/../examples/workloads/small.csv" --algorithm all --report "$report" >/dev/null
[[ -s $report ]] || fail "no report was written"
HOME=$work timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic --no-first-run \
  --disable-background-networking --disable-component-update --disable-sync --user-data-dir="$work/profile" \
  --enable-logging=stderr --window-size=1280,2400 --dump-dom "file://$report" >"$work/dom" 2>"$work/log" ||
  { tail -20 "$work/log" >&2; fail "the browser did not finish"; }

if grep -E 'CONSOLE.*(Uncaught|Error|Refused)' "$work/log" >&2; then fail "the console has errors"; fi
body=$(grep -o '<body[^>]*>' "$work/dom" | head -1) || fail "no body in the page"
attribute() { sed -n "s/.* $1=\"\([^\"]*\)\".*/\1/p" <<<"$body"; }

[[ $(attribute data-state) == ready ]] || fail "the script did not run to its end: $body"
runs=$({ grep -o '"algorithm":"' "$report" || true; } | wc -l)
[[ $(attribute data-runs) == "$runs" ]] || fail "drew $(attribute data-runs) runs of $runs"
rows=$({ grep -o '<th scope="row"' "$work/dom" || true; } | wc -l)
[[ $rows -eq $runs ]] || fail "the comparison has $rows rows for $runs runs"
if [[ $runs -gt 0 ]]; then
  [[ $(attribute data-gantt-rows) -gt 0 ]] || fail "the timeline is empty"
  curves=$({ grep -o 'class="curve"' "$work/dom" || true; } | wc -l)
  [[ $curves -gt 0 ]] || fail "the distribution has no curve"
fi
drawn=$(attribute data-gantt-rows)
echo "report_browser_test: ok: $runs runs, ${drawn:-0} timeline rows"
