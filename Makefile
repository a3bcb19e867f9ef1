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
	Pages that are there can be read without a build: _build/html/index.html, or make serve); done
# Pages of a checkout that one may not write are served as they are.
READ_ONLY = $(shell [ -e _build/html/index.html ] && ! [ -w _build/html ] && echo yes)
# After a failure Sphinx's memory is removed, so that it reads all pages again: it reports each warning once only.
BUILD = trap 'echo; exit 130' INT; $(PY) -c "from jupyter_book.cli.main import main; main()" build . -W -n --keep-going -q > $(VENV)/build.log 2>&1 || \
	{ rm -f _build/.doctrees/environment.pickle; grep -aE "WARNING|ERROR|[Ee]rror:" $(VENV)/build.log || tail -n 5 $(VENV)/build.log; \
	$(call fail,the build failed; each line above counts as an error (an image that is not there: make figures); all is in $(VENV)/build.log); }
# Each worker has one thread, as the threads of several would wait for one another. Three workers are for two cores, as
# those that drive a browser wait for it.
PYTEST = OMP_NUM_THREADS=1 $(PY) -m pytest -n 3 --dist loadfile --no-loadscope-reorder
# Each chapter is run as its page hands it out, in a folder that has nothing else.
DOWNLOADS = rm -rf _build/downloads && mkdir _build/downloads && cp _build/html/_sources/chapters/*.ipynb _build/downloads
# What takes half more time: each cell that has passed is run again, as readers do, and with a change that it refuses.
TWICE = -p tests.twice
fail = { echo "Error: $(1)" >&2; exit 1; }

.PHONY: help book watch serve check test test-all test-library test-pages test-slow attack lists notebook chapters figures student teacher handout slides pdf \
	offline bench versions newest format lint clean for-book for-test for-model python
.DEFAULT_GOAL := help

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

book: for-book  ## render the pages into _build/html, those that changed
	@$(MAY_WRITE)
	@$(BUILD)
	@echo "The book is in _build/html. Open _build/html/index.html in a browser, or run: make serve"

watch: book  ## serve the pages on http://localhost:8000 (PORT=...) and show each change when it is saved
	@$(PY) -m tools.watch "$(PORT)"

serve: $(if $(READ_ONLY),,book)  ## serve the pages on http://localhost:8000 (PORT=...)
	@$(if $(READ_ONLY),$(PYTHON),$(PY)) -m tools.serve "$(PORT)"

check: for-test lint  ## style, library and the form of the chapters, a minute or two (more the first time)
	@$(PYTEST) -m "not slow" --doctest-modules rope_lib tests/library tests/chapters

test: for-model lint book  ## all that a change can break: library, every chapter run again, pages
	@$(DOWNLOADS)
	@$(PYTEST) -m "not slow" --nbval --doctest-modules _build/downloads rope_lib tests

test-all: for-model lint book  ## test and test-slow
	@$(DOWNLOADS)
	@$(PYTEST) $(TWICE) --nbval --doctest-modules _build/downloads rope_lib tests

test-library: for-model lint book  ## of it, what needs no page: library, every chapter run again, lessons
	@$(DOWNLOADS)
	@$(PYTEST) $(TWICE) -m "not slow" --nbval --doctest-modules --ignore tests/pages _build/downloads rope_lib tests

test-pages: for-test book  ## of it, the pages in Chromium
	@$(PYTEST) -m "not slow" tests/pages

test-slow: for-model book  ## what is slow by nature: compilers, every stored figure, Firefox and WebKit
	@$(PYTEST) -m slow tests

attack: for-model  ## change every claim, or those of NAME=05, store which changes no cell refuses (up to 20 minutes)
	@$(PY) -m tools.attack $(NAME) --store
	@$(PY) -m tools.lists

lists: for-test  ## write what is listed and counted: theorems, numbers, the map of the documents
	@$(PY) -m tools.lists

# On a busy machine threads that wait for one another would keep the cores from those that work.
notebook: for-test  ## open the chapters in JupyterLab
	@OMP_WAIT_POLICY=passive $(PY) -m jupyterlab --notebook-dir chapters

chapters: for-model  ## re-run all chapters, or NAME=05, and store them in canonical form
	@$(PY) -m ruff format --quiet chapters
	@$(PY) -m tools.chapters $(NAME)
	@$(PY) -m tools.lists

figures: for-test  ## draw all figures, or NAME=draw_decay_bound, into figures/out
	@$(PY) -m figures $(NAME)

student: for-test  ## write homework and chapters, without solutions and outputs, into build/student
	@$(PY) -m lectures.homework student

teacher: for-test  ## write keys, a check with other numbers and exams into build/teacher (SEED=..., VERSION=B: build/teacher-B)
	@$(PY) -m lectures.homework teacher $(or $(SEED),1) $(or $(VERSION),A)

handout: for-test  ## write the handout, ten votes and all figures as PNG into build
	@$(PY) -m lectures.handout
	@$(PY) -m figures --png

slides: for-test book  ## draw slides, notes, live demo into _build/html/lectures (COURSE="...", WITHOUT='"a title"')
	@$(PY) -m lectures.slides "$(COURSE)" $(WITHOUT)

pdf: for-test book  ## print the book as one PDF into build (needs Chromium; for students SOLUTIONS=no)
	@$(PY) -m tools.take_away pdf $(SOLUTIONS)

offline: book  ## pack the pages into build as a zip that opens from disk
	@$(PY) -m tools.take_away zip

bench: python  ## measure speed beside other libraries (an hour; see BENCH=--help, BENCH="--neighbours 1 --eager")
	@$(PYTHON) -m tools.setup peers --venv .venv-bench
	@.venv-bench/bin/python -m bench.speed $(BENCH)

versions: python  ## test library and chapters with VERSIONS="-c constraints-colab.txt", or the oldest torch asked for
	@$(PYTHON) -m tools.setup versions $(VERSIONS) --venv .venv-versions
	@.venv-versions/bin/python -m pytest -p no:cacheprovider --doctest-modules --nbval-lax rope_lib tests/library chapters/*.ipynb

newest: python  ## render the pages with the newest of everything: Jupyter Book's own bounds are older than what it works with
	@$(PYTHON) -m tools.setup newest --venv .venv-newest
	@.venv-newest/bin/jupyter-book build . --path-output .venv-newest -W -n --keep-going -q

format: for-test  ## put code and chapters into the form that lint asks for
	@$(PY) -m ruff check --quiet --fix-only . && $(PY) -m ruff format --quiet .

lint: for-test  ## check style and format
	@$(PY) -m ruff check --quiet . && $(PY) -m ruff format --quiet --check .

clean:  ## remove the pages and the environments; build, which may hold homework and its keys, stays
	@rm -rf _build .venv .venv-*
	@if [ -e build ]; then echo "build is kept: homework, keys, PDF. Remove it by hand if you need nothing of it."; fi

for-book for-test for-model: python
	@$(PYTHON) -m tools.setup $(subst for-,,$@) --venv "$(VENV)"

python:
	@command -v $(PYTHON) > /dev/null || $(call fail,there is no $(PYTHON) here; name a Python 3.11 or newer as in: PYTHON=python3.12 make book)
