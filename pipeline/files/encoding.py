"""Encodings of inputs other than UTF-8: detected in the first bytes, or named by `--encoding`.

In most encodings rows are split and written as original bytes, and decoded only to read the message. UTF-16
and UTF-32 have no single byte that ends a row, so their blocks are converted to UTF-8 on reading, and back on
writing.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from functools import cache

from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.format import formats
from twinsieve.pipeline.files.write import ByteSink
from twinsieve.stages.errors import UsageError

_UTF_8 = "utf-8"
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    # Not encoded here, because few runs need that codec, and its import takes long.
    (b"\x84\x31\x95\x33", "gb18030"),
)
_WIDE = frozenset({"utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"})
_KEPT = bytes(range(32, 127)).translate(None, b"\\~") + b"\t\r\n"
"""Bytes that must have their ASCII meaning, so that rows can be split. Backslash and tilde are left out,
because Shift JIS has other characters for these two."""
_STATEFUL = ("iso2022", "hz", "utf-7", "idna", "punycode", "unicode-escape", "raw-unicode-escape")
_NULS_OF_ASCII = 4
"""UTF-16 is assumed if at least one byte in this many is NUL: text that is half ASCII has one in four."""
_MAX_ASCII_SHARE = 0.7
"""If a larger share of the bytes are ASCII characters, they are not taken for UTF-16, because two ASCII bytes
read as UTF-16 look like a Chinese character. In Chinese text in UTF-16 the share is a half."""
_PLAIN = (
    (" ", "\u0600"),
    ("\u2010", "\u2070"),
    ("\u3000", "\ua000"),
    ("\uac00", "\ud800"),
    ("\uff00", "\ufff0"),
)
"""Ranges of common characters: Latin to Hebrew; punctuation; Chinese and Japanese; Korean; full width."""


def encoding_named(given: str) -> str:
    """Python's name of the codec for this encoding.

    raises: UsageError if Python has no such codec, or if rows cannot be split in that encoding

    >>> encoding_named("UTF8"), encoding_named("GBK"), encoding_named("utf_16")
    ('utf-8', 'gbk', 'utf-16')
    """
    try:
        codec = codecs.lookup(given)
    except LookupError as error:
        raise UsageError(
            f"--encoding {given!r}: is not an encoding; name one, as utf-16, gb18030 or big5"
        ) from error
    if codec.name in (_UTF_8, "utf-8-sig"):
        return _UTF_8
    if codec.name in _WIDE:
        return codec.name
    if codec.name.startswith(_STATEFUL) or not _has_ascii(codec):
        raise UsageError(
            f"--encoding {given}: text in it cannot be split into rows; turn it into UTF-8 first, as with "
            "`iconv`"
        )
    return codec.name


def _has_ascii(codec: codecs.CodecInfo) -> bool:
    try:
        return codec.decode(_KEPT)[0] == _KEPT.decode()
    except (UnicodeError, ValueError, TypeError):
        return False


def is_wide(encoding: str | None) -> bool:
    """Whether the encoding is UTF-16 or UTF-32, whose blocks are converted to UTF-8 before rows are split."""
    return encoding in _WIDE


def codec_of(encoding: str | None) -> str | None:
    """The codec that decodes single rows; None if the blocks are UTF-8 or are converted to it as a whole."""
    return None if encoding in (None, _UTF_8) or is_wide(encoding) else encoding


def hides_backslashes(encoding: str) -> bool:
    """Whether the byte of a backslash may be the second one of a character, as in GBK, Big5 and Shift JIS.

    >>> hides_backslashes("gb18030"), hides_backslashes("cp1252"), hides_backslashes("utf-16")
    (True, False, False)
    """
    codec = codec_of(encoding)
    pairs = [bytes((first, 0x5C)) for first in range(0x80, 0x100)]
    return codec is not None and any(len(pair.decode(codec, "replace")) == 1 for pair in pairs)


def encoding_seen(head: bytes) -> tuple[str, str] | None:
    r"""The encoding that a file's first bytes show and the evidence for it; None if they may be UTF-8.

    >>> encoding_seen("{\n".encode("utf-16-le")), encoding_seen("a\0b".encode())
    (('utf-16-le', 'every other byte is NUL'), None)
    """
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding, "begins with its byte order mark"
    nuls = head.count(0)
    if not nuls:
        return None
    is_utf8 = _is_utf8(head)
    letters = sum(0x20 <= byte < 0x7F for byte in head)
    for encoding, low_byte in (("utf-16-le", 1), ("utf-16-be", 0)):
        if is_utf8:
            ascii_alone = head[low_byte::2].count(0) == nuls and nuls * _NULS_OF_ASCII >= len(head) > 3
            if ascii_alone:
                return encoding, "every other byte is NUL"
        elif letters < _MAX_ASCII_SHARE * len(head) and _is_plain(
            head[: len(head) // 2 * 2].decode(encoding, "replace")
        ):
            return encoding, "its bytes are text that way"
    return None


def _is_plain(text: str) -> bool:
    """Whether at least 95 % of the characters are common ones (see `_PLAIN`)."""
    plain = sum(char in "\t\r\n" or any(low <= char < high for low, high in _PLAIN) for char in text)
    return plain >= 0.95 * len(text)


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def order_of(encoding: str, mark: bytes) -> str:
    r"""The encoding with its byte order: that of the mark, else the named one, else little-endian.

    >>> order_of("utf-16-le", b"\xfe\xff"), order_of("utf-32", b""), order_of("utf-16-be", b"")
    ('utf-16-be', 'utf-32-le', 'utf-16-be')
    """
    width = encoding[: len("utf-16")]
    if mark:
        return width + ("-be" if mark in (codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE) else "-le")
    return f"{encoding}-le" if encoding == width else encoding


def mark_of(head: bytes, encoding: str | None) -> bytes:
    """The byte order mark at the beginning of a file, b"" if it has none of this encoding.

    encoding: name of the codec; None: UTF-8
    """
    marks = ((codecs.BOM_UTF8, _UTF_8), *_MARKS)
    codec = encoding or _UTF_8
    return next((mark for mark, named in marks if codec.startswith(named) and head.startswith(mark)), b"")


class Encoded:
    """An output that converts UTF-8 to another encoding; it first writes the byte order mark `mark`."""

    def __init__(self, output: ByteSink, encoding: str, mark: bytes) -> None:
        self._output = output
        self._encoding = encoding
        self._mark = mark

    def write(self, data: bytes, /) -> None:
        """Write these bytes of UTF-8; no character may be split between two calls."""
        mark, self._mark = self._mark, b""
        self._output.write(mark + data.decode().encode(self._encoding))


def as_utf8(blocks: Iterator[bytes], encoding: str, shown: str) -> Iterator[bytes]:
    """Blocks of UTF-16 or UTF-32, converted to UTF-8.

    Lone surrogates are kept, so their rows are not valid UTF-8 and become unreadable rows.

    encoding: with its byte order; shown: name of the input, for errors
    raises: FileError if the input ends inside a character, or contains bytes that are not a character
    """
    decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
    try:
        for block in blocks:
            if text := decoder.decode(block):
                yield text.encode("utf-8", "surrogatepass")
        yield decoder.decode(b"", True).encode("utf-8", "surrogatepass")
    except UnicodeError as error:
        raise FileError(f"{shown}: is not {encoding} ({error}); name another with --encoding") from error


_SHEET = "is a spreadsheet, which is not read; save it as CSV in UTF-8 first"
_OFFICE = (b"[Content_Types].xml", b"_rels/", b"mimetypeapplication/vnd.oasis", b"docProps/", b"xl/")
"""Beginnings of the name of the first file in a zip archive that is a spreadsheet."""
_NAME_AT = 30
_ARCHIVE = "is a {} archive, which is not read; unpack it first"
_BEGINNINGS = (
    (b"PK\x03\x04", _ARCHIVE.format("zip") + ", as with `unzip -p FILE | twinsieve dedup -`"),
    (b"PK\x05\x06", _ARCHIVE.format("zip")),
    (b"7z\xbc\xaf\x27\x1c", _ARCHIVE.format("7z")),
    (b"Rar!\x1a\x07", _ARCHIVE.format("rar")),
    (b"\x04\x22\x4d\x18", "is packed by lz4, which is not read; unpack it first, as with `lz4 -dc FILE`"),
    (b"Obj\x01", "is an Avro file, which is not read; turn it into JSON lines or Parquet first"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _SHEET),
    (b"SQLite format 3\x00", "is an SQLite database, which is not read; write a table as CSV first"),
)
_TAR, _TAR_AT = b"ustar", 257


@cache
def _beginnings() -> list[tuple[bytes, str]]:
    """First bytes that show what a file holds, with the error text; formats that are read come first."""
    known = [
        (beginning, f"holds {kind.title}; add --format {kind.name}")
        for kind in formats()
        for beginning in kind.beginnings
    ]
    return [*known, *_BEGINNINGS]


def is_undecided(head: bytes) -> bool:
    r"""Whether more bytes are needed to recognise the file by its first bytes.

    It is True only for the beginning of a known magic number, so a stream of rows need not wait for bytes.

    >>> is_undecided(b"PK"), is_undecided(b"Pa"), is_undecided(b"")
    (True, False, True)
    >>> is_undecided(b"\xff\xfe"), is_undecided(b"\xff\xfea\0")
    (True, False)
    """
    beginnings = (codecs.BOM_UTF8, *dict(_MARKS), *dict(_beginnings()))
    return any(len(head) < len(beginning) and beginning.startswith(head) for beginning in beginnings)


def foreign(head: bytes) -> str | None:
    """The error text for a file that is not text, by its first bytes; None if it may be text.

    head: the first bytes, unpacked

    >>> foreign(b"PK are letters"), foreign(b"PK\\x05\\x06")
    (None, 'is a zip archive, which is not read; unpack it first')
    """
    for beginning, problem in _beginnings():
        if head.startswith(beginning):
            is_sheet = beginning == b"PK\x03\x04" and head[_NAME_AT:].startswith(_OFFICE)
            return _SHEET if is_sheet else problem
    if head[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        return _ARCHIVE.format("tar") + " and name the folder"
    return None
