"""The selector of kafka-python's clients says what Python's own says."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Iterator

import pytest

from twinsieve.pipeline.kafka.options import Selector


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def test_a_socket_is_known_from_its_registration_to_its_end(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    one, other = pair
    with Selector() as quick, selectors.DefaultSelector() as plain:
        for each in (quick, plain):
            with pytest.raises(KeyError):
                each.get_key(one)
            each.register(one, selectors.EVENT_READ, "reads")
            each.modify(one, selectors.EVENT_READ | selectors.EVENT_WRITE, "both")
        assert quick.get_key(one) == plain.get_key(one)
        other.send(b"x")
        assert quick.select(1.0) == plain.select(1.0)
        for each in (quick, plain):
            assert each.unregister(one).data == "both"
            with pytest.raises(KeyError):
                each.get_key(one)
            with pytest.raises(KeyError):
                each.unregister(one)


def test_a_socket_that_was_closed_is_unregistered_all_the_same() -> None:
    one, other = socket.socketpair()
    with other, Selector() as quick:
        quick.register(one, selectors.EVENT_READ)
        one.close()
        assert quick.unregister(one).fileobj is one
        with pytest.raises(KeyError):
            quick.get_key(one)
