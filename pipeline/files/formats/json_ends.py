"""Finds where values of JSON end, in bytes that may be only a part of them."""

from __future__ import annotations

import re

_OUTSIDE = re.compile(rb'[^"\[\]{}]*(?:"[^"]*"[^"\[\]{}]*){0,1000}')
"""Matches up to the next bracket, or up to the quote of a string whose end is not in the block. The bytes
must have no escapes.

It matches 1,000 strings at most, because the `re` module needs memory for each until the match is done."""
_PLAIN = re.compile(rb'[^ \t\r\n,"\[\]{}]*')
"""A number or a word such as `true`."""
SPACE = re.compile(rb"[ \t\r\n]*")
_QUOTE, _OPENS = b'"'[0], b"[{"


class OpenDocument:
    """State of the search for the end of one JSON document.

    first: the first byte of the document, which is already consumed
    """

    def __init__(self, first: int) -> None:
        self._depth = 1 if first in _OPENS else 0
        self._in_text = first == _QUOTE
        self.is_plain = not self._depth and not self._in_text
        """True for a number or a word, which may also end at the end of the file."""

    def end(self, block: bytes, position: int) -> int:
        """Position in the block after the end of the document, -1 if it continues after the block.

        block: without escapes, so that every quote begins or ends a string
        position: where to continue the search
        """
        if self.is_plain:
            end = after(_PLAIN, block, position)
            return end if end < len(block) else -1
        while True:
            if self._in_text:
                position = block.find(b'"', position) + 1
                if not position:
                    return -1
                self._in_text = False
            else:
                position = after(_OUTSIDE, block, position)
                if position == len(block):
                    return -1
                if block[position] == _QUOTE:
                    self._in_text = True
                else:
                    self._depth += 1 if block[position] in _OPENS else -1
                position += 1
            if not self._depth and not self._in_text:
                return position


def after(pattern: re.Pattern[bytes], block: bytes, start: int) -> int:
    """End position of a match that begins at `start`; the pattern must be able to match zero bytes."""
    match = pattern.match(block, start)
    return start if match is None else match.end()


def without_comma(row: bytes) -> bytes:
    r"""The row without a comma at its end; the row itself if there is none.

    >>> without_comma(b'{"a": 1} ,\r'), without_comma(b'{"a": 1}\r')
    (b'{"a": 1}', b'{"a": 1}\r')
    """
    content = row.rstrip(b" \t\r")
    if not content.endswith(b","):
        return row
    document = content[:-1].rstrip(b" \t\r")
    return document if document.endswith(b"}") else row
