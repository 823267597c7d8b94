"""`python -m tests.broker.hung_program FOLDER FLAG run -c FILE …`: a command of twinsieve with a folder that hangs.

FOLDER: the folder; it hangs while the file FLAG is there, see `tests.hung_folder`
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

from tests.hung_folder import hung
from twinsieve.pipeline.commands.cli import main

_TICK_S = 0.05


def follow(folder: Path, flag: Path) -> None:
    """Let the folder hang whenever the flag is there."""
    while True:
        while not flag.exists():
            time.sleep(_TICK_S)
        with hung(folder):
            while flag.exists():
                time.sleep(_TICK_S)


if __name__ == "__main__":
    threading.Thread(target=follow, args=(Path(sys.argv[1]), Path(sys.argv[2])), daemon=True).start()
    sys.exit(main(sys.argv[3:]))
