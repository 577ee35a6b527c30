# Two commands for a fresh machine: `make demo` and `make test`. Needs Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKAGES := proctor proctor-build proctor-web proctor-challenge proctor-train
PROJECTS := $(PACKAGES:%=packages/%/pyproject.toml)
CONSTRAINTS := packages/proctor/src/proctor/constraints.txt
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet $(PIP_OPTIONS) --constraint $(CONSTRAINTS)

# Processes that test use all cores: threads of the linear algebra below them would only wait for each other.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# Tests start many processes: each would compile all sources where the environment forbids keeping what was compiled.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help core install demo test test-training test-podman newest interchange simulations check lint complexity types layers doctests bench docs clean

help: ## What there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/pip:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is %d.%d" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(BIN)/pip packages/proctor/pyproject.toml $(CONSTRAINTS)
	$(PIP) --editable 'packages/proctor[vision]'  # the demo orders key frames by optical flow
	@touch $@

$(VENV)/.test: $(BIN)/pip $(PROJECTS) $(CONSTRAINTS)
	$(PIP) --editable 'packages/proctor[test]' $(foreach name,$(filter-out proctor,$(PACKAGES)),--editable packages/$(name))
	$(PIP) --no-deps orena-focus  # the oracle of FOCUS tests; they need its formats and evaluator alone
	@touch $@ $(VENV)/.core

core: $(VENV)/.core ## Install what it takes to run (no torch)
	@echo "Proctor is installed in $(VENV). Next: . $(VENV)/bin/activate && proctor --help"

install: $(VENV)/.test ## Install everything the tests need

demo: core ## The main job on simulated procedures, offline: demo/report.html
	$(BIN)/proctor demo --out demo

simulations: install ## The simulations of statistics in their full size
	PROCTOR_SIMULATIONS=full $(ONE_THREAD) $(BIN)/python -m pytest --numprocesses 2 -o faulthandler_timeout=0 -m simulation

# Without ALL=yes, what takes seconds is left out: a fifth of the tests takes most of the time.
QUICK := $(if $(ALL),, and not slow)
# PACKAGE=proctor-web: the tests of that package, of those that depend on it, and those of the repository
TESTS = $(if $(PACKAGE),$(shell $(PYTHON) tools/dependents.py $(PACKAGE) || echo no-such-package),)

test: install interchange ## All tests but those of pages (doctests), training, containers, and slow ones (ALL=yes); PACKAGE=NAME: of one
	$(ONE_THREAD) $(BIN)/python -m pytest --numprocesses 3 --max-worker-restart 0 --dist loadgroup -m "not podman and not pages and not training$(QUICK)" $(OPTIONS) $(TESTS)

test-training: install ## Tests that train models (PEFT, TRL)
	$(ONE_THREAD) $(BIN)/python -m pytest --numprocesses 2 --max-worker-restart 0 --dist loadgroup -m training $(TESTS)

test-podman: install ## Tests that start containers (podman)
	$(ONE_THREAD) $(BIN)/python -m pytest -m podman $(TESTS)

newest: install ## The wheel with the newest of everything, on a second Python, and in short on this one
	$(BIN)/python tools/newest.py
	$(BIN)/python tools/newest.py --python $(BIN)/python --short

interchange: .interchange/.ready ## Other programs' packages, for the tests of their formats

.interchange/.ready: $(VENV)/.test packages/proctor/tests/interchange/environment.txt tools/interchange_environment.py
	$(BIN)/python tools/interchange_environment.py .interchange
	@touch $@

check: lint complexity types layers doctests ## Lint, complexity, types, layers, doctests

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

complexity: install ## No function above 20 by radon: comprehensions and conditional expressions count
	$(BIN)/radon cc packages/*/src --min D --show-complexity > $(VENV)/complexity.txt
	@! grep . $(VENV)/complexity.txt

types: install
	$(BIN)/mypy

layers: install
	$(BIN)/lint-imports
	$(BIN)/python tools/circles.py

doctests: install ## Examples of docstrings, and the pages of the documentation, executed
	$(BIN)/python -m pytest --quiet --doctest-modules $(PACKAGES:%=packages/%/src)
	$(ONE_THREAD) $(BIN)/python -m pytest --quiet --numprocesses 2 --max-worker-restart 0 -m pages tests/docs

docs: install ## Write the generated parts of the documentation
	$(BIN)/python tools/docs.py

clean: ## Remove what was built here
	rm -rf $(VENV) .interchange demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
