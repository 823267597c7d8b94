"""All mutants. Texts are short, so that a change beside them does not concern them."""

from __future__ import annotations

from tests.mutants.mutant import CRASH, EDGES, MODEL, NASTY, RANDOM, RETENTION, Mutant
from tests.mutants.offsets import FOREIGN_OFFSETS
from tests.mutants.protocol import PROTOCOL
from tests.mutants.redrive import REDRIVE

WORKER = "pipeline/worker/worker.py"
SESSION = "pipeline/worker/session.py"
MARK = "pipeline/broker/mark.py"
ASKS = "pipeline/worker/asks.py"
OPENINGS = "pipeline/worker/openings.py"
OUTBOX = "pipeline/worker/outbox.py"
ANSWERS = "pipeline/worker/answers.py"
EMIT = "pipeline/worker/emit.py"
VERDICT_HEADERS = "pipeline/worker/verdict_headers.py"
LIMITS = "pipeline/kafka/limits.py"
TOPICS = "pipeline/worker/topics.py"
LEDGER = "pipeline/index/ledger.py"
STATE = "pipeline/index/state.py"
INDEX = "pipeline/index/index.py"
ENDS = "pipeline/index/ends.py"
TRANSACTION = "pipeline/index/transaction.py"
FOLLOWER = "pipeline/index/follower.py"
RESTORED = ("tests/crash/test_restored_clusters.py",)
OFFSETS = "pipeline/broker/committed_offsets.py"
RECORDS = "pipeline/worker/records.py"
VERIFY = "stages/near/verify.py"
DIFFER = "stages/differ/"
NEAR_VALUES = DIFFER + "values.py"
TAILS = "stages/differ/tails.py"
KEYS = "stages/text/keys.py"
KEPT_APART = ("tests/stages/differ",)
BLOCKS = ("tests/wire/test_blocks.py",)
INPUTS = ("tests/model/test_inputs_gone.py",)
PASSED = ("tests/model/test_passed_over.py",)
TRUNCATED = ("tests/model/test_truncated_input.py",)
IDLE = ("tests/model/test_idle_commits.py",)
NULLS = ("tests/files/test_null_texts.py",)
CLOCK_TESTS = ("tests/model/test_clocks.py",)

