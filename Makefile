# Both main targets set up their own environment and need only Python 3.11+ and make.
PYTHON ?= python3
# the folder of that environment
VENV ?= .venv
# libraries that `make bench` measures, as NAME or NAME@PYTHON; empty: those that are installed
PEERS ?=
# further arguments of `make fuzz`
FUZZ ?=
# the folder of the suite that `make array-api` runs
SUITE ?= ../array-api-tests
# what `make test-arm` runs: the whole pipeline, steps and loading, routines, the matrix on the
# llvm backend
ARM_FILES := jit loader runtime target llvm_control llvm_blas threads strided rows scattered indexed \
	segments
ARM_TESTS ?= tests/test_smoke.py $(ARM_FILES:%=tests/backends/llvm/test_%.py) tests/tensor/linalg \
	tests/tensor/random tests/tensor/test_sort.py tests/matrix \
	-k "not (256bits or 512bits or numpy: or C: or numba: or jax: or NUMBA or JAX or C-float or \
	C-complex or [C or -C])"
BIN := $(VENV)/bin
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
# exact versions of what is installed; empty: the newest releases
CONSTRAINTS := $(wildcard constraints/python$(VERSION).txt)
EXTRAS := test,dev,demo,numba,jax
MADE := $(VENV)/made-$(VERSION)
EXACT := $(foreach file,$(CONSTRAINTS),--constraint $(file) --build-constraint $(file))
INSTALL := $(BIN)/python -m pip install --quiet $(EXACT)
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal
PYRIGHT := $(BIN)/pyright --threads 2 --pythonpath $(BIN)/python
# a target in the environment with PyMC, on the newest Python of those that PyMC is for
IN_PYMC = found=$$($(PYTHON) tools/pythons.py pymc) && set -- $$found && \
	$(MAKE) PYTHON=$$2 VENV=.venv-pymc CONSTRAINTS=constraints/pymc-python$$1.txt
PYMC_EXAMPLE := examples/pymc_hierarchical.py demo-output
# Processes that tests start do not compile the package again, and the tree stays clean.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(abspath $(VENV))/pycache

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo pymc pymc-only bench-pymc bench-pymc-only test checks test-only test-rest test-all \
	quick map planted test-tenth test-newest test-oldest test-arm test-pymc test-pymc-only \
	constraints fuzz array-api lint types docs bench size clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/'

$(MADE):
	@echo 'installs $(or $(CONSTRAINTS:%=the versions of %),the newest releases: no constraints)'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade $(CONSTRAINTS:%=--constraint %) pip
	touch $@

$(VENV)/demo: $(MADE) $(CONSTRAINTS) pyproject.toml
	$(INSTALL) --editable '.[demo]'
	touch $@

$(VENV)/test: $(MADE) $(CONSTRAINTS) pyproject.toml
	$(INSTALL) --editable '.[$(EXTRAS)]'
	touch $@

$(VENV)/pymc: $(MADE) $(CONSTRAINTS) pyproject.toml
	$(INSTALL) --editable '.[test]'
	$(BIN)/python -m phintys.compat enable pytensor
	$(INSTALL) --group pymc
	$(BIN)/python -m pip check
	touch $@

# PyMC on PyTensor, to compare with
$(VENV)-on-pytensor/pymc: $(CONSTRAINTS) pyproject.toml
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --upgrade $(CONSTRAINTS:%=--constraint %) pip
	$(@D)/bin/python -m pip install --quiet $(EXACT) --group pymc
	touch $@

demo: $(VENV)/demo  ## train a classifier of handwritten digits; the loss curve goes to demo-output/
	$(BIN)/python examples/digits.py

pymc:  ## two hierarchical models of PyMC on this package; COMPARE=1: and on PyTensor
	$(IN_PYMC) pymc-only

pymc-only: $(VENV)/pymc $(if $(COMPARE),$(VENV)-on-pytensor/pymc)
	$(if $(COMPARE),$(VENV)-on-pytensor/bin/python $(PYMC_EXAMPLE) --times demo-output/pytensor.json)
	$(BIN)/python $(PYMC_EXAMPLE) $(if $(COMPARE),--beside demo-output/pytensor.json)

