"""Files that hold no text: what they are and what to do, by their first bytes."""

from __future__ import annotations

from twinsieve.pipeline.files_encoding import may_be_a_mark

_ARCHIVE = "is a {} archive, which is not read; unpack it first"
_BEGINNINGS = (
    (b"PK\x03\x04", _ARCHIVE.format("zip") + ", as with `unzip -p FILE | twinsieve dedup -`"),
    (b"PK\x05\x06", _ARCHIVE.format("zip")),
    (b"7z\xbc\xaf\x27\x1c", _ARCHIVE.format("7z")),
    (b"Rar!\x1a\x07", _ARCHIVE.format("rar")),
    (b"\x04\x22\x4d\x18", "is packed by lz4, which is not read; unpack it first, as with `lz4 -dc FILE`"),
    # A thrift structure follows at once; a line of text that begins with these four letters has none.
    (b"PAR1\x15", "is a Parquet file; say --format parquet"),
    (b"ARROW1\x00\x00", "is an Arrow file; say --format arrow"),
    (b"\xff\xff\xff\xff", "is an Arrow stream; say --format arrow"),
    (b"Obj\x01", "is an Avro file, which is not read; turn it into JSON lines or Parquet first"),
    (b"SQLite format 3\x00", "is an SQLite database, which is not read; write a table as CSV first"),
)
_TAR, _TAR_AT = b"ustar", 257


def is_undecided(head: bytes) -> bool:
    """Whether more bytes are needed to say what a file is; a stream of rows is not kept waiting.

    >>> is_undecided(b"PK"), is_undecided(b"Pa"), is_undecided(b"")
    (True, False, True)
    """
    return may_be_a_mark(head) or any(
        len(head) < len(known) and known.startswith(head) for known, _ in _BEGINNINGS
    )


def foreign(head: bytes) -> str | None:
    """What is said of a file that begins so, None for one that may be text; head: unpacked.

    >>> foreign(b"PK are letters"), foreign(b"PK\\x05\\x06")
    (None, 'is a zip archive, which is not read; unpack it first')
    """
    for beginning, said in _BEGINNINGS:
        if head.startswith(beginning):
            return said
    if head[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        return _ARCHIVE.format("tar") + " and name the folder"
    return None