WORKERS = (
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
        "messages of a block that are out stay where they wait",
        WORKER,
        "session.emit(count, ",
        "session.emit(max(0, count - 1), ",
        EDGES,
    ),
    Mutant(
        "reading begins one message too late",
        WORKER,
        "self._consumer.seek(session.partition, *session.start)",
        "self._consumer.seek(session.partition, session.covered + 1)",
        EDGES,
    ),
    Mutant(
        "a partition that was never committed is not committed",
        OUTBOX,
        "if session.mark.fresh or mark.end > session.emitted:",
        "if mark.end > session.emitted:",
        RANDOM,
    ),
    Mutant(
        "markers and aborted messages are not passed over",
        WORKER,
        "position = max(session.covered, passed)",
        "position = session.covered",
        NASTY,
    ),
    Mutant(
        "nobody asks again where no answer comes",
        SESSION,
        "now_s - self.asked_s >= patience_s",
        "now_s < self.asked_s",
        ("tests/model/test_lost_questions.py",),
    ),
    Mutant(
        "the mark is carried over a gap",
        OPENINGS,
        "chain = mark.first if mark.end == first else first",
        "chain = mark.first",
        MODEL,
    ),
    Mutant(
        "the mark begins at offset 0",
        OPENINGS,
        "chain = mark.first if mark.end == first else first",
        "chain = 0",
        MODEL,
    ),
    Mutant(
        "the mark claims what was asked",
        SESSION,
        "mark = mark._replace(end=block.end,",
        "mark = mark._replace(end=self.covered,",
        CRASH,
    ),
    Mutant(
        "a reset drops the mark",
        MARK,
        "if mark is None or mark.topic_id != topic_id or mark.fresh:",
        "if topic_id:",
        (*EDGES, *RANDOM),
    ),
    Mutant(
        "a mark is read the wrong way round",
        MARK,
        "map(int, parts[1:])",
        "map(int, parts[:0:-1])",
        ("twinsieve/pipeline/broker/mark.py",),
    ),
    Mutant(
        "a worker does not see that the topic was created again",
        OPENINGS,
        "if old_mark is not None and old_mark.topic_id != topic_id:",
        "if old_mark is None and not topic_id:",
        ("tests/model/test_restored_offsets.py",),
    ),
    Mutant(
        "an input that ends too early is read", OPENINGS, "if first > stable_end:", "if first < 0:", EDGES
    ),
    Mutant(
        "an input that lost messages is read on where it is as long as before",
        SESSION,
        "return (self.covered, NO_EPOCH) if mark.epoch == NO_EPOCH else (mark.read, mark.epoch)",
        "return (self.covered, NO_EPOCH)",
        TRUNCATED,
    ),
    Mutant(
        "a session begins at the message before what retention took",
        OPENINGS,
        "is_mark_current = beginning <= mark.read <= first == mark.end",
        "is_mark_current = True",
        TRUNCATED,
    ),
    Mutant(
        "the mark names an epoch that a control marker may have ended",
        SESSION,
        "mark = mark._replace(end=block.end,",
        "mark = mark._replace(end=block.end, read=block.end,",
        TRUNCATED,
    ),
    Mutant(
        "messages lost to retention are passed over although the settings say stop",
        OPENINGS,
        'if lost and config.trimmed == "stop":',
        'if lost < 0 and config.trimmed == "stop":',
        EDGES,
    ),
    Mutant(
        "blocks report as emitted what was asked",
        ASKS,
        "emitted_to=session.emitted,",
        "emitted_to=session.covered,",
        CRASH,
    ),
    Mutant(
        "what stands behind a block that waits for a leader comes out",
        OUTBOX,
        "                    self.blocked.add(session.partition)\n                    break\n",
        "                    self.blocked.add(session.partition)\n                    continue\n",
        ("tests/model/test_leaderless.py",),
    ),
    Mutant(
        "reasons of a later block of a poll stand at the rows of the poll",
        ASKS,
        "{row - low: reason for row, reason in by_row.items() if 0 <= row - low < len(block)}",
        "{row: reason for row, reason in by_row.items() if 0 <= row - low < len(block)}",
        ("tests/model/test_unsendable.py",),
    ),
    Mutant(
        "a block is cut by its fingerprints alone",
        ASKS,
        "        for part, size in slices(records, max_rows, min(MAX_ASKED_BYTES, max_bytes)):\n",
        "        for part, size in [(records, 0)]:\n",
        ("tests/model/test_slow_output.py",),
    ),
    Mutant(
        "a transaction that failed is tried again as large as it was",
        "pipeline/worker/backoff.py",
        "before.halvings + 1",
        "before.halvings",
        ("tests/model/test_slow_output.py",),
    ),
    Mutant(
        "polls of more than a share add up",
        SESSION,
        "if self._crowded or (session.pending_rows and not self.is_left):",
        "if False:",
        ("tests/model/test_waiting_bytes.py",),
    ),
    Mutant(
        "a poll takes batch after batch",
        "pipeline/kafka/kafka_python/patches.py",
        "return count if left > 0 else max_records",
        "return count",
        ("tests/broker/test_poll_bytes.py",),
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
        "a superseded session goes on",
        ANSWERS,
        'raise AbortableError(f"{session.partition}: a newer session reads this partition; starting again")',
        "return",
        NASTY,
        equivalent="A session that gets no answer ends after `answer_s` and another begins; the word of the index only "
        "saves that time. What it asks meanwhile is superseded too.",
    ),
    Mutant(
        "replayed messages come out again",
        EMIT,
        "rows = np.flatnonzero(kinds == Kind.UNIQUE)",
        "rows = np.flatnonzero((kinds == Kind.UNIQUE) | (kinds == Kind.REPLAYED))",
        EDGES,
    ),
    Mutant(
        "a message is refused for the longer headers of another",
        EMIT,
        "return transactor.unsendable(topic, whole()) if transactor.unsendable(topic, longest) else {}",
        "return transactor.unsendable(topic, longest)",
        ("tests/worker/test_dead_letters.py",),
    ),
    Mutant(
        "the first look at a duplicate's headers leaves its leader out",
        VERDICT_HEADERS,
        '(LEADER, f"{topic}[{MAX_PARTITIONS}]@{MAX_OFFSETS}".encode()),',
        '(LEADER, b""),',
        ("tests/wire/test_headers.py",),
    ),
    Mutant(
        "headers that messages share count once",
        LIMITS,
        "lists = {id(headers): headers for headers in messages.headers}.values()",
        "lists = messages.headers[:1]",
        ("tests/broker/test_limits.py",),
    ),
    Mutant(
        "messages of a block come out in reverse order",
        EMIT,
        "rows = np.flatnonzero(kinds == Kind.UNIQUE).tolist()",
        "rows = np.flatnonzero(kinds == Kind.UNIQUE).tolist()[::-1]",
        MODEL,
    ),
    Mutant(
        "a message comes out with the value of another",
        EMIT,
        "pick(records.values, rows), headers, stamps)",
        "pick(records.values[-1:] + records.values[:-1], rows), headers, stamps)",
        ("tests/model", "tests/worker/test_dead_letters.py", "tests/service/test_service.py"),
    ),
    Mutant(
        "a dead letter is counted and not written",
        EMIT,
        "self._send(emission, topic, records, [row], message)",
        "pass",
        MODEL,
    ),
    Mutant(
        "messages go to another partition",
        EMIT,
        "return source.number if same else None",
        "return None",
        MODEL,
    ),
    Mutant(
        "a topic that is created again under a worker is not noticed",
        TOPICS,
        "if session.mark.topic_id != name_topic(infos[partition.topic]):",
        "if not name_topic(infos[partition.topic]):",
        ("tests/operate/test_reset.py",),
    ),
    Mutant(
        "the offset that frees a held one is committed",
        OFFSETS,
        "transactor.abort()",
        "transactor.commit()",
        ("tests/model/test_forgotten_ends.py",),
    ),
    Mutant(
        "an idle worker commits the mark of a session that the index has not heard of",
        WORKER,
        "for p, s in self._sessions.items() if s.settled and p in due}",
        "for p, s in self._sessions.items() if p in due}",
        IDLE,
    ),
    Mutant(
        "a stopping worker reports what it read and never asked for",
        WORKER,
        "passed = session.covered if self._stopping else self._consumer.position(session.partition)",
        "passed = self._consumer.position(session.partition)",
        IDLE,
    ),
    Mutant(
        "records from before a session are taken",
        ASKS,
        "if records.offsets[0] < session.covered:",
        "if records.offsets[0] < 0:",
        IDLE,
    ),
)

