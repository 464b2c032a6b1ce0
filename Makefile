# Each target sets up .venv by itself; nothing but Python 3.11+, make and git is needed beforehand.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
DOCS   := $(VENV)/.docs

.PHONY: help demo test test-lowest test-newest check bench coverage bench-peers mutate package docs clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

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

bench-peers: $(READY)  ## measure speed against peers, installed into throw-away environments; writes docs/results/peers.md
	@$(BIN)/python benchmarks/peers/compare.py

# A part of every layer, which takes minutes with nothing compiled: it shows what another version breaks.
PART := tests/test_import.py tests/live/test_bandit.py tests/test_inputs.py tests/test_files.py tests/simulate/test_simulate.py \
	tests/cli/test_completion.py tests/e2e/test_package.py tests/estimators tests/experiments/test_golden_files.py \
	tests/experiments/test_spec.py tests/experiments/test_toml.py tests/kernel tests/laws tests/problems tests/recorded \
	tests/report/test_figures.py tests/report/test_page.py

test-lowest: CONSTRAINT := --constraint constraints-lowest.txt
test-lowest:  ## run a part of the tests with the lowest versions that are allowed (Python 3.11 or 3.12)
test-newest:  ## run the same part with the newest versions; PYTHON=/path/to/python3.13 for another Python
test-lowest test-newest:
	@at=build/$@-$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])') && $(PYTHON) -m venv --clear $$at && \
		$$at/bin/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINT) --editable '.[test]' && \
		$$at/bin/python -m pip list --disable-pip-version-check && $$at/bin/python -m pytest -n auto --dist loadgroup $(PART)

mutate:  ## change estimators and AdaR-UCB in small ways and see which changes no test notices (half an hour)
	@$(PYTHON) -m venv build/mutate && build/mutate/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[dev]' cosmic-ray coverage
	@build/mutate/bin/python scripts/mutate.py estimators --share 0.035
	@build/mutate/bin/python scripts/mutate.py adar-ucb --share 0.08

package: $(READY)  ## build both files into dist/, install the wheel into an empty environment and use it there
	@$(BIN)/python scripts/check_package.py

# Twice: as it is, and with hooks and kernels as plain Python (tests/helpers/interpreted.py), because a tracer sees no compiled line.
# A tracer slows things down, and a test that waits for a process may fail for that: `make test` is the judge, so it goes on (-).
coverage: $(READY)  ## which lines of the core no test runs, compiled ones included; fails below 95 % (half an hour)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt coverage
	@$(BIN)/python -m coverage erase
	-@$(BIN)/python -m coverage run -m pytest -n auto --dist loadgroup
	-@$(BIN)/python -m coverage run -m pytest -n auto --dist loadgroup -p helpers.interpreted $(INTERPRETED)
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report --include='src/robandit/cli/*,src/robandit/report/*'
	@$(BIN)/python -m coverage report --omit='src/robandit/cli/*,src/robandit/report/*' --fail-under=95

INTERPRETED := tests/kernel/test_random.py tests/policies tests/estimators tests/laws tests/problems tests/simulate/test_simulate.py src/robandit/estimators src/robandit/laws

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
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache robandit-report.html benchmarks/results.json .coverage .coverage.* .benchmarks docs/_build docs/reference/api/generated
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
