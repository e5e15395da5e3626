PYTHON ?= python3
VENV ?= .venv
DATA ?= ../shared/data
BENCH_ARGS ?=
RULES ?=
SECONDS ?= 60
TARGETS ?=
TESTS ?=
REPOSITORY ?=
MODELS ?= 10000
MUTANTS ?=
ONLY ?=
QUICK ?=

BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
MADE := $(VENV)/.made
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
BENCH_READY := $(VENV)/.ready-bench
OLDEST := $(VENV)/oldest
OLDEST_READY := $(OLDEST)/.ready
FUZZ_READY := $(VENV)/.ready-fuzz
DOCS_READY := $(VENV)/.ready-docs
DIST_READY := $(VENV)/.ready-dist

# Keep bytecode, as Python does unless told otherwise: or every process compiles the sources again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test coverage oldest check format docs docs-versions pages papers bench fuzz hostile mutants dist dist-check clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' Makefile

demo: $(INSTALLED)  ## train on the RCV1 sample in examples/data; leaves build/demo.svg
	$(BIN)/python examples/demo.py

test: $(READY)  ## run the tests, on all cores
	$(BIN)/python -m pytest -n auto

coverage: $(READY)  ## lines and branches that the tests run, into docs/testing.md (TESTS=tests/cli for some: printed only)
	rm -rf build/coverage && mkdir -p build/coverage
	$(BIN)/python -m coverage run -m pytest -n auto $(TESTS)
	$(BIN)/python -m coverage combine --quiet
	rm -f build/coverage/data.* # of processes killed while they wrote
	$(BIN)/python -m coverage html --quiet
	$(BIN)/python -m coverage json --quiet
	$(BIN)/python -m coverage report --format=total
	$(if $(TESTS),,$(BIN)/python -m docs.testing_figures build/coverage/total.json)

oldest: $(OLDEST_READY)  ## tests that touch each dependency, with the oldest versions that pyproject.toml allows
	$(OLDEST)/bin/python -m pytest -n auto tests/test_golden.py tests/test_numba_inside.py \
	  tests/test_databases.py tests/test_river.py tests/data/test_remote.py tests/data/test_cache.py tests/data/test_damaged.py \
	  tests/cli/test_errors.py tests/cli/test_train.py tests/cluster/test_ray.py tests/exporting/test_onnx.py \
	  tests/serving/test_app.py \
	  $(addprefix tests/estimators/test_,checks.py composition.py inputs.py names.py saving.py warnings.py) \
	  -W ignore::ResourceWarning --deselect tests/data/test_damaged.py::test_parsers_stay_in_their_memory

check: $(READY)  ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	@mkdir -p build
	@$(BIN)/python -c 'from tests.pages import blocks; print(*blocks("docs/own", "python"), sep="\n\n")' >build/own_page.py
	$(BIN)/mypy build/own_page.py # parts as docs/own.md writes them

format: $(READY)  ## put the code into its one format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(DOCS_READY)  ## build the site in build/site; warnings are errors
	rm -rf build/site
	$(BIN)/python -m sphinx -q -W --keep-going -j auto docs build/site

docs-versions: $(DOCS_READY)  ## build the sites of the newest release and of this tree in build/versions, linked
	rm -rf build/versions
	$(BIN)/python -m docs.versions build/versions

pages: $(READY)  ## write docs/rules, tables of verbs, figures of tests and benchmarks; examples are run (RULES='fobos rda' for some)
	$(BIN)/python -m docs.testing_figures
	$(BIN)/python -m benchmarks.page
	$(BIN)/python docs/verb_table.py
	$(BIN)/python docs/rule_pages.py $(RULES)