LEDGERS = (
    Mutant(
        "the range that a mark reports does not count as judged",
        LEDGER,
        "book.judged.add(block.emitted_from, block.emitted_to)",
        "pass",
        MODEL,
    ),
    Mutant(
        "what was emitted stays open",
        LEDGER,
        "book.open.drop(block.emitted_from, block.emitted_to)",
        "pass",
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
        "what a session passes over counts as judged",
        LEDGER,
        "self.books[number, partition].judged.remove(rows.offsets)",
        "pass",
        PASSED,
    ),
    Mutant(
        "a session passes over with its first block",
        LEDGER,
        "        if block.flags & BlockFlag.START:\n            return []\n        key, rows",
        "        key, rows",
        PASSED,
    ),
    Mutant(
        "a topic created again gives up the partition of its first block alone",
        LEDGER,
        "            if number in numbers:\n",
        "            if number in numbers and partition == 0:\n",
        PASSED,
    ),
    Mutant(
        "a session of a deleted topic goes on beside those of the new one",
        LEDGER,
        "book.session = 0\n",
        "pass\n",
        PASSED,
    ),
    Mutant(
        "topics get their new numbers one after the other",
        "pipeline/wire/positions.py",
        "packed[before == old]",
        "packed[packed >> shift == old]",
        BLOCKS,
    ),
    Mutant(
        "a block spans any gap between two offsets",
        "pipeline/wire/block.py",
        "block.offsets[-1] - block.first <= MAX_SPAN",
        "True",
        BLOCKS,
    ),
    Mutant(
        "what compaction took goes on to lead",
        LEDGER,
        "ClosedRows(*key, rows.take_absent(block.first, block.end, block.offsets), GivenUp.COMPACTED)",
        "ClosedRows(*key, rows.drop(0, 0), GivenUp.COMPACTED)",
        PASSED,
    ),
    Mutant(
        "what the output refuses now goes on to lead",
        LEDGER,
        "rows.take(refused[verdicts.kinds == Kind.UNIQUE])",
        "rows.drop(0, 0)",
        PASSED,
    ),
    Mutant(
        "an input topic is gone that the broker did not know at one look",
        "pipeline/index/topics.py",
        "abandoned = (absent & self._absent) |",
        "abandoned = absent |",
        INPUTS,
    ),
    Mutant(
        "an input topic is gone while shares are dealt, or nobody runs",
        "pipeline/index/topics.py",
        "            if read and now_s",
        "            if now_s",
        INPUTS,
    ),
    Mutant(
        "what a seed has read is given up",
        "pipeline/index/topics.py",
        "return {number for number in overdue if names[number] not in seeded}",
        "return overdue",
        INPUTS,
    ),
    Mutant(
        "whoever follows does not hear of topics given up",
        STATE,
        "passed = self.ledger.give_up(ruling.given_up) + self.ledger.enter(block)",
        "passed = self.ledger.enter(block)",
        ("tests/index/test_rule_and_follow.py",),
    ),
    Mutant(
        "the second block of a session is judged together with what it may pass over",
        LEDGER,
        " or (book.began >= 0 and self._namesakes(number)):\n",
        ":\n",
        ("tests/index/test_rule_and_follow.py",),
    ),
    Mutant(
        "a block is judged together with verdicts that it reports as emitted, or asks for again",
        LEDGER,
        "return span is None or (block.emitted_to <= span[0] and span[1] <= block.first)",
        "return True",
        ("tests/index/test_rule_and_follow.py",),
    ),
    Mutant(
        "a step that fails forgets the decisions that it had read",
        FOLLOWER,
        "            # Their decisions count as read.\n            self._flush()\n",
        "            self._ready = []\n",
        ("tests/index", "tests/retention"),
    ),
    Mutant(
        "messages given up are never counted",
        LEDGER,
        "self.given_up[why] += len(rows)",
        "pass",
        ("tests/model/test_given_up.py",),
    ),
    Mutant(
        "a session goes on in a partition that another holds",
        LEDGER,
        "book.session == block.session and book.covered == block.first",
        "book.covered == block.first",
        ("tests/model/test_model_ledger.py", *NASTY),
    ),
    Mutant(
        "a gap in a session is not noticed",
        LEDGER,
        "book.session == block.session and book.covered == block.first",
        "book.session == block.session",
        ("tests/model/test_model_ledger.py",),
    ),
    Mutant(
        "a group without offsets begins anew in a partition that was judged",
        LEDGER,
        "return Result.OFFSETS_MISSING",
        "return Result.JUDGED",
        EDGES,
    ),
    Mutant(
        "an input that ends before what was judged is judged on",
        LEDGER,
        "if block.stable_end < book.judged.end:",
        "if block.stable_end < 0:",
        EDGES,
    ),
    Mutant(
        "a topic created again is judged without a word",
        LEDGER,
        "elif not block.flags & BlockFlag.CERTIFIED and self",
        "elif False and self",
        EDGES,
    ),
    Mutant(
        "open verdicts are told as replayed",
        LEDGER,
        "np.where(is_open, Source.STORED, Source.REPLAYED)",
        "np.where(is_open, Source.REPLAYED, Source.REPLAYED)",
        CRASH,
    ),
    Mutant(
        "a judged block does not count as judged",
        LEDGER,
        "book.judged.add(block.first, block.end)",
        "pass",
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
        "a snapshot loses what was judged",
        LEDGER,
        "Ranges(judged)",
        "Ranges()",
        CRASH,
    ),
)

