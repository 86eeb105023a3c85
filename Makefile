# Every target sets up .venv by itself; the first run takes a moment, later ones are instant.
PYTHON ?= python3
BIN := .venv/bin
EXAMPLES ?= 10

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format types arch pytest chaos hostile test-long test-fresh bench instructions pictures lock clean

help:            ## show this help
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:           ## make .venv with the locked packages (instant when nothing changed)
	@$(PYTHON) scripts/bootstrap.py

demo: setup      ## about 300 jobs against a flaky service, and books that balance
	@$(BIN)/perdure demo

test: lint types arch pytest   ## everything that must hold: lint, types, import rules, all tests

lint: setup      ## ruff: style and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: setup    ## rewrite the code in the project's format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: setup     ## mypy --strict
	@$(BIN)/mypy

arch: setup      ## the import rules: layers, drivers in their engines, a pure model
	@$(BIN)/lint-imports

pytest: setup    ## all tests, in parallel
	@$(BIN)/python -m pytest -n auto --dist worksteal

chaos: setup     ## the long crash campaign (several minutes)
	@PERDURE_CHAOS=long $(BIN)/python -m pytest tests/chaos -n 2

hostile: setup   ## hostile clients and shortages of resources at full size (several minutes)
	@PERDURE_HOSTILE=long $(BIN)/python -m pytest tests/hostile -n 2

test-long: setup ## older servers, a Redis Cluster, worker tests on Redis, property tests with fresh seeds
	@PERDURE_TEST_POSTGRES_MAJOR=16 $(BIN)/python -m pytest tests/conformance tests/engine_postgres -k postgres -n auto
	@PERDURE_TEST_REDIS=6.2 $(BIN)/python -m pytest tests/conformance tests/stateful tests/engine_redis -k redis -n auto
	@PERDURE_CHAOS=long $(BIN)/python -m pytest tests/engine_redis/test_cluster.py tests/runtime -k redis -n 2
	@PERDURE_CHAOS=long PERDURE_HYPOTHESIS=fresh PERDURE_EXAMPLES=20 $(BIN)/python -m pytest tests/web/test_schemathesis.py -n auto
	@$(MAKE) --no-print-directory test-fresh

# The run prints its seed, which PERDURE_SEED takes to draw the same examples again.
test-fresh: setup ## property tests with fresh seeds and EXAMPLES times as many examples as in `make test`
	@PERDURE_HYPOTHESIS=fresh PERDURE_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -m hypothesis -n auto --timeout 14400

bench: setup     ## Perdure beside its peers and beside the raw engines: rates, ratios, verdicts
	@$(BIN)/python -m bench --output .bench/report $(BENCH)

instructions: setup ## instructions of Python per job at each step, and whether they keep their budgets
	@PERDURE_SPEED=exact $(BIN)/python -m pytest tests/speed -q -s

pictures: setup  ## draw the pictures of docs/ anew from the simulator
	@$(BIN)/python scripts/pictures.py

lock: setup      ## resolve the dependencies anew into requirements.lock
	@$(BIN)/python -m uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
		--all-extras --group dev --no-emit-index-url --no-header --upgrade -o requirements.lock

clean:           ## remove .venv and all caches
	@rm -rf .venv .bench .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
