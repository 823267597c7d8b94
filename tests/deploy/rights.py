"""A command with the rights of a container, by the kernel and util-linux alone."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

_READ_ONLY = """
mount --bind "$1" /mnt
mount -o remount,bind,ro /
mount -t tmpfs -o mode=1777 tmpfs /tmp
mkdir -p "$1"
mount --bind /mnt "$1"
mount -o remount,bind,ro /mnt
"""
"""What holds the folder may be below /tmp: the new /tmp gets it again."""


def restricted(folder: Path, user: int, *command: str) -> list[str]:
    """The command as this user of group 0, without capabilities, where nothing but the folder and an empty /tmp
    can be written. It is the process itself, and no child of another one."""
    setpriv = ["setpriv", "--reuid", str(user), "--regid", "0", "--clear-groups", "--no-new-privs"]
    rights = [*setpriv, "--inh-caps=-all", "--bounding-set=-all", "--", *command]
    return ["unshare", "--mount", "sh", "-ec", f'{_READ_ONLY}\nshift; exec "$@"', "sh", str(folder), *rights]


def refusal(user: int) -> str:
    """Why such a command cannot run the program here; empty if it can."""
    with tempfile.TemporaryDirectory() as folder:
        command = restricted(Path(folder), user, sys.executable, "-c", "import twinsieve")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return f"no program with the rights of a container: {said[-1]}" if done.returncode else ""
