"""All mutants: defects of the protocol and of the rules of difference that tests must notice.

Texts are short, so that a change beside them does not concern them.
"""

from __future__ import annotations

from tests.mutants.mutant import CRASH, EDGES, RETENTION, Mutant

DIFFER = "stages/differ/"
WORKER = "pipeline/worker/worker.py"
OUTBOX = "pipeline/worker/outbox.py"
SESSION = "pipeline/worker/session.py"
TRUNCATED = ("tests/model/test_truncated_input.py",)
EMIT = "pipeline/worker/emit.py"
STATE = "pipeline/index/state.py"
PASSED = ("tests/model/test_passed_over.py",)
LEDGER = "pipeline/index/ledger.py"
INDEX = "pipeline/index/index.py"
ENDS = "pipeline/index/ends.py"
VERIFY = "stages/near/verify.py"
KEPT_APART = ("tests/stages/differ",)
NEAR_VALUES = DIFFER + "number_values.py"
FOLLOWER = "pipeline/index/follower.py"
MARK = "pipeline/broker/mark.py"
FOREIGN = ("tests/model/test_foreign_offsets.py",)
ANSWERS = "pipeline/worker/answers.py"
BROKER = "pipeline/service/redriven_broker.py"
CRASHES = ("tests/crash/test_redrive_crashes.py",)
SEGMENT_WAITS = "pipeline/index/segment_waits.py"
SHARDS_ANSWERS = "pipeline/index/segment_answers.py"
INDEX_ANSWERS = ("tests/index/test_segment_answers.py",)

