"""Checks of `run` and `seed` at the start: the topics, the output of the app, the settings that the app is
fixed to, a `seed` that is still running.

The checks are repeated until a broker answers, and can be stopped meanwhile; an error that waiting cannot
repair ends them. An app has only one output topic, because with two outputs each pipeline would suppress
messages of the other. So the index stores the name of the output topic with each log offset that it commits,
and a second pipeline with the same app name finds it there. The settings that an app is fixed to are stored
beside it.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import closing
from typing import Literal, TypeVar

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Broker, Clock
from twinsieve.pipeline.broker.records import BrokerError, Committed
from twinsieve.pipeline.index.ends import JudgedUnder, recorded_output, recorded_under
from twinsieve.pipeline.operate.app_key import recorded_secret, refuse_without_key, secret_of
from twinsieve.pipeline.operate.committed_index import committed_by_index
from twinsieve.pipeline.operate.topic_checks import Severity, check, create
from twinsieve.pipeline.service.build import judged_under, make_scheme
from twinsieve.pipeline.settings.fixed import ADVICE, decode_fixed, differing
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.errors import StateError
from twinsieve.stages.judge.scheme import Scheme

_log = logging.getLogger("twinsieve")
_PAUSE_S = 1.0
_CHECK_S = 0.1
_LOG_AGAIN_S = 60.0
_Answer = TypeVar("_Answer")
Command = Literal["run", "seed", "redrive"]
"""The command that this process runs; its log lines begin with it."""


def until_answered(
    question: Callable[[], _Answer],
    clock: Clock,
    stop: threading.Event,
    failed: Callable[[BrokerError], None] = lambda _: None,
    *,
    command: Command = "run",
) -> _Answer | None:
    """The result of `question`, which is repeated after each retryable BrokerError; None once `stop` is set.

    Each try runs in its own thread, because a client that waits for a silent broker cannot be interrupted. A
    stop does not wait for this thread.

    question: queries a broker; makes its own clients, and closes them
    failed: called with each retryable error, before the next try
    raises: what `question` raises, except a retryable BrokerError
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
            # Errors that differ only in numbers count as the same error.
            kind, now_s = re.sub(r"\d+", "0", str(error)), clock.monotonic_s()
            if kind != logged or now_s - logged_s >= _LOG_AGAIN_S:
                logged, logged_s = kind, now_s
                _log.warning("%s: waiting for a broker: %s", command, error)
        stop.wait(_PAUSE_S)
    return None


def _in_thread(question: Callable[[], _Answer]) -> Future[_Answer]:
    """A future for the result or error of `question`, which runs in a thread that ends with the process."""
    answer: Future[_Answer] = Future()

    def ask() -> None:
        try:
            answer.set_result(question())
        except BaseException as error:  # noqa: BLE001 - handed to the caller, who raises it
            answer.set_exception(error)

    threading.Thread(target=ask, name="start", daemon=True).start()
    return answer


def check_app(
    settings: Settings,
    connect: Callable[[], Broker],
    clock: Clock,
    *,
    auto_create: bool,
    emits: bool = True,
    same_output: bool = True,
    needs_key: bool = True,
    command: Command = "run",
) -> Scheme:
    """Check the topics, read or draw the key, and check the settings against those on record. Raise problems
    that would lose messages; log the others. Returns the fingerprint scheme with the secret of the app.

    connect: makes a client, which is closed here
    needs_key: False if this process makes no digests; then only the name of the secret is known
    auto_create: create missing topics before the checks; emits: False if the process never writes to outputs
    same_output: raise an error if another output is recorded for the app
    command: other than `seed`, warn if a `seed`, which fills the windows of this app, is running
    raises: BrokerError with one line for each finding of severity STOPS; a retryable one if no broker
        answers; StateError if the app is fixed to other settings
    """
    make_scheme(settings)  # raises for problems of the settings before a broker is asked
    with closing(connect()) as broker:
        admin = broker.admin()
        refuse_without_key(settings, admin)
        if auto_create:
            for name in create(settings, admin, emits=emits):
                _log.info("%s: created topic %s", command, name)
        # An index and a shard say by themselves what they may not read of a cache; a worker need not.
        findings = check(settings, admin, emits=emits, reads_caches=False)
        committed = committed_by_index(settings.app, admin)
        if same_output:
            refuse_another_output(settings, committed)
        if command != "seed":
            _warn_beside_seed(settings, admin, command)
        for finding in findings:
            if finding.severity is not Severity.STOPS:
                _log.warning("%s: %s", command, finding)
        stops = [str(finding) for finding in findings if finding.severity is Severity.STOPS]
        if stops:
            raise BrokerError("\n".join(stops), retryable=False)
        secret = secret_of(settings, broker, clock) if needs_key else recorded_secret(settings, committed)
        scheme = make_scheme(settings, secret)
        refuse_other_settings(settings.app, committed, judged_under(settings, scheme), admin)
    return scheme


def _warn_beside_seed(settings: Settings, admin: Admin, command: Command) -> None:
    # This is only a warning. A `seed` process that has just ended stays a member of its group until its
    # session times out. One that still runs ends by itself as soon as this app has committed offsets.
    group = Names(settings.app).seed
    try:
        members = admin.members(group)
    except BrokerError as error:
        if not error.retryable:
            raise
        # The broker that coordinates the group may be changing. Continue without this check: the app's own
        # groups are queried later anyway, and with retries.
        _log.warning(
            "%s: cannot tell whether `seed` for app %s is still running (%s)", command, settings.app, error
        )
        return
    if members:
        _log.warning(
            "%s: group %s has members, so `seed` for app %s may still be running; it ends by itself when "
            "this app commits its first offsets, and the windows keep what it has judged by then",
            command,
            group,
            settings.app,
        )


def refuse_another_output(settings: Settings, committed: Committed | None) -> None:
    """Refuse to start if the output topic recorded for this app is not the configured one. Input topics may
    change.

    committed: what the index of the app has committed
    raises: BrokerError, with advice
    """
    recorded = recorded_output(committed)
    if recorded and recorded != settings.output.topic:
        raise BrokerError(
            f"app {settings.app} writes to {recorded}, and output.topic is {settings.output.topic}: two "
            "pipelines of one app would suppress each other's messages; use another app name, or, if the "
            "output has moved for good, stop every process and start the first one with "
            "`twinsieve run --move-output`",
            retryable=False,
        )


def refuse_other_settings(app: str, committed: Committed | None, under: JudgedUnder, admin: Admin) -> None:
    """Refuse to start if this app has judged under another fingerprint scheme, scope or exact keys.

    committed: what the index of the app has committed. One of an older version does not record this; then the
        index finds out when it reads the decisions
    raises: StateError that names the settings that differ
    """
    recorded = recorded_under(committed)
    if recorded.scheme and recorded.scheme != under.scheme:
        differ = differing(decode_fixed(recorded.fixed), decode_fixed(under.fixed))
        group = Names(app).index
        raise StateError(
            f"app {app} has judged under other settings: {differ} (on record in group {group}, "
            f"whose members are now: {_members(admin, group)}); {ADVICE}"
        )


def _members(admin: Admin, group: str) -> str:
    try:
        names = sorted(printable(member.name or key) for key, member in admin.members(group).items())
    except BrokerError:
        return "unknown"
    return ", ".join(names) or "none"
