"""Committed offsets and their texts, as kafka-python sends and returns them."""

from __future__ import annotations

from kafka.structs import OffsetAndMetadata

from twinsieve.pipeline.broker.records import Committed


def offset_and_metadata(committed: Committed) -> OffsetAndMetadata:
    """What to commit. The text gets a final NUL, for consumers of other people that read it.

    librdkafka returns a committed text as bytes that nothing ends, and confluent-kafka reads them up to the
    first NUL: without one in the text, up to wherever memory has one (librdkafka issue 4649).
    """
    return OffsetAndMetadata(committed.offset, committed.metadata + "\0", -1)


def committed_of(offset: int, metadata: str | None) -> Committed:
    """A committed offset and its text without the final NUL, which kafka-python does not remove."""
    return Committed(offset, (metadata or "").removesuffix("\0"))