INDEXES = (
    Mutant(
        "a recorded decision is applied to the sieve twice",
        STATE,
        "            self.sieve.apply(_joined(batches), _joined(verdicts))\n",
        "            for _ in range(2):\n"
        "                self.sieve.apply(_joined(batches), _joined(verdicts))\n",
        MODEL,
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
        "a refused commit leaves the state ahead of the record",
        INDEX,
        'raise FatalError(f"decisions could not be written ({error}); restoring") from error',
        "raise",
        MODEL,
    ),
    Mutant(
        "the index reads on one block too late",
        INDEX,
        "consumer.seek(log, self.state.next_offset)",
        "consumer.seek(log, self.state.next_offset + 1)",
        EDGES,
    ),
    Mutant(
        "a snapshot is begun before its step is committed",
        INDEX,
        "            self._commit(rulings, membership)\n        except",
        "            if due:\n"
        "                self.snapshots.begin(self.state, self.follower.decisions_at)\n"
        "                due = False\n"
        "            self._commit(rulings, membership)\n        except",
        (*MODEL, *NASTY),
    ),
    Mutant(
        "nobody checks that the topics hold what was recorded",
        ENDS,
        "        raise StateError(lost)\n",
        "        pass\n",
        RETENTION,
    ),
    Mutant(
        "the log is deleted behind what is judged, not behind the older snapshot",
        INDEX,
        "needed_from = {self._config.log: result.oldest_offset, self._config.decisions: result.decisions_from}",
        "needed_from: dict[object, int | None] = {self._config.log: self.state.next_offset}",
        ("tests/index/test_trimmed_log.py",),
    ),
    Mutant(
        "a block of another scheme ends the index",
        INDEX,
        "ruling = self.state.refuse(read.offset, session, first, end)",
        "raise",
        ("tests/model/test_foreign_scheme.py",),
    ),
    Mutant(
        "the end of the decisions is read before other writers are shut out",
        TRANSACTION,
        "        self.transactor = broker.transactor(config.transactional_id, topics)\n        try:\n"
        "            self.decisions_end = reader.end_offsets([config.decisions])[config.decisions]\n",
        "        end = reader.end_offsets([config.decisions])[config.decisions]\n"
        "        self.transactor = broker.transactor(config.transactional_id, topics)\n        try:\n"
        "            self.decisions_end = end\n",
        NASTY,
        equivalent="An index reads the end only when the log is assigned to it, in a later generation of the group than any "
        "other index's. A decision is recorded in one transaction with an offset that the group refuses from an "
        "earlier generation, so none comes between the end and the new writer.",
    ),
    Mutant(
        "answers are committed before their decisions",
        TRANSACTION,
        "            transactor.begin()\n            self._hook(IndexStep.BEGUN)\n",
        "            transactor.begin()\n"
        "            for reply, messages in answers.items():\n"
        "                transactor.send(config.verdicts, reply, messages)\n"
        "            transactor.commit()\n"
        "            answers.clear()\n"
        "            transactor.begin()\n            self._hook(IndexStep.BEGUN)\n",
        (*MODEL, *NASTY),
    ),
    Mutant(
        "decisions are recorded without the log offset",
        TRANSACTION,
        "transactor.send_offsets({config.log: committed}, membership)",
        "del membership, committed",
        MODEL,
    ),
    Mutant(
        "a missing block or decision is passed over without a reason",
        FOLLOWER,
        "if log_offset >= self._reader.beginning_offsets([self._log])[self._log]:",
        "if not what:",
        MODEL,
    ),
    Mutant(
        "a restore passes over a decision",
        FOLLOWER,
        "self.decisions_at = decision.offset",
        "self.decisions_at = decision.offset + 2",
        MODEL,
    ),
    Mutant(
        "the index begins to judge with decisions still to be applied",
        FOLLOWER,
        "return not self._decided and self._reader.position(self._decisions) >= decisions_end",
        "return self._reader.position(self._decisions) >= decisions_end or not self._decided",
        MODEL,
    ),
    Mutant(
        "a snapshot of another history is used",
        "pipeline/index/history.py",
        'return f"the decision on block {block} follows another one", True',
        'return "", True',
        RESTORED,
    ),
    Mutant(
        "an index follows another history than its own",
        FOLLOWER,
        "        if self._seen != self._state.link:\n            why",
        "        if not self._seen:\n            why",
        RESTORED,
    ),
)

_HAMMING_TESTS = ("tests/stages/near/test_hamming.py",)
_BY_FIELD = ("tests/api/test_distances_by_field.py",)
_PAIRS = ("tests/api/test_fingerprints.py",)
SEARCHES = (
    Mutant(
        "hamming: a scan stops before the distance",
        "stages/near/bits.py",
        "^ fingerprint) <= distance",
        "^ fingerprint) < distance",
        _HAMMING_TESTS,
    ),
    Mutant(
        "hamming: a scan ends with its first block",
        "stages/near/hamming.py",
        "        low += size\n",
        "        low = before\n",
        _HAMMING_TESTS,
    ),
    Mutant(
        "hamming: a scan compares the zeros of rows without a SimHash",
        "stages/judge/batch_sieve.py",
        "np.where(whole.has_simhash, whole.lengths, np.int32(0))",
        "whole.lengths",
        _HAMMING_TESTS,
    ),
    Mutant(
        "hamming: the second field is not compared",
        "stages/near/hamming.py",
        "if more > index.chains.second[0]:",
        "if more > np.int64(64):",
        _BY_FIELD,
    ),
    Mutant(
        "hamming: a message whose second field has no features has a fingerprint",
        "stages/judge/scheme.py",
        "prints.has_simhash &= of_field.has_simhash",
        "prints.has_simhash |= of_field.has_simhash",
        _BY_FIELD,
    ),
)

