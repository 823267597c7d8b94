"""What `run` and `seed` check at the start: the topics, the output of the app, a seed that still runs.

They query until a broker answers, and can be stopped meanwhile. Errors that waiting cannot repair end them.
One app has one output: with two outputs each pipeline would suppress messages of the other. The
index writes the output's name beside each log offset that it commits; a second pipeline under the app's name
finds that name.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import closing
from typing import TypeVar

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Broker, Clock
from twinsieve.pipeline.broker.records import BrokerError, Partition
from twinsieve.pipeline.index.ends import recorded_output
from twinsieve.pipeline.operate.topic_checks import Severity, check, create
from twinsieve.pipeline.settings.model import Settings

_log = logging.getLogger("twinsieve")
_PAUSE_S = 1.0
_CHECK_S = 0.1
_LOG_AGAIN_S = 60.0
_Answer = TypeVar("_Answer")


def until_answered(
    question: Callable[[], _Answer],
    clock: Clock,
    stop: threading.Event,
    failed: Callable[[BrokerError], None] = lambda _: None,
) -> _Answer | None:
    """The answer of a broker, queried until it comes or another try cannot help; None once `stop` is set.

    Each try has a thread of its own, which is left behind by a stop: a client that waits for a silent broker
    cannot be interrupted, and the process can.

    question: makes its own clients, and closes them; failed: called with each failure, before the next try
    raises: what the question raises, except a retryable BrokerError
    """
    logged, logged_s = "", 0.0
    while not stop.is_set():
        answer = _in_thread(question)
        while not answer.done() and not stop.is_set():
            wait([answer], _CHECK_S)
        if not answer.done():
            break
        try:
            return answer.result()
        except BrokerError as error:
            if not error.retryable:
                raise
            failed(error)
            # Errors that differ in numbers alone count as the same one.
            kind, now_s = re.sub(r"\d+", "0", str(error)), clock.monotonic_s()
            if kind != logged or now_s - logged_s >= _LOG_AGAIN_S:
                logged, logged_s = kind, now_s
                _log.warning("run: waiting for a broker: %s", error)
        stop.wait(_PAUSE_S)
    return None


def _in_thread(question: Callable[[], _Answer]) -> Future[_Answer]:
    """The result or error of the question, from a thread that does not outlive the process."""
    answer: Future[_Answer] = Future()

    def ask() -> None:
        try:
            answer.set_result(question())
        except BaseException as error:  # noqa: BLE001 - handed to the caller, who raises it
            answer.set_exception(error)

    threading.Thread(target=ask, name="start", daemon=True).start()
    return answer


def check_topics(
    settings: Settings,
    broker: Broker,
    *,
    auto_create: bool,
    emits: bool = True,
    same_output: bool = True,
    beside_seed: bool = False,
) -> None:
    """Stop on findings that would lose messages, log the others.

    auto_create: make what is missing; emits: False where nothing is ever written to the outputs
    same_output: stop where the app has another output on record
    beside_seed: do not warn where the app is being seeded
    raises: BrokerError with a line for every finding that stops; a retryable one where no broker answers
    """
    with closing(broker):
        admin = broker.admin()
        if auto_create:
            for name in create(settings, admin, emits=emits):
                _log.info("run: created topic %s", name)
        findings = check(settings, admin, emits=emits)
        if same_output:
            refuse_another_output(settings, admin)
        if not beside_seed:
            _warn_beside_seed(settings, admin)
    for finding in findings:
        if finding.severity is not Severity.STOPS:
            _log.warning("run: %s", finding)
    stops = [str(finding) for finding in findings if finding.severity is Severity.STOPS]
    if stops:
        raise BrokerError("\n".join(stops), retryable=False)


def _warn_beside_seed(settings: Settings, admin: Admin) -> None:
    # No more than a warning: a seed that has just ended stays a member for a session's time, and one that
    # runs ends by itself once this app has offsets.
    group = Names(settings.app).seed
    try:
        members = admin.members(group)
    except BrokerError as error:
        if not error.retryable:
            raise
        # The group's coordinator may be moving; the app's own groups are queried again later anyway.
        _log.warning("run: cannot tell whether a seed of app %s is still running (%s)", settings.app, error)
        return
    if members:
        _log.warning(
            "run: group %s has members: a seed of app %s that still runs ends as soon as this process reads, "
            "and the windows hold what it has seeded by then",
            group,
            settings.app,
        )


def refuse_another_output(settings: Settings, admin: Admin) -> None:
    """Refuse to start where the app has another output on record. Input topics may come and go.

    raises: BrokerError for another output, with what to do; a retryable one where no broker answers
    """
    group = Names(settings.app).index
    # The index before this one may have died in a transaction, which is open until the next one takes over.
    committed = admin.group_offsets(group, stable=False).get(Partition(Names(settings.app).fingerprints, 0))
    recorded = recorded_output(committed)
    if recorded and recorded != settings.output.topic:
        raise BrokerError(
            f"app {settings.app} writes to {recorded}, and output.topic is {settings.output.topic}: two "
            "pipelines of one app would suppress each other's messages; use another app name, or, if the "
            "output has moved for good, stop every process and start the first one with "
            "`twinsieve run --move-output`",
            retryable=False,
        )
