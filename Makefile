# Targets create .venv themselves; they need only Python 3.11+, make and git.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CORE   := $(VENV)/.core
READY  := $(VENV)/.ready
DOCS   := $(VENV)/.docs
SERVE  := $(VENV)/.serve
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt
# Both packages of this folder; append the extras of the second one.
HERE   := --editable ./client --editable .
# Byte code for our package and others, on all cores: pip uses one core, and takes three times as long. Not for their tests, for mypy,
# which is machine code, for schemathesis, whose assertions pytest rewrites, and for what is imported by nobody or once.
BYTES  := $(BIN)/python -m compileall -qq -j 0 -x '/(tests?|mypyc?|schemathesis|graphql|jedi|prompt_toolkit|wcwidth)/' $(VENV)/lib src client/src

.PHONY: help demo serve example precompiled test test-long test-quick front test-lowest test-newest check crash bench bench-service bench-dashboard coverage bench-peers mutate package docs clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(CORE): pyproject.toml client/pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) not found: install Python 3.11 or newer, or run make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Robandit needs Python 3.11 or newer, not $$($(PYTHON) --version); run make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "setting up $(VENV) (about half a minute, once)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) $(HERE)
	@$(BYTES) || true
	@touch $@

$(READY): $(CORE)
	@echo "adding the tools for development to $(VENV) (about half a minute, once)"
	@$(PIP) $(HERE)'[dev]'
	@$(BYTES) || true
	@touch $@

demo: $(CORE)  ## compare ten policies on a heavy-tailed problem; writes robandit-report.html
	@$(BIN)/robandit compare

$(SERVE): $(CORE)
	@$(PIP) $(HERE)'[serve]'
	@touch $@

serve: $(SERVE)  ## run the decision service on http://127.0.0.1:8000; data in robandit.db
	@$(BIN)/robandit serve

example: $(SERVE)  ## run the decision service and an LLM router with simulated providers; open the printed address (ten minutes)
	@$(BIN)/python examples/llm_router

# Compiling first is faster: one process compiles all functions that share parts. .ci/run has done it before (make -o precompiled).
precompiled: $(READY)
	@$(BIN)/python tests/helpers/precompile.py

test: $(READY) precompiled  ## run the tests
	@$(BIN)/python -m pytest -n auto --dist loadgroup

test-long: $(READY) precompiled  ## run the tests, with more repetitions of random tests
	@ROBANDIT_LONG_TESTS=1 $(BIN)/python -m pytest -n auto --dist loadgroup

test-quick: $(READY)  ## run one case of most tests (under 90 seconds once everything is compiled)
	@$(BIN)/python -m pytest -n auto --dist loadgroup --quick

# As Debian names them, and the command that each of them brings.
CLIENTS := curl:curl openjdk-17-jdk-headless:java nodejs:node caddy:caddy nginx:nginx

