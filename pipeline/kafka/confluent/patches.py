"""All uses of behaviour that confluent-kafka and librdkafka do not document; no other file relies on any.

Only public functions are called. Each docstring says what happens under a release that behaves otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from confluent_kafka import KafkaException, Message, Producer

from twinsieve.pipeline.broker.records import FatalError, Header
from twinsieve.pipeline.kafka.errors import UNREADABLE_NAME

Value = bytes | None
"""Key or value of a message."""

_MAGIC = b"CGMDv2:"


def generation_of(metadata: bytes) -> int:
    """The group generation inside a consumer's group metadata; the documentation calls these bytes opaque.

    Upstream issue: none found.
    raises: FatalError if this librdkafka writes the metadata in another form
    """
    if not metadata.startswith(_MAGIC):
        raise FatalError(
            "this version of librdkafka writes group metadata in an unknown format; install the "
            "confluent-kafka version that twinsieve requires"
        )
    return int.from_bytes(metadata[len(_MAGIC) : len(_MAGIC) + 4], "little", signed=True)


def outside_metadata(group: str) -> bytes:
    """Group metadata of a client that is no member of the group, as `consumer_group_metadata` of a consumer
    that has not joined returns them. A consumer made for that alone would have threads and connections.

    Upstream issue: none found.
    """
    generation, no_instance = (-1).to_bytes(4, "little", signed=True), b"\x01"
    return b"".join((_MAGIC, generation, group.encode(), b"\0", b"\0", no_instance))


def headers_of(messages: Sequence[Any]) -> list[Sequence[Header]]:
    """The headers of each message; if a name is not UTF-8, one header whose name cannot be sent.

    confluent-kafka 2.16 returns null pointers in that case, and the pending exception surfaces at a later
    call. Only a call that the interpreter has not specialised detects that, with a SystemError; `map` makes
    such calls. A second call for the same message would return the null pointers without an exception, so
    each message is asked once. A release that raises UnicodeDecodeError at once works too. Upstream issue:
    none found.
    """
    found: list[Sequence[Header]] = []
    asked: Iterator[Any] = map(Message.headers, messages)
    while len(found) < len(messages):
        try:
            for headers in asked:
                found.append(headers or ())
        except (UnicodeDecodeError, SystemError):
            # The library has no other function that returns the headers.
            found.append(((UNREADABLE_NAME, b""),))
    return found


def text_of(committed: Any) -> str:
    """The text that is committed with an offset, as a `TopicPartition` has it.

    Behind the text of another program there may be foreign bytes (`kafka_python.reading.offset_and_metadata`
    says why); what is not UTF-8 is replaced, because such a text is no mark of ours anyway.
    """
    try:
        return committed.metadata or ""
    except UnicodeDecodeError as error:
        return error.object.decode("utf-8", "replace")


def error_of_open_transaction(producer: Producer) -> KafkaException | None:
    """The error of a second begin in an open transaction; it says why the transaction failed, if it failed.

    In 2.16 this extra call changes nothing in the transaction. Under a release that returns something else
    the caller keeps the error that it has. Upstream issue: none found.
    """
    try:
        producer.begin_transaction()
    except KafkaException as error:
        return error
    return None


def positional_produce(producer: Producer) -> Callable[[str, Value, Value, int, Any, None, int, Any], None]:
    """The producer's function `produce`, for calls that give all arguments by place.

    Places: topic, value, key, partition (-1: chosen by the key), callback for the delivery, None (the other
    name of that callback), timestamp in ms (0: now), list of headers or None.

    A call with names takes longer, as it compares each of them, and there is one for each message. The
    documentation gives the names alone; the places are the same from 2.5 to 2.16. Under a release with
    others the first message raises TypeError, and nothing is sent. Upstream issue: none found.
    """
    produce: Callable[[str, Value, Value, int, Any, None, int, Any], None] = producer.produce
    return produce


def purge(producer: Producer) -> None:
    """Drop all queued messages without waiting for the threads of the broker connections.

    confluent-kafka 2.16 has the argument `blocking` inverted: with False it waits for the thread of every
    broker, which may be busy with a DNS query, and keeps the interpreter's lock (GIL) during that time. The
    default, True, does not wait. Under a release that corrects the argument the default waits for those
    threads; pass False then. Upstream issue: none found.
    """
    producer.purge()
