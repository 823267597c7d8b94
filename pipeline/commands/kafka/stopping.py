"""Turn SIGTERM and SIGINT into an event while a command has work that it must end cleanly."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import FrameType

_log = logging.getLogger("twinsieve")
_CAUGHT = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stopped_by_signals(command: str) -> Iterator[threading.Event]:
    """Context manager with an event that SIGTERM and SIGINT set; only in the main thread. The old handlers
    are restored at the end of the block.

    command: begins the log line about the signal

    Before the block, during imports, a signal ends the process at once (`__main__`).
    """
    stop = threading.Event()
    received: SimpleQueue[int] = SimpleQueue()

    # A handler may interrupt any line of the main thread, even one that holds the lock of the log or of the
    # event. Therefore it only puts into this queue, which is always safe; another thread does the rest.
    def on_signal(number: int, _: FrameType | None) -> None:
        received.put(number)

    def stop_and_log() -> None:
        while number := received.get():
            stop.set()
            _log.info("%s: %s, stopping", command, signal.Signals(number).name)

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    threading.Thread(target=stop_and_log, name="signals", daemon=True).start()
    before = {number: signal.signal(number, on_signal) for number in _CAUGHT}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        received.put(0)
