# `make demo`, `make check` and `make test` need a Python with venv, and a network for packages. `make test-all` also takes Java 17, Maven,
# OpenSSL and Chromium, which are installed where that is allowed.
# VENV and PYTHON may be given.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
MESSAGES ?= 20000
# The tests that `make test` runs.
MARKS ?= not heavy and not minutes
# How many examples of property tests, and cases of matrices: `quick` is a part (tests/examples.py), `fixed` is all.
EXAMPLES ?= quick
# 4: every fourth test.
SHARE ?= 1
# Three processes for two cores, because some tests wait; whole files are handed out (tests/processes.py).
PYTEST_ARGS ?= -n $(shell echo $$((($$(nproc) * 3 + 1) / 2))) --no-loadscope-reorder
# Twice as many where brokers and browsers are waited for.
HEAVY_ARGS ?= -n 4 --no-loadscope-reorder
# Tests start the program hundreds of times: without kept byte code each start compiles all sources again.
unexport PYTHONDONTWRITEBYTECODE

# `bench` is a folder, too.
.PHONY: bench map demo test test-all every-test nightly long check lint types tests heavy coverage checked nasty fuzz forged kills mutants soak retention outage failover rolling redrive crash-loop disturbed more-partitions latency throughput classics interpreters oldest dist release lock screenshots clean

demo:
	@test -e $(VENV)/.installed || echo "installs the packages of requirements.lock into $(VENV), which needs a network, and compiles: 0.6 GB, some 100 seconds of CPU time"
	@$(MAKE) --no-print-directory $(VENV)/.installed
	@$(BIN)/twinsieve warm-up || true
	@scripts/demo $(BIN) $(MESSAGES)

# What a change must pass: no broker, no browser, no chance.
test: $(VENV)/.installed-dev
	@$(MAKE) --no-print-directory lint tests VENV=$(VENV)

# All there is but what takes minutes of a core (`make long`): every test, then whether tests notice known defects.
test-all: every-test
	@$(BIN)/python -m tests.mutants --at-once

# `make test` with the tests of types, brokers, pages, packages and images in the same run.
every-test:
	@$(MAKE) --no-print-directory test MARKS="not minutes" EXAMPLES=fixed PYTEST_ARGS="$(HEAVY_ARGS)"

check: lint types

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

tests: $(VENV)/.installed-dev
	@$(BIN)/twinsieve warm-up || true
	TWINSIEVE_SHARE=$(SHARE) $(BIN)/pytest -m "$(MARKS)" --hypothesis-profile $(EXAMPLES) $(PYTEST_ARGS)

heavy: $(VENV)/.installed-dev
	$(BIN)/pytest -m "heavy and not minutes" $(HEAVY_ARGS)

# The tests that take minutes of a core each (docs/TESTING.md).
long: $(VENV)/.installed-dev
	$(BIN)/pytest -n 2 -m minutes -o faulthandler_timeout=1800

# Other examples than those of `make test`, and other hostile runs; SEED=… plays them again.
SEED := $(or $(SEED),$(shell date +%s))
nightly: $(VENV)/.installed-dev
	@echo "make nightly SEED=$(SEED)"
	$(BIN)/pytest --hypothesis-profile nightly --hypothesis-seed $(SEED) -m "not heavy and not minutes" $(PYTEST_ARGS)
	@$(BIN)/python -m tests.nasty --first $(SEED) --runs $(RUNS)

# All tests with a count of the lines and branches of Python that they run, kernels left out; takes twice the time.
coverage: $(VENV)/.installed-dev
	$(BIN)/pytest --cov --cov-report=term:skip-covered $(HEAVY_ARGS)

# Folders with code, their imports and their levels.
map: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.house.map

# Kernels whose indices are checked: one below 0 or too large is an IndexError. Takes a minute to compile them, and three for the tests.
# Left out: what the tests say of compiled files and of their number.
checked: $(VENV)/.installed-dev
	@NUMBA_BOUNDSCHECK=1 $(BIN)/twinsieve warm-up || true
	NUMBA_BOUNDSCHECK=1 $(BIN)/pytest --ignore tests/stages/kernel tests/stages tests/property tests/golden tests/model tests/accuracy $(PYTEST_ARGS)

# Random hostile runs of a whole deployment on the memory broker, three of five with shards, judged from its raw topics; some seconds
# each.
RUNS ?= 500
nasty: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.nasty --runs $(RUNS)

# Mutated record batches for the kernel that finds records, with checked indices and between pages that nobody may read; 10 million
# take ten minutes.
BATCHES ?= 10000000
fuzz: $(VENV)/.installed-dev
	@NUMBA_BOUNDSCHECK=1 $(BIN)/python -m tests.nasty --batches $(BATCHES)

# Files of saved states, forged with right checksums: no crash, one line, and what is left judges.
MUTATIONS ?= 200
forged: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.forged --mutations $(MUTATIONS)

