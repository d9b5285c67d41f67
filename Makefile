# Two commands on a fresh machine: `make demo` and `make test`. `make` alone lists all.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
UV := $(shell command -v uv 2>/dev/null)

# llama-cpp-python compiles for 20 minutes, so `setup` takes it only where a built wheel lies.
WHEELS := ../shared/wheels
TESTED := dev,huggingface,chroma,eval,studio,redis,otel,oidc,ocr,notebooks,providers,tree,connectors,scale,encryption,postgres
ifneq ($(wildcard $(WHEELS)/llama_cpp_python*.whl),)
LINKS := --find-links $(WHEELS)
EXTRAS := $(TESTED),llama
else
EXTRAS := $(TESTED)
endif

.DEFAULT_GOAL := help
.PHONY: help setup with-pip with-uv llama demo test unit test-all test-llm lint format docs notebooks studio bench wheel sbom clean

help: ## list the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 10

setup: $(INSTALLED) ## create .venv and install all that demo and tests need (again: instant)

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Carrel needs Python 3.11 or newer; this is $$($(PYTHON) --version). Run: make setup PYTHON=python3.11" >&2; exit 1; }
	$(if $(UV),$(MAKE) --no-print-directory with-uv || )$(MAKE) --no-print-directory with-pip
	$(BIN)/python -m models.loading
	@touch $(INSTALLED)

# Both take the versions of constraints.txt. uv.lock has them as well, but on Linux with the CUDA build
# of torch, 3 GB.
with-pip:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $(LINKS) -e '.[$(EXTRAS)]'

with-uv: # uv does not read what pip is told by PIP_FIND_LINKS
	$(UV) venv --quiet --seed --clear --python $(PYTHON) $(VENV)
	UV_FIND_LINKS="$${UV_FIND_LINKS-$$PIP_FIND_LINKS}" VIRTUAL_ENV=$(VENV) \
		$(UV) pip install --quiet -c constraints.txt $(LINKS) -e '.[$(EXTRAS)]'

llama: setup ## add llama-cpp-python, to run GGUF files in this process (compiles for 20 minutes)
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt $(LINKS) -e '.[llama]'

demo: setup ## ingest the sample corpora and answer questions from them, step by step
	@$(BIN)/carrel demo

# Compiled code is kept: tests start many processes, and each would compile all of it again.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n auto --maxprocesses 4

test: setup ## lint, type-check and run the quick tests (≤ 4 minutes on 2 cores)
	@$(MAKE) --no-print-directory -j2 lint unit

unit: setup
	CARREL_TESTS=quick $(PYTEST) --dist loadfile -m "not slow"

test-all: setup lint ## run every test, with all examples of each property
	$(PYTEST) --dist loadfile

test-llm: setup ## run the tests of a real model: CARREL_TEST_GGUF=/path/to/qwen.gguf, CARREL_LLAMA__SERVER=…
	$(BIN)/python -m pytest -q tests/graph/test_real_model.py

lint: setup ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup ## format the code and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: setup ## write the generated pages of docs/
	$(BIN)/python -m cli.docs

notebooks: setup ## run the notebooks and write their outputs
	$(BIN)/python scripts/run_notebooks.py

studio: setup ## start the LangGraph development server for Studio
	LANGGRAPH_CLI_NO_ANALYTICS=1 $(BIN)/langgraph dev --no-browser

bench: setup ## measure speed beside its floor (minutes)
	$(BIN)/python -m benchmarks.speed

wheel: setup ## build the wheel into dist/
	rm -rf build dist
	$(BIN)/python -m pip wheel --quiet --no-deps -w dist .

# In an environment of its own, so that the bill names what users get and no tool of development.
sbom: wheel ## write dist/sbom.cdx.json (CycloneDX), signed where SIGN_KEY names an SSH key
	$(PYTHON) -m venv --clear build/sbom build/tool
	build/sbom/bin/python -m pip install --quiet -c constraints.txt dist/*.whl
	build/tool/bin/python -m pip install --quiet 'cyclonedx-bom>=7.5,<8'
	build/tool/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
		--output-format JSON -o dist/sbom.cdx.json build/sbom/bin/python
	cd dist && sha256sum *.whl sbom.cdx.json > SHA256SUMS
	$(if $(SIGN_KEY),ssh-keygen -Y sign -f $(SIGN_KEY) -n carrel dist/SHA256SUMS)

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info .langgraph_api
