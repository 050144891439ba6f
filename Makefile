# Two commands matter: `make demo` and `make test`. Both set everything up first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
EXTRAS := dev,docs,spark,http,grpc,auth,otel,backup,sql,airflow
BENCH_READY := $(VENV)/.bench-ready
CONFORMANCE_READY := conformance/node_modules/.ready

# Tests start hundreds of processes: each would compile every module that it imports anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test test-long simulate faults faults-long faults-soak faults-crashes schemathesis conformance conformance-http2 screenshots docs docs-build audit check format lint types bench bench-quick bench-parts bench-spark clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY)  ## Create the environment in .venv, and install Java and Chromium if they are missing

$(READY): pyproject.toml constraints.txt scripts/system-packages scripts/install-packages
	@echo "Setting up: this takes about two minutes, needs the network, and is done once."
	@echo "1/3 Python's venv module, Java and Chromium"
	@scripts/system-packages $(PYTHON)
	@echo "2/3 a new environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@echo "3/3 the packages of constraints.txt, about 680 MB (Spark is most of it)"
	@scripts/install-packages $(EXTRAS)
	@touch $@
	@echo "Ready. To use it: . $(VENV)/bin/activate"

demo: setup  ## Run the whole story: Spark, workers, crashes, a dashboard (KEEP=1: it stays up)
	$(BIN)/python -m examples.demo $(if $(KEEP),--keep)

# The public suite of streams and the client that comes with it need node 20.
NODE := $(shell node -e 'process.exit(process.versions.node.split(".")[0] < 20 ? 1 : 0)' 2>/dev/null && echo yes)

# Four at a time on two cores: half of the tests wait for processes that start or are killed.
test: setup $(if $(NODE),$(CONFORMANCE_READY))  ## Run every test; those of other streams' clients and their suite need node 20
	$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder --durations=40

test-long: setup  ## Run every test, also those that take long
	QUEUEBER_TEST_KILLS=20 QUEUEBER_TEST_HISTORIES=1000 $(BIN)/python -m pytest -m ""

simulate: setup  ## Simulate 50,000 histories with crashes; SEED=... prints one of them
	$(BIN)/python -m faults.simulation $(if $(SEED),--seed $(SEED))

# The soak test leaves one core for the crash tests. What measures speed runs after it, alone.
faults: setup  ## Inject every kind of fault that we know, in 15 minutes
	@QUEUEBER_TEST_KILLS=20 $(MAKE) --no-print-directory --jobs=2 faults-soak faults-crashes MINUTES=10 HISTORIES=4000 \
		KILLS=20 CUTS=120 DAMAGES=60 \
		TESTS="tests/recovery tests/faults/test_disk_errors.py tests/faults/test_disk_full.py"
	$(BIN)/python -m faults.hostile --seconds 2
	$(BIN)/python -m faults.hostile --tls --only tls: --seconds 2
	$(BIN)/python -m faults.http --seconds 2
	$(BIN)/python -m faults.grpc --seconds 2
	$(BIN)/python -m faults.grpc --tls --only tls: --seconds 2
	$(BIN)/python -m faults.overload --seconds 5

faults-long: setup  ## The same, in two hours
	@QUEUEBER_TEST_KILLS=200 QUEUEBER_TEST_POISON_ITEMS=5000 QUEUEBER_TEST_EXAMPLES=500 \
		$(MAKE) --no-print-directory --jobs=2 faults-soak faults-crashes MINUTES=60 HISTORIES=50000 \
		KILLS=200 CUTS=10000 DAMAGES=3000 TESTS='-m "" tests/recovery tests/faults tests/engine/test_against_model.py'
	$(BIN)/python -m faults.hostile --seconds 20
	$(BIN)/python -m faults.hostile --tls --seconds 20
	$(BIN)/python -m faults.http --seconds 20
	$(BIN)/python -m faults.grpc --seconds 20
	$(BIN)/python -m faults.grpc --tls --seconds 20
	$(BIN)/python -m faults.overload --seconds 30

