.PHONY: demo test bench lint docs clean
PYTHON ?= python3
BIN := .venv/bin

demo:  ## run the method on built-in demonstrations and show it
	@$(PYTHON) tools/set_up.py
	@$(BIN)/align-rudder demo

test:  ## run every test
	@$(PYTHON) tools/set_up.py test
	@$(BIN)/python -m pytest -n auto

bench:  ## measure speed against other libraries, side by side
	@$(PYTHON) tools/set_up.py test
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
