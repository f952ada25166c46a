# Two commands do everything: `make demo` and `make test`. Each sets up .venv first if it is not there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup kernels wheel release setup-system demo demo-federated test test-python test-others test-r test-spark test-all test-bounds check docs docs-check format bench audit fuzz clean

help:            ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dpfda needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

setup: $(STAMP) kernels  ## make .venv with everything, and compile the kernels

kernels: $(STAMP)  ## compile the kernels ahead of time, if they are not current (no C compiler or linker is needed)
	@$(BIN)/python -m dpfda.native

wheel: $(STAMP)  ## a wheel in dist/ that carries the compiled kernels of every instruction set
	$(BIN)/python -m dpfda.native --all
	$(BIN)/python -m build --no-isolation --wheel

release: $(STAMP)  ## sdist and wheels in dist/, built twice and compared, with contents checked, SBOM and hashes
	$(BIN)/python -m dpfda.native --all
	$(BIN)/python -m release.third_party
	$(BIN)/python -m release.build

R_PACKAGES := r-base-core r-cran-jsonlite r-cran-testthat r-cran-ggplot2

setup-system:    ## Chromium, PostgreSQL and R for the tests that need them (Debian; only what is missing)
	@missing=""; \
	command -v chromium >/dev/null || missing="$$missing chromium"; \
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$$missing postgresql"; \
	for package in $(R_PACKAGES); do dpkg -s $$package >/dev/null 2>&1 || missing="$$missing $$package"; done; \
	if [ -z "$$missing" ]; then echo "Chromium, PostgreSQL and R are there."; exit 0; fi; \
	sudo=""; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	$$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends $$missing

demo: setup      ## a private mean curve of 15,205 real subjects, with a picture in out/
	$(BIN)/dpfda demo

demo-federated: setup  ## one server and three sites with real data and mutual TLS, from enrolment to result
	$(BIN)/dpfda federate-demo

PYTEST := $(BIN)/python -m pytest -q -n 2 --dist loadfile  # see tests/conftest.py

test: test-python test-others  ## the test suite with the docstrings' examples (tests marked slow are left to test-all)

test-python: setup  ## of it, what runs in .venv: with two processes
	$(PYTEST) -m "not slow"
	$(BIN)/python -m pytest -q -n 2 --doctest-modules src/dpfda

test-others: setup  ## of it, the R package and Spark, where there are R and Spark: with one process
	@if command -v R >/dev/null; then $(MAKE) --no-print-directory test-r; else echo "NOT RUN: the tests of r/dpfda (there is no R; make setup-system installs it)"; fi
	@if command -v java >/dev/null && [ -e $(SPARK)/.installed ]; then $(MAKE) --no-print-directory test-spark; else echo "NOT RUN: tests/spark (needs Java and Spark, 500 MB; make test-spark installs Spark in a venv of its own)"; fi

SPARK := $(VENV)-spark

$(SPARK)/.installed: $(STAMP)
	$(PYTHON) -m venv $(SPARK)
	$(SPARK)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt pyspark
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > "$$($(SPARK)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/dpfda.pth"
	@touch $@

test-spark: $(SPARK)/.installed kernels  ## what a local Spark writes: the same bits in one process and on Dask (needs Java)
	PYTHONPATH=src $(SPARK)/bin/python -m pytest -q tests/spark/check_spark.py

test-r:          ## R CMD check of r/dpfda with its tests against the golden results, without a network
	rm -rf out/r && mkdir -p out/r/repo/src/contrib && touch out/r/repo/src/contrib/PACKAGES
	echo 'options(repos = c(CRAN = "file://$(CURDIR)/out/r/repo"))' > out/r/Rprofile
	cd out/r && R CMD build --no-manual $(CURDIR)/r/dpfda
	cd out/r && R_PROFILE_USER=$(CURDIR)/out/r/Rprofile DPFDA=$(CURDIR)/$(BIN)/dpfda R CMD check --no-manual dpfda_*.tar.gz
	@tail -3 out/r/dpfda.Rcheck/00check.log | grep "Status: OK"

BOUNDED := tests/properties tests/redteam/test_kernels.py tests/audit/silo/test_locality.py \
	tests/audit/silo/test_malicious_coordinator.py tests/audit/curves/test_fuzz_tables.py \
	tests/audit/protocol/test_fuzz_messages.py tests/unit/silo/test_kernels.py \
	tests/unit/silo/test_kernel_parts.py tests/unit/silo/test_chunked_sums.py \
	tests/unit/silo/test_changing_design.py tests/unit/silo/test_changing_kernels.py

test-bounds: setup  ## properties, locality and fuzzing with a check of every index in compiled code
	@$(BIN)/python -m dpfda.native --checked
	DPFDA_BOUNDSCHECK=1 $(BIN)/python -m pytest -q -n 2 $(BOUNDED)

test-all: setup test-bounds  ## every test, those of test-bounds twice
	$(PYTEST)

check: setup docs-check  ## ruff, mypy --strict, import contracts, and the site without its gallery
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

SPHINX := $(BIN)/python -m sphinx -q -W --keep-going -n -b html -d out/doctrees

docs: setup      ## the documentation site with its gallery executed, in out/docs/index.html; warnings are errors
	$(SPHINX) docs out/docs
	@echo "Wrote out/docs/index.html"

docs-check: setup  ## the same site without executing the gallery, in out/docs-check
	$(SPHINX)-check -D plot_gallery=0 docs out/docs-check

format: setup    ## let ruff fix and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup     ## all benchmarks; tables go to docs/
	$(BIN)/python -m benchmarks.coverage
	$(BIN)/python -m benchmarks.questions
	$(BIN)/python -m benchmarks.utility --workers 2
	$(BIN)/python -m benchmarks.outcomes
	$(BIN)/python -m benchmarks.real_data
	$(BIN)/python -m benchmarks.monte_carlo
	$(BIN)/python -m benchmarks.versions
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.sources
	$(BIN)/python -m benchmarks.federation

audit: setup     ## attack every privacy claim with 1,000,000 hostile inputs, and inject faults; pages go to docs/
	$(BIN)/python -m dpfda audit --output docs/audit.md
	$(BIN)/python -m dpfda.audit.reliability --runs 100 --output docs/reliability.md
	$(BIN)/python -m benchmarks.stamp docs/audit.md docs/reliability.md
	$(BIN)/python -m dpfda.audit.proofs
	$(BIN)/python -m dpfda.audit.claims --write

FUZZ := $(VENV)-fuzz
MINUTES ?= 30

$(FUZZ)/.installed: $(STAMP)
	$(PYTHON) -m venv $(FUZZ)
	$(FUZZ)/bin/python -m pip install --quiet --disable-pip-version-check atheris
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > "$$($(FUZZ)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/dpfda.pth"
	@touch $@

fuzz: $(FUZZ)/.installed  ## fuzz whatever comes from outside for MINUTES=30 (atheris, in a venv of its own)
	PYTHONPATH=src $(FUZZ)/bin/python tests/redteam/fuzz/run.py --minutes $(MINUTES) --output out/fuzz --keep

clean:           ## remove .venv and caches
	rm -rf $(VENV) $(FUZZ) $(SPARK) out .mypy_cache .ruff_cache .pytest_cache .hypothesis
