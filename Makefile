# Everything a newcomer needs: `make quickstart` and `make test`. PYTHON chooses the interpreter (3.11 or newer).
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
OUTPUT ?= runs/quickstart
DATA ?= data
WORKERS ?= auto
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 8 --dist loadfile --no-loadscope-reorder --max-worker-restart 0
KERNELS = $(addprefix tests/,data features kernels learn metrics readers)  # where those are that plain Python can run
PARSE_PAPERS = xu-figures1-3 xu-figures4-5 vrda-table1 vrda-table2 vrda-figures3-4
TRANSLATION_PAPERS = vrda-table3 vrda-table4
BINARY_PAPERS = winnow-table1 winnow-figure1 arow-table1 arow-figure2 arow-figure2b cw-table2 cw-table3 cw-table4 \
	cw-table5 cw-figures3-4 cw-figure5 cw-figure6 cw-figure7
SHORT = $(filter-out 0,$(QUICK))

unexport PYTHONDONTWRITEBYTECODE  # programs that tests start need not compile the package each time

.PHONY: help install quickstart papers docs docs-serve test test-quick test-random wheel coverage fuzz check \
	format bench clean

help:  ## show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(BIN)/.installed: pyproject.toml
	@echo "setting up $(VENV) (once; about a minute)"
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(BIN)/.installed-dev: $(BIN)/.installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(BIN)/.installed-classification: $(BIN)/.installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[classification]'
	@touch $@

$(BIN)/.installed-docs: $(BIN)/.installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

install: $(BIN)/.installed  ## make the environment in .venv

quickstart: $(BIN)/.installed  ## rerank the lists in data/ and write a report
	@$(BIN)/rerank run recipes/quickstart.yaml --output $(OUTPUT)

papers: $(BIN)/.installed-classification  ## the papers' tables and figures (DATA=, QUICK=1 for a twentieth)
	@status=0; began=$$(date +%s); \
	run() { \
		root=$$1; work=$$2; shift 2; \
		for name; do \
			echo; echo "$$name"; \
			$(BIN)/rerank run recipes/papers/$$name.yaml --resume $(if $(SHORT),--quick) $$work --set data.root=$$root \
				--output runs/papers/$$name$(if $(SHORT),-quick) || status=$$?; \
		done; \
	}; \
	run $(DATA)/parse/gum --engine=processes $(PARSE_PAPERS); \
	run $(DATA)/translation/multi30k --engine=processes $(TRANSLATION_PAPERS); \
	run $(DATA)/binary "" $(BINARY_PAPERS); \
	echo "papers: $$(($$(date +%s) - began)) seconds"; exit $$status

docs: $(BIN)/.installed-docs  ## build the documentation site in site/; broken links and undocumented names are errors
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "site/index.html; to read it while you edit: make docs-serve"

docs-serve: $(BIN)/.installed-docs  ## read the documentation in a browser, at http://127.0.0.1:8000, while you edit
	@RUN_NOTEBOOKS=false $(BIN)/python -m mkdocs serve

test: $(BIN)/.installed-dev  ## run the tests (WORKERS=)
	@$(PYTEST)

test-quick: $(BIN)/.installed-dev  ## run one instance of every test
	@$(PYTEST) --quick

test-random: $(BIN)/.installed-dev  ## try other generated examples (SEED=, EXAMPLES= times as many)
	@seed=$${SEED:-$$(date +%s)}; echo "SEED=$$seed EXAMPLES=$(or $(EXAMPLES),1)"; \
		$(PYTEST) --generated --hypothesis-profile random --hypothesis-seed $$seed --examples $(or $(EXAMPLES),1) $(TESTS)

wheel: $(BIN)/.installed-dev  ## run a recipe where nothing but the wheel is installed, by another Python
	@$(BIN)/python -m pytest -m wheel tests/project/test_packaging.py

coverage: $(BIN)/.installed-dev  ## measure line coverage; kernels count where they run as plain Python
	@$(PYTEST) --cov=rerank --cov-report=
	-@NUMBA_DISABLE_JIT=1 $(PYTEST) --quick --timeout=60 --timeout-method=signal --cov=rerank --cov-append \
		--cov-report=term $(KERNELS)

fuzz:  ## try bad input: test-random of tests/fuzz, with 20 times as many examples (SEED=, EXAMPLES=)
	@$(MAKE) --no-print-directory test-random TESTS=tests/fuzz EXAMPLES=$(or $(EXAMPLES),20)

check: $(BIN)/.installed-dev  ## format check, lint, types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(BIN)/.installed-dev  ## format the sources
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(BIN)/.installed-dev  ## measure speed and memory (see benchmarks/README.md)
	@$(BIN)/python benchmarks/run.py

clean:  ## remove the environment, caches and runs
	rm -rf $(VENV) runs .mypy_cache .pytest_cache .ruff_cache .hypothesis
