"""All reasons why a message becomes a dead letter, with their names in headers, metric labels and reports."""

from __future__ import annotations

from enum import StrEnum


class DeadLetterReason(StrEnum):
    """What is wrong with the message; docs/OPERATIONS.md says what to do.

    Reasons up to NOT_TEXT are found when a message is read, the others when an output topic or the client
    refuses it.
    """

    NULL = "null"
    EMPTY = "empty"
    TOO_LARGE = "too_large"
    NOT_UTF8 = "not_utf8"
    INVALID_JSON = "invalid_json"
    INVALID_CSV = "invalid_csv"
    NO_SCHEMA = "no_schema"
    UNKNOWN_SCHEMA = "unknown_schema"
    SCHEMA_UNANSWERED = "schema_unanswered"
    INVALID_VALUE = "invalid_value"
    NOT_AN_OBJECT = "not_an_object"
    MISSING_FIELD = "missing_field"
    EMPTY_KEY = "empty_key"
    NOT_TEXT = "not_text"
    TOO_LARGE_FOR_TOPIC = "too_large_for_topic"
    NULL_HEADER = "null_header"
    BAD_HEADER = "bad_header"
    NO_KEY_NO_VALUE = "no_key_no_value"
    BAD_TIMESTAMP = "bad_timestamp"
    NO_KEY = "no_key"
    REFUSED = "refused"


_BY_NAME = {reason.value: reason for reason in DeadLetterReason}


def reason_named(name: str) -> DeadLetterReason | None:
    """The reason of this name; None if there is none.

    >>> reason_named("empty"), reason_named("no such reason")
    (<DeadLetterReason.EMPTY: 'empty'>, None)
    """
    return _BY_NAME.get(name)


class UnreadableError(Exception):
    """One message cannot be decoded.

    reason: one of a fixed list; detail: what is wrong with this message, for the user
    """

    def __init__(self, reason: DeadLetterReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
