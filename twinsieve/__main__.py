"""`python -m twinsieve COMMAND`, and the program `twinsieve`: the command line."""

import os
import signal
import sys
from types import FrameType


def main() -> int:
    """The exit code. Ctrl-C during the imports ends the process by SIGINT, without a traceback."""
    untouched = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if untouched:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if os.getpid() == 1:
        # The first process of a container gets no signal that it does not catch. Commands that have
        # something to end cleanly catch them later.
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _end)
    from twinsieve.pipeline.commands import cli

    if untouched:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return cli.main()


def _end(number: int, _: FrameType | None) -> None:
    """As the signal would end any other process."""
    os._exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