# Runs over files are killed at random moments and repeated; exit code 1 when they leave other files than unbroken ones.
KILLS ?= 50
kills: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.dedup.kills --kills $(KILLS)

# Known defects, one at a time, in copies of the checkout; exit code 1 when the tests let one live.
mutants: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.mutants

# Ten minutes of kills, freezes and broker restarts; prints what was lost, extra and stuck.
soak: $(VENV)/.installed-dev
	$(BIN)/python -m bench.kafka_soak --seconds 600 $(POSTS:%=--posts %) $(HARD:%=--hard) $(SHARDS:%=--shards %) $(LIMITED:%=--limited)

# Ten minutes of the same on three brokers without replicas, with retention of two minutes and an index that is away for longer.
retention: $(VENV)/.installed-dev
	$(BIN)/python -m bench.kafka_retention --seconds 600

# The broker stays away for a minute; exit code 1 if anything was lost, doubled or said too often.
outage: $(VENV)/.installed-dev
	$(BIN)/python -m bench.kafka_outage --seconds 60

# How long nothing comes out when the index dies with a million kept messages.
failover: $(VENV)/.installed-dev
	$(BIN)/python -m bench.kafka_failover --kept 1000000

# Five processes are restarted one after the other: who judges, and how long nothing comes out.
rolling: $(VENV)/.installed-dev
	$(BIN)/python -m bench.kafka_rolling

# Dead letters are judged again while every process is killed and messages come in.
redrive: $(VENV)/.installed-dev
	$(BIN)/python -m bench.kafka_redrive

# One of two processes ends again and again, in three ways.
crash-loop: $(VENV)/.installed-dev
	$(BIN)/python -m bench.kafka_crash_loop --seconds 600

# Other people's consumers, batches, deletions, collectors and folders: who says it, and how late messages get.
disturbed: $(VENV)/.installed-dev
	$(BIN)/python -m bench.kafka_disturbed

# Topics get twice as many partitions under load, in each order.
more-partitions: $(VENV)/.installed-dev
	$(BIN)/python -m bench.kafka_more_partitions

# From a message written to it read behind the sieve.
latency: $(VENV)/.installed-dev
	$(BIN)/python -m bench.kafka_latency

# Two workers and the index as fast as they go, warm and idle before the input is written.
throughput: $(VENV)/.installed-dev
	$(BIN)/python -m bench.kafka_throughput

# This program beside its peers, on files and on Kafka, each checked for the right answer; some 40 minutes. Tables, JSON, plots.
bench: $(VENV)/.installed-dev
	@$(BIN)/twinsieve warm-up -q
	$(BIN)/python -m bench.peers --plots

# Every classic recipe and the default on every data set (real ones if TWINSIEVE_DATA is set); writes the tables of docs/CLASSICS.md.
classics: $(VENV)/.installed-dev
	$(BIN)/python -m bench.classics

# The pictures of pages in docs/, from generated posts; look at them before they are committed. Needs Chromium and fonts, as tests do.
screenshots: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.pages.screenshots $(SHOTS)

# Sdist and wheel into dist/, checked, installed and tried under every Python 3.11 to 3.14 that is found, or under those of
# PYTHONS="python3.11 python3.12". Needs a network for packages.
dist: $(VENV)/.installed
	@$(BIN)/python -m scripts.dist $(PYTHONS)

# All files of a release in dist/: those of `make dist`, a bill of materials, licences, and an audit in which a package that could not be
# audited fails; and the image, where Docker or Podman answers. AUDIT="--vulnerability-service osv" asks another service. Nothing is
# published.
release: $(VENV)/.installed
	@AUDIT="$(AUDIT)" $(BIN)/python -m scripts.release $(PYTHONS)

# Every patch version of Python 3.11 to 3.14 that is found gives the same schemes, verdicts and states; or name two: PYTHONS="python3.12 …".
interpreters: $(VENV)/.installed
	$(BIN)/python scripts/interpreters.py $(PYTHONS)

# The quick half of the tests under the oldest Python found, or PYTHONS="python3.13", and the oldest packages that pyproject.toml allows for it.
oldest: $(VENV)/.installed-dev
	@$(BIN)/python -m scripts.oldest $(PYTHONS)

# Rewrites both lock files from pyproject.toml.
lock: | $(VENV)/bin/python
	@scripts/lock $(BIN)

$(VENV)/bin/python:
	@scripts/make-venv $(PYTHON) $(VENV)

$(VENV)/.installed: requirements.lock pyproject.toml setup.py | $(VENV)/bin/python
	@echo "installing the packages of requirements.lock into $(VENV)"
	@# Twice quiet: pip 23 warns for each package without a wheel.
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

$(VENV)/.installed-dev: requirements-dev.lock $(VENV)/.installed
	@echo "installing the packages of requirements-dev.lock into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis demo-output
	find stages pipeline twinsieve tests -name __pycache__ -type d -prune -exec rm -rf {} +
