"""Reads the texts of leaders from the input topics, in a thread of its own, while somebody looks at a page.

A process holds no text of a leader: the worker has passed it on long ago, and the index keeps its body. So
the message is read again where it stands. A look-up costs a whole fetch, some 10 ms of CPU, so there are few
of them while the process is busy.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import ExitStack

from twinsieve.pipeline.basics.pauses import Pauses
from twinsieve.pipeline.basics.printable import beginning
from twinsieve.pipeline.broker.input_position import InputPosition
from twinsieve.pipeline.broker.ports import Broker, Clock, Reader
from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.status_pages.drops import MAX_TEXT, Drops, ReadText

_log = logging.getLogger("twinsieve")
_LOOKED_S = 10.0
"""A page counts as looked at for this long after it was asked for."""
_BETWEEN_S = 0.1
_BUSY_S = 1.0
"""Pauses before look-ups. With the longer one they take a hundredth of a core."""
_BUSY_DROPS = 5
_POLL_S = 0.2
_POLLS = 25
_MOST_TEXTS = 1_000
_MAX_WHY = 300
_FAILED = Pauses(first_s=1.0, longest_s=60.0)
RETENTION = "not in the topic any more: taken by retention"
_GONE = "not in the topic any more"
_SILENT = "not read: the broker sent nothing"

_Found = tuple[str, str]
"""The text of a leader, and why there is none; one of the two is empty."""


class LeaderTexts:
    """Completes the drops of a process by the texts of their leaders.

    connect: makes a broker client; read: reads the text of a message; part: which part of a record that is
    """

    def __init__(
        self, drops: Drops, connect: Callable[[], Broker], part: str, read: ReadText, clock: Clock
    ) -> None:
        self._drops = drops
        self._connect = connect
        self._part = part
        self._read = read
        self._clock = clock
        self._texts: OrderedDict[InputPosition, _Found] = OrderedDict()
        self._asked = threading.Event()
        self._closed = threading.Event()
        self._asked_s = 0.0
        threading.Thread(target=self._run, name="leader-texts", daemon=True).start()

    def ask(self) -> None:
        """Record that somebody looks at a page. Returns at once."""
        self._asked_s = self._clock.monotonic_s()
        self._asked.set()

    def close(self) -> None:
        """End the thread, which closes its client; does not wait for a broker."""
        self._closed.set()
        self._asked.set()

    def _run(self) -> None:
        pause_s = 0.0
        while self._is_asked():
            try:
                self._look_up_all()
                pause_s = 0.0
            except BrokerError as error:
                pause_s = _FAILED.after(pause_s)
                _log.warning("run: cannot read a leader for the status pages: %s", error)
                self._closed.wait(pause_s)

    def _is_asked(self) -> bool:
        """Whether a page is looked at; waits until one is. False once this is closed."""
        self._asked.wait()
        return not self._closed.is_set()

    def _look_up_all(self) -> None:
        """Look leaders up until nobody looks at a page. raises: BrokerError"""
        with ExitStack() as stack:
            reader: Reader | None = None
            passed = self._drops.passed
            pause_s = _BETWEEN_S
            while not self._closed.wait(pause_s):
                before, passed = passed, self._drops.passed
                pause_s = _pause_s(passed - before)
                if self._clock.monotonic_s() - self._asked_s > _LOOKED_S:
                    self._asked.clear()
                    return
                wanted = self._set_known()
                if wanted is None:
                    continue
                if reader is None:
                    broker = self._connect()
                    stack.callback(broker.close)
                    reader = broker.reader()
                try:
                    self._set(wanted, self._look_up(reader, wanted))
                except BrokerError as error:
                    # This leader is not tried again: others may be in topics that this process may read.
                    self._set(wanted, ("", beginning(f"not read: {error}", _MAX_WHY)))
                    raise

    def _set_known(self) -> InputPosition | None:
        """Complete the drops whose leaders were looked up before; returns the first of the other leaders."""
        unknown = None
        for leader in self._drops.without_leader():
            if leader in self._texts:
                self._set(leader, self._texts[leader])
            else:
                unknown = unknown or leader
        return unknown

    def _set(self, leader: InputPosition, found: _Found) -> None:
        text, why = found
        self._texts[leader] = beginning(text, MAX_TEXT), why
        self._texts.move_to_end(leader)
        while len(self._texts) > _MOST_TEXTS:
            self._texts.popitem(last=False)
        self._drops.set_leader(leader, text, why)

    def _look_up(self, reader: Reader, leader: InputPosition) -> _Found:
        """The text of the message at this position. raises: BrokerError"""
        partition, offset = leader
        if reader.beginning_offsets([partition])[partition] > offset:
            return "", RETENTION
        if reader.end_offsets([partition])[partition] <= offset:
            return "", _GONE
        reader.assign([partition])
        reader.seek(partition, offset)
        for _ in range(_POLLS):
            for records in reader.poll(_POLL_S, 1):
                if records.partition != partition:
                    continue
                if records.offsets[0] != offset:
                    return "", _GONE
                return self._read(records.values[0] if self._part == "value" else records.keys[0])
        return "", _SILENT


def _pause_s(dropped: int) -> float:
    """Length of the next pause. dropped: number of drops during the last one.

    >>> _pause_s(5), _pause_s(6)
    (0.1, 1.0)
    """
    return _BUSY_S if dropped > _BUSY_DROPS else _BETWEEN_S
