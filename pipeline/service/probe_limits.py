"""Times that a probe of `/healthz` has to allow."""

from __future__ import annotations

from twinsieve.pipeline.settings.model import Settings

START_S = 30.0
"""From the start of a process until its pages answer. Python loads the program meanwhile, which takes .7 s of
CPU; what takes long, such as compiling or restoring, comes after that."""
ALIVE_S = 120.0
"""A role without progress for this long counts as hanging, unless settings allow longer calls to a broker."""


def alive_s(settings: Settings) -> float:
    """Seconds without progress after which a role counts as hanging, and `/healthz` fails. Long enough for
    three calls to a broker of `kafka.request_timeout` each, because a role may make more calls after a failed
    one."""
    return max(ALIVE_S, 3 * settings.kafka.request_timeout_ms / 1000)
