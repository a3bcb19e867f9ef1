# Two commands are the whole set-up: `make book` and `make test`. `make help` lists the rest.
PYTHON ?= python3
PORT ?= 8000
# Another PYTHON gets an environment of its own: .venv-python3.12
VENV ?= .venv$(filter-out -python3,-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check
NPM := $(VENV)/npm
FONTS := $(NPM)/node_modules/@fontsource
SUBSET := $(BIN)/pyftsubset --flavor=woff2 --no-hinting --drop-tables+=FFTM
VERSIONS ?= $(shell sed -n 's/^dependencies = \["torch>=\(.*\)"\].*/torch==\1/p' pyproject.toml)
# After a failure all is read again: Sphinx would warn of a page once only, and then pass.
BUILD = $(BIN)/jupyter-book build . -W -n --keep-going -q > $(VENV)/build.log 2>&1 || \
	{ rm -f _build/.doctrees/environment.pickle; grep -aE "WARNING|ERROR|Error:" $(VENV)/build.log; \
	$(call fail,the build failed; each line above counts as an error (an image that is not there: make figures); all is in $(VENV)/build.log); }
# A thread for each worker, as threads of several would wait for one another; one worker more than cores, as those
# that have a browser wait for it.
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder
# Each chapter is run once, as its page hands it out, in a folder that has nothing else.
DOWNLOADS = rm -rf _build/downloads && mkdir _build/downloads && cp _build/html/_sources/chapters/*.ipynb _build/downloads
# What formulas and figures may show: a test sees that the fonts have each sign.
LETTERS := U+20-7E,U+A0-FF,U+391-3C9,U+2013-2026,U+2032,U+2190-2194,U+2202-2265,U+22C5,U+2605,U+27E8-27E9
SIGNS := U+20-7E,U+A0,U+B0-B1,U+B7,U+D7,U+2C6,U+2D9,U+2DC,U+203E,U+391-3A9,U+3B1-3D6,U+3F1,U+3F5,U+2009,U+2016,U+2026,U+2032-2034,$\
	U+2061-2063,U+20D7,U+210E,U+2102,U+2113,U+2115,U+211D,U+2124,U+2190-2194,U+21A6,U+21D2,U+21D4,U+2200-220B,U+220F-221E,$\
	U+2223-222B,U+223C,U+2243,U+2245,U+2248,U+2260-2265,U+226A-226B,U+2282-2287,U+2295-2299,U+22A4-22A5,U+22C5,U+22EE-22F1,$\
	U+2308-230B,U+23DE-23DF,U+25A1,U+27E8-27E9,U+27F6-27FA,U+1D41A-1D467,U+1D6E2-1D71B
fail = { echo "Error: $(1)" >&2; exit 1; }
last_words = $$(grep -iE 'error' $(1) | tail -n 1) (all in $(1))

.PHONY: help book watch serve check test test-all attack lists notebook chapters figures student teacher handout slides pdf \
	offline bench versions lint clean
.DEFAULT_GOAL := help

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

book: $(VENV)/book.stamp  ## render the pages into _build/html, those that changed
	@$(BUILD)
	@echo "The book is in _build/html. Open _build/html/index.html in a browser, or run: make serve"

watch: book  ## serve the pages on http://localhost:8000 (PORT=...) and show each change when it is saved
	@$(BIN)/python -m tools.watch $(PORT)

serve: book  ## serve the pages on http://localhost:8000 (PORT=...)
	@echo "The book is on http://localhost:$(PORT). Control and C end it."
	@$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html > /dev/null 2>&1 || true

check: $(VENV)/test.stamp lint  ## style, library and the form of the chapters, a minute
	@$(PYTEST) -m "not slow" --doctest-modules rope_lib tests/library tests/chapters

test: $(VENV)/test.stamp lint book  ## all that a change can break: library, every chapter run again, pages
	@$(DOWNLOADS)
	@$(PYTEST) -m "not slow" --nbval --doctest-modules _build/downloads rope_lib tests

test-all: $(VENV)/test.stamp lint book  ## the slow ones, too: compilers, every stored figure, attacks, Firefox and WebKit
	@$(DOWNLOADS)
	@$(PYTEST) --nbval --doctest-modules _build/downloads rope_lib tests

attack: $(VENV)/test.stamp  ## change every claim, or those of NAME=05, store which changes no cell refuses (up to 20 minutes)
	@$(BIN)/python -m tools.attack $(NAME) --store
	@$(BIN)/python -m tools.lists

lists: $(VENV)/test.stamp  ## write what is listed and counted: theorems, numbers, the map of the documents
	@$(BIN)/python -m tools.lists

notebook: $(VENV)/test.stamp  ## open the chapters in JupyterLab
	@$(BIN)/jupyter lab --notebook-dir chapters

chapters: $(VENV)/test.stamp  ## re-run all chapters, or NAME=05, and store them in canonical form
	@$(BIN)/ruff format --quiet chapters
	@$(BIN)/python -m chapters $(NAME)
	@$(BIN)/python -m tools.lists

figures: $(VENV)/test.stamp  ## draw all figures, or NAME=draw_decay_bound, into figures/out
	@$(BIN)/python -m figures $(NAME)

student: $(VENV)/test.stamp  ## write homework and chapters, without solutions and outputs, into build/student
	@$(BIN)/python -m lectures.homework student

teacher: $(VENV)/test.stamp  ## write keys, a check with other numbers and an exam into build/teacher (SEED=...)
	@$(BIN)/python -m lectures.homework teacher $(or $(SEED),1)

handout: $(VENV)/test.stamp  ## write the handout, ten votes and all figures as PNG into build
	@$(BIN)/python -m lectures.handout
	@$(BIN)/python -m figures --png

slides: $(VENV)/test.stamp book  ## draw slides, notes, live demo into _build/html/lectures (COURSE="...", WITHOUT='"a title"')
	@$(BIN)/python -m lectures.slides "$(COURSE)" $(WITHOUT)

pdf: $(VENV)/test.stamp book  ## print the book as one PDF into build (needs Chromium)
	@$(BIN)/python -m tools.take_away pdf

offline: book  ## pack the pages into build as a zip that opens from disk
	@$(BIN)/python -m tools.take_away zip

bench: .venv-bench/bench.stamp  ## measure speed beside other libraries (an hour; see BENCH=--help, BENCH="--neighbours 1 --eager")
	@.venv-bench/bin/python -m lab.speed $(BENCH)

versions: $(VENV)/python.stamp  ## test library and chapters with VERSIONS="-c constraints-colab.txt", or the oldest torch asked for
	@echo "Installing $(VERSIONS) into .venv-versions (some minutes) ..."
	@$(PYTHON) -m venv --clear .venv-versions && .venv-versions/bin/python -m pip install --disable-pip-version-check \
		$(VERSIONS) torch numpy sympy matplotlib tqdm \
		$$(grep -E '^(pytest|hypothesis|nbval|playwright)==' requirements.txt | cut -d' ' -f1) > \
		.venv-versions/install.log 2>&1 || $(call fail,pip could not install $(VERSIONS): see .venv-versions/install.log)
	@.venv-versions/bin/python -m pytest -p no:cacheprovider --doctest-modules rope_lib tests/library
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

# Node comes with pip, too. It brings what sets formulas, their font, and Python for the pages, with sympy.
$(VENV)/book.stamp: $(VENV)/python.stamp requirements-book.txt constraints.txt package.json package-lock.json tools/pack_python.mjs tools/pack_python.py Makefile
	@echo "Installing what the pages need into $(VENV) (once, a minute) ..."
	@$(PIP) -r requirements-book.txt > $(VENV)/install.log 2>&1 || \
		$(call fail,pip could not install requirements-book.txt: is there a network? Its last words: $(call last_words,$(VENV)/install.log))
	@mkdir -p $(NPM)/static && cp package.json package-lock.json $(NPM)
	@$(BIN)/npm ci --prefix $(NPM) --ignore-scripts --no-audit --no-fund > $(VENV)/install.log 2>&1 || \
		$(call fail,npm could not install package.json: is there a network? Its last words: $(call last_words,$(VENV)/install.log))
	@$(SUBSET) $(FONTS)/stix-two-math/files/stix-two-math-latin-400-normal.woff2 --unicodes=$(SIGNS) \
		--layout-features=dtls,ssty,ss04 --output-file=$(NPM)/static/STIXTwoMath.woff2
	@$(SUBSET) $(FONTS)/libertinus-math/files/libertinus-math-latin-400-normal.woff2 --unicodes=U+1D703 \
		--layout-features= --output-file=$(NPM)/static/theta.woff2
	@for form in 400-normal 400-italic 700-normal; do $(SUBSET) $(FONTS)/dejavu-sans/files/dejavu-sans-latin-$$form.woff2 \
		--unicodes=$(LETTERS) --layout-features= --output-file=$(NPM)/static/dejavu-sans-$$form.woff2; done
	@cp $(NPM)/node_modules/temml/dist/Temml-STIX2.css $(NPM)/static
	@$(BIN)/node tools/pack_python.mjs $(NPM)/node_modules/pyodide $(VENV)/lib/python3.*/site-packages $(NPM)/python.zip > $(VENV)/install.log 2>&1 || \
		$(call fail,sympy could not be packed for the pages: see $(VENV)/install.log)
	@touch $@

$(VENV)/test.stamp: $(VENV)/book.stamp requirements.txt pyproject.toml
	@echo "Installing what the tests need into $(VENV) (once, some minutes: torch is large) ..."
	@$(PIP) -r requirements.txt > $(VENV)/install.log 2>&1 && \
		$(PIP) --no-deps --no-build-isolation -e . >> $(VENV)/install.log 2>&1 || \
		$(call fail,pip could not install requirements.txt: is there a network? Its last words: $(call last_words,$(VENV)/install.log))
	@touch $@

.venv-bench/bench.stamp: $(VENV)/python.stamp requirements.txt requirements-bench.txt
	@echo "Installing the libraries to compare with into .venv-bench (once, some minutes) ..."
	@$(PYTHON) -m venv .venv-bench && .venv-bench/bin/python -m pip install --disable-pip-version-check \
		$$(grep -E '^(torch|numpy|tqdm)==' requirements.txt | cut -d' ' -f1) > .venv-bench/install.log 2>&1 && \
		.venv-bench/bin/python -m pip install --disable-pip-version-check --no-deps -r requirements-bench.txt \
		>> .venv-bench/install.log 2>&1 || $(call fail,pip could not install requirements-bench.txt: see .venv-bench/install.log)
	@touch $@
