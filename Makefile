# Every target works from a fresh clone: `make setup` runs first where it is needed.
.DEFAULT_GOAL := help
.PHONY: help setup demo test side matrix e2e check accept docs site pictures bench clean

BIN := .venv/bin
# Extra arguments for pytest: make test ARGS="-k sarif"
ARGS ?=
CELLS ?=

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## make .venv with all that is needed (instant when nothing changed)
	@bash scripts/setup.sh

demo: setup ## every tool once on an example, a screenful each
	@bash scripts/demo.sh

test: setup ## run the tests; ARGS goes to pytest
	$(BIN)/python -m pytest -n 2 $(ARGS)

side: setup ## run the tests that need other environments: four more OpenCV versions, Ray (minutes)
	$(BIN)/python -m pytest -m side $(ARGS)

matrix: setup ## run every tool with other versions of torch and Python; CELLS="oldest=PYTHON …" uses environments that exist
	$(BIN)/python scripts/matrix.py $(CELLS)

e2e: setup ## let a small model write kernels and judge them (minutes)
	$(BIN)/python -m pytest tests/kernels/e2e_small_model.py -s $(ARGS)

check: setup ## format, lint, types, layers, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 2 $(ARGS)

accept: setup ## rewrite the golden files; read the diff before you commit it
	$(BIN)/python -m pytest -n 2 --accept $(ARGS)

docs: setup ## write the generated pages
	$(BIN)/python scripts/make_docs.py

site: setup ## build the documentation site in build/site (strict, offline)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

pictures: setup ## make the pictures of the README from the real pages
	$(BIN)/python scripts/make_pictures.py

bench: setup ## measure speed and memory
	$(BIN)/python benchmarks/run.py

clean: ## remove what can be made again, .venv too
	rm -rf .venv .venv-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