DIFFERENCES = (
    Mutant(
        "what differs is not asked for",
        VERIFY,
        "    if rules.limits.level != OFF:\n",
        "    if rules.limits.level == OFF:\n",
        ("tests/property/test_sieve_equals_oracle.py",),
    ),
    Mutant(
        "an estimate says that long bodies are equal",
        VERIFY,
        "share = min(share, SIMILARITY_SCALE - 1)",
        "share = min(share, SIMILARITY_SCALE)",
        ("tests/stages/differ/test_tails.py",),
    ),
    Mutant(
        "what the heads hold stays in the tallies",
        TAILS,
        "_sum(tally, other_head) != _sum(other_tally, head)",
        "tally != other_tally",
        ("tests/stages/differ/test_tails.py",),
    ),
    Mutant(
        "tails of any lengths are compared",
        TAILS,
        "if abs(behind - other_behind) > max(_ALIKE_LEAST, longer // _ALIKE_SHARE):",
        "if False:",
        ("tests/stages/differ/test_tails.py",),
    ),
    Mutant(
        "a plus behind a word joins it to any script",
        KEYS,
        "    if plus and (short or number) and follows",
        "    if False and follows",
        ("tests/stages/text/test_suffixes.py",),
    ),
    Mutant(
        "a minus numbers no line",
        KEYS,
        "(number and begins_line)",
        "False",
        ("tests/stages/text/test_suffixes.py",),
    ),
    Mutant(
        "words that differ in their mark say the same",
        DIFFER + "word_marks.py",
        "    if not (marked or other_marked) or",
        "    if True or",
        ("tests/stages/text/test_suffixes.py",),
    ),
    Mutant(
        "a number is worth the same with a mark behind it",
        NEAR_VALUES,
        "            if marked:\n",
        "            if False:\n",
        KEPT_APART,
    ),
    Mutant(
        "an entity is read without its semicolon",
        "stages/text/normalizer.py",
        "{1,31});",
        "{1,31});?",
        ("tests/stages/text/test_entities.py",),
    ),
    Mutant(
        "a negation counts however long its run is",
        DIFFER + "negations.py",
        "    if end - first <= _SHORT:\n",
        "    if end >= first:\n",
        KEPT_APART,
    ),
    Mutant(
        "numbers are compared without repeats",
        NEAR_VALUES,
        "        if present < wanted:\n",
        "        if present < min(wanted, 1):\n",
        KEPT_APART,
    ),
    Mutant(
        "a numeral that was added changes no number",
        DIFFER + "numbers.py",
        "    return is_numeral(tokens, end - 1) and is_numeral(tokens, end)\n",
        "    return False\n",
        KEPT_APART,
    ),
    Mutant(
        "a negation is missed where an added run can stand in two places",
        DIFFER + "negations.py",
        "    if mine + other == 0 and (a0 == a1 or b0 == b1):\n",
        "    if mine + other < 0:\n",
        KEPT_APART,
    ),
    Mutant(
        "names around a word that stays may change places",
        DIFFER + "exchanges.py",
        "    if number + 1 == count or runs[number + 1][0] - run[1] > _EXCHANGED_TOKENS:\n",
        "    if number + 1 == count or runs[number + 1][0] >= run[1]:\n",
        KEPT_APART,
    ),
    Mutant(
        "a repeated verdict has the detail of another row",
        "stages/columns.py",
        "self._behind(rows, name, len(getattr(owner, self.of)))",
        "self._behind(rows, name, 0)",
        ("tests/service/test_kept_apart_header.py", "tests/stages/test_columns.py"),
    ),
    Mutant(
        "a message without room for the header keeps the header",
        EMIT,
        "            messages.headers[row] = plain[row]\n",
        "            assert row >= 0\n",
        ("tests/service/test_kept_apart_header.py",),
    ),
)

OPERATED = (
    Mutant(
        "headers that a producer forged reach the outputs",
        ASKS,
        "            records, foreign = without_foreign(part.records)\n",
        "            records, foreign = part.records, without_foreign(part.records)[1]\n",
        ("tests/worker/test_foreign_headers.py",),
    ),
    Mutant(
        "forged headers are counted nowhere",
        EMIT,
        "        self.foreign += other.foreign\n",
        "",
        ("tests/worker/test_foreign_headers.py",),
    ),
    Mutant(
        "the log is kept for no longer than the near window",
        "pipeline/operate/topic_plan.py",
        "    return max(limits, default=0) if len(limits) == len(ages) else None\n",
        "    return min(limits, default=0) if len(limits) == len(ages) else None\n",
        ("tests/operate/test_kept.py",),
    ),
    Mutant(
        "a retention that is too short keeps run from starting",
        "pipeline/operate/topic_checks.py",
        '            Severity.WARNS,\n            f"messages are deleted after',
        '            Severity.STOPS,\n            f"messages are deleted after',
        ("tests/operate/test_kept.py",),
    ),
    Mutant(
        "a dry run is not allowed to make its topics",
        "pipeline/operate/acls.py",
        'creates = ("Create",) if dry_run or settings.topics.auto_create else ()',
        'creates = ("Create",) if settings.topics.auto_create else ()',
        ("tests/operate/test_rights.py",),
    ),
)

