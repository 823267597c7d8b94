"""Tells systemd the state of this process, by the protocol of sd_notify(3)."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress


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
