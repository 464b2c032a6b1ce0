# Each target sets up .venv by itself; nothing but Python 3.11+, make and git is needed beforehand.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
DOCS   := $(VENV)/.docs

.PHONY: help demo test check bench docs clean

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

$(DOCS): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@touch $@

# Names of figures without their ending; each is drawn by the library itself, by docs/figures/NAME.py.
FIGURES := threshold index regret worst-seed

docs: $(DOCS)  ## draw the figures, build docs/_build/html, run what its pages show, follow its links
	@for figure in $(FIGURES); do $(BIN)/python docs/figures/$$figure.py || exit 1; done
	@rm -rf docs/_build docs/reference/api/generated
	@$(BIN)/python -m sphinx -q -W --keep-going -b html -d docs/_build/doctrees docs docs/_build/html
	@$(BIN)/python docs/check.py
	@$(BIN)/python docs/check.py links
	@echo "written: docs/_build/html/index.html"

clean:  ## remove the environment and everything generated
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache robandit-report.html benchmarks/results.json docs/_build docs/reference/api/generated
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
