# make demo: the whole road on data that comes with the install.   make test: linters, types, tests.
# make bench: speed on this machine's CPU, in a few minutes: benchmarks/out/cpu.json and cpu.md.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: install demo test lint bench wheel
install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev]'
	touch $(STAMP)

demo: install
	$(BIN)/unskew demo --out demo

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest

bench: install
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks --device cpu

wheel: install
	$(BIN)/python -m build --wheel --no-isolation
