"""A command with the rights of a container, by the kernel and util-linux alone."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]

_READ_ONLY = """
mount -t tmpfs tmpfs /mnt
for kept in $WRITABLE $READABLE; do mkdir -p "/mnt$kept"; mount --bind "$kept" "/mnt$kept"; done
mount -o remount,bind,ro /
for hidden in /tmp $CLOSED; do mount -t tmpfs tmpfs "$hidden"; done
for kept in $WRITABLE $READABLE; do mkdir -p "$kept"; mount --bind "/mnt$kept" "$kept"; done
for kept in $READABLE; do mount -o remount,bind,ro "$kept"; done
umount -R /mnt
chmod 1777 /tmp
for hidden in $CLOSED; do mount -o remount,ro "$hidden"; done
exec "$@"
"""
"""Hides /tmp and the folders CLOSED, and shows the folders WRITABLE and READABLE again, which may be in them."""


def restricted(folder: Path, user: int, *command: str) -> list[str]:
    """The command as this user of group 0, without capabilities, where nothing but the folder and an empty /tmp
    can be written. It is the process itself, and no child of another one.

    Python, its packages and this checkout can be read as in an image, also where they are in a home that is closed
    to others.
    """
    program = sorted({Path(sys.base_prefix), Path(sys.prefix), _ROOT})
    folders = {
        "WRITABLE": str(folder),
        "READABLE": " ".join(map(str, program)),
        "CLOSED": " ".join(sorted({_closed(path) for path in program})),
    }
    setpriv = ["setpriv", "--reuid", str(user), "--regid", "0", "--clear-groups", "--no-new-privs"]
    rights = [*setpriv, "--inh-caps=-all", "--bounding-set=-all", "--", *command]
    given = [f"{name}={value}" for name, value in folders.items()]
    return ["env", *given, "unshare", "--mount", "sh", "-ec", _READ_ONLY, "sh", *rights]


def _closed(path: Path) -> str:
    """The outermost folder on the way to the path that others cannot enter; empty for none."""
    parents = reversed(path.parents)
    return next((str(parent) for parent in parents if not parent.stat().st_mode & 0o001), "")


def refusal(user: int) -> str:
    """Why such a command cannot run the program here; empty if it can."""
    same = (
        f"import sys, twinsieve; assert sys.base_prefix == {sys.base_prefix!r}, 'this Python cannot be read'"
    )
    with tempfile.TemporaryDirectory() as folder:
        command = restricted(Path(folder), user, sys.executable, "-c", same)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return f"no program with the rights of a container: {said[-1]}" if done.returncode else ""