NULL_TEXTS = (
    Mutant(
        "a message without a text is unreadable",
        RECORDS,
        "            kinds[candidates[bad.row]] = RowKind.NO_TEXT\n",
        "            kinds[candidates[bad.row]] = RowKind.UNREADABLE\n",
        RANDOM,
    ),
    Mutant(
        "a message without a text counts as unique",
        EMIT,
        "        emission.no_text += sum(kinds[row] == Kind.UNIQUE for row in block.no_text)\n",
        "",
        ("tests/service/test_null_texts.py",),
    ),
    Mutant(
        "a row without a text does not come out",
        "pipeline/dedup/sinks.py",
        "        return np.sort(np.concatenate((unique, self.without_text())))\n",
        "        return unique\n",
        NULLS,
    ),
    Mutant(
        "a field that no row has is a text that is null",
        "pipeline/files/unreadable.py",
        "        return self.first is not None and not self.has_field\n",
        "        return False\n",
        NULLS,
    ),
    Mutant(
        "ten unreadable rows in a hundred are few",
        "pipeline/files/unreadable.py",
        "    if count <= max(ALLOWED_SHARE * rows, ALLOWED_ROWS):\n",
        "    if count <= ALLOWED_SHARE * rows + ALLOWED_ROWS:\n",
        ("tests/files/test_unreadable.py",),
    ),
    Mutant(
        "similarities are rounded up",
        "pipeline/messages/columns.py",
        "    return matched * SIMILARITY_SCALE // compared\n",
        "    return -(-matched * SIMILARITY_SCALE // compared)\n",
        ("tests/docs/test_python_snippets.py", "tests/worker/test_duplicate_headers.py"),
    ),
)

CLOCKS = (
    Mutant(
        "clock: a time buries a message by what was heard before it was read",
        ASKS,
        "        if DeadLetterReason.BAD_TIMESTAMP not in refused.values():\n",
        "        if True:\n",
        CLOCK_TESTS,
    ),
    Mutant(
        "clock: a block arrives when its worker says",
        INDEX,
        "        if read.stamped_by_broker:\n            return read.stamp_ms\n",
        "",
        ("tests/model/test_arrival_clocks.py", "tests/service/test_clocks.py"),
    ),
    Mutant(
        "clock: internal topics keep the time of whoever writes them",
        "pipeline/operate/topic_plan.py",
        '"message.timestamp.type": "LogAppendTime"',
        '"message.timestamp.type": "CreateTime"',
        ("tests/service/test_clocks.py",),
    ),
    Mutant(
        "clock: what was read from behind a pause changes nothing",
        "pipeline/broker/clocks.py",
        "(math.inf if lead_ms > most + _BROKERS_DIFFER_MS else most)",
        "most",
        ("tests/broker/test_heard_clock.py",),
    ),
    Mutant(
        "clock: the time of the answer counts, not that of the question",
        "pipeline/broker/clocks.py",
        "stamp_ms + 1 - 1000 * sent_s",
        "stamp_ms + 1 - self._passed_ms()",
        ("tests/broker/test_heard_clock.py",),
    ),
    Mutant(
        "clock: one that is right again goes on being wrong",
        "pipeline/broker/clock_watch.py",
        "ahead_ms if wrong else 0",
        "ahead_ms if wrong else self._said_ms",
        ("tests/broker/test_heard_clock.py", *CLOCK_TESTS),
    ),
)

LATEST = ("tests/model/test_start_latest.py",)

