"""Files that would overwrite each other, found before anything is opened for writing."""

from __future__ import annotations

import os
import stat

from twinsieve.stages.errors import UsageError

_STDIN, _STDOUT = 0, 1


def refuse_clashes(inputs: list[str], outputs: dict[str, str | None]) -> None:
    """Nothing, if every output is a file of its own and none is an input.

    inputs: names as given; outputs: flag → name, None where not asked for; `-` is stdin or stdout
    raises: UsageError naming both; links, hard links and redirections are seen through, devices may be shared
    """
    taken = [(name, _status(name, _STDIN), "an input") for name in inputs]
    for flag, name in outputs.items():
        if name is None:
            continue
        status = _status(name, _STDOUT)
        for other, known, use in taken:
            if _clash(name, status, other, known, both_written=use != "an input"):
                raise UsageError(f"{flag} {name}: is also {use} ({other}); name another file")
        taken.append((name, status, flag))


def _status(name: str, standard: int) -> os.stat_result | None:
    """Of a file that is there, or None."""
    try:
        return os.fstat(standard) if name == "-" else os.stat(name)
    except OSError:
        return None


def _clash(
    left: str, status: os.stat_result | None, right: str, known: os.stat_result | None, *, both_written: bool
) -> bool:
    if left == right == "-" and both_written:
        return True
    if status is not None and known is not None:
        return stat.S_ISREG(status.st_mode) and os.path.samestat(status, known)
    return "-" not in (left, right) and os.path.realpath(left) == os.path.realpath(right)