test: checks test-only  ## lint, check types, run the tests except the rest

checks: $(VENV)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(PYRIGHT)

test-only: $(VENV)/test
	$(PYTEST) -m "not rest"

test-rest: $(VENV)/test  ## run the rest: the tests that take long and rarely find anything
	$(PYTEST) -m rest

test-all: test test-rest  ## both

test-tenth: $(VENV)/test  ## run a tenth of the tests: what depends on the versions of Python and NumPy
	$(PYTEST) -m "not rest" @tests/tenth.txt

quick: $(VENV)/test  ## for a minute, the tests that are nearest to the changed files
	$(BIN)/python -m tests.quick

map: $(VENV)/test  ## record which lines each test module runs (Python 3.12 or newer); writes tests/reach.json
	PYTHONPATH=tests/planted $(PYTEST) -p reach_plugin
	$(BIN)/python -m tests.planted map

planted: $(VENV)/test  ## after make map: which tests find faults that are planted into copies
	$(BIN)/python -m tests.planted draw
	$(BIN)/python -m tests.planted run --workers 2
	$(BIN)/python -m tests.planted table

test-newest:  ## make test with the newest releases, without constraints
	rm -rf $(VENV)-newest
	$(MAKE) test VENV=$(VENV)-newest CONSTRAINTS=

test-oldest:  ## run the tests with the oldest NumPy and SciPy, without other backends
	$(MAKE) test-only VENV=$(VENV)-oldest CONSTRAINTS=constraints/oldest$(VERSION).txt EXTRAS=test

test-pymc:  ## run the tests of PyMC on this package, in .venv-pymc: our own and those that PyMC ships
	$(IN_PYMC) test-pymc-only

test-pymc-only: $(VENV)/pymc
	$(PYTEST) tests/pymc
	$(BIN)/python -m tests.pymc.shipped

constraints: $(MADE)  ## write the files of exact versions, for each Python
	$(INSTALL) packaging
	$(BIN)/python tools/constraints.py

fuzz: $(VENV)/test  ## random programs on all backends; FUZZ="--seed 5000 --count 200" for others
	$(BIN)/python -m tests.fuzz --count 10000 $(FUZZ)

array-api: $(VENV)/test  ## the public suite of the array API, from its folder SUITE, against the expected failures
	$(INSTALL) --editable '.[array-api]'
	$(BIN)/python -m tests.array_api $(SUITE)

.arm/made: tests/arm/setup.py pyproject.toml | $(MADE)
	$(BIN)/python tests/arm/setup.py .arm
	touch $@

test-arm: .arm/made  ## run the tests of generated code on an emulated arm64 processor
	.arm/python -m pytest -p no:cacheprovider $(ARM_TESTS)

lint: $(VENV)/test  ## format and lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: $(VENV)/test  ## check types
	$(PYRIGHT)

docs: $(MADE)  ## build the documentation into docs/_build
	$(INSTALL) --editable '.[docs]'
	$(BIN)/python -m sphinx -W -q docs docs/_build

bench: $(VENV)/test  ## time beside other libraries; writes the figures of the documentation
	$(BIN)/python benchmarks/run.py --publish $(addprefix --peer ,$(PEERS))

bench-pymc:  ## time models of PyMC on this package and on PyTensor; writes benchmarks/results/pymc.md
	$(IN_PYMC) bench-pymc-only

bench-pymc-only: $(VENV)/pymc $(VENV)-on-pytensor/pymc
	$(PYTHON) benchmarks/pymc_models.py $(^D:%=%/bin/python) --publish

size:  ## lines of code by folder
	@for d in phintys/*/ ; do printf '%6s %s\n' "$$(cat $$(git ls-files "$$d*.py") | wc -l)" "$$d"; done

clean:  ## remove what the targets made
	rm -rf $(VENV) $(VENV)-* .reach docs/_build demo-output .pytest_cache .hypothesis .ruff_cache
