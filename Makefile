# Each target sets up .venv by itself; nothing but Python 3.11+, make and git is needed beforehand.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: help demo test check bench clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(READY): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing: install Python 3.11 or newer, or run make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Robandit needs Python 3.11 or newer, this is $$($(PYTHON) --version); run make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "setting up $(VENV) (about a minute, once)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(READY)  ## compare all policies on a heavy-tailed problem; writes robandit-report.html
	@$(BIN)/robandit compare

# Compiled ahead, a policy's loop and steps share most of the work; the tests' processes would compile some here, some there.
test: $(READY)  ## run the tests
	@$(BIN)/robandit precompile
	@$(BIN)/python -m pytest -n auto --dist loadgroup

check: $(READY)  ## lint, types, import order
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(READY)  ## measure speed against the goals; writes benchmarks/results.json
	@$(BIN)/python benchmarks/run.py

clean:  ## remove the environment and everything generated
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache robandit-report.html benchmarks/results.json
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
