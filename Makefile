# Every target installs what it needs (tools/bootstrap.sh), so each works on a fresh Debian 12 machine.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
JOBS ?= $(shell nproc)
export CTEST_OUTPUT_ON_FAILURE = 1
step = @printf '== %s, %s\n' "$$(date +%T)" "$(1)"

.PHONY: all demo check test test-full test-kubernetes bench bench-kubernetes image cluster-up cluster-down format lint clean help
all: build/release/voda  ## the release binary, build/release/voda

help:  ## this list
	@grep -hE '^[a-z/-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.PHONY: build/release/voda
build/release/voda:
	@tools/bootstrap.sh build
	@cmake --preset release -DVODA_TESTS=$(if $(wildcard /usr/include/gtest/gtest.h),ON,OFF) >/dev/null
	@cmake --build build/release --target voda -j $(JOBS) -- --quiet

demo: all  ## real elastic training jobs, scheduled live on this machine
	@tools/bootstrap.sh demo
	@/usr/bin/python3 tools/demo.py build/release/voda

.PHONY: tests-built
tests-built:
	@tools/bootstrap.sh test
	$(call step,build)
	@cmake --preset release -DVODA_TESTS=ON >/dev/null
	@cmake --build build/release -j $(JOBS) -- --quiet

check: tests-built  ## the fast tests
	@ctest --test-dir build/release -L fast -j $(JOBS) --progress

test: tests-built lint kubernetes-built  ## everything a release must pass
	$(call step,Elastic Horovod schemathesis and the frameworks of the callbacks)
	@tools/horovod_venv.sh
	@tools/schemathesis_venv.sh
	@tools/frameworks_venv.sh
	$(call step,build with clang)
	@cmake --preset clang-release -DVODA_TESTS=OFF >/dev/null
	@cmake --build build/clang-release --target voda -j $(JOBS) -- --quiet
	$(call step,tests)
	@ctest --test-dir build/release -j $(JOBS) --progress

test-full: test  ## and the long suites: many seeds, many cases, fuzzing
	@tools/test_full.sh

bench: tests-built  ## speed, fidelity and forecast error; prints tables
	@cmake --build build/release --target benchmarks -j $(JOBS) -- --quiet
	@tools/bench.sh build/release

.PHONY: kubernetes-built
kubernetes-built: tests-built
	$(call step,the parts of a Kubernetes cluster)
	@tools/bootstrap.sh kubernetes
	@tests/kubernetes/build.sh cluster
	@cmake --build build/release --target kube_probe adapter_probe -j $(JOBS) -- --quiet

test-kubernetes: kubernetes-built  ## what make test does on a real control plane with played and real nodes
	@tools/horovod_venv.sh
	@ctest --test-dir build/release -L kubernetes --progress

bench-kubernetes: all  ## Voda beside Kueue on a real control plane, and on 1,000 played nodes; prints tables
	@tools/bootstrap.sh kubernetes
	@VODA_BINARY=$(CURDIR)/build/release/voda /usr/bin/python3 -W ignore bench/kubernetes/kueue_bench.py
	@VODA_BINARY=$(CURDIR)/build/release/voda /usr/bin/python3 -W ignore bench/kubernetes/scale_bench.py

image: all  ## a small container image, build/voda-image.tar, made without a container engine
	@tools/bootstrap.sh image
	@tools/make_image.py

cluster-up:  ## a Kubernetes cluster to play with; its parts are built from source the first time, which takes minutes
	@tools/bootstrap.sh kubernetes
	@/usr/bin/python3 tests/kubernetes/cluster.py up

cluster-down:  ## takes that cluster down
	@/usr/bin/python3 tests/kubernetes/cluster.py down

format:  ## formats the sources in place
	@tools/bootstrap.sh test
	@git ls-files '*.cc' '*.h' | xargs clang-format-14 -i

lint:  ## formatting and clang-tidy
	@tools/bootstrap.sh test
	$(call step,clang-format and clang-tidy)
	@tools/lint.sh

clean:  ## removes build/
	@rm -rf build
