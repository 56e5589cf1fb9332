# Both main targets set up their own environment and need only Python 3.11+ and make.
PYTHON ?= python3
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
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test test-arm fuzz array-api lint types docs bench size clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/'

$(VENV)/made: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

$(VENV)/demo: $(VENV)/made
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	touch $@

$(VENV)/test: $(VENV)/made
	$(BIN)/python -m pip install --quiet --editable '.[test,dev,demo,numba,jax]'
	touch $@

demo: $(VENV)/demo  ## train a classifier of handwritten digits; the loss curve goes to demo-output/
	$(BIN)/python examples/digits.py

test: $(VENV)/test  ## lint, check types, run all tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/python -m pytest -n 2

fuzz: $(VENV)/test  ## random programs on all backends; FUZZ="--seed 5000 --count 200" for others
	$(BIN)/python -m tests.fuzz --count 10000 $(FUZZ)

array-api: $(VENV)/test  ## the public suite of the array API, from its folder SUITE, against the expected failures
	$(BIN)/python -m pip install --quiet ndindex pytest-json-report
	$(BIN)/python -m tests.array_api $(SUITE)

.arm/made: tests/arm/setup.py pyproject.toml | $(VENV)/made
	$(BIN)/python tests/arm/setup.py .arm
	touch $@

test-arm: .arm/made  ## run the tests of generated code on an emulated arm64 processor
	.arm/python -m pytest -p no:cacheprovider $(ARM_TESTS)

lint: $(VENV)/test  ## format and lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: $(VENV)/test  ## check types
	$(BIN)/pyright --pythonpath $(BIN)/python

docs: $(VENV)/made  ## build the documentation into docs/_build
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	$(BIN)/python -m sphinx -W -q docs docs/_build

bench: $(VENV)/test  ## time beside other libraries; writes the figures of the documentation
	$(BIN)/python benchmarks/run.py --publish $(addprefix --peer ,$(PEERS))

size:  ## lines of code by folder
	@for d in phintys/*/ ; do printf '%6s %s\n' "$$(cat $$(git ls-files "$$d*.py") | wc -l)" "$$d"; done

clean:  ## remove what the targets made
	rm -rf $(VENV) docs/_build demo-output .pytest_cache .hypothesis .ruff_cache
