# Everything a fresh Debian 12 or 13 needs: `make build`, `make test` and `make demo` each install what is missing
# (Debian packages, then Python wheels into build/env), configure build/release and build. A second call redoes nothing.
#
#   make build      the command and its library, build/release/collage
#   make test       build, then every test but the long ones
#   make test-long  the long tests
#   make test-torch what needs PyTorch, in an environment of its own (build/torch-env, 6 GB from PyPI): torch.compile with the cases of
#                   tests/torch_compile, PyTorch's operator database and models; the backend torch
#   make mutations  plants the faults of tests/mutations one at a time; a test must find each (an hour; ONLY=REGEX for some)
#   make demo       build, then a short tour of what Collage does
#   make install    PREFIX=/usr/local: command, library, headers, CMake package
#   make deb        the same as a Debian package, build/release/package/collage_VERSION_amd64.deb
#   make wheel      the Python package as a wheel with all it needs, dist/*.whl; wheel-test: installs it into an empty
#                   environment and runs what its README shows
#   make distros    builds this tree and runs the demo and a smoke test in a fresh Debian 12, Debian 13 and Ubuntu 24.04 each
#                   (ONLY=trixie for one), by debootstrap, as root; COLLAGE_CCACHE=DIR shares what they compile
#   make plugin-torch TORCH=…/site-packages/torch
#                   the backend torch as a plugin, build/plugins/torch/libcollage_torch.so (docs/torch.md)
#   make asan       the tests under the address and undefined-behaviour sanitizers; asan-short: those of the rooms that
#                   read what users bring, which CI has time for
#   make format     clang-format over the tree      make lint   clang and clang-tidy, warnings as errors
#   WERROR=ON       with any of them: compiler warnings are errors
#   make clean      removes the build folders, keeps the Python environment

SHELL := /bin/bash
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
ENV := build/env
export WERROR
CTEST := bash tools/setup/test.sh -j $(JOBS)

.PHONY: plugin-torch build build-tests test test-torch test-long mutations demo install deb wheel wheel-test distros asan asan-short format lint clean setup setup-tests setup-lint
.DEFAULT_GOAL := build

setup:
	@bash tools/setup/packages.sh tools/setup/packages.txt
	@bash tools/setup/wheels.sh

setup-tests: setup
	@bash tools/setup/packages.sh tools/setup/packages-test.txt
	@bash tools/setup/wheels.sh requirements-test.txt
	@bash tools/setup/wheels.sh requirements-ray.txt ray-env

setup-lint: setup-tests
	@bash tools/setup/packages.sh tools/setup/packages-lint.txt

build: setup
	@bash tools/setup/configure.sh release
	@ninja -C build/release -j $(JOBS) collage

build-tests: setup-tests
	@COLLAGE_TESTS=ON bash tools/setup/configure.sh release
	@ninja -C build/release -j $(JOBS)

test: build-tests
	@$(CTEST) --test-dir build/release -LE '^(long|torch)$$'

test-torch: build-tests
	@bash tools/setup/wheels.sh requirements-torch.txt torch-env
	@$(CTEST) --test-dir build/release -L torch

test-long: export COLLAGE_LONG_TESTS := ON
test-long: build-tests
	@$(CTEST) --test-dir build/release -L long

mutations: build-tests
	@$(ENV)/bin/python tests/mutations/run.py --only '$(ONLY)'

demo: build
	@bash tools/demo/demo.sh

install: build
	@$(ENV)/bin/cmake --install build/release --prefix $(PREFIX)

deb: build
	@bash tools/setup/packages.sh tools/setup/packages-deb.txt
	@$(ENV)/bin/cpack --config build/release/CPackConfig.cmake

asan: setup-tests
	@COLLAGE_TESTS=ON bash tools/setup/configure.sh asan
	@ninja -C build/asan -j $(JOBS)
	@$(CTEST) --test-dir build/asan -LE long

plugin-torch: build
	@$(ENV)/bin/cmake --install build/release --prefix build/plugins/collage > /dev/null
	@$(ENV)/bin/cmake -S plugins/torch -B build/plugins/torch -Dcollage_DIR=$(CURDIR)/build/plugins/collage/lib/cmake/collage -DTORCH=$(TORCH)
	@$(ENV)/bin/cmake --build build/plugins/torch -j $(JOBS)

wheel: setup
	@bash tools/setup/wheels.sh requirements-wheel.txt
	@bash tools/setup/configure.sh release
	@ninja -C build/release -j $(JOBS) collage collage_python collage_python_stub collage_python_demo
	@bash tools/setup/wheel.sh

wheel-test: wheel
	@$(ENV)/bin/python tests/python/wheel.py

distros:
	@bash tools/setup/distros.sh $(ONLY)

SHORT := base runtime ir tensor_program frontend_onnx passes fuzz_models
asan-short: setup-tests
	@COLLAGE_TESTS=ON bash tools/setup/configure.sh asan-short
	@ninja -C build/asan-short -j $(JOBS) $(SHORT:%=%_test)
	@$(CTEST) --test-dir build/asan-short -LE long -R '^($(shell tr ' ' '|' <<< '$(SHORT)'))[.]'

format: setup-lint
	@bash tools/setup/format.sh

lint: setup-lint
	@COLLAGE_TESTS=ON COLLAGE_LONG_TESTS=ON bash tools/setup/configure.sh clang
	@ninja -C build/clang -j $(JOBS) collage_generated
	@$(ENV)/bin/python tools/setup/lint.py build/clang $(FILES)

clean:
	rm -rf build/release build/plugins build/dev build/asan build/asan-short build/clang build/mutations build/setup
