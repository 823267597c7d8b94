"""Compile all kernels before they are needed.

What is compiled is kept for later processes (`stages/kernel/folder.py`). A process that ends early has kept
the kernels that it compiled, and the next one compiles the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import numba

from twinsieve.stages import kernel
from twinsieve.stages.kernel import folder

_log = logging.getLogger("twinsieve")

CALLS_SOURCE = Path(__file__).with_name("kernel_calls.py")
"""Not imported to read it: most starts compile nothing."""

ABOUT = "compiling kernels, once for each version and kind of CPU"
COSTS = f"{ABOUT}: one to three minutes (`twinsieve warm-up` does it beforehand)"
"""What a user is told who has to wait for kernels."""

Report = Callable[[int, int], None]
"""Called with the number of parts that are compiled, and of all parts."""


def warm_up(
    report: Report = lambda _done, _parts: None, *, stopped: Callable[[], bool] = lambda: False
) -> bool:
    """Whether all kernels are stored now. Missing ones are compiled first, unless NUMBA_DISABLE_JIT is set.

    report: not called if no kernel is missing
    stopped: asked before each part; once it returns True, no more are compiled
    """
    if kernel.config.DISABLE_JIT:
        return False
    if kernel.version > kernel.TESTED[1]:
        tested = ".".join(map(str, kernel.TESTED[1]))
        _log.info("twinsieve: Numba %s is newer than the tested %s", numba.__version__, tested)
    # The folder's name is a digest of the kernels, not of the calls that compile them.
    calls = CALLS_SOURCE.read_bytes()
    if folder.is_complete(calls):
        return True
    from twinsieve.pipeline.service.kernel_calls import CALLS

    for done, call in enumerate(CALLS):
        if stopped():
            return False
        report(done, len(CALLS))
        call()
    report(len(CALLS), len(CALLS))
    return folder.mark_as_complete(calls)
