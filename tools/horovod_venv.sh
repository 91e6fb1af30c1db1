#!/usr/bin/env bash
# Builds Elastic Horovod against Debian's PyTorch into a virtual environment, for examples/jobs/horovod-elastic.yaml.
# Takes two minutes the first time and no time after that. Usage: tools/horovod_venv.sh [FOLDER=build/horovod]
# `tools/bootstrap.sh test` installs the packages it builds with. MAKEFLAGS=-jN limits the compiler processes.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.28.1
python=/usr/bin/python3  # Debian's own: another python3 on PATH does not see python3-torch
folder=${1:-build/horovod}
case $folder in /*) ;; *) folder=$PWD/$folder ;; esac

say() { echo "horovod: $*"; }
fail() { echo "horovod: $*" >&2; exit 1; }

[ -x "$python" ] || fail "there is no $python; install python3 (tools/bootstrap.sh test)"
read_version='import importlib.util, os, runpy
folder = os.path.dirname(importlib.util.find_spec("torch").origin)  # to import it takes a second
print(runpy.run_path(os.path.join(folder, "version.py"))["__version__"])'
torch=$("$python" -c "$read_version" 2>/dev/null) ||
  fail "$python has no torch; install python3-torch (tools/bootstrap.sh test)"
stamp=$folder/horovod.stamp
wanted="horovod $version, torch $torch, $("$python" -V), in $folder"
if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
  say "ready in $folder"
  exit 0
fi

for file in /usr/include/torch/csrc/api/include/torch/torch.h /usr/include/pybind11/pybind11.h; do
  [ -e "$file" ] || fail "$file is missing; install libtorch-dev and pybind11-dev (tools/bootstrap.sh test)"
done
for tool in cmake g++ make; do
  command -v "$tool" >/dev/null || fail "$tool is missing (tools/bootstrap.sh test)"
done

mkdir -p "$(dirname "$folder")"
exec 9>"$folder.lock"
flock 9  # two builds into one folder wait for each other
[ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || { say "ready in $folder"; exit 0; }

say "making the virtual environment $folder"
rm -rf "$folder"
"$python" -m venv --system-site-packages "$folder"

log=$folder/build.log
say "building horovod $version against torch $torch (about two minutes; $log)"
started=$SECONDS
export HOROVOD_WITH_PYTORCH=1 HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1
export HOROVOD_WITHOUT_MPI=1 HOROVOD_WITH_GLOO=1 HOROVOD_CPU_OPERATIONS=GLOO
export MAKEFLAGS=${MAKEFLAGS:--j$(nproc)}
"$folder/bin/python" -m pip install --disable-pip-version-check --no-build-isolation "horovod==$version" \
  >"$log" 2>&1 9>&- &
build=$!
trap 'kill "$build" 2>/dev/null || true' EXIT
while kill -0 "$build" 2>/dev/null; do
  sleep 1
  waited=$((SECONDS - started))
  [ $((waited % 20)) -ne 0 ] || say "building, $waited s"
done
wait "$build" || { tail -n 30 "$log" >&2; fail "pip failed; the whole output is in $log"; }
trap - EXIT

"$folder/bin/python" -c 'import horovod.torch' || fail "horovod was built and cannot be imported; see $log"
echo "$wanted" >"$stamp"
say "ready in $folder after $((SECONDS - started)) s"
