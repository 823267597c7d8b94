"""What `run` and `seed` check at the start: the topics, the output of the app, and a seed that still runs.

One app has one output: whoever starts an app with another output would suppress the messages of both. The
index writes the output's name beside each log offset that it commits; a second pipeline under the app's name
finds that name.
"""

from __future__ import annotations

import logging
import threading
from contextlib import closing

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.broker.records import BrokerError, Partition
from twinsieve.pipeline.index.ends import recorded_output
from twinsieve.pipeline.operate.topics import Severity, check, create
from twinsieve.pipeline.settings.model import Settings

_log = logging.getLogger("twinsieve")
_PAUSE_S = 1.0


def check_topics(
    settings: Settings,
    broker: Broker,
    *,
    auto_create: bool,
    emits: bool = True,
    same_output: bool = True,
    beside_seed: bool = False,
    stop: threading.Event | None = None,
) -> None:
    """Stop on what would lose messages, warn of the rest.

    auto_create: make what is missing; emits: False where nothing is ever written to the outputs
    same_output: stop where the app has another output on record
    beside_seed: say nothing where the app is being seeded
    stop: ends waiting for the broker that knows the app's output
    raises: BrokerError with a line for every finding that stops
    """
    with closing(broker):
        admin = broker.admin()
        if auto_create:
            for name in create(settings, admin, emits=emits):
                _log.info("run: created topic %s", name)
        findings = check(settings, admin, emits=emits)
        if same_output:
            _wait_for_known_output(settings, admin, stop or threading.Event())
        if not beside_seed:
            _warn_beside_seed(settings, admin)
    for finding in findings:
        if finding.severity is not Severity.STOPS:
            _log.warning("run: %s", finding)
    stops = [str(finding) for finding in findings if finding.severity is Severity.STOPS]
    if stops:
        raise BrokerError("\n".join(stops), retryable=False)


def _wait_for_known_output(settings: Settings, admin: Admin, stop: threading.Event) -> None:
    """Wait while the group's coordinator is away: without it no index of this app gets anywhere."""
    told = False
    while not stop.is_set():
        try:
            refuse_another_output(settings, admin)
            return
        except BrokerError as error:
            if not error.retryable:
                raise
            if not told:
                _log.warning(
                    "run: the output topic of app %s is not known yet (%s); asking the broker again",
                    settings.app,
                    error,
                )
            told = True
            stop.wait(_PAUSE_S)


def _warn_beside_seed(settings: Settings, admin: Admin) -> None:
    # No more than a warning: a seed that has just ended stays a member for a session's time, and one that
    # runs ends by itself once this app has offsets.
    group = Names(settings.app).seed
    try:
        members = admin.members(group)
    except BrokerError as error:
        if not error.retryable:
            raise
        # Its coordinator may be moving; the app's own groups are asked for again and again.
        _log.warning("run: whether a seed of app %s still runs is not known (%s)", settings.app, error)
        return
    if members:
        _log.warning(
            "run: group %s has members: a seed of app %s that still runs ends as soon as this process reads, "
            "and the windows hold what it has come to",
            group,
            settings.app,
        )


def refuse_another_output(settings: Settings, admin: Admin) -> None:
    """Refuse to start where the app has another output on record. Input topics may come and go.

    raises: BrokerError for another output, with what to do; a retryable one where no broker can tell just now
    """
    group = Names(settings.app).index
    # The index before this one may have died in a transaction, which is open until the next one takes over.
    held = admin.group_offsets(group, stable=False).get(Partition(Names(settings.app).fingerprints, 0))
    known = recorded_output(held)
    if known and known != settings.output.topic:
        raise BrokerError(
            f"app {settings.app} writes to {known}, and output.topic is {settings.output.topic}: two "
            "pipelines of one app would suppress each other's messages; use another app name, or, if the "
            "output has moved for good, stop every process and start the first one with "
            "`twinsieve run --move-output`",
            retryable=False,
        )
