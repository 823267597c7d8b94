"""What confluent-kafka and librdkafka do not promise and this client relies on; no other file does.

Nothing private is reached for. Each place says what happens under a release that behaves otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import methodcaller
from typing import Any

from confluent_kafka import KafkaException, Producer

from twinsieve.pipeline.broker.records import FatalError, Header
from twinsieve.pipeline.kafka.errors import UNREADABLE_NAME

_MAGIC = b"CGMDv2:"

_ask_headers = methodcaller("headers")


def generation_of(metadata: bytes) -> int:
    """The generation in a consumer's group metadata, which is opaque by its documentation.

    Upstream issue: none found.
    raises: FatalError under a librdkafka that writes it in another form
    """
    if not metadata.startswith(_MAGIC):
        raise FatalError("this librdkafka writes group metadata in an unknown form; install another")
    return int.from_bytes(metadata[len(_MAGIC) : len(_MAGIC) + 4], "little", signed=True)


def headers_of(message: Any) -> Sequence[Header]:
    """A message's headers, or one that cannot be sent where a name is not UTF-8.

    confluent-kafka 2.16 answers with null pointers then, and leaves the exception to the next call.
    Only a call that the interpreter has not specialised notices, as a SystemError. A release that raises at
    once is served too.
    Upstream issue: none found.
    """
    try:
        return _ask_headers(message) or ()
    except (UnicodeDecodeError, SystemError):
        # There is no other way to the headers.
        return ((UNREADABLE_NAME, b""),)


def error_of_open_transaction(producer: Producer) -> KafkaException | None:
    """What librdkafka says of a second begin in an open transaction: why it failed, if it did.

    The question changes nothing there in 2.16. Under a release that answers otherwise the caller keeps the
    error that it has. Upstream issue: none found.
    """
    try:
        producer.begin_transaction()
    except KafkaException as error:
        return error
    return None


def purge(producer: Producer) -> None:
    """Free what is queued, and wait for no broker.

    confluent-kafka 2.16 takes `blocking` for its opposite: with False it waits for every broker's thread,
    which may be looking up a name, and keeps the interpreter's lock meanwhile. Under a release that puts this
    right the default waits for those threads, no worse: pass False then. Upstream issue: none found.
    """
    producer.purge()