front: $(READY)  ## test the HTTP front with curl, Java, Node, Python, Caddy and nginx; installs them as root with apt-get (three minutes)
	@missing=$$(for each in $(CLIENTS); do command -v $${each#*:} >/dev/null || echo $${each%:*}; done); \
	if [ -n "$$missing" ] && command -v apt-get >/dev/null && [ $$(id -u) = 0 ]; then \
		{ apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends $$missing; } || true; fi
	@for each in $(CLIENTS); do command -v $${each#*:} >/dev/null || { echo "$${each#*:} not found: install it (Debian: apt-get install $${each%:*}), and run make front again"; exit 1; }; done
	@ROBANDIT_FRONT_TESTS=1 $(BIN)/python -m pytest tests/front -n 2 --dist loadgroup -rs

check: $(READY)  ## lint, check types and import layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

crash: $(READY)  ## kill servers 1,000 times, replicas 500 and PostgreSQL 50, spoil 1,000 calls of each client, lose nothing (15 to 20 minutes)
	@$(BIN)/python tests/crash/harness.py --kills 1000
	@$(BIN)/python tests/crash/replicas.py --all
	@$(BIN)/python tests/client/faults.py --faults 1000

bench: $(READY)  ## measure speed and compare it with the goals; writes benchmarks/results.json
	@$(BIN)/python benchmarks/run.py

bench-service: $(READY)  ## measure the decision service against its goals; writes docs/results/service.md (five minutes)
	@$(BIN)/python benchmarks/service.py

bench-dashboard: $(READY)  ## measure how fresh the dashboard is, and what watching costs; writes docs/results/dashboard.md (two minutes)
	@$(BIN)/python benchmarks/dashboard.py

bench-peers: $(READY)  ## compare speed with other libraries, in temporary environments; writes docs/results/peers.md
	@$(BIN)/python benchmarks/peers/compare.py

# Tests of every layer that take only minutes with an empty cache; they show what other versions of dependencies break.
PART := tests/test_import.py tests/live/test_bandit.py tests/test_inputs.py tests/test_files.py tests/simulate/test_simulate.py \
	tests/cli/test_completion.py tests/e2e/test_package.py tests/estimators tests/experiments/test_golden_files.py \
	tests/experiments/test_spec.py tests/experiments/test_toml.py tests/kernel tests/laws tests/problems tests/recorded \
	tests/report/test_figures.py tests/report/test_page.py tests/client tests/decisions tests/storage tests/service tests/front
# These need the tools for development.
PART += $(foreach name,metrics openapi schemathesis,--ignore tests/service/test_$(name).py)

test-lowest: CONSTRAINT := --constraint constraints-lowest.txt
test-lowest:  ## run part of the tests with the lowest allowed versions of dependencies (Python 3.11 or 3.12)
test-newest:  ## run the same part with the newest versions; PYTHON=/path/to/python3.13 selects another Python
test-lowest test-newest:
	@at=build/$@-$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])') && $(PYTHON) -m venv --clear $$at && \
		$$at/bin/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINT) $(HERE)'[serve,test]' && \
		$$at/bin/python -m pip list --disable-pip-version-check && $$at/bin/python -m pytest -n auto --dist loadgroup $(PART)

mutate:  ## mutation test of the estimators and AdaR-UCB: list small changes that no test detects (half an hour)
	@$(PYTHON) -m venv build/mutate && build/mutate/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt $(HERE)'[dev]' cosmic-ray coverage
	@build/mutate/bin/python scripts/mutate.py estimators --share 0.035
	@build/mutate/bin/python scripts/mutate.py adar-ucb --share 0.08

package: $(READY)  ## build both packages into dist/; test the wheels, with each extra, in empty environments (four minutes)
	@$(BIN)/python scripts/check_package.py

# Two runs: compiled, and with hooks and kernels as plain Python (tests/helpers/interpreted.py), because a tracer sees no compiled line.
# Tracing is slow, so tests that wait for a process may time out; such failures are ignored (-) here, and `make test` decides.
coverage: $(READY)  ## list the lines that no test runs, including compiled ones; fails below 95 % (an hour)
	@$(PIP) coverage
	@$(BIN)/python -m coverage erase
	-@$(BIN)/python -m coverage run -m pytest -n auto --dist loadgroup
	-@$(BIN)/python -m coverage run -m pytest -n auto --dist loadgroup -p helpers.interpreted $(INTERPRETED)
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report --include='src/robandit/cli/*,src/robandit/report/*'
	@$(BIN)/python -m coverage report --include='src/robandit/*,client/src/*' --omit='src/robandit/cli/*,src/robandit/report/*' --fail-under=95

INTERPRETED := tests/kernel/test_random.py tests/policies tests/estimators tests/laws tests/problems tests/simulate/test_simulate.py src/robandit/estimators src/robandit/laws

$(DOCS): $(READY)
	@$(PIP) $(HERE)'[docs]'
	@touch $@

# Each figure is drawn by docs/figures/NAME.py.
FIGURES := threshold index regret worst-seed survivors architecture

docs: $(DOCS)  ## draw the figures, build docs/_build/html, run the code on its pages, check its links
	@for figure in $(FIGURES); do $(BIN)/python docs/figures/$$figure.py || exit 1; done
	@rm -rf docs/_build docs/reference/api/generated
	@$(BIN)/python -m sphinx -q -W --keep-going -b html -d docs/_build/doctrees docs docs/_build/html
	@$(BIN)/python docs/check.py
	@$(BIN)/python docs/check.py links
	@echo "written: docs/_build/html/index.html"

clean:  ## remove the environment and all generated files
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache robandit-report.html benchmarks/results.json .coverage .coverage.* .benchmarks docs/_build docs/reference/api/generated
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
