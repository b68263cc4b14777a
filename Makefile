# closeknit: `make help` lists what can be made.
PYTHON ?= python3
# The rivals pin a numpy that has no wheel for Python 3.13.
RIVALS_PYTHON ?= $(PYTHON)
BIN    := .venv/bin
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal
PIP    := -m pip --disable-pip-version-check install -qq

.DEFAULT_GOAL := help
.PHONY: help demo test soak lint redis java chromium bench rivals experiments docs constraints clean

help:            ## this list
	@awk -F ':.*## *' '/^[a-z]+:.*##/ { printf "%-13s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/ready   ## the whole way on a built-in table, in seconds
	@$(BIN)/closeknit demo

test: lint redis java chromium   ## lint, then all tests and doctests once
	@$(PYTEST)

soak: .venv/ready redis java chromium   ## the large versions of the randomised and fault tests
	@CLOSEKNIT_SOAK=1 $(PYTEST) --hypothesis-profile=soak -m "soak or hypothesis"

lint: .venv/ready   ## style, types, import layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

# $(call from_debian,COMMAND,PACKAGE): tests that need the command are skipped where it is missing and may not be installed.
from_debian = command -v $(1) > /dev/null || { test "$$(id -u)" = 0 && command -v apt-get > /dev/null \
	    && echo "Installing $(2) (once) ..." && export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
	    && { timeout 150 apt-get install -qq --no-install-recommends $(2) > /dev/null 2>&1 \
	    || { timeout 60 apt-get update -qq && timeout 150 apt-get install -qq --no-install-recommends $(2); } \
	    > /dev/null 2>&1; }; } || echo "There is no $(1): its tests will be skipped."

redis:           ## a redis-server for the tests, where it is missing and may be installed
	@$(call from_debian,redis-server,redis-server)

java:            ## a Java for the tests of Spark, where it is missing and may be installed
	@$(call from_debian,java,openjdk-17-jre-headless)

chromium:        ## a Chromium for the tests of the page, where it is missing and may be installed
	@$(call from_debian,chromium,chromium)

bench: .venv/ready   ## speed, memory and loss beside the floor and the rivals
	@$(MAKE) --no-print-directory rivals || echo "The benchmarks go on without the rivals."
	@$(BIN)/python benchmarks/run.py

experiments: .venv/ready   ## what the sources measured, run again on the public tables; what is done already stays
	@$(BIN)/python benchmarks/experiments/run.py --missing

rivals: .venv-rivals/ready   ## the environment of other tools that bench compares with

docs: .venv/ready   ## docs/ as a site in site/
	@$(BIN)/mkdocs build --quiet --strict --site-dir site

constraints:     ## renew constraints.txt from a fresh environment
	@rm -rf .venv-pins && $(PYTHON) -m venv .venv-pins
	@.venv-pins/bin/python $(PIP) hatchling editables
	@.venv-pins/bin/python $(PIP) --no-build-isolation -e '.[dev,pandas]'
	@{ sed -n '/^#/p' constraints.txt; .venv-pins/bin/python -m pip freeze --exclude-editable; } > constraints.new
	@mv constraints.new constraints.txt && rm -rf .venv-pins

clean:           ## everything that make has made
	@rm -rf .venv .venv-rivals .venv-pins site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	    .import_linter_cache .grimp_cache
	@find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The build tools are installed first and used without isolation, so that they too come from constraints.txt.
.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "closeknit needs Python 3.11 or newer, and '$(PYTHON)' is not; name one that is: make PYTHON=python3.12 ..."; \
	    exit 1; }
	@echo "Preparing .venv (once; a minute or two) ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python $(PIP) -c constraints.txt hatchling editables
	@$(BIN)/python $(PIP) -c constraints.txt --no-build-isolation -e '.[dev]'
	@echo "Compiling the kernels (once; half a minute) ..."
	@$(BIN)/closeknit demo --rows 300 > /dev/null
	@touch $@

.venv-rivals/ready: benchmarks/rivals-constraints.txt
	@$(RIVALS_PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] not in [(3, 11), (3, 12)])' 2>/dev/null || { \
	    echo "The rivals need Python 3.11 or 3.12, and '$(RIVALS_PYTHON)' is not; name one: make RIVALS_PYTHON=python3.12 ..."; \
	    exit 1; }
	@echo "Preparing .venv-rivals (once) ..."
	@$(RIVALS_PYTHON) -m venv .venv-rivals
	@.venv-rivals/bin/python $(PIP) -c benchmarks/rivals-constraints.txt pycanon anjana
	@touch $@
