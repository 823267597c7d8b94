"""The text of a log record, without secrets and of a bounded length."""

from __future__ import annotations

import logging
import re

from twinsieve.stages.errors import without_secrets

_LAST_WORD, _FIRST_WORD = re.compile(r"\S*\Z"), re.compile(r"\A\S*")


def message_of(record: logging.LogRecord) -> str:
    """The message of a record; only its template if the values do not fit it, so that no record is lost."""
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001 - formatting values of a library may raise any error
        return f"{record.msg} (its values do not fit: {type(error).__name__})"


def shortened(text: str, most: int) -> str:
    """The text without the secrets in addresses. A text longer than `most` is cut to its head and its tail,
    because the tail of a traceback has the error.

    >>> shortened("cannot read s3://key:secret@bucket/x", 100)
    'cannot read s3://bucket/x'
    """
    if len(text) <= most:
        return without_secrets(text)
    # Cut between words, because a part of an address would not be recognized, and its secret would remain.
    head, tail = _LAST_WORD.sub("", text[: most // 2]), _FIRST_WORD.sub("", text[-(most // 2) :])
    return without_secrets(f"{head}… {len(text) - most:,} characters left out …{tail}")
