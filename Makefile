# The same commands for people and for CI.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
NATIVE := hatch_build.py $(wildcard src/impasto/native/*.[ch])   # compiled by the installation

.PHONY: help demo setup check test bench docs format clean

help:  ## list the commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "impasto needs Python 3.10 or newer; try: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml $(NATIVE) | $(BIN)/python
	@echo "installing; torch is large, this takes a minute or more …"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[demo]"
	-$(BIN)/impasto weights fetch adain-original
	@touch $@

$(VENV)/.dev: pyproject.toml $(NATIVE) | $(BIN)/python
	@echo "installing; torch is large, this takes a minute or more …"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	$(BIN)/impasto weights fetch adain-original
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo  ## install and paint a first picture: demo.png
	$(BIN)/impasto demo -o demo.png

setup: $(VENV)/.dev  ## install everything that tests and docs need

check: setup  ## format, lint, types, import directions
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# A browser and a database server for the tests; where they cannot be installed, those tests say so.
$(VENV)/.system: | $(BIN)/python
	@sh scripts/system_packages.sh chromium:chromium initdb:postgresql
	@touch $@

test: setup $(VENV)/.system  ## run the tests
	$(BIN)/python -m pytest

format: setup  ## put the code in order
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup  ## measure, in ratios: docs/performance.md; with IMAGES=folder also time to quality
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/memory.py 512 1024 2048:3GB 6000x4000:4GB
	$(if $(IMAGES),$(BIN)/python benchmarks/quality.py $(IMAGES) 256 --preset fast)
	$(if $(IMAGES),$(BIN)/python benchmarks/quality.py $(IMAGES) 512 --preset fast)
	$(if $(IMAGES),$(BIN)/python benchmarks/peer.py $(IMAGES) 512 100 --preset fast)
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/votes.py
	$(BIN)/python benchmarks/gallery.py

docs: setup  ## make the pictures of docs/ again
	$(BIN)/python scripts/gallery.py
	$(BIN)/python scripts/screenshots.py
	$(BIN)/python scripts/study_screenshots.py

clean:  ## remove what the other commands made
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache demo.png
