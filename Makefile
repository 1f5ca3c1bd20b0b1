# Each target sets itself up on a machine that has only Python (3.11 or later) and make.
# PYTHON=python3.12 make test   picks the interpreter the environment is made from.

PYTHON ?= python3
VENV := .venv
BENCH_VENV := .venv-bench
# Which of CuPy's wheels gpu-test installs: cuda12 or cuda13.
CUDA ?= cuda13
BIN := $(VENV)/bin
METADATA := setup.cfg pyproject.toml

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint bench gpu-test gpu-bench clean

help:
	@echo "make demo      train three small models on real data, show what the compiler made"
	@echo "make test      ruff, mypy, import-linter and the tests"
	@echo "make test-all  the same with the long tests"
	@echo "make lint      ruff, mypy and import-linter only"
	@echo "make bench     time pyrelay against NumPy, numba, JAX, PyTorch and onnxruntime"
	@echo "make gpu-test  programs on a GPU, compared with the CPU and NumPy; ends where there is none"
	@echo "make gpu-bench GPU programs, timed on a GPU, else counted; both write JSON to OUT=folder"
	@echo "make clean     remove the environments and what tools left behind"

demo: $(VENV)/.installed-demo
	$(BIN)/python -m examples.demo

test: lint
	$(BIN)/python -m pytest -n 2

test-all: lint
	$(BIN)/python -m pytest -n 2 -m ""

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --config setup.cfg --no-cache --no-logo

bench: $(BENCH_VENV)/.installed-bench
	$(BENCH_VENV)/bin/python -m benchmarks

# Where $(PYTHON) has all that these two need, it runs them as it is, from the source tree: machines
# with GPUs are often without a network.
ifneq ($(filter gpu-%,$(MAKECMDGOALS)),)
LACKS := $(shell $(PYTHON) -c 'import importlib.util as u; print(*[n for n in \
  "cupy llvmlite astunparse pytest".split() if u.find_spec(n) is None])' 2>/dev/null || echo all)
endif
MANY := -n auto --max-worker-restart 10000
WORKERS := $(MANY)
ifeq ($(LACKS),)
GPU_PYTHON := $(PYTHON)
WORKERS := $(shell $(PYTHON) -c 'import xdist; print("$(MANY)")' 2>/dev/null)
else
GPU_PYTHON := $(BIN)/python
GPU_NEEDS := $(VENV)/.installed-test $(VENV)/.installed-$(CUDA)
endif

gpu-test: $(GPU_NEEDS)
	$(GPU_PYTHON) -m pytest $(WORKERS) -m "" -p tests.gpu_report -p tests.devices.on_gpu \
	  --continue-on-collection-errors \
	  tests/devices/gpu/test_*.py tests/devices/test_cuda_emulator.py \
	  tests/benchmarks/test_gpu_*.py tests/lower/kernels/test_traffic.py \
	  tests/opt/test_halves.py tests/opt/test_half*.py tests/opt/test_compaction.py \
	  tests/opt/test_picks.py tests/lower/kernels/test_bisection.py \
	  tests/lower/kernels/test_attention.py tests/lower/kernels/test_whole_schedule.py \
	  tests/lower/planning/test_finishing.py tests/lower/passes/test_row_packs.py \
	  tests/lower/passes/test_cooperation.py tests/lower/passes/test_held_rows.py \
	  tests/lower/passes/test_column_blocks.py tests/lower/passes/test_packs.py \
	  tests/lower/passes/test_narrow.py tests/lower/passes/test_long_chunks.py \
	  tests/lower/passes/test_online.py tests/infer/arrays/test_bits.py \
	  tests/end_to_end/test_bfloat16.py tests/test_pullbacks.py tests/ops/test_scalar.py \
	  tests/opt/test_extremes.py tests/lower/passes/test_reciprocals.py \
	  tests/lower/passes/test_known_divisors.py

gpu-bench: $(firstword $(GPU_NEEDS))
	$(GPU_PYTHON) -m benchmarks.gpu $(OUT)

clean:
	rm -rf $(VENV) $(BENCH_VENV) *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

# A stamp per extra: installed again only when the metadata changes.
$(VENV)/.installed-%: $(METADATA) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

$(BENCH_VENV)/.installed-%: $(METADATA) | $(BENCH_VENV)/bin/python
	$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

$(VENV)/bin/python $(BENCH_VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "pyrelay needs Python 3.11 or later; name one, as in: make PYTHON=python3.12 test"; exit 1; }
	$(PYTHON) -m venv $(patsubst %/bin/python,%,$@)
