"""Compile missing kernels before the first call, and say so."""

from __future__ import annotations

import logging
from functools import cache

from twinsieve.pipeline.service.warm_up import COSTS, CompileProgress, warm_up
from twinsieve.stages import compiled

_log = logging.getLogger("twinsieve")


@cache
def compile_kernels() -> None:
    """Compile the kernels that are missing; nothing after the first call of a process.

    A warning of the logger `twinsieve` comes first. Without a handler, Python writes warnings to stderr.
    """
    if compiled.compiles():
        warm_up(_warn)


def _warn(progress: CompileProgress) -> None:
    if progress.done == 0:
        _log.warning(COSTS)
