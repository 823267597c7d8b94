"""One lock for the whole memory cluster, so that the threads of a service may share it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

CLUSTER_LOCK = threading.RLock()
"""Clients hold it during a call, but not while a poll waits."""

_T = TypeVar("_T")


def one_at_a_time(kind: type[_T]) -> type[_T]:
    """The class, its public methods under the lock; `poll` takes it by itself."""
    for name, member in list(vars(kind).items()):
        if callable(member) and not name.startswith("_") and name != "poll":
            setattr(kind, name, _locked(member))
    return kind


def _locked(method: Callable[..., object]) -> Callable[..., object]:
    @wraps(method)
    def call(*arguments: object, **named: object) -> object:
        with CLUSTER_LOCK:
            return method(*arguments, **named)

    return call
