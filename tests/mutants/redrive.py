"""Mutants of `twinsieve redrive`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

BROKER = "pipeline/service/redriven_broker.py"
SERVICE = "pipeline/service/redrive.py"
INDEX_TOPICS = "pipeline/index/topics.py"
EMIT = "pipeline/worker/emit.py"
CRASHES = ("tests/crash/test_redrive_crashes.py",)
REDRIVE = (
    Mutant(
        "redrive: a pass reads dead letters of other reasons",
        BROKER,
        "if at < end and reason_of(headers) is reason",
        "if at < end and reason_of(headers)",
        CRASHES,
    ),
    Mutant(
        "redrive: all reasons are one topic",
        "pipeline/broker/redriven.py",
        "topic_id + letters.reason.encode()",
        "topic_id",
        CRASHES,
    ),
    Mutant(
        "redrive: what fails again is read again",
        BROKER,
        "if at < end and reason_of",
        "if reason_of",
        CRASHES,
    ),
    Mutant(
        "redrive: what is behind the end counts as read",
        BROKER,
        "return min(self._inner.position(self._names.held(partition)), self._ends.get(partition, 0))",
        "return self._inner.position(self._names.held(partition))",
        CRASHES,
    ),
    Mutant(
        "redrive: a pass goes on at its mark, whatever lies before",
        SERVICE,
        "if mark is not None and mark.first <= begin <= mark.end:",
        "if mark is not None:",
        CRASHES,
    ),
    Mutant(
        "redrive: a pass begins where the group is",
        SERVICE,
        "if mark is None or held is None or held.offset != begin:",
        "if mark is None or held is None:",
        CRASHES,
    ),
    Mutant(
        "redrive: the origin is the place of the dead letter",
        EMIT,
        "        return [(ORIGIN, origin) for origin in pick(records.origins, rows)]\n",
        "        pass\n",
        CRASHES,
    ),
    Mutant(
        "redrive: the last origin of a block counts as its longest",
        EMIT,
        "max(pick(records.origins, rows), key=len)",
        "records.origins[rows[-1]]",
        ("tests/worker/test_dead_letters.py",),
    ),
    Mutant(
        "redrive: a redrive that waits is given up",
        INDEX_TOPICS,
        "return members is None or bool(members)",
        "return False",
        CRASHES,
    ),
    Mutant(
        "redrive: a redrive that died leads for ever",
        INDEX_TOPICS,
        "return members is None or bool(members)",
        "return True",
        CRASHES,
    ),
)
