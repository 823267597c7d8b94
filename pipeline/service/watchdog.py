"""Ends the process if one of its roles hangs, and tells systemd how the process is."""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import Self

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.service.loop import Loop
from twinsieve.stages.errors import SieveError

_log = logging.getLogger("twinsieve")
HANGS_S = 300.0
"""A role without progress for this long hangs. It is longer than the time after which /healthz fails, so that
an orchestrator that looks there acts first."""
_ALIVES = 2.5
"""If settings allow long calls to a broker, a role hangs after this many times that other time."""
_LOOK_S = 1.0
_LEAVE_S = 20.0
"""How long the other roles may take to finish their work and to leave their groups."""
_FRAMES = 30
_STATUS = 200
_EXTEND_S = 60.0
_EXTEND_EVERY_S = 20.0


class Watchdog:
    """A thread that looks at the roles of a process once a second, from `start` to `close`.

    If a role hangs, it logs where, sets the role's `has_hung` and `stop`, so that the other roles finish and
    leave their groups, and ends the process after `_LEAVE_S` seconds. Whatever hangs cannot be ended
    otherwise, and a kill at any moment loses nothing.

    The time without progress is the sum of the times between two looks, each counted as at most twice
    `_LOOK_S`. So a process that is stopped (SIGSTOP, a debugger, a suspended machine), or gets too little CPU
    for even this thread, does not count as hanging. A clock that jumps does not matter.

    stop: ends the process cleanly when it is set
    why_not_ready, why_not_healthy, remark: as the HTTP pages show them; each is empty if all is well
    end: ends the process at once, with this exit code
    """

    def __init__(
        self,
        stop: threading.Event,
        clock: Clock,
        why_not_ready: Callable[[], str] = str,
        why_not_healthy: Callable[[], str] = str,
        remark: Callable[[], str] = str,
        supervisor: Supervisor | None = None,
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self._stop = stop
        self._clock = clock
        self._why_not_ready, self._why_not_healthy, self._remark = why_not_ready, why_not_healthy, remark
        self._supervisor = supervisor or Supervisor()
        self._end = end
        self._loops: Sequence[Loop] = ()
        self._seen: dict[Loop, tuple[float, float]] = {}
        """For each role the time of its last progress, and the seconds counted since."""
        self._looked_s = clock.monotonic_s()
        self._ends_in_s: float | None = None
        self._told: dict[str, object] = {}
        self._untold = ""
        """The last error that kept it from telling systemd the state; it is logged once."""
        self._watched_s, self._extended_s = 0.0, _EXTEND_EVERY_S
        """Seconds since the last WATCHDOG and EXTEND_TIMEOUT_USEC."""
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closed.set()
        self._supervisor.tell(STOPPING=1)

    def watch(self, loops: Iterable[Loop]) -> None:
        """Look at these roles from now on."""
        self._loops = list(loops)

    def _run(self) -> None:
        while not self._closed.wait(_LOOK_S):
            self.look()

    def look(self) -> None:
        """Look once."""
        now_s = self._clock.monotonic_s()
        passed_s = min(max(0.0, now_s - self._looked_s), 2 * _LOOK_S)
        self._looked_s = now_s
        if self._ends_in_s is not None:
            self._ends_in_s -= passed_s
            if self._ends_in_s <= 0:
                self._end(SieveError.exit_code)
            return
        for loop in self._loops:
            turned_s = loop.turned_s
            before_s, silent_s = self._seen.get(loop, (turned_s, 0.0))
            # A role may know that it will need time: then its last progress is in the future.
            is_silent = loop.thread is not None and turned_s == before_s and turned_s <= now_s
            silent_s = silent_s + passed_s if is_silent else 0.0
            self._seen[loop] = turned_s, silent_s
            if silent_s >= max(HANGS_S, _ALIVES * loop.alive_s):
                _log.critical(
                    "%s: no progress for %.0f s, so this process ends; nothing is lost; start it again. It "
                    "hangs in %s",
                    *(loop.name, silent_s, where(loop.thread)),
                )
                self._ends_in_s = _LEAVE_S
                loop.has_hung = True
                self._stop.set()
                return
        try:
            self._tell(passed_s)
        except Exception as error:  # noqa: BLE001 - nobody but this thread sees a role that hangs
            if repr(error) != self._untold:
                self._untold = repr(error)
                _log.exception("run: cannot tell the state of this process: %s", printable(repr(error)))

    def _tell(self, passed_s: float) -> None:
        supervisor, why = self._supervisor, self._why_not_ready()
        fields: dict[str, object] = {"STATUS": printable(why or self._remark() or "working")[:_STATUS]}
        if self._stop.is_set():
            fields["STOPPING"] = 1
        elif not why or "READY" in self._told:
            fields["READY"] = 1
        if fields != self._told:
            self._told = fields
            supervisor.tell(**fields)
        self._extended_s += passed_s
        if "READY" not in fields and self._extended_s >= _EXTEND_EVERY_S:
            # Waiting for a broker, compiling and a last snapshot may take minutes.
            self._extended_s = 0.0
            supervisor.tell(EXTEND_TIMEOUT_USEC=int(_EXTEND_S * 1e6))
        self._watched_s += passed_s
        if supervisor.watch_s is not None and self._watched_s >= supervisor.watch_s / 2 - _LOOK_S:
            self._watched_s = 0.0
            if not self._why_not_healthy():
                supervisor.tell(WATCHDOG=1)


def where(thread: int | None) -> str:
    """The calls that a thread is in, the innermost first, as `file:line function`; only the innermost
    `_FRAMES` of them. thread: its identifier"""
    frame = sys._current_frames().get(thread or 0)
    if frame is None:
        return "a thread that has ended"
    calls = traceback.extract_stack(frame)[-_FRAMES:][::-1]
    return ", called by ".join(
        f"{'/'.join(PurePath(call.filename).parts[-2:])}:{call.lineno} {call.name}" for call in calls
    )


class Supervisor:
    """The service manager that has started this process, if it listens on `NOTIFY_SOCKET`; else every call
    does nothing. No call waits, and none fails.

    watch_s: seconds within which the service manager wants to hear that the process is well; None if it does
        not
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        # A name that begins with @ is abstract: it is no file.
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        micros, pid = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
        is_watched = micros.isdecimal() and pid in ("", str(os.getpid()))
        self.watch_s = int(micros) / 1e6 if is_watched and self._address else None

    def tell(self, **fields: object) -> None:
        """Send these fields, such as READY=1."""
        if not self._address:
            return
        lines = "\n".join(f"{name}={value}" for name, value in fields.items())
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(lines.encode(), self._address)
