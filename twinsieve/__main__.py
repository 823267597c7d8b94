"""`python -m twinsieve COMMAND`, and the program `twinsieve`: the command line."""

import signal
import sys


def main() -> int:
    """The exit code. Ctrl-C during the imports ends the process by SIGINT, without a traceback."""
    untouched = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if untouched:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from twinsieve.pipeline.commands import cli

    if untouched:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
