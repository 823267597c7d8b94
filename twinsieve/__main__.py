"""`python -m twinsieve COMMAND`, and the program `twinsieve`: the command line."""

import gc
import os
import signal
import sys
from types import FrameType

_OBJECTS_A_COLLECTION = 100_000


def main() -> int:
    """Exit code of the command. Ctrl-C during the imports ends the process by SIGINT, without a traceback."""
    if sys.stderr is None:
        _open_stderr()
    # Imports make many objects that stay, but no garbage. With the default threshold the search for it took
    # a tenth of the start.
    gc.set_threshold(_OBJECTS_A_COLLECTION)
    untouched = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if untouched:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if os.getpid() == 1:
        # The kernel delivers a signal to process 1 of a container only if the process has a handler for it.
        # Commands that must end cleanly install their own handlers later.
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _end)
    # No command needs linear algebra. NumPy would start threads for it that wait actively for work, so each
    # start would take a second core for a while.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Else pydantic would read the metadata of all installed packages, to find plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from twinsieve.pipeline.commands import cli

    if untouched:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    code = cli.main()
    # At its end Python would search all objects for garbage. That takes longer than the rest of the end, and
    # the system takes all memory back anyway.
    gc.freeze()
    return code


def _open_stderr() -> None:
    """Connect stderr, which is closed, to /dev/null. Otherwise the next file or socket would get its
    descriptor, and libraries that write there would write into that."""
    opened = [os.open(os.devnull, os.O_WRONLY)]
    while opened[-1] < 2:
        opened.append(os.open(os.devnull, os.O_WRONLY))
    *lower, last = opened
    for descriptor in lower:
        os.close(descriptor)
    sys.stderr = open(last, "w")  # noqa: SIM115 (until the process ends)


def _end(number: int, _: FrameType | None) -> None:
    """End the process at once, with the exit code that a shell reports for a process killed by the signal."""
    os._exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
