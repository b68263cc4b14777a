# closeknit: `make help` lists the targets.
PYTHON ?= python3
# The peers pin a numpy that has no wheel for Python 3.13.
RIVALS_PYTHON ?= $(PYTHON)
BIN    := .venv/bin
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal
# The variables pin the tools that build a package from source as well: `-c` would leave those unpinned.
PIP    := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
          $(BIN)/python -m pip --disable-pip-version-check install --no-compile
# Seconds that Debian's package manager may take. In CI a missing server fails the tests, so it gets longer there.
APT_SECONDS := $(if $(filter true,$(CI)),900,150)
SUBJECT ?=

# Packages are installed without bytecode, so the first import writes it. Where it is not kept, each of the many processes
# that tests start compiles every module again: three processor seconds instead of one.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test soak lint redis java chromium postgresql mariadb bench rivals stores dbt orchestrators experiments \
        schemas docs map constraints clean

help:            ## this list
	@awk -F ':.*## *' '/^[a-z]+:.*##/ { printf "%-13s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/runtime   ## a certified release of a generated table, in seconds; installs the runtime only
	@$(BIN)/closeknit demo

test: lint redis java chromium postgresql mariadb   ## lint, then all tests and doctests once
	@$(PYTEST)

soak: .venv/ready redis java chromium postgresql mariadb   ## the large randomised and fault tests; SUBJECT=stream selects them by name
	@$(MAKE) --no-print-directory rivals || echo "The tests against other tools are skipped."
	@$(MAKE) --no-print-directory stores || echo "The tests of object stores are skipped."
	@$(MAKE) --no-print-directory dbt || echo "The tests of the dbt package are skipped."
	@$(MAKE) --no-print-directory orchestrators || echo "The tests of Airflow and Dagster are skipped."
	@CLOSEKNIT_SOAK=1 $(PYTEST) --hypothesis-profile=soak -m "soak or hypothesis or grows" $(if $(SUBJECT),-k "$(SUBJECT)")

lint: .venv/ready   ## style, types, import layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

# $(call from_debian,COMMAND,PACKAGE): installs the package where the command is missing and you are root on Debian.
from_debian = command -v $(1) > /dev/null || { test "$$(id -u)" = 0 && command -v apt-get > /dev/null \
	    && echo "Installing $(2) (once) ..." && export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
	    && { timeout $(APT_SECONDS) apt-get install -qq --no-install-recommends $(2) > /dev/null 2>&1 \
	    || { timeout $(APT_SECONDS) apt-get update -qq \
	    && timeout $(APT_SECONDS) apt-get install -qq --no-install-recommends $(2); } > /dev/null 2>&1; }; } \
	    || echo "$(1) is not installed: its tests are skipped (in CI they fail)."

redis:           ## a redis-server for the tests, where it is missing and may be installed
	@$(call from_debian,redis-server,redis-server)

java:            ## a Java for the tests of Spark, where it is missing and may be installed
	@$(call from_debian,java,openjdk-17-jre-headless)

