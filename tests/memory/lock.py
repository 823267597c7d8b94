"""One lock for the whole memory cluster, so that the threads of a service may share it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

CLUSTER_LOCK = threading.RLock()
"""Clients hold it during a call, but not while they wait."""

_T = TypeVar("_T")
_WAITS: set[object] = set()


def waits(method: _T) -> _T:
    """The method, which may wait and therefore takes the lock by itself."""
    _WAITS.add(method)
    return method


def one_at_a_time(kind: type[_T]) -> type[_T]:
    """The class, its public methods under the lock, but for those that wait."""
    for name, member in list(vars(kind).items()):
        if callable(member) and not name.startswith("_") and member not in _WAITS:
            setattr(kind, name, _locked(member))
    return kind


def _locked(method: Callable[..., object]) -> Callable[..., object]:
    @wraps(method)
    def call(*arguments: object, **named: object) -> object:
        with CLUSTER_LOCK:
            return method(*arguments, **named)

    return call
