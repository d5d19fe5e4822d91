# Needs Python 3.11 or newer and make; everything else is installed into $(VENV).
VENV ?= .venv
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check

.PHONY: demo test test-skipped fuzz trust lint docs bench reproduce clean

demo: $(VENV)/.cli
	@mkdir -p build
	$(BIN)/consilience demo --report build/demo.html

build/demo.html:
	$(MAKE) demo

# Neighbors in a file run in one process as far as the work allows (worksteal): fixtures of a module are made once, and
# a function is compiled by one process, from whose cache the others load it.
test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist worksteal

# The tests that an earlier run listed in build/skipped.txt by CONSILIENCE_SKIPPED: what needs more than `make test` has.
test-skipped: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal @build/skipped.txt

# Random cases for ten minutes, from a new seed each time; a failure names the command that repeats it.
fuzz: $(VENV)/.test
	$(BIN)/python tests/fuzz.py --seconds $(or $(SECONDS),600) --seed $(or $(SEED),$(shell date +%s))

# The long versions of all checks of trust, hours; the figures are docs/trust.md. CHECK=kills runs one of them.
trust: $(VENV)/.dev,release
	for script in $(if $(CHECK),trust/$(CHECK).py,$(filter-out trust/check.py trust/page.py trust/_%,$(wildcard trust/*.py))); do \
		OPENBLAS_NUM_THREADS=1 $(BIN)/python $$script --long || exit 1; done
	$(BIN)/python trust/page.py

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/numpydoc lint $$(git ls-files 'src/*.py')

docs: $(VENV)/.docs build/demo.html
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "The documentation is in docs/_build/html/index.html"

bench: $(VENV)/.test
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

# Every published experiment, from the data in CONSILIENCE_DATA: hours of one core. A run that was stopped continues.
reproduce: $(VENV)/.cli
	$(BIN)/consilience reproduce all --jobs -1 --folder docs/results --page docs/reproduction.md

# What is installed: .cli, .test, .docs, .dev, .torch with the extra of that name. Python compiles the modules that are
# imported when they are; all of them would take as long as the rest of the installation.
$(VENV)/.%: pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --no-compile --editable '.[$*]'
	@touch $@

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer was not found; name one by make PYTHON=/path/to/python."; exit 1; }
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) build docs/_build docs/_made docs/api docs/gallery docs/sg_execution_times.rst
