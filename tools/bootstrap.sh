#!/usr/bin/env bash
# Installs the Debian packages that the given groups need: build, demo (and real training), image, test, coverage,
# kubernetes (a test cluster with real nodes). Idempotent, and silent when nothing is missing. Uses sudo when not root.
set -euo pipefail

build=(g++ make cmake ninja-build ccache pkg-config libfmt-dev libcli11-dev zlib1g-dev
       libboost1.81-dev libssl-dev libcurl4-openssl-dev libsqlite3-dev libyaml-cpp-dev prometheus-cpp-dev
       libsimdjson-dev)
demo=(python3 python3-torch)
image=(python3 ca-certificates)
test=(libgtest-dev librapidcheck-dev nlohmann-json3-dev time clang-14 libclang-rt-14-dev clang-format-14 clang-tidy-14
      chromium fonts-dejavu-core prometheus openssl curl tmux
      libtorch-dev pybind11-dev python3-dev python3-venv python3-pip python3-wheel python3-cffi python3-cloudpickle
      python3-psutil python3-yaml python3-packaging)  # the last two lines: what Elastic Horovod is built from
coverage=(gcovr)
kubernetes=(python3 python3-venv openssl gcc libc6-dev containerd runc containernetworking-plugins iproute2
            openssh-client openssh-server busybox-static)

wanted=()
for group in "${@:-build}"; do
  case "$group" in
    build) wanted+=("${build[@]}") ;;
    demo) wanted+=("${build[@]}" "${demo[@]}") ;;
    image) wanted+=("${image[@]}") ;;
    test) wanted+=("${build[@]}" "${demo[@]}" "${test[@]}") ;;
    coverage) wanted+=("${coverage[@]}") ;;
    kubernetes) wanted+=("${kubernetes[@]}") ;;
    *) echo "bootstrap: unknown group '$group'; known are build, demo, image, test, coverage, kubernetes" >&2; exit 2 ;;
  esac
done

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "bootstrap: this machine has no apt-get; install the equivalents of: ${missing[*]}" >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "bootstrap: run as root, or install sudo; missing: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "bootstrap: installing ${missing[*]}"
log=$(mktemp)
if ! { "${as_root[@]}" apt-get update -qq &&
       "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "bootstrap: installing failed; the log is $log" >&2
  exit 1
fi
rm -f "$log"