TOPICS = (
    Mutant(
        "topics: a tombstone that was buried is buried again when it is replayed",
        EMIT,
        "if values[row] is None and kinds[row] != Kind.REPLAYED}",
        "if values[row] is None}",
        EDGES,
    ),
    Mutant(
        "topics: an offset at the end of an open transaction is taken for lost messages",
        OPENINGS,
        "is not None and entry.offset <= ends[part]",
        "is not None and entry.offset < ends[part]",
        EDGES,
    ),
    Mutant(
        "topics: the checksum of a decision is not compared",
        FOLLOWER,
        "return ruling.checksum is None or ruling.checksum == checksum_of(data)",
        "return True",
        ("tests/model/test_decisions_fit_blocks.py",),
    ),
    Mutant(
        "topics: a snapshot of another decisions topic is used",
        "pipeline/index/snapshot_writer.py",
        "if snapshot.stamp.decisions_id != decisions_id:",
        "if not snapshot.stamp.decisions_id:",
        ("tests/retention/test_log_and_decisions.py",),
    ),
    Mutant(
        "an index that follows keeps its place in the log",
        INDEX,
        "            self._consumer.pause([self._config.log])\n",
        "            self._consumer.pause([])\n",
        ("tests/retention/test_log_and_decisions.py",),
    ),
    Mutant(
        "dead letters stand in the order in which they are found",
        EMIT,
        "        for row in sorted(dead):\n",
        "        for row in dead:\n",
        ("tests/worker/test_dead_letters.py",),
    ),
    Mutant(
        "topics: an index answers in partitions that do not exist",
        "pipeline/index/topics.py",
        "if number not in there}",
        "if number in info.leaderless}",
        ("tests/model/test_verdict_partitions.py",),
    ),
    Mutant(
        "steps: however long judging takes, all that was polled is judged",
        INDEX,
        "if (rulings or waiting) and is_late:",
        "if (rulings or waiting) and step_bytes > self._config.max_step_bytes:",
        ("tests/model/test_slow_judging.py",),
    ),
    Mutant(
        "steps: what there was no time for is not read again",
        INDEX,
        "            consumer.seek(self._config.log, self.state.next_offset)\n            self._reads_again = False\n",
        "            self._reads_again = False\n",
        ("tests/model/test_slow_judging.py",),
    ),
    Mutant(
        "steps: one that was refused is taken as large again",
        TRANSACTION,
        "max(1, min(self.blocks, count) // 2), 0",
        "max(1, count), 0",
        ("tests/model/test_slow_judging.py",),
    ),
    Mutant(
        "steps: an index that fails leaves its group where it is alone",
        INDEX,
        'others = any(Names.does("index", one.name) and one.name != self._config.member for one in members)',
        "others = True",
        ("tests/service/test_steps_aside.py",),
    ),
    Mutant(
        "steps: a rebalance counts as a failure of one's own",
        "pipeline/service/index_loop.py",
        "or moved_on or",
        "or",
        ("tests/service/test_steps_aside.py",),
    ),
    Mutant(
        "steps: pauses do not grow",
        "pipeline/service/index_loop.py",
        "_ASIDE.after(self._aside_s)",
        "_ASIDE.after(0.0)",
        ("tests/service/test_steps_aside.py",),
    ),
    Mutant(
        "batches: outputs are not told to the producer",
        WORKER,
        "broker.transactor(config.transactional_id, config.emit.topics)",
        "broker.transactor(config.transactional_id)",
        ("tests/model/test_batch_limits.py",),
    ),
    Mutant(
        "topics: a transaction that failed does not look for topics made again",
        INDEX,
        "            self._topics.check(at_once=True)\n            raise FatalError",
        "            raise FatalError",
        ("tests/model/test_verdict_partitions.py",),
    ),
    Mutant(
        "topics: a topic of which the group knows no partition is begun at its end though it was judged",
        LEDGER,
        "(block.flags & BlockFlag.FIRST and self._judged(number))",
        "False",
        LATEST,
    ),
    Mutant(
        "topics: what producers held back before the first start is skipped",
        OPENINGS,
        "since_ms - (_HELD_BACK_MS if waited else 0)",
        "since_ms",
        LATEST,
    ),
    Mutant(
        "topics: a mark that the index had not agreed to says what the group knows",
        OPENINGS,
        "            if entry is None or _is_fresh(entry):\n                continue\n",
        "            if entry is None:\n                continue\n",
        LATEST,
    ),
    Mutant(
        "topics: an input that was made again is read on for a second",
        WORKER,
        "            if session.doubts(records, self._clock.monotonic_s()):\n                self._compare_s = 0.0\n",
        "",
        ("tests/model/test_recreated_input.py",),
    ),
)

PARTS = "stages/near/signatures.py"
DECIDE = "stages/judge/decide.py"
MURMUR = "stages/fingerprint/murmur.py"
OF_PARTS = (
    "tests/stages/near/test_signatures.py",
    "tests/stages/judge/test_resized_window.py",
    "tests/property/test_sieve_equals_oracle.py",
)
OF_RAW_TEXTS = ("tests/stages/fingerprint/test_columns.py",)

SIGNATURES = (
    Mutant(
        "signatures: one shared hash fewer is enough",
        PARTS,
        "    if shared < rules.share:",
        "    if shared < rules.share - 1:",
        OF_PARTS,
    ),
    Mutant(
        "signatures: links of messages that left the ring are followed",
        PARTS,
        "    if kept_index < ring.counters[OLDEST] or kept - kept_index > len(ring.positions):",
        "    if kept_index < ring.counters[OLDEST]:",
        OF_PARTS,
    ),
    Mutant(
        "signatures: a chain is cut one link too early",
        DECIDE,
        "            if links == MAX_LINKS:",
        "            if links == MAX_LINKS - 1:",
        OF_PARTS,
    ),
    Mutant(
        "signatures: one chain that is cut short counts as a match that may be missed",
        DECIDE,
        "    return best, chains_cut >= index.verify.share",
        "    return best, chains_cut >= 1",
        OF_PARTS,
    ),
    Mutant(
        "signatures: of two matches with as many shared hashes the newer one leads",
        DECIDE,
        "    older = best.kept >= 0 and kept_index < best.kept",
        "    older = best.kept >= 0 and kept_index > best.kept",
        OF_PARTS,
    ),
    Mutant(
        "signatures: a message with too few hashes is compared",
        DECIDE,
        "chunk.part_hashes[row, index.verify.share - 1] != np.uint64(0)",
        "chunk.part_hashes[row, 0] != np.uint64(0)",
        OF_PARTS,
    ),
    Mutant(
        "raw texts: the hash of a text has another constant than mmh3",
        MURMUR,
        "_M1, _M2 = np.uint64(0x52DCE729)",
        "_M1, _M2 = np.uint64(0x52DCE728)",
        OF_RAW_TEXTS,
    ),
    Mutant(
        "raw texts: a text that holds NUL is cut there",
        MURMUR,
        "    return bool(end == len(content) - BEHIND)",
        "    return True",
        OF_RAW_TEXTS,
    ),
)

