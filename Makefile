# Two commands are the whole set-up: `make book` and `make test`. `make help` lists the rest.
PYTHON ?= python3
PORT ?= 8000
# Another PYTHON gets an environment of its own: .venv-python3.12
VENV ?= .venv$(filter-out -python3,-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check
VERSIONS ?= $(shell sed -n 's/^dependencies = \["torch>=\(.*\)"\].*/torch==\1/p' pyproject.toml)
# The tests of rope_lib alone: no pages, no chapters, no benchmark.
LIBRARY := rope_lib $(addprefix tests/test_,$(addsuffix .py,attention config decay device fast frequencies layouts \
	linear_attention matrices pitfalls relative rotary scaling sinusoidal symbolic))
fail = { echo "Error: $(1)" >&2; exit 1; }

.PHONY: help book test attack serve notebook chapters figures student teacher handout slides pdf offline bench versions lint clean
.DEFAULT_GOAL := help

help:  ## list the commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

book: $(VENV)/book.stamp $(VENV)/live.stamp  ## render the pages into _build/html
	@rm -rf _build
	@$(BIN)/jupyter-book build . -W -n --keep-going -q > $(VENV)/build.log 2>&1 || \
		{ cat $(VENV)/build.log; $(call fail,the build failed; each warning above counts as an error); }
	@echo "The book is in _build/html. Open _build/html/index.html in a browser, or run: make serve"

test: $(VENV)/test.stamp lint book  ## lint, prove, re-run every chapter, look at the pages
	@$(BIN)/python -m pytest -n 2 --dist loadfile --nbval --doctest-modules rope_lib tests chapters

attack: $(VENV)/test.stamp  ## change every claim of the chapters, see which changes no cell refuses, store the result (minutes)
	@$(BIN)/python -m tests.attack --store

serve: book  ## serve the pages on http://localhost:8000 (PORT=...)
	@$(BIN)/python _ext/serve.py $(PORT)

notebook: $(VENV)/test.stamp  ## open the chapters in JupyterLab
	@$(BIN)/jupyter lab --notebook-dir chapters

chapters: $(VENV)/test.stamp  ## re-run all chapters and store them in canonical form
	@$(BIN)/ruff format --quiet chapters
	@$(BIN)/python -m chapters

figures: $(VENV)/test.stamp  ## draw all figures into figures/out
	@$(BIN)/python -m figures

student: $(VENV)/test.stamp  ## write homework and chapters, without solutions and outputs, into build/student
	@$(BIN)/python -m lectures.homework student

teacher: $(VENV)/test.stamp  ## write keys, a check with other numbers and an exam into build/teacher (SEED=...)
	@$(BIN)/python -m lectures.homework teacher $(or $(SEED),1)

handout: $(VENV)/test.stamp  ## write the handout, ten votes and all figures as PNG into build
	@$(BIN)/python -m lectures.handout
	@$(BIN)/python -m figures --png

slides: $(VENV)/test.stamp book  ## draw slides, notes and the live demo into _build/html/lectures (needs Chromium)
	@$(BIN)/python -m lectures.slides

pdf: $(VENV)/test.stamp book  ## print the book as one PDF into build (needs Chromium)
	@$(BIN)/python _ext/take_away.py pdf

offline: book  ## pack the pages into build as a zip that opens from disk
	@$(BIN)/python _ext/take_away.py zip

bench: .venv-bench/bench.stamp  ## measure speed beside other libraries (an hour; see BENCH=--help, BENCH="--neighbours 1 --eager")
	@.venv-bench/bin/python -m lab.speed $(BENCH)

versions: $(VENV)/python.stamp  ## test library and chapters with VERSIONS="-c constraints-colab.txt", or the oldest torch asked for
	@echo "Installing $(VERSIONS) into .venv-versions (some minutes) ..."
	@$(PYTHON) -m venv --clear .venv-versions && .venv-versions/bin/python -m pip install --disable-pip-version-check \
		$(VERSIONS) torch numpy sympy matplotlib tqdm \
		$$(grep -E '^(pytest|hypothesis|nbval|playwright)==' requirements.txt | cut -d' ' -f1) > \
		.venv-versions/install.log 2>&1 || $(call fail,pip could not install $(VERSIONS): see .venv-versions/install.log)
	@.venv-versions/bin/python -m pytest -p no:cacheprovider --doctest-modules $(LIBRARY)
	@PYTHONPATH=$(CURDIR) .venv-versions/bin/python -m pytest -p no:cacheprovider --nbval-lax chapters/*.ipynb

lint: $(VENV)/test.stamp  ## check style and format
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check .

clean:  ## remove the pages and the environments
	@rm -rf _build build .venv .venv-*

$(VENV)/python.stamp:
	@command -v $(PYTHON) > /dev/null || $(call fail,there is no $(PYTHON) here; name a Python 3.11 to 3.13 as in: PYTHON=python3.12 make book)
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
		$(call fail,the book needs Python 3.11 to 3.13 and $(PYTHON) is another; name one as in: PYTHON=python3.12 make book)
	@$(PYTHON) -m venv $(VENV) > /dev/null || $(call fail,$(PYTHON) cannot make an environment; on Debian install the package python3-venv)
	@touch $@

$(VENV)/book.stamp: $(VENV)/python.stamp requirements-book.txt constraints.txt
	@echo "Installing what the pages need into $(VENV) (once, a minute) ..."
	@$(PIP) -r requirements-book.txt > $(VENV)/install.log 2>&1 || $(call fail,pip could not install requirements-book.txt: is there a network? Its last words: $$(grep ERROR $(VENV)/install.log | tail -n 1) (all in $(VENV)/install.log))
	@touch $@

# Python for the pages, with sympy. Where there is no npm, the pages are the same but for the proofs, which stand still.
$(VENV)/live.stamp: $(VENV)/book.stamp package.json package-lock.json _ext/pack.mjs _ext/pack.py
	@rm -rf $(VENV)/live && mkdir $(VENV)/live && cp package.json package-lock.json $(VENV)/live
	@if ! command -v npm > /dev/null; then \
		echo "There is no npm here, so the proofs in the pages are not live (on Debian install the package npm)."; \
	else \
		echo "Fetching Python for the pages (once, half a minute) ..."; \
		(cd $(VENV)/live && npm ci --ignore-scripts --fetch-retries=1 --fetch-timeout=60000) > $(VENV)/live.log 2>&1 && \
		node _ext/pack.mjs $(VENV)/live/node_modules/pyodide $(VENV)/lib/python3.*/site-packages \
		$(VENV)/live/python.zip >> $(VENV)/live.log 2>&1 && touch $@ || \
		echo "npm could not fetch Python for the pages, so their proofs are not live: see $(VENV)/live.log"; \
	fi

$(VENV)/test.stamp: $(VENV)/book.stamp requirements.txt pyproject.toml
	@echo "Installing what the tests need into $(VENV) (once, some minutes: torch is large) ..."
	@$(PIP) -r requirements.txt > $(VENV)/install.log 2>&1 && \
		$(PIP) --no-deps --no-build-isolation -e . >> $(VENV)/install.log 2>&1 || $(call fail,pip could not install requirements.txt: is there a network? Its last words: $$(grep ERROR $(VENV)/install.log | tail -n 1) (all in $(VENV)/install.log))
	@touch $@

.venv-bench/bench.stamp: $(VENV)/python.stamp requirements.txt requirements-bench.txt
	@echo "Installing the libraries to compare with into .venv-bench (once, some minutes) ..."
	@$(PYTHON) -m venv .venv-bench && .venv-bench/bin/python -m pip install --disable-pip-version-check \
		$$(grep -E '^(torch|numpy|tqdm)==' requirements.txt | cut -d' ' -f1) > .venv-bench/install.log 2>&1 && \
		.venv-bench/bin/python -m pip install --disable-pip-version-check --no-deps -r requirements-bench.txt \
		>> .venv-bench/install.log 2>&1 || $(call fail,pip could not install requirements-bench.txt: see .venv-bench/install.log)
	@touch $@
