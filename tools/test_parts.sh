#!/usr/bin/env bash
# Makes what the tests need beside Voda itself, or waits until another call has made it:
#   environments   Elastic Horovod, schemathesis, and the frameworks of the progress callbacks, below build/
#   cluster        the parts of a Kubernetes cluster, from source
# Without an argument it makes both, side by side.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build

case "${1:-both}" in
  environments)
    exec 8>build/environments.lock
    flock 8
    tools/schemathesis_venv.sh
    tools/frameworks_venv.sh
    tools/horovod_venv.sh ;;
  cluster) tests/kubernetes/build.sh cluster ;;
  both)
    tools/test_parts.sh environments &
    tools/test_parts.sh cluster
    wait "$!" ;;
  *) echo "test_parts: unknown part '$1'; known are environments and cluster" >&2; exit 2 ;;
esac
