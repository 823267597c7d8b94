"""Compile missing kernels before the first call, and say so."""

from __future__ import annotations

import logging
from functools import cache

from twinsieve.pipeline.service.warm_up import COSTS, warm_up

_log = logging.getLogger("twinsieve")


@cache
def compile_kernels() -> None:
    """Compile the kernels that are missing; nothing after the first call of a process.

    A warning of the logger `twinsieve` comes first. Without a handler, Python writes warnings to stderr.
    """
    warm_up(lambda done, _all: None if done else _log.warning(COSTS))
