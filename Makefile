# Every target installs what it needs (tools/bootstrap.sh), so each works on a fresh Debian 12 machine.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
JOBS ?= $(shell nproc)
export CTEST_OUTPUT_ON_FAILURE = 1
step = @printf '== %s, %s\n' "$$(date +%T)" "$(1)"

.PHONY: all demo check coverage test test-full test-kubernetes bench bench-kubernetes image cluster-up cluster-down format lint compilers clean help
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

coverage:  ## the share of the lines of src that the fast tests run, for each folder
	@tools/bootstrap.sh test coverage
	@cmake --preset coverage >/dev/null
	@cmake --build build/coverage -j $(JOBS) -- --quiet
	@tools/coverage.sh

test:  ## the tests: units, properties, faults, real training, a real Kubernetes control plane
	@tools/bootstrap.sh test kubernetes
	@tools/test.sh

test-full: test lint compilers  ## and the long suites: many seeds, many cases, fuzzing
	@tools/test_full.sh

bench: tests-built  ## speed, fidelity and forecast error; prints tables
	@cmake --build build/release --target benchmarks -j $(JOBS) -- --quiet
	@tools/bench.sh build/release

test-kubernetes: tests-built  ## what make test does on a real control plane with simulated and real nodes
	@tools/bootstrap.sh kubernetes
	@tools/test_parts.sh
	@ctest --test-dir build/release -L kubernetes --progress

bench-kubernetes: all  ## Voda beside Kueue on a real control plane, and on 1,000 simulated nodes; prints tables
	@tools/bootstrap.sh kubernetes
	@VODA_BINARY=$(CURDIR)/build/release/voda /usr/bin/python3 -W ignore bench/kubernetes/kueue_bench.py
	@VODA_BINARY=$(CURDIR)/build/release/voda /usr/bin/python3 -W ignore bench/kubernetes/scale_bench.py

image: all  ## a small container image, build/voda-image.tar, made without a container engine
	@tools/bootstrap.sh image
	@tools/make_image.py

cluster-up:  ## a Kubernetes cluster as a playground; its parts are built from source the first time, which takes minutes
	@tools/bootstrap.sh kubernetes
	@/usr/bin/python3 tests/kubernetes/cluster.py up

cluster-down:  ## takes that cluster down again
	@/usr/bin/python3 tests/kubernetes/cluster.py down

format:  ## formats the sources in place
	@tools/bootstrap.sh test
	@git ls-files '*.cc' '*.h' | xargs clang-format-14 -i

lint:  ## clang-format and clang-tidy
	@tools/bootstrap.sh test
	$(call step,clang-format and clang-tidy)
	@tools/lint.sh

compilers: all  ## a second build with clang, whose output must equal that of gcc
	@tools/bootstrap.sh test
	@cmake --preset clang-release -DVODA_TESTS=OFF >/dev/null
	@cmake --build build/clang-release --target voda -j $(JOBS) -- --quiet
	@tests/same_bytes_test.sh build/release/voda build/clang-release/voda

clean:  ## removes build/
	@rm -rf build
