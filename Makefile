# One entry point for people and for CI. `make test` is all that a fresh checkout needs: Python 3.11 or newer with venv, cargo
# (Rust 1.88 or newer), and tshark for the comparisons. pytest ends with the tests that were not run, and why; with CI=true that is an error.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
CARGO ?= cargo
TARGET ?= $(shell uname -m)-unknown-linux-gnu
SHARE := docs/wheel/data/share
MANIFEST := --manifest-path rust/Cargo.toml
SMOLTCP := --manifest-path tcptrace_lab/lab/other_stacks/smoltcp/Cargo.toml -- --config-path rust
RUST := $(wildcard rust/Cargo.* rust/src/*.rs rust/src/*/*.rs rust/src/*/*/*.rs)

include rust/fuzz/fuzz.mk

.DEFAULT_GOAL := help
.PHONY: help install wheel sdist build lint lint-python lint-rust format check test python-test multiqc-test rust-test instructions instructions-test bench docs man completions ci clean

help:
	@echo 'install      make $(VENV) with the package, as a user gets it'
	@echo 'wheel        dist/*.whl for TARGET, by default this machine'"'"'s processor; docs/install/ has the list'
	@echo 'sdist        dist/*.tar.gz, the source that a wheel can be built from'
	@echo 'build        make $(VENV) for work on the package: editable, with the test tools'
	@echo 'lint         ruff, mypy, stubtest, import-linter, cargo fmt, clippy'
	@echo 'check        before each commit, in three minutes: lint, and the quick tests, which need no browser, no root and no captures of others'
	@echo 'test         build, then all tests of both halves; CAPTURES=folder of captures of others (../shared/captures)'
	@echo 'instructions renew the figures of instructions per packet that instructions-test, a part of test, compares with'
	@echo 'bench        benchmarks against peers'
	@echo 'docs         renew the man page, the shell completions, the pages of docs/ and the lists in JSON Schemas that are made from the package'
	@echo 'fuzz         fuzz every target for FUZZ_SECONDS (555: two hours in all); fuzz-smoke as CI does it'
	@echo 'ci           what CI runs, on this machine'
	@echo 'clean        remove what was built'

$(BIN)/python:
	@test -n '$(PYTHON)' || { echo 'Python 3.11 or newer is needed' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

install: $(BIN)/python
	$(BIN)/python -m pip install --quiet .

# Zig links against the C library of an old Linux, so that the wheel runs on all that are newer.
wheel: $(BIN)/python
	$(BIN)/python -m pip install --quiet 'maturin>=1.7,<2' ziglang
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/maturin build --release --locked --zig --target $(TARGET) \
	  --compatibility $(if $(findstring musl,$(TARGET)),musllinux_1_2,manylinux2014) --out dist

sdist: $(BIN)/python
	$(BIN)/python -m pip install --quiet 'maturin>=1.7,<2'
	$(BIN)/maturin sdist --out dist

# An editable install is not compiled to bytecode, and the tests start the command thousands of times. Of the other packages, most modules
# are never imported.
$(VENV)/.built: $(BIN)/python pyproject.toml $(RUST)
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[test]'
	$(BIN)/python -m compileall -q tcptrace_lab
	touch $@

build: $(VENV)/.built

# Both halves at once: mypy works on one processor.
lint: build
	$(MAKE) --jobs=2 --output-sync lint-python lint-rust

lint-python: build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest tcptrace_lab._core
	$(BIN)/lint-imports

lint-rust:
	$(CARGO) fmt $(MANIFEST) --check
	$(CARGO) fmt --check $(SMOLTCP)
	$(CARGO) clippy $(MANIFEST) --all-features --all-targets -- -D warnings
	$(CARGO) clippy --manifest-path rust/fuzz/Cargo.toml --locked --no-default-features --all-targets -- -D warnings

format: build
	$(BIN)/ruff format .
	$(CARGO) fmt $(MANIFEST)
	$(CARGO) fmt $(SMOLTCP)

check: lint
	$(CARGO) test $(MANIFEST) --quiet -- --skip witness
	$(BIN)/python -m pytest --numprocesses logical --dist loadfile -m 'not (live or browser or shared_captures or slow)'

# Counting instructions needs one processor, so it runs beside the tests of Rust.
test: build
	$(MAKE) --jobs=2 --output-sync rust-test instructions-test
	$(MAKE) python-test

python-test: build
	-$(BIN)/python tests/browser/fetch_axe.py
	$(BIN)/python -m pytest --numprocesses logical --dist loadfile -m 'not live'
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile -m live

# The environment is of its own, because MultiQC brings many packages and may pin those of the tests.
multiqc-test: $(BIN)/python
	$(BIN)/python -m venv $(VENV)-multiqc
	$(VENV)-multiqc/bin/python -m pip install --quiet --editable . multiqc pytest hypothesis
	$(VENV)-multiqc/bin/python -m pytest tests/outputs/multiqc_itself.py

rust-test:
	$(CARGO) test $(MANIFEST) --quiet

# Without valgrind or cargo these say so, and count nothing.
instructions: $(BIN)/python
	$(BIN)/python benchmarks/speed/instructions.py --renew

instructions-test: $(BIN)/python
	$(BIN)/python benchmarks/speed/instructions.py

bench: build
	$(BIN)/python benchmarks/speed/run.py

docs: build man completions
	$(BIN)/python docs/pages.py

man: build
	$(BIN)/python -m tcptrace_lab.cli.man > $(SHARE)/man/man1/tcptrace-lab.1

# The first call of a function that zsh loads from its fpath must complete, too, so this one ends with a call.
completions: build
	$(BIN)/tcptrace-lab --show-completion bash > $(SHARE)/bash-completion/completions/tcptrace-lab
	$(BIN)/tcptrace-lab --show-completion fish > $(SHARE)/fish/vendor_completions.d/tcptrace-lab.fish
	{ $(BIN)/tcptrace-lab --show-completion zsh; echo '_tcptrace_lab_completion "$$@"'; } > $(SHARE)/zsh/site-functions/_tcptrace-lab

ci:
	.ci/run

clean:
	rm -rf $(VENV) $(VENV)-multiqc rust/target .ci/cache dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
