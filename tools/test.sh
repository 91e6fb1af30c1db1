#!/usr/bin/env bash
# make test: builds the tests, runs them, and prints one count at the end. What the suites need beside Voda itself takes
# longer to make than Voda does, so tools/test_parts.sh makes it aside, on what the compiler and waiting tests leave of
# the machine; a suite waits for what it needs of that.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/release
log=$(mktemp -d)
aside=
trap '[ -z "$aside" ] || kill -- -"$aside" 2>/dev/null || true; rm -rf "$log"' EXIT

step() { printf '== %s, %s\n' "$(date +%T)" "$1"; }
suite() {
  local name=$1
  shift
  step "$name tests"
  ctest --test-dir "$build" -j "$(nproc)" --progress "$@" 2>&1 | tee "$log/$name" || true  # the count tells
}

mkdir -p build
setsid tools/aside.sh tools/test_parts.sh >build/test_parts.log 2>&1 </dev/null &
aside=$!
make tests-built
suite fast -L fast
suite live -LE 'fast|environments|kubernetes'
step "Elastic Horovod, schemathesis and the frameworks of the callbacks"
tools/test_parts.sh environments
suite training -L environments
step "the parts of a Kubernetes cluster"
tools/test_parts.sh cluster
suite kubernetes -L kubernetes

read -r passed failed suites < <(awk '
  /tests passed, [0-9]+ tests? failed out of [0-9]+/ { failed += $(NF - 5); all += $NF; ++suites }
  END { print all - failed, failed + 0, suites + 0 }' "$log"/*)
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$suites" -eq 4 ]
