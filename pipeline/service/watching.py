"""A thread that looks at the broker every few seconds, with a client of its own, for as long as the process
runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from twinsieve.pipeline.basics.pauses import Pauses
from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.ports import Broker, Clock
from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.settings import ConfigError

_log = logging.getLogger("twinsieve")
_LONGEST_S = 12.0
"""After a slow look the pause is ten times as long as the look took, up to this."""
_LONGEST_FAILED_S = 30.0
"""The longest pause after looks that fail; after each of these it makes a new client."""
_END_S = 1.0


@contextmanager
def watching(
    name: str,
    look: Callable[[Admin], object],
    connect: Callable[[], Broker],
    clock: Clock,
    *,
    every_s: float,
    problem: str,
    on_failure: Callable[[], object] = lambda: None,
) -> Iterator[None]:
    """Context manager: a thread calls `look` every `every_s` seconds, less often while it is slow or fails.

    name: of the thread
    look: may raise BrokerError
    connect: makes a broker client
    problem: what a failure means, for the log
    on_failure: called after each failure
    """
    stop = threading.Event()

    def watch() -> None:
        refused, pause_s, pauses = "", 0.0, Pauses(every_s, _LONGEST_FAILED_S)
        while not stop.is_set():
            try:
                with closing(connect()) as broker, closing(broker.admin()) as admin:
                    while not stop.is_set():
                        began_s = clock.monotonic_s()
                        look(admin)
                        refused, pause_s = "", 0.0
                        stop.wait(min(_LONGEST_S, max(every_s, 10 * (clock.monotonic_s() - began_s))))
            except (BrokerError, ConfigError) as error:
                on_failure()
                # The roles log that no broker answers. What waiting cannot repair is logged once.
                waits = isinstance(error, BrokerError) and error.retryable
                if not waits and str(error) != refused:
                    refused = str(error)
                    _log.warning("%s: %s", problem, error)
                pause_s = pauses.after(pause_s)
                stop.wait(pause_s)

    thread = threading.Thread(target=watch, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        # A request may hang; the process does not wait for it.
        thread.join(_END_S)
