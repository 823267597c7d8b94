"""Group names with the same hash."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from twinsieve.pipeline.broker.names import Names


def java_hash(name: str) -> int:
    """As the documentation of String.hashCode defines it, for names without characters beyond U+FFFF."""
    return reduce(lambda value, letter: (31 * value + ord(letter)) & 0xFFFFFFFF, name, 0)


def test_the_plain_hash_is_that_of_java() -> None:
    # The JDK prints these for "hello".hashCode() and "".hashCode().
    assert (java_hash("hello"), java_hash("")) == (99162322, 0)


@given(st.text(st.characters(max_codepoint=0xD7FF), max_size=60))
def test_the_record_has_the_hash_of_the_workers_group_and_a_name_of_its_own(app: str) -> None:
    group = Names(app).workers
    record = Names.emitted(group)
    assert java_hash(record) == java_hash(group)
    assert record.startswith(f"{group}.emitted-")
    assert record.removeprefix(f"{group}.emitted-").isalpha()
