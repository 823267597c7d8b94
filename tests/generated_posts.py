"""Posts of `twinsieve generate`, made once in a process: hundreds of tests ask for the same ones."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from twinsieve.pipeline.tools.generate import stream


def generate(count: int, seed: int = 1, **options: Any) -> list[dict[str, Any]]:
    """The posts of `stream.generate`, as new objects that the caller may change."""
    return [dict(post) for post in _made(count, seed, tuple(sorted(options.items())))]


@lru_cache(maxsize=64)
def _made(count: int, seed: int, options: tuple[tuple[str, Any], ...]) -> list[dict[str, Any]]:
    return list(stream.generate(count, seed, **dict(options)))
