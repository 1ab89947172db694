.DEFAULT_GOAL := help
SHELL := /bin/sh
PY := .venv/bin/python

help: ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: ## make .venv (finds a Python >= 3.12, installs everything)
	@sh scripts/make_env.sh

flywheel: env ## the flywheel on this machine, with live progress: one policy solves, designs and learns
	@.venv/bin/workbench run 40_flywheel -p profile micro

cold-start: env ## make the micro policy's Cold-Start checkpoint anew (half an hour; goes on where it was)
	@$(PY) -m workbench.training.cold_start_make

lab: env ## open JupyterLab on the notebooks
	@.venv/bin/jupyter lab notebooks

test: env ## everything that CI runs
	@sh scripts/test.sh

test-all: env ## test, and the slow, exhaustive suites and every notebook with its defaults
	@WORKBENCH_TEST_ALL=1 sh scripts/test.sh

bench: env ## the benchmarks, printed as ratios of one run
	@$(PY) -m benchmarks

lint: env ## ruff
	@.venv/bin/ruff check . && .venv/bin/ruff format --check .

clean: ## remove what dead runs left on this machine
	@.venv/bin/workbench clean

.PHONY: help env flywheel cold-start lab test test-all bench lint clean