BUCKETS = "stages/window/buckets.py"
OF_MEMORY = ("tests/property/test_pages.py", "tests/stages/window/test_tags.py")

MEMORY = (
    Mutant(
        "index: the lists of a restored index stand in the wrong order",
        BUCKETS,
        "        for way in range(WAYS - 1, -1, -1):\n            entry = entries[bucket * WAYS + way]",
        "        for way in range(WAYS):\n            entry = entries[bucket * WAYS + way]",
        OF_MEMORY,
    ),
    Mutant(
        "index: the entries of two messages share places in the lists",
        BUCKETS,
        "    return buckets.first + (kept_index - buckets.base) * (buckets.bands + buckets.tables)",
        "    return buckets.first + (kept_index - buckets.base) * buckets.bands",
        OF_MEMORY,
    ),
    Mutant(
        "index: rows kept in the same chunk are not looked up in lists",
        BUCKETS,
        "    return buckets.heads[start >> WAY_BITS] >= _own_entries(buckets, first)",
        "    return False",
        OF_MEMORY,
    ),
    Mutant(
        "index: a sealed segment of a restored window stays sparse",
        "stages/window/segments.py",
        "        if ring.end is not None:\n            segment.table.fill()\n",
        "",
        OF_MEMORY,
    ),
    Mutant(
        "index: a list that is full becomes a table one message too late",
        "stages/window/bucket_table.py",
        "        if end > len(buckets.entries):",
        "        if end > len(buckets.entries) + buckets.bands + buckets.tables:",
        OF_MEMORY,
    ),
    Mutant(
        "tags: a table that grows forgets its entries",
        "stages/window/tags.py",
        "        self._fill(cells, tags, oldest, count)\n        return True",
        "        self._use(cells)\n        return True",
        OF_MEMORY,
    ),
)

OF_ROWS = (
    "tests/stages/rows",
    "tests/files/test_rows.py",
    "tests/files/test_json_documents.py",
    "tests/messages/test_documents.py",
    "tests/stages/text/test_text.py",
)

PIECES_OF_BYTES = (
    Mutant(
        "lines: the last of several neighbours is not written",
        "stages/rows/lines.py",
        "        is_last = np.append(np.diff(numbers) != 1, True)",
        "        is_last = np.append(np.diff(numbers) != 1, len(numbers) == 1)",
        OF_ROWS,
    ),
    Mutant(
        "lines: the first line of a cut begins where the line before it does",
        "stages/rows/lines.py",
        "self._start_of(first))",
        "self._begin)",
        OF_ROWS,
    ),
    Mutant(
        "lines: documents that span lines are written with lines of another input as they are",
        "pipeline/dedup/kept.py",
        "if isinstance(rows, Lines) and not self._is_array and not self._reader.documents:",
        "if isinstance(rows, Lines) and not self._is_array:",
        OF_ROWS,
    ),
    Mutant(
        "strings: a character of four bytes loses its first three bits",
        "stages/rows/strings.py",
        "code = (code & _LOW_3) << _18 |",
        "code =",
        OF_ROWS,
    ),
    Mutant(
        "strings: entities stay as they are",
        "stages/text/normalizer.py",
        "        return Strings(_ENTITY_IN_UTF8.sub(_utf8_of, texts.content), len(texts))",
        "        return texts",
        OF_ROWS,
    ),
    Mutant(
        "rows: any two bytes end a character of three",
        "stages/rows/members.py",
        "            and content[at + 1] & _CONTINUES == _ASCII_END\n",
        "",
        OF_ROWS,
    ),
    Mutant(
        "text: a row with a sequence is as long as before its mapping",
        "stages/text/compatibility.py",
        "length += lookups.sequence_starts[sequence + 1] - lookups.sequence_starts[sequence] - 1",
        "length += 0 * sequence",
        OF_ROWS,
    ),
    Mutant(
        "text: a letter of an unspaced script does not end a number",
        "stages/text/keys.py",
        "            digits_alone = in_number = False\n            continue",
        "            digits_alone = False\n            continue",
        OF_ROWS,
    ),
    Mutant(
        "kernels: whoever asks for checks gets kernels without",
        "stages/compiled.py",
        '    checks = f" {_CHECKS}" if _is_on(_CHECKS) else ""',
        '    checks = ""',
        ("tests/stages/test_compiled.py",),
    ),
    Mutant(
        "kernels: an index of whatever an embedding program compiles is taken as it is",
        "stages/numba_private.py",
        "described is None or not described.modname.startswith(_KERNELS)",
        "described is None",
        ("tests/stages/test_numba_private.py",),
    ),
)

EVERY = (
    *TOPICS,
    *WORKERS,
    *LEDGERS,
    *INDEXES,
    *DIFFERENCES,
    *SEARCHES,
    *OPERATED,
    *NULL_TEXTS,
    *CLOCKS,
    *SIGNATURES,
    *MEMORY,
    *PIECES_OF_BYTES,
    *PROTOCOL,
    *REDRIVE,
    *FOREIGN_OFFSETS,
)
