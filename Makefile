# `make help` lists the targets. CI runs `make setup check test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2
FUZZ_SECONDS ?= 600
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# The processes that tests start find the package compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup check check-types check-security check-rules fix test sim process storm diff fuzz docs gen bench demo
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(VENV)/.ready ## create .venv and install the package with its development tools

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

check: setup ## format, lint, types, layers, house rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo
	@$(MAKE) --no-print-directory --jobs $(WORKERS) check-types check-security check-rules

check-types: setup
	$(BIN)/mypy

check-security: setup
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive src

check-rules: setup
	$(BIN)/python -m pytest -q tests/tidy

fix: setup ## format and repair what ruff can repair
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: setup ## every test in its short form, random order, two processes
	$(PYTEST) --ignore=tests/tidy tests

sim: setup ## simulation and agreement, the long form (PLAITA_SIM_SEEDS=10000); SEED=n reruns one world and shows it
ifdef SEED
	$(BIN)/python -m plaita.testing.simulation $(SEED)
else
	PLAITA_SIM_SEEDS=$${PLAITA_SIM_SEEDS:-10000} $(PYTEST) --hypothesis-profile=long --timeout=1200 tests/sim tests/conformance
endif

process: setup ## real processes, the long form: kill -9 at fifty places, races, a minute without Redis, 200,000 due at once
	PLAITA_KILLS=50 PLAITA_RACES=200 PLAITA_AWAY_SECONDS=60 PLAITA_WORKERS=8 PLAITA_DUE=100000 $(PYTEST) tests/process

storm: setup ## 10,000 executions on Redis in a minute of random faults; SEED=n repeats one order of faults
	PLAITA_STORM_RUNS=10000 PLAITA_STORM_SECONDS=60 PLAITA_STORM_EVERY=2 PLAITA_SEED=$${SEED:-20} \
		$(BIN)/python -m pytest -s tests/process/test_storm.py

diff: setup ## 2,000 random flows here and in the published package give the same
	PLAITA_DIFF_SEEDS=2000 $(PYTEST) tests/diff

fuzz: setup ## ten minutes of hostile expressions, texts and flows
	set -e; for target in expressions texts flows; do \
		$(BIN)/python -m tests.fuzz.fuzzing $$target $(FUZZ_SECONDS) & pids="$$pids $$!"; done; \
	for pid in $$pids; do wait $$pid; done

gen: setup ## write the generated reference pages
	$(BIN)/python -m tools.reference_pages

docs: setup ## build the documentation site into site/
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	$(BIN)/mkdocs build --strict

bench: setup ## measurements, see bench/README.md
	$(BIN)/python -m bench

demo: setup ## run the expense example on the embedded store
	$(BIN)/plaita run examples/expense.yaml -i employee=dora -i amount=480 || test $$? -eq 3
