# The two commands that matter: `make run` and `make test`. `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Arguments for the program: make run ARGS="run attention --strategy eager"
ARGS ?=
# Extra arguments for pytest: make test PYTEST_ARGS="-k playback -x"
PYTEST_ARGS ?=

# A file's tests stay together, so that what they share is made once. PARALLEL= for a debugger.
PARALLEL ?= -n auto --maxprocesses=4 --dist=loadfile

# Set before the first import of torch, triton or Qt.
TEST_ENV := TRITON_INTERPRET=1 QT_QPA_PLATFORM=offscreen

.DEFAULT_GOAL := help
.PHONY: help run setup test test-slow test-gpu lint fmt shots bench

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*##\(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

run:  ## set up .venv and start the program (without a display: measure attention, write a picture)
	@$(PYTHON) -m tools.setup_environment
	@$(BIN)/kernel-explorer $(ARGS)

setup:  ## set up .venv with what the checks need
	@$(PYTHON) -m tools.setup_environment --dev

test: lint  ## every check that needs neither a GPU nor minutes
	$(TEST_ENV) $(BIN)/python -m pytest -m "not gpu and not slow" $(PARALLEL) $(PYTEST_ARGS)

# A set-up from nothing takes minutes; only then does a silent test look hung.
test-slow:  ## the checks that take minutes
	@$(PYTHON) -m tools.setup_environment --dev --modules
	$(TEST_ENV) $(BIN)/python -m pytest -m "slow and not gpu" $(PARALLEL) -o faulthandler_timeout=1200 $(PYTEST_ARGS)

# No set-up and no .venv: the machine's own torch is what gets tested (PYTHON=python3).
test-gpu:  ## the checks that need an NVIDIA GPU, with PYTHON's own torch
	PYTHONPATH=$(CURDIR) $(PYTHON) -m pytest -c tests/gpu/pytest.ini --rootdir=$(CURDIR) -m gpu tests/gpu $(PYTEST_ARGS)

lint: setup  ## style, types, import contracts and sizes
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.check_sources

fmt: setup  ## rewrite the sources in the project's style
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

shots: setup  ## pictures of the window, to look at
	QT_QPA_PLATFORM=offscreen $(BIN)/python tools/shots.py

bench: setup  ## start-up, frame and counter times
	$(BIN)/python tools/bench.py