faults-soak:
	$(BIN)/python -m faults.soak --minutes $(MINUTES)

faults-crashes:
	$(BIN)/python -m faults.simulation --histories $(HISTORIES)
	$(BIN)/python -m faults.death --kills $(KILLS)
	$(BIN)/python -m faults.routes --kills $(KILLS)
	$(BIN)/python -m faults.power 1 $(CUTS)
	$(BIN)/python -m faults.disk.corruption 1 $(DAMAGES)
	$(BIN)/python -m pytest -q $(TESTS)

schemathesis: setup  ## Look for requests that the gateway does not answer as it says, in some minutes
	QUEUEBER_TEST_SCHEMATHESIS_EXAMPLES=200 QUEUEBER_TEST_SCHEMATHESIS_SECONDS=1800 \
		$(BIN)/python -m pytest -q --timeout 1900 -k schemathesis tests/gateway/test_openapi.py

$(CONFORMANCE_READY): conformance/package.json
	cd conformance && npm install --no-package-lock --no-fund --no-audit --loglevel=error
	@touch $@

conformance: setup $(CONFORMANCE_READY)  ## Run the public suite of Durable Streams, in a minute (needs node 20)
	$(BIN)/python -m conformance

conformance-http2: setup  ## Run h2spec, the public suite of HTTP/2, against the gRPC port, in a minute (needs Go)
	$(BIN)/python -m conformance.http2

screenshots: setup  ## Take the pictures of docs/dashboard.md, in five minutes
	$(BIN)/python -m scripts.screenshots

# MkDocs would tell of its next version at every start.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs

docs: setup  ## Serve the documentation at http://127.0.0.1:8000, and show what you edit
	$(MKDOCS) serve --strict --dev-addr 127.0.0.1:8000

docs-build: setup  ## Build the documentation into site/; a broken link is an error
	$(MKDOCS) build --strict

audit: setup  ## Look up known vulnerabilities of the dependencies (needs the network)
	@scripts/install-packages $(EXTRAS),audit
	@$(BIN)/python scripts/audit.py

check: setup format lint types test  ## What CI runs: format, lint, import rules, types, tests

format: setup
	$(BIN)/ruff format --check .

lint: setup
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml queueber faults bench conformance examples scripts

types: setup
	$(BIN)/mypy

$(BENCH_READY): $(READY)
	@scripts/install-packages $(EXTRAS),bench
	@touch $@

bench: $(BENCH_READY)  ## Compare with other queues and topics, in half an hour, and write docs/performance.md (Debian, root)
	$(BIN)/python -m bench.peers --page
	$(BIN)/python -m bench.topics --page
	$(BIN)/python -m bench.streams --page
	$(BIN)/python -m bench.sluice --page
	$(BIN)/python -m bench.gateway

COMMIT ?= HEAD
bench-quick: $(BENCH_READY)  ## Compare this tree with COMMIT (HEAD), in two minutes
	$(BIN)/python -m bench.quick $(COMMIT)

bench-parts: $(BENCH_READY)  ## Measure the engine, the server, workers, features and loads from Spark alone (40 minutes)
	$(BIN)/python -m bench.engine
	$(BIN)/python -m bench.outcomes
	$(BIN)/python -m bench.batches
	$(BIN)/python -m bench.caps
	$(BIN)/python -m bench.routes
	$(BIN)/python -m bench.rpc
	$(BIN)/python -m bench.security
	$(BIN)/python -m bench.depth
	$(BIN)/python -m bench.large_store
	$(BIN)/python -m bench.spark
	$(BIN)/python -m bench.unused
	$(BIN)/python -m bench.worker

bench-spark: $(BENCH_READY)  ## Measure loads from Spark beside PostgreSQL's COPY (15 minutes; needs Java)
	$(BIN)/python -m bench.spark

clean:  ## Remove the environment and all caches
	rm -rf $(VENV) site conformance/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis .bench *.egg-info