# Debian keeps the server off the path; its package starts none here, because RUNLEVEL=1.
postgresql:      ## a PostgreSQL for the tests, where it is missing and may be installed
	@ls /usr/lib/postgresql/*/bin/postgres > /dev/null 2>&1 || { $(call from_debian,postgres,postgresql); }

mariadb:         ## a MariaDB for the tests, where it is missing and may be installed
	@$(call from_debian,mariadbd,mariadb-server)

chromium:        ## a Chromium for the tests of the page, where it is missing and may be installed
	@$(call from_debian,chromium,chromium)

bench: .venv/ready   ## speed, memory and loss compared with the floor and the rivals
	@$(MAKE) --no-print-directory rivals || echo "The benchmarks go on without the rivals."
	@$(BIN)/python benchmarks/run.py

experiments: .venv/ready   ## what the sources measured, run again on the public tables; what is done already stays
	@$(BIN)/python benchmarks/experiments/run.py --missing

rivals: .venv-rivals/ready   ## the environment of other tools that bench compares with

stores: .venv-s3/ready   ## the environment of the S3-compatible server that soak reads from

dbt: .venv-dbt/ready   ## the environment that runs the dbt package in integrations/dbt

orchestrators: .venv-orchestrators/ready   ## the environment that runs the examples for Airflow and Dagster

schemas: .venv/ready   ## the JSON Schemas in src/closeknit/schemas, from the records in the code
	@$(BIN)/python -m closeknit.api.json_schemas

docs: .venv/ready   ## docs/ and the API reference as a site in site/; a warning is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --site-dir site

map: .venv/ready   ## draw the package graph into docs/pictures/
	@$(BIN)/python tools/package_map.py

constraints:     ## renew constraints.txt from a fresh environment
	@rm -rf .venv-pins && $(PYTHON) -m venv .venv-pins
	@.venv-pins/bin/python -m pip install -qq -e '.[dev]' hatchling editables setuptools
	@{ sed -n '/^#/p' constraints.txt; .venv-pins/bin/python -m pip freeze --exclude-editable; } > constraints.new
	@mv constraints.new constraints.txt && rm -rf .venv-pins

clean:           ## everything that make has made
	@rm -rf .venv .venv-rivals .venv-s3 .venv-dbt .venv-orchestrators .venv-pins site build dist .pytest_cache .mypy_cache \
	    .ruff_cache .hypothesis \
	    .import_linter_cache .grimp_cache
	@find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Without build isolation pip would build the dependencies that come as source (pyspark) with the tools of .venv, which
# has none; so every build gets its own environment. --no-compile: Python compiles what it imports, not all of scipy.
.venv/runtime: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "closeknit needs Python 3.11 or newer, and '$(PYTHON)' is not; name one that is: make PYTHON=python3.12 ..."; \
	    exit 1; }
	@echo "Installing closeknit and its runtime dependencies into .venv (once; about a minute) ..."
	@$(PYTHON) -m venv .venv
	@$(PIP) -e .
	@touch $@

.venv/ready: .venv/runtime
	@echo "Adding what the tests need to .venv (once; a minute or two) ..."
	@$(PIP) -e '.[dev]'
	@touch $@

.venv-rivals/ready: benchmarks/rivals-constraints.txt
	@$(RIVALS_PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] not in [(3, 11), (3, 12)])' 2>/dev/null || { \
	    echo "The rivals need Python 3.11 or 3.12, and '$(RIVALS_PYTHON)' is not; name one: make RIVALS_PYTHON=python3.12 ..."; \
	    exit 1; }
	@echo "Preparing .venv-rivals (once) ..."
	@$(RIVALS_PYTHON) -m venv .venv-rivals
	@.venv-rivals/bin/python -m pip install -qq -c benchmarks/rivals-constraints.txt pycanon anjana
	@touch $@

# $(call environment,FOLDER,CONSTRAINTS,PACKAGES): an environment of its own for programs that pin what they need.
environment = $(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] not in [(3, 11), (3, 12)])' 2>/dev/null || { \
	    echo "$(1) needs Python 3.11 or 3.12, and '$(PYTHON)' is not; name one: make PYTHON=python3.12 ..."; exit 1; }; \
	    echo "Preparing $(1) (once) ..." && $(PYTHON) -m venv $(1) && $(1)/bin/python -m pip install -qq -c $(2) $(3)

# The server pins other versions of what the tests use.
.venv-s3/ready: tests/io/s3-constraints.txt
	@$(call environment,.venv-s3,$<,'moto[s3]' flask flask-cors)
	@touch $@

.venv-dbt/ready: integrations/dbt/constraints.txt
	@$(call environment,.venv-dbt,$<,dbt-core dbt-duckdb)
	@touch $@

.venv-orchestrators/ready: integrations/orchestrators-constraints.txt
	@$(call environment,.venv-orchestrators,$<,apache-airflow dagster)
	@touch $@
