# Each target is the only command a fresh machine needs: the environment is made in .venv on first use, and a second
# call installs nothing until pyproject.toml changes.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
# Which torch to install, for instance TORCH='torch==2.13.0'; the newest one that fits when left out.
TORCH ?=
VENV := .venv
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.installed-run
DEV_STAMP := $(VENV)/.installed-dev
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --editable
# Training runs and whole commands; Lightning's import alone takes seconds.
LONG := tests/decoders/training tests/scripts tests/test_readme.py decoders/training scripts

.PHONY: help install install-dev demo test test-long lint format types check clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "ranvier needs Python 3.11 or newer; found no python3"; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "ranvier needs Python 3.11 or newer; found $$($(PYTHON) --version). Name one with: make PYTHON=/path/to/python3.11"; exit 2; }
	$(PYTHON) -m venv $(VENV)

# The development install contains everything that the plain one does, so it satisfies both stamps.
$(RUN_STAMP): pyproject.toml | $(BIN)/python
	@echo "installing ranvier and what it needs into $(VENV): several minutes the first time"
	$(PIP) '.[train]' $(TORCH)
	@touch $@

$(DEV_STAMP): pyproject.toml | $(BIN)/python
	@echo "installing ranvier and its development tools into $(VENV): several minutes the first time"
	$(PIP) '.[train,dev]' $(TORCH)
	@touch $(RUN_STAMP) $@

install: $(RUN_STAMP) ## create .venv and install ranvier into it

install-dev: $(DEV_STAMP) ## the same, with the tools that tests and checks need

demo: $(RUN_STAMP) ## the main job on a small simulated participant, end to end (minutes)
	$(BIN)/ranvier demo --overwrite

test: $(DEV_STAMP) ## run the tests, except the long ones
	$(BIN)/python -m pytest -m "not slow" $(LONG:%=--ignore=%)

test-long: $(DEV_STAMP) ## run the long ones: training runs, whole commands, and what is marked slow
	$(BIN)/python -m pytest $(LONG)
	$(BIN)/python -m pytest -m slow $(LONG:%=--ignore=%)

lint: $(DEV_STAMP) ## style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(DEV_STAMP) ## rewrite the files in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(DEV_STAMP) ## static type check
	$(BIN)/python -m mypy

check: lint types test test-long ## all that CI runs

clean: ## remove the environment and every cache
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
