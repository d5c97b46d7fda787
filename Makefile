.PHONY: demo test test-slow test-all bench lint docs clean
PYTHON ?= python3
BIN := .venv/bin

demo:  ## run the method on built-in demonstrations and show it
	@$(PYTHON) tools/set_up.py
	@$(BIN)/align-rudder demo

test:  ## run the tests that take minutes
	@$(PYTHON) tools/set_up.py test
	@$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

test-slow:  ## run those that are slow by nature: several processes, Ray, learning on Craftax, a browser
	@$(PYTHON) tools/set_up.py test
	@$(BIN)/python -m pytest -n auto --dist worksteal -m slow

test-all:  ## run every test
	@$(PYTHON) tools/set_up.py test
	@$(BIN)/python -m pytest -n auto --dist worksteal

bench:  ## measure speed against other libraries, side by side; uses clustalw and mafft where installed
	@$(PYTHON) tools/set_up.py bench
	@$(BIN)/python benchmarks/run.py

lint:  ## style and types
	@$(PYTHON) tools/set_up.py dev
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/pyright

docs:  ## build the documentation site; warnings are errors
	@$(PYTHON) tools/set_up.py dev
	@$(BIN)/python -m sphinx -b html -q -W --keep-going -n -d build/docs/doctrees docs build/docs/html
	@echo "open build/docs/html/index.html"

clean:
	rm -rf .venv .venv.lock .pytest_cache .ruff_cache .hypothesis dist demo build