EVERY = (
    Mutant(
        "offsets are committed before the messages",
        WORKER,
        "        self._hook(WorkerStep.BEGUN)\n",
        "        self._transactor.send_offsets(offsets, membership)\n"
        "        self._transactor.commit()\n"
        "        self._transactor.begin()\n"
        "        self._hook(WorkerStep.BEGUN)\n",
        CRASH,
    ),
    Mutant(
        "the offset of what was asked is committed, not of what was emitted",
        OUTBOX,
        "offsets[session.partition] = mark.committed()",
        "offsets[session.partition] = mark.committed()._replace(offset=session.covered)",
        CRASH,
    ),
    Mutant(
        "sessions survive a rebalance",
        WORKER,
        "            self._sessions.clear()\n            self._doubted.clear()\n"
        "            self._outbox.blocked.clear()\n            self.waits.keep(polled.assignment)\n"
        "            self._suspects.keep(polled.assignment)\n"
        "            self._unreadable.keep(polled.assignment)\n"
        "            self._holds.keep(polled.assignment)\n"
        "            self._queue.replace(() if self._stopping else polled.assignment)\n",
        "            self._queue.replace(polled.assignment - set(self._sessions))\n",
        CRASH,
    ),
    Mutant(
        "a transaction takes the membership of a later poll",
        WORKER,
        "self._emit(polled.membership)",
        "self._emit(self._consumer.poll(0, 1).membership)",
        CRASH,
    ),
    Mutant(
        "the mark claims what was asked",
        SESSION,
        "mark = mark._replace(end=block.end,",
        "mark = mark._replace(end=self.covered,",
        CRASH,
    ),
    Mutant(
        "an input that lost messages is read on where it is as long as before",
        SESSION,
        "return (self.covered, NO_EPOCH) if mark.epoch == NO_EPOCH else (mark.read, mark.epoch)",
        "return (self.covered, NO_EPOCH)",
        TRUNCATED,
    ),
    Mutant(
        "what stands behind a block that waits for a leader comes out",
        OUTBOX,
        "                    self.blocked.add(session.partition)\n                    break\n",
        "                    self.blocked.add(session.partition)\n                    continue\n",
        ("tests/model/test_leaderless.py",),
    ),
    Mutant(
        "answers are not matched to what was asked",
        SESSION,
        "            or (block.first, block.end) != (ruling.first, ruling.end)\n"
        "            or len(block.records) != len(ruling)\n",
        "",
        ("tests/model/test_wrong_answers.py",),
    ),
    Mutant(
        "nobody asks again where no answer comes",
        SESSION,
        "now_s - self.asked_s >= patience_s",
        "now_s < self.asked_s",
        ("tests/model/test_lost_questions.py",),
    ),
    Mutant(
        "replayed messages come out again",
        EMIT,
        "rows = np.flatnonzero(kinds == Kind.UNIQUE)",
        "rows = np.flatnonzero((kinds == Kind.UNIQUE) | (kinds == Kind.REPLAYED))",
        EDGES,
    ),
    Mutant(
        "what a session passes over goes on to lead",
        STATE,
        "self.sieve.forget(positions, tags)",
        "pass",
        PASSED,
    ),
    Mutant(
        "a gap in a session is not noticed",
        LEDGER,
        "book.session == block.session and book.covered == block.first",
        "book.session == block.session",
        ("tests/model/test_model_ledger.py",),
    ),
    Mutant(
        "an input that ends before what was judged is judged on",
        LEDGER,
        "if block.stable_end < book.judged.end:",
        "if block.stable_end < 0:",
        EDGES,
    ),
    Mutant(
        "a snapshot loses open verdicts",
        LEDGER,
        "                book.open.add(rows)\n",
        "                assert rows is not None\n",
        CRASH,
    ),
    Mutant(
        "a recorded decision is not applied to the sieve",
        STATE,
        "self.sieve.apply(_joined(batches), _joined(verdicts))",
        "pass",
        CRASH,
    ),
    Mutant(
        "the index judges before it has caught up",
        INDEX,
        "if self._writer is not None and self.follower.caught_up(self._writer.decisions_end):",
        "if self._writer is not None:",
        CRASH,
    ),
    Mutant(
        "the index does not see that its group has moved on",
        INDEX,
        "        if polled.epoch != self._epoch:\n            self._epoch = polled.epoch\n            self.reb",
        "        if self._epoch < 1:\n            self._epoch = polled.epoch\n            self.reb",
        CRASH,
    ),
    Mutant(
        "nobody checks that the topics hold what was recorded",
        ENDS,
        "        raise StateError(lost)\n",
        "        pass\n",
        RETENTION,
    ),
    Mutant(
        "topics: the checksum of a decision is not compared",
        FOLLOWER,
        "return ruling.checksum is None or ruling.checksum == checksum_of(data)",
        "return True",
        ("tests/model/test_decisions_fit_blocks.py",),
    ),
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
        "protocol: the answer of another session is taken",
        ANSWERS,
        'session = by_number.get(session_of(value or b""))',
        'session = by_number.get(session_of(value or b"")) or next(iter(sessions.values()), None)',
        ("tests/model/test_model_topics.py",),
    ),
    Mutant(
        "offsets: one without a mark counts",
        MARK,
        "return record if kept is not None else None",
        "return found or record",
        FOREIGN,
    ),
    Mutant(
        "redrive: what fails again is read again",
        BROKER,
        "if at < end and reason_of",
        "if reason_of",
        CRASHES,
    ),
    Mutant(
        "clock: a block arrives when its worker says",
        INDEX,
        "        if read.stamped_by_broker:\n            return read.stamp_ms\n",
        "",
        ("tests/model/test_arrival_clocks.py", "tests/service/test_clocks.py"),
    ),
    Mutant(
        "numbers are compared without repeats",
        NEAR_VALUES,
        "        if present < wanted:\n",
        "        if present < min(wanted, 1):\n",
        KEPT_APART,
    ),
    Mutant(
        "a negation counts however much differs beside it",
        DIFFER + "denials.py",
        "    small = small and max(kana, other_kana) <= _KANA\n",
        "    small = rest < 512\n",
        KEPT_APART,
    ),
    Mutant(
        "an estimate says that long bodies are equal",
        VERIFY,
        "share = min(share, SIMILARITY_SCALE - 1)",
        "share = min(share, SIMILARITY_SCALE)",
        ("tests/stages/differ/test_tails.py",),
    ),
    Mutant(
        "answers of shards with other settings are used",
        SHARDS_ANSWERS,
        "        if record.question != self._question:\n",
        "        if not record.question:\n",
        INDEX_ANSWERS,
    ),
    Mutant(
        "an answer is used for another block of the same offset",
        SHARDS_ANSWERS,
        "if block[1:3] == (checksum, rows)}",
        "if block[2] == rows}",
        INDEX_ANSWERS,
    ),
    Mutant(
        "an index waits for ever for shards that died",
        SEGMENT_WAITS,
        "        return each is not None and self._clock.monotonic_s() - each.at_index_s < self._patience_s\n",
        "        return each is not None\n",
        INDEX_ANSWERS,
    ),
    Mutant(
        "a shard that says that it is there is waited for, whatever it has read",
        SEGMENT_WAITS,
        "        if next_offset < self._horizon or next_offset <= each.given_up:\n            return\n",
        "",
        INDEX_ANSWERS,
    ),
    Mutant(
        "a slow shard sets the pace of an index",
        SEGMENT_WAITS,
        "self._is_behind = behind_s >= _BEHIND_S",
        "self._is_behind = behind_s < _BEHIND_S",
        ("tests/index/test_segment_waits.py",),
    ),
    Mutant(
        "an arena counts for ever",
        SESSION,
        "        self.pending_bytes -= len(arena)\n",
        "",
        ("tests/worker/test_arena_bytes.py",),
    ),
    Mutant(
        "an aborted batch is delivered",
        "pipeline/kafka/patches.py",
        "if self._is_aborted(header):",
        "if header.is_control:",
        ("tests/broker/test_record_batches.py",),
    ),
    Mutant(
        "a value that ends behind its record is taken",
        "stages/rows/record_columns.py",
        "        size, at = read_varint(content, at + max(size, ZERO), end)\n"
        "        if at == NO_NUMBER or size < -1 or size > end - at:\n",
        "        size, at = read_varint(content, at + max(size, ZERO), end)\n"
        "        if at == NO_NUMBER or size < -1:\n",
        ("tests/stages/rows/test_record_columns.py",),
    ),
    Mutant(
        "a batch takes a record more than fits",
        "stages/rows/record_copies.py",
        "at - begin + varint_size(size) + size > room",
        "at - begin + size > room",
        ("tests/stages/rows/test_record_copies.py",),
    ),
    Mutant(
        "a shard that cannot read the blocks of an index is waited for",
        "pipeline/wire/segment_answers.py",
        'return blake2b(question + versions, digest_size=len(question), person=b"twinsieve-shards").digest()',
        "return question",
        ("tests/crash/test_slow_shards.py",),
    ),
    Mutant(
        "blocks that wait for answers are read again",
        INDEX,
        "        if self._held and self.disk.paused_ms is None:\n            return []\n",
        "        if self._held:\n            self._held.clear()\n            consumer.seek(self._config.log, self.state.next_offset)\n"
        "            consumer.resume([self._config.log])\n            return []\n",
        ("tests/shards/test_waiting_index.py",),
    ),
)
