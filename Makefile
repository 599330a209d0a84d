# Each target sets up .venv by itself and re-uses it; nothing but Python >= 3.11 and pip is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PEERS := $(VENV)/.peers

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.PHONY: help demo test test-all check bench results docs format clean

demo: $(READY)  ## inspect vectors, make a matrix, train a small translator from several starts, and report on it
	$(BIN)/python -m embinit demo --out build/demo

results: $(READY)  ## RESULTS.md, a page an experiment and their figures, from results/
	$(BIN)/python -m research.results results RESULTS.md

test: $(READY)  ## the tests, under 8 minutes on 2 cores
	$(BIN)/python -m pytest -q -m "not long" -n 2 --dist loadfile

test-all: $(READY) $(PEERS)  ## also what is long, or needs peers that are installed for it
	EMBINIT_FUZZ=10000 EMBINIT_FUZZ_SECONDS=600 $(BIN)/python -m pytest -q -n 2 --dist loadfile

check: $(READY) docs  ## ruff, mypy in strict mode, and the site without a warning
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY) $(PEERS)  ## speed and memory beside gensim, pandas, transformers, the tutorial, Marian, JoeyNMT
	$(BIN)/python -m benchmarks.vectors
	$(BIN)/python -m benchmarks.training --rounds 2 --json build/bench/training.jsonl
	$(BIN)/python -m benchmarks.text --json build/bench/text.jsonl

# tools/site_pages.py lays the pages out; tools/reference_pages.py and mkdocstrings write reference pages from the code.
docs: $(READY)  ## the documentation as a site, with README, RESULTS.md and its figures, in build/site
	$(BIN)/python -m pip install -q -c constraints.txt --group docs
	rm -rf build/site
	$(BIN)/python tools/site_pages.py build/pages
	$(BIN)/python tools/reference_pages.py build/pages/reference
	$(BIN)/zensical build --strict

format: $(READY)  ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# torch comes first and pinned: left to a resolver it may bring several GB of CUDA packages.
$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt 'pip>=25.1'
	$(BIN)/python -m pip install -q -c constraints.txt torch
	$(BIN)/python -m pip install -q -c constraints.txt -e . --group dev
	touch $@

$(PEERS): $(READY)
	$(BIN)/python -m pip install -q -c constraints.txt --group peers
	touch $@

clean:  ## remove the environments, caches and builds
	rm -rf $(VENV) .venv-* .cache build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
