"""`python -m tests.runbooks.newer_program FORMATS run -c FILE …`: a later version of twinsieve, by its formats.

FORMATS: what has another format there: `snapshots`, or `snapshots,log`
"""

from __future__ import annotations

import sys

from twinsieve.pipeline.commands.cli import main
from twinsieve.pipeline.wire import frame
from twinsieve.stages.formats import SNAPSHOT

if __name__ == "__main__":
    raised = sys.argv[1].split(",")
    if "snapshots" in raised:
        object.__setattr__(SNAPSHOT, "versions", (*SNAPSHOT.versions, SNAPSHOT.versions[-1] + 1))
    if "log" in raised:
        frame.VERSION += 1
    sys.exit(main(sys.argv[2:]))
