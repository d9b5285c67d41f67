# Two commands on a fresh machine: `make demo` and `make test`. `make` alone lists all.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PACKAGES := core models stores ingest retrievers tools reasoning nodes graph evals serve cli

# llama-cpp-python compiles for 20 minutes, so `setup` takes it only where a built wheel lies.
WHEELS := ../shared/wheels
ifneq ($(wildcard $(WHEELS)/llama_cpp_python*.whl),)
LINKS := --find-links $(WHEELS)
EXTRAS := dev,studio,serve,redis,otel,notebooks,llama
else
EXTRAS := dev,studio,serve,redis,otel,notebooks
endif

.DEFAULT_GOAL := help
.PHONY: help setup llama demo test lint format docs notebooks studio bench clean

help: ## list the commands
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 10

setup: $(INSTALLED) ## create .venv and install all that demo and tests need (again: instant)

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Carrel needs Python 3.11 or newer; this is $$($(PYTHON) --version). Run: make setup PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $(LINKS) -e '.[$(EXTRAS)]'
	$(BIN)/python -m models.prepare
	@touch $(INSTALLED)

llama: setup ## add llama-cpp-python, to run GGUF files in this process (compiles for 20 minutes)
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt $(LINKS) -e '.[llama]'

demo: setup ## ingest the sample corpora and answer questions from them, step by step
	@$(BIN)/carrel demo

test: setup lint ## lint, type-check and run all tests
	$(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile

lint: setup ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup ## format the code and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: setup ## write the generated parts of docs/ and README.md anew
	$(BIN)/python -m cli.docs

notebooks: setup ## run the notebooks and write their outputs anew
	$(BIN)/python scripts/run_notebooks.py

studio: setup ## start the LangGraph development server for Studio
	LANGGRAPH_CLI_NO_ANALYTICS=1 $(BIN)/langgraph dev --no-browser

bench: setup ## measure speed beside its floor (minutes)
	$(BIN)/python -m benchmarks.speed

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info .langgraph_api
