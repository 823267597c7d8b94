"""Names that stand for a descriptor of this process, as `-`, /dev/stdout or `>(...)` of a shell."""

from __future__ import annotations

import os
import re

_STANDARD = "-"
_FOLDER = re.compile(r"/proc/(?P<process>\d+)(?:/task/\d+)?/fd|/dev/fd")
_LINKS_AT_MOST = 40


def descriptor_of(name: str, *, writes: bool) -> int | None:
    """The descriptor that a name stands for, links followed; None for the name of a file.

    writes: `-` is stdout, else stdin
    """
    if name == _STANDARD:
        return 1 if writes else 0
    path = name
    for _ in range(_LINKS_AT_MOST):
        folder, last = os.path.split(os.path.abspath(path))
        folder = os.path.realpath(folder)
        found = _FOLDER.fullmatch(folder)
        if found and last.isdecimal() and found["process"] in (None, str(os.getpid())):
            return int(last)
        try:
            path = os.path.join(folder, os.readlink(os.path.join(folder, last)))
        except OSError:
            return None
    return None
