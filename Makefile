# What a fresh clone needs: python3 (>= 3.11, with venv), git, make. No compiler.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench test-cluster test-trainers test-nightly clean

help: ## this list
	@grep -E '^[a-z.-]+:.*##' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 16

demo: .venv ## the whole mill on sample_data, ends with a report
	$(BIN)/gristmill demo

test: .venv ## all tests but those of real engines and the nightly ones (under 10 minutes)
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m 'not cluster and not object_store and not trainers and not nightly'

lint: .venv ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@mkdir -p build/types && ln -sfn ../.. build/types/gristmill
	$(BIN)/mypy

bench: .venv ## every measurement in benchmarks/, one after the other
	@set -e; for script in benchmarks/[!_]*.py; do \
	  test -e "$$script" || continue; echo "== $$script"; $(BIN)/python "$$script"; done

test-cluster: .venv/.cluster ## a real Slurm, a real Ray and a real S3 server, on loopback
	$(BIN)/python -m pytest -q -m 'cluster or object_store'

test-trainers: .venv/.trainers ## the feed under real PyTorch, torchdata and Grain
	$(BIN)/python -m pytest -q -m trainers

test-nightly: .venv ## the long tests, fixed seeds
	$(BIN)/python -m pytest -q -m nightly

clean: ## remove the environment and all caches
	rm -rf .venv build dist ./*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment, made again in place when what it is made of changes.
.PHONY: .venv
.venv: .venv/.ready

.venv/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "gristmill needs Python 3.11 or newer, and $(PYTHON) is: $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another one: make PYTHON=python3.12 ..." >&2; exit 2; }
	@$(PYTHON) -m venv .venv || { \
	  echo "$(PYTHON) cannot make a virtual environment: apt-get install python3-venv" >&2; exit 2; }
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable .
	@touch $@

.venv/.cluster: .venv/.ready requirements-cluster.lock requirements-store.lock
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements-cluster.lock
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements-store.lock
	@touch $@

# PyTorch by pip's own choice of build: a hash would pin the CUDA build of several GB.
.venv/.trainers: .venv/.ready requirements-trainers.lock
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement requirements-trainers.lock
	@touch $@
