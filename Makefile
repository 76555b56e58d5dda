# Every target works from nothing but Python 3.11 to 3.13, git and make, and is quick when nothing changed.
PYTHONS := python3.13 python3.12 python3.11
SYSTEM := /usr/bin
# The first one that runs and creates environments: a name may stand for a version manager without that version.
# The system's come first: a distribution builds Python with optimizations, as Azure does, and a version manager
# mostly does not. So the tests take a sixth less of the processor.
PYTHON ?= $(firstword $(foreach python,$(PYTHONS:%=$(SYSTEM)/%) $(PYTHONS),\
	$(shell $(python) -c 'import ensurepip; print("$(python)")' 2>/dev/null)))
STATE ?= .localcloud
GIT_HOST ?= github
SEEDS ?= 1000
FROM ?= 0
VENV := .venv
BIN := $(VENV)/bin
# Python compiles what it imports, once; most of the Azure SDK is never imported.
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
unexport PYTHONDONTWRITEBYTECODE
# uv installs with a fifth of pip's work. It reads no configuration of pip: where it fails, pip installs.
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python
READY := $(VENV)/.ready
AZURITE := .tools/.ready
KUSTO := .tools/kusto/.ready
BROWSER := .tools/browser/unpacked/package-lock.json
AZ ?= .tools/azure-cli/bin/az

LOCK := --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock"

.PHONY: help environment demo up test tests deep collect authority azure-cli simulate check style types format generate bicep lock package release screenshots clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Roadstead needs Python 3.11 to 3.13; set PYTHON=/path/to/python"; exit 1; }
	@echo "Creating the Python environment $(VENV), once ..."
	@$(PYTHON) -m venv $(VENV)

$(READY): requirements.txt pyproject.toml | $(BIN)/python
	@$(PIP) "$$(sed -n 's/.*"\(uv==[^"]*\)".*/\1/p' pyproject.toml)"
	@echo "Installing Roadstead, its libraries and its development tools, once ..."
	@$(UV) --require-hashes --requirement requirements.txt || \
		$(PIP) --require-hashes --requirement requirements.txt
	@$(UV) --editable '.[dev]' || $(PIP) --editable '.[dev]'
	@pwd > "$$($(BIN)/python -c 'import site; print(site.getsitepackages()[0])')/roadstead-clone.pth" # and what no wheel has
	@touch $@

$(AZURITE): localcloud/runtime/tools.py | $(BIN)/python
	@$(BIN)/python -m localcloud.runtime.tools
	@touch $@

environment: $(READY) $(AZURITE) # packages and tools, at the same time
	@:

$(KUSTO): tests/kusto/package-lock.json | $(AZURITE)
	@$(BIN)/python -m tests.support.language_service
	@touch $@

$(BROWSER): tests/browser/package-lock.json | $(READY) $(AZURITE)
	@$(BIN)/python -m tests.support.chromium

demo: ## create, change and delete clusters by pushes to the local cloud
	@$(MAKE) --no-print-directory --jobs 2 environment
	@$(BIN)/python -m localcloud.demo --git-host $(GIT_HOST)

up: ## start the local cloud and the functions; Ctrl-C stops them
	@$(MAKE) --no-print-directory --jobs 2 environment
	@$(BIN)/python -m localcloud up --state $(STATE)

test: ## every check and every test, a sample of what takes long; SEED=N repeats a run
	@$(MAKE) --no-print-directory --jobs 2 environment $(KUSTO) $(BROWSER) style collect
	@$(MAKE) --no-print-directory --jobs 2 tests types # many tests wait for a while: the types are checked meanwhile

tests:
	@$(BIN)/python -m pytest -n 4 --dist worksteal

deep: ## every case of every test, and then make simulate: as every night
	@$(MAKE) --no-print-directory --jobs 2 environment
	@$(MAKE) --no-print-directory $(KUSTO) $(BROWSER)
	@DEEP=yes $(BIN)/python -m pytest --timeout 1800 -n 6 --dist worksteal
	@$(MAKE) --no-print-directory simulate

collect: $(READY) # compiles the tests for the workers, which would each do that
	@$(BIN)/python -m pytest --collect-only --quiet > .collected || { cat .collected; exit 1; }

authority: $(READY) $(AZURITE) ## build a real Kubernetes and Flux (needs Go), and test against them
	@$(BIN)/python -m tests.authority.build
	@DEEP=yes $(BIN)/python -m pytest tests/authority

$(AZ): # the version that the tests were last green with
	@echo "Installing azure-cli: some minutes ..."
	@$(PYTHON) -m venv .tools/azure-cli
	@.tools/azure-cli/bin/pip install --quiet --disable-pip-version-check azure-cli==2.91.0

azure-cli: $(READY) $(AZ) ## drive the local Azure with azure-cli, which is installed on its own
	@AZURE_CLI=$(AZ) $(BIN)/python -m pytest tests/azure_cli

simulate: $(READY) ## let SEEDS=1000 fleets, FROM=0, meet everything that can go wrong; check every rule
	@$(BIN)/python -m simulation --seeds $(SEEDS) --first $(FROM)

check: style types ## format, lint, types, layers, wording

style: $(READY) # all but the types, which take longest
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports --no-cache | tail -n 3
	@$(BIN)/python -m tools.wording
	@$(BIN)/python -m tools.announced || true # a day that passes fails no commit, only a release

types: $(READY)
	@$(BIN)/mypy --no-error-summary

lock: $(READY) ## resolve requirements.in into requirements.txt for each Python, with a hash of every file
	@$(BIN)/uv pip compile $(LOCK) --output-file requirements.txt requirements.in

screenshots: $(READY) $(BROWSER) ## take the pictures of the console and of a comment again, when they have changed
	@$(BIN)/python -m tests.support.screenshots

package: $(READY) ## write what a release publishes to dist/, with the kustomize that Go builds, or KUSTOMIZE=/path
	@$(BIN)/python -m tools.package dist

release: $(READY) ## make package, where the table of retirements is new enough for a release of today
	@$(BIN)/python -m tools.announced
	@$(MAKE) --no-print-directory package

format: $(READY) ## rewrite the code in the one format
	@$(BIN)/ruff format --quiet . && $(BIN)/ruff check --fix --quiet .

generate: $(READY) ## write again the pages and schemas that come from code
	@$(BIN)/python -m cli.pages.reference
	@$(BIN)/python -m cli.pages.error_page > docs/errors.md
	@$(BIN)/python -m localcloud.azure.refusals_page > docs/local-azure-refusals.md
	@$(BIN)/python -m tools.grafana
	@$(BIN)/python -m tools.functions
	@$(BIN)/python -m cli.schemas schemas
	@$(BIN)/python -m cli.schemas examples/fleet/.roadstead/schemas

bicep: $(READY) ## format and compile the templates, with the bicep on PATH or BICEP=/path
	@$(BIN)/python -m tools.bicep

clean: ## remove everything that was installed or written
	rm -rf dist $(VENV) .tools .localcloud* .collected .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