papers: export DATA := $(DATA)
papers: export QUICK := $(QUICK)
papers:  ## make docs/papers again from the data sets (DATA=folder, ONLY='NAME NAME'); QUICK=folder: small pages there
	@test -n "$$QUICK" || test -d "$$DATA" || { \
	  echo "there is no folder '$$DATA' of data sets; docs/papers/data.md says what it holds. Either" >&2; \
	  echo "  make papers DATA=folder    # the data sets are in folder; writes docs/papers" >&2; \
	  echo "  make papers QUICK=folder   # small data, nothing needed; writes to folder" >&2; exit 1; }
	@$(MAKE) --no-print-directory $(READY)
	$(BIN)/python -m experiments.papers $(if $(QUICK),--quick --out "$$QUICK",--data "$$DATA") $(if $(ONLY),--only $(ONLY))

bench: $(BENCH_READY)  ## speed and memory beside other learners (BENCH_ARGS=..., DATA=folder)
	$(BIN)/python -m benchmarks $(if $(wildcard $(DATA)),--data $(DATA)) $(BENCH_ARGS)

fuzz: $(FUZZ_READY)  ## search for bad lines (SECONDS=60 a format, TARGETS=...) and bad models (MODELS=10000)
	@for target in $(or $(TARGETS),$$($(BIN)/python -m tests.fuzz)); do \
	  echo "$$target"; $(BIN)/python -m tests.fuzz $$target --seconds $(SECONDS) || exit 1; \
	done
	@echo models; $(BIN)/python -m tests.fuzz.models --mutations $(MODELS)
	@echo models, compiled; $(BIN)/python -m tests.fuzz.models --mutations $$(( $(MODELS) / 5 )) --compiled

hostile: $(READY)  ## full disks, kills, lost machines, damaged files, bombs: the slow trials too
	$(BIN)/python -m pytest -n auto -m "hostile or not hostile" tests/hostile tests/cluster

mutants: $(READY)  ## faults made by hand: does a test fail for each? (MUTANTS='NAME NAME' for some)
	$(BIN)/python -m tests.mutants $(foreach name,$(MUTANTS),--only $(name))

dist: export REPOSITORY := $(REPOSITORY)
dist: $(DIST_READY)  ## build sdist and wheels in dist, twice: the builds must be equal (REPOSITORY=https://...: links)
	rm -rf dist build/dist-again
	for folder in dist build/dist-again; do \
	  $(BIN)/python -m build --outdir $$folder . >/dev/null && $(BIN)/python .ci/code_wheel.py $$folder || exit 1; \
	done
	diff -r dist build/dist-again
	cd dist && sha256sum *

dist-check: dist  ## install each into a clean environment, and use it without the source tree
	PYTHON=$(PYTHON) .ci/dist-check

clean:  ## remove what the other targets made
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "thresher needs Python 3.11 or newer; name one: make PYTHON=python3.11" >&2; exit 1; }
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(INSTALLED): $(MADE)
	@echo "installing thresher in $(VENV): about a minute"
	@$(INSTALL) -e .
	@touch $@

$(READY): $(MADE)
	@echo "installing thresher and what its tests need in $(VENV): about a minute"
	@$(INSTALL) --no-compile -e '.[dev]'
	@touch $(INSTALLED) $@

$(OLDEST_READY): $(MADE) .ci/oldest
	@echo "installing the oldest versions in $(OLDEST): about a minute"
	@$(PYTHON) -m venv --clear $(OLDEST)
	@$(OLDEST)/bin/python .ci/oldest >$(OLDEST)/versions.txt
	@$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
	  --constraint $(OLDEST)/versions.txt -e '.[dev]'
	@touch $@

$(BENCH_READY): $(READY)
	$(INSTALL) -e '.[bench]'
	@touch $@

$(FUZZ_READY): $(READY)
	$(INSTALL) -e '.[fuzz]'
	@touch $@

$(DOCS_READY): $(READY)
	$(INSTALL) --no-compile -e '.[docs]'
	@touch $@

$(DIST_READY): $(INSTALLED)
	$(INSTALL) 'build>=1.2'
	@touch $@
