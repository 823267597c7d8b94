"""Mutants of what holds sessions, snapshots and records together where several things go wrong at once."""

from __future__ import annotations

from tests.mutants.mutant import MODEL, RETENTION, Mutant

WORKER = "pipeline/worker/worker.py"
OPENINGS = "pipeline/worker/openings.py"
ANSWERS = "pipeline/worker/answers.py"
FOLLOWER = "pipeline/index/follower.py"
LEDGER = "pipeline/index/ledger.py"
STATE = "pipeline/index/state.py"
PROTOCOL = (
    Mutant(
        "protocol: a second refusal is believed without a proof of membership",
        WORKER,
        "        self._transactor.begin()\n"
        "        self._transactor.send_offsets({error.partition: Committed(0)}, membership)\n"
        "        self._transactor.abort()\n"
        "        if error.partition",
        "        if error.partition",
        ("tests/model/test_frozen_worker.py",),
    ),
    Mutant(
        "protocol: the end of the decisions is recorded without the marker",
        "pipeline/index/transaction.py",
        "+ len(rulings) + (1 if rulings else 0)",
        "+ len(rulings)",
        RETENTION,
    ),
    Mutant(
        "protocol: numbers of topics are exchanged one after the other",
        "pipeline/wire/positions.py",
        "packed[before == old] += np.int64(new - old) << np.int64(shift)",
        "packed[packed >> shift == old] += np.int64(new - old) << np.int64(shift)",
        ("tests/wire/test_blocks.py",),
    ),
    Mutant(
        "protocol: an index goes live without a proof",
        "pipeline/index/index.py",
        "ends.check(lambda: writer.prove(committed or Committed(ends.recorded), membership))",
        "ends.check(lambda: None)",
        ("tests/model/test_frozen_index.py",),
    ),
    Mutant(
        "protocol: a reset keeps the mark of the topic before",
        "pipeline/broker/mark.py",
        "if mark is None or mark.topic_id != topic_id or mark.fresh:",
        "if mark is None or mark.fresh:",
        ("tests/operate/test_reset.py",),
    ),
    Mutant(
        "protocol: a cut of ranges begins with the neighbour",
        "pipeline/index/ranges.py",
        "        high = bisect_left(self._firsts, end)\n        if low >= high:",
        "        high = bisect_right(self._firsts, end)\n        if low >= high:",
        ("tests/model/test_model_ledger.py",),
        equivalent="A range that begins at the end of the cut touches it, and loses nothing when it is cut there too.",
    ),
    Mutant(
        "protocol: a stored verdict that this index does not know stays closed",
        LEDGER,
        "            opened |= stored & ~is_open\n",
        "            opened |= stored & is_open & ~is_open\n",
        RETENTION,
    ),
    Mutant(
        "protocol: what a session without offset leaves out is not seen",
        LEDGER,
        "return bool(book.judged) or block.first > max(book.covered, block.beginning)",
        "return bool(book.judged)",
        ("tests/model/test_joining.py", "tests/model/test_start_latest.py", *MODEL),
    ),
    Mutant(
        "protocol: a worker that begins anew reads its answers on from where it was",
        WORKER,
        "        self._answers.forget()\n        self.waits.wait(self._sessions",
        "        self.waits.wait(self._sessions",
        MODEL,
    ),
    Mutant(
        "protocol: an index goes back where it passes blocks over",
        STATE,
        "self.next_offset = max(self.next_offset, log_offset)",
        "self.next_offset = log_offset",
        RETENTION,
        equivalent="Whoever passes over names a block that is not behind where the state is; the limit is a second lock.",
    ),
    Mutant(
        "protocol: what retention took explains each gap behind it",
        FOLLOWER,
        "                # Retention deletes the oldest records first, so all decisions after this one are there.\n"
        "                self.cut = False\n",
        "                # Retention deletes the oldest records first, so all decisions after this one are there.\n",
        RETENTION,
    ),
    Mutant(
        "protocol: partitions that could not be opened hold up the others again",
        OPENINGS,
        "together = sorted(part for part in due if part not in self._pauses_s)",
        "together = sorted(due)",
        ("tests/worker/test_opening_queue.py", "tests/model/test_leaderless.py"),
    ),
    Mutant(
        "protocol: what was passed over leads on in the exact stage",
        "stages/judge/batch_sieve.py",
        "outcome.kinds[low:high][self._forgotten.holds(tags[: high - low])] = UNJUDGED_NEAR",
        "pass",
        ("tests/property/test_forgotten_lead_nobody.py",),
    ),
    Mutant(
        "protocol: a restore takes the arrival that the worker names",
        STATE,
        "batches.append(self._batch(block, readable, ruling.arrival_ms))",
        "batches.append(self._batch(block, readable, block.arrival_ms))",
        ("tests/model/test_arrival_clocks.py", "tests/index", *MODEL),
    ),
    Mutant(
        "protocol: snapshots of other logs are deleted too",
        "pipeline/index/snapshot_store.py",
        "if match and match[2] == ours]",
        "if match]",
        ("tests/index/test_snapshot_faults.py", "tests/index", "tests/retention"),
    ),
    Mutant(
        "protocol: the answer of another session is taken",
        ANSWERS,
        'session = by_number.get(session_of(value or b""))',
        'session = by_number.get(session_of(value or b"")) or next(iter(sessions.values()), None)',
        ("tests/model/test_model_topics.py",),
    ),
)
