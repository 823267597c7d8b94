"""Raw messages as columns, and columns as a batch for the sieve: the one way in for files and for Kafka."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import mmh3
import numpy as np
import orjson
from numpy.typing import NDArray

from twinsieve.pipeline.messages.decode import UnreadableError, decode_json, decode_text
from twinsieve.pipeline.messages.fields import as_bytes, id_text, is_deep, time_ms
from twinsieve.pipeline.messages.paths import MISSING, Path, field_at, name_of, path_of
from twinsieve.pipeline.messages.spelling import spelled, spelled_strings
from twinsieve.pipeline.messages.unseen import FieldWatch, Unseen
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.contract import NO_TIME, Batch, Bodies, Fingerprints
from twinsieve.stages.dead_letter_reasons import Reason
from twinsieve.stages.errors import UsageError

KEYS_BY = "spelling"
"""How numbers in ids, scopes and exact keys are compared; another word where that changes."""

_ID_SEED = 0x7D1
_SCOPE_SEED = 0x5C0
_KNOWN_TIMES = 4096
_MAX_KNOWN_LENGTH = 64
"""Characters of a time that is remembered; strangers write them."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A message that cannot be judged: its row in what was read, the reason, and what was found.

    setting: that names the field in question
    """

    row: int
    reason: Reason
    detail: str
    setting: str = "input.text_field"


@dataclass(slots=True)
class MessageColumns:
    """m readable messages out of n raw ones.

    rows: list of m rows among the n, ascending
    texts, ids: of each readable message; an id is as it came (`Written` where the value alone does not tell
        its spelling), None for none
    id_hashes, scopes: uint64[m], 0 for none; times_ms: int64[m] or NO_TIME
    keys: exact keys of `exact.fields`, None where the key text decides
    unreadable: the other rows, ascending
    bad_times: how many times could not be understood; they count as none
    unseen: fields that no message has had so far, now and then
    """

    rows: list[int]
    texts: list[str]
    ids: list[object]
    id_hashes: NDArray[np.uint64]
    times_ms: NDArray[np.int64]
    scopes: NDArray[np.uint64]
    keys: list[bytes] | None
    unreadable: list[Unreadable] = field(default_factory=list)
    bad_times: int = 0
    unseen: list[Unseen] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)


class Reads(Protocol):
    """What `make_batch` needs of a scheme."""

    def read(self, texts: list[str], keys: list[bytes] | None = None) -> tuple[Bodies, Fingerprints]:
        """Bodies and fingerprints of a batch."""


def make_batch(
    columns: MessageColumns,
    bodies: Bodies,
    fingerprints: Fingerprints,
    positions: NDArray[np.int64],
    arrivals_ms: int,
) -> Batch:
    """The readable messages, ready to be judged.

    positions: int64[m], names of the readable messages; arrivals_ms: clock at which they came, or NO_TIME
    """
    return Batch(
        positions=positions,
        times_ms=columns.times_ms,
        arrivals_ms=np.full(len(columns), arrivals_ms, dtype=np.int64),
        ids=columns.id_hashes,
        scopes=columns.scopes,
        bodies=bodies,
        fingerprints=fingerprints,
    )


class MessageReader:
    """Turns raw messages into columns as the settings say: which fields, which scope, which exact key.

    flat: field names are names (of CSV columns), not paths
    ids_shown: ids go to an output, where they stand byte for byte: escapes of their strings are kept too
    raises: UsageError for a name that is no path, with its setting and column
    """

    def __init__(self, settings: Settings, *, flat: bool = False, ids_shown: bool = False) -> None:
        source = settings.input
        self._json = source.encoding == "json"
        # A plain text is the one field of its message.
        flat = flat or not self._json

        def paths(setting: str, names: Sequence[str | None]) -> list[Path]:
            try:
                return [(name,) if flat else path_of(name) for name in names if name is not None]
            except UsageError as error:
                raise UsageError(f"{setting}: {error}") from error

        self._texts = paths("input.text_field", source.text_field)
        self._id = next(iter(paths("input.id_field", [source.id_field])), None)
        self._time = next(iter(paths("input.time_field", [source.time_field])), None)
        self._scope = paths("scope", settings.scope)
        self._key = paths("exact.fields", settings.exact.fields)
        self._shown = (lambda path: str(path[0])) if flat else name_of
        self._text_needed = not (settings.exact.fields and settings.near.method == "none")
        self._max_bytes = source.max_bytes
        self._ids_shown = ids_shown
        self._times: dict[object, int | None] = {}
        self._watch = FieldWatch(self._watched(source.model_fields_set), flat=flat)

    def _watched(self, given: set[str]) -> list[tuple[str, Path]]:
        """Fields that some message should have: a default that nobody asked for may be missing."""
        watched = [("scope", path) for path in self._scope]
        watched += [("exact.fields", path) for path in self._key]
        if len(self._texts) > 1:
            watched += [("input.text_field", path) for path in self._texts]
        for name, one in (("id_field", self._id), ("time_field", self._time)):
            if one is not None and name in given:
                watched.append((f"input.{name}", one))
        return watched

    @property
    def roots(self) -> set[str]:
        """Names at the top of a message of everything that is looked at."""
        paths = [*self._texts, self._id or (), self._time or (), *self._scope, *self._key]
        return {str(path[0]) for path in paths if path}

    def read(self, messages: Sequence[bytes | None]) -> MessageColumns:
        """Columns of raw messages, JSON or plain text by `input.encoding`; None is one without value."""
        large: dict[int, int] = {}
        if max(map(len, filter(None, messages)), default=0) > self._max_bytes:
            large = {row: len(one) for row, one in enumerate(messages) if one and len(one) > self._max_bytes}
            messages = [None if row in large else one for row, one in enumerate(messages)]
        documents, unreadable = self._decoded(messages) if self._json else self._as_texts(messages)
        unreadable = [_or_too_large(bad, large) for bad in unreadable]
        return self.columns(documents, unreadable, messages if self._json else None)

    def columns(
        self,
        documents: Sequence[Any],
        unreadable: list[Unreadable],
        messages: Sequence[bytes | None] | None = None,
    ) -> MessageColumns:
        """Columns of decoded messages; rows that are unreadable already are skipped.

        documents: one a row, of any kind; messages are mappings
        messages: the JSON they were decoded from; None: they hold text alone, which has one spelling
        """
        columns = self._columns(documents, unreadable, messages)
        columns.unseen = self._watch.look(documents)
        return columns

    def _columns(
        self,
        documents: Sequence[Any],
        unreadable: list[Unreadable],
        messages: Sequence[bytes | None] | None,
    ) -> MessageColumns:
        skipped = {bad.row for bad in unreadable}
        rows = (
            [row for row in range(len(documents)) if row not in skipped]
            if skipped
            else list(range(len(documents)))
        )
        wanted = [documents[row] for row in rows] if skipped else list(documents)
        texts = self._joined([self._values(wanted, path) for path in self._texts])
        if not self._text_needed:
            texts = [text if isinstance(text, str) else "" for text in texts]
        keys = [self._values(wanted, path) for path in self._key]
        ids = self._values(wanted, self._id) if self._id else []
        scopes = [self._values(wanted, path) for path in self._scope]
        bad: list[Unreadable] = []
        if set(map(type, texts)) - {str} or any(MISSING in column or None in column for column in keys):
            bad = self._find_bad(rows, wanted, texts, keys)
        else:
            for path, column in zip(
                [self._id or (), *self._key, *self._scope], [ids, *keys, *scopes], strict=True
            ):
                bad += _too_deep(rows, path, column)
        if bad:
            unreadable = sorted(
                {one.row: one for one in [*unreadable, *bad]}.values(), key=lambda one: one.row
            )
            return self._columns(documents, unreadable, messages)
        raw = None if messages is None else [messages[row] for row in rows] if skipped else messages
        if raw is not None:
            keys = [spelled(column, path, raw) for path, column in zip(self._key, keys, strict=True)]
            scopes = [spelled(column, path, raw) for path, column in zip(self._scope, scopes, strict=True)]
            ids = spelled(ids, self._id, raw) if self._id else ids
        id_hashes = hash_ids(ids) if ids else np.zeros(len(rows), np.uint64)
        if raw is not None and self._id and self._ids_shown:
            ids = spelled_strings(ids, self._id, raw)
        ids = [None if value is MISSING else value for value in ids]
        times, bad_times = self._times_of(self._values(wanted, self._time) if self._time else [])
        count = len(rows)
        return MessageColumns(
            rows=rows,
            texts=texts,
            ids=ids or [None] * count,
            id_hashes=id_hashes,
            times_ms=times if len(times) else np.full(count, NO_TIME, np.int64),
            scopes=hash_scopes(list(zip(*scopes, strict=True))) if scopes else np.zeros(count, np.uint64),
            keys=[b"".join(map(as_bytes, row)) for row in zip(*keys, strict=True)] if keys else None,
            unreadable=unreadable,
            bad_times=bad_times,
        )

    def _joined(self, columns: list[list[Any]]) -> list[Any]:
        """The texts of each row as one, a line each in the order of the setting; empty ones are left out."""
        if len(columns) == 1:
            return columns[0]
        return [_one_text(parts) for parts in zip(*columns, strict=True)]

    def _values(self, documents: list[Any], path: Path) -> list[Any]:
        if len(path) == 1:
            key = path[0]
            try:
                return [document.get(key, MISSING) for document in documents]
            except AttributeError:
                pass
        return [field_at(document, path) for document in documents]

    def _decoded(self, messages: Sequence[bytes | None]) -> tuple[list[Any], list[Unreadable]]:
        try:
            return [orjson.loads(message) for message in messages], []  # type: ignore[arg-type]
        except orjson.JSONDecodeError:
            pass
        documents: list[Any] = []
        unreadable: list[Unreadable] = []
        for row, message in enumerate(messages):
            try:
                documents.append(decode_json(message))
            except UnreadableError as error:
                documents.append(None)
                unreadable.append(Unreadable(row, error.reason, error.detail))
        return documents, unreadable

    def _find_bad(
        self, rows: list[int], documents: list[Any], texts: list[Any], keys: list[list[Any]]
    ) -> list[Unreadable]:
        found = []
        wanted = " or ".join(repr(self._shown(path)) for path in self._texts)
        for index, (row, document, text) in enumerate(zip(rows, documents, texts, strict=True)):
            if not isinstance(document, dict):
                found.append(Unreadable(row, Reason.NOT_AN_OBJECT, f"is {_kind(document)}, not an object"))
            elif text is MISSING:
                found.append(Unreadable(row, Reason.MISSING_FIELD, f"has no field {wanted}"))
            elif not isinstance(text, str):
                found.append(Unreadable(row, Reason.NOT_TEXT, self._no_text(document)))
            else:
                for path, column in zip(self._key, keys, strict=True):
                    if column[index] is MISSING or column[index] is None:
                        no = "no field" if column[index] is MISSING else "null in"
                        detail = f"has {no} {self._shown(path)!r}, which exact.fields names"
                        found.append(Unreadable(row, Reason.MISSING_FIELD, detail, "exact.fields"))
                        break
        return found

    def _no_text(self, document: Any) -> str:
        at = [(path, field_at(document, path)) for path in self._texts]
        wrong = [(path, value) for path, value in at if not isinstance(value, str) and value is not MISSING]
        path, value = max(wrong, key=lambda one: one[1] is not None)
        return f"field {self._shown(path)!r} is {_kind(value)}, not text"

    def _times_of(self, values: list[Any]) -> tuple[NDArray[np.int64], int]:
        known = self._times
        if len(known) > _KNOWN_TIMES:
            known.clear()
        times: list[int | None] = []
        for value in values:
            if isinstance(value, str) and len(value) <= _MAX_KNOWN_LENGTH:
                if value not in known:
                    known[value] = time_ms(value)
                times.append(known[value])
            else:
                times.append(time_ms(value))
        bad = times.count(None)
        return np.array([NO_TIME if time is None else time for time in times], dtype=np.int64), bad

    def _as_texts(self, messages: Sequence[bytes | None]) -> tuple[list[Any], list[Unreadable]]:
        documents: list[Any] = []
        unreadable: list[Unreadable] = []
        for row, message in enumerate(messages):
            try:
                documents.append({self._texts[0][0]: decode_text(message)})
            except UnreadableError as error:
                documents.append(None)
                unreadable.append(Unreadable(row, error.reason, error.detail))
        return documents, unreadable


def hash_ids(ids: Sequence[object]) -> NDArray[np.uint64]:
    """uint64[n] of ids as they came, 0 where there is none; 7 and "7" are one id."""
    return _hashes(list(map(id_text, ids)), _ID_SEED)


def hash_scopes(scopes: Sequence[Sequence[object] | None]) -> NDArray[np.uint64]:
    """uint64[n] of scopes, each the values of its fields; 0 for None alone."""
    return _hashes([None if one is None else b"".join(map(as_bytes, one)) for one in scopes], _SCOPE_SEED)


def _too_deep(rows: list[int], path: Path, column: list[Any]) -> list[Unreadable]:
    """Rows whose value here cannot be written out again, as lists stand in lists without end."""
    if not {list, dict} & set(map(type, column)):
        return []
    return [
        Unreadable(row, Reason.INVALID_JSON, f"field {name_of(path)!r} is nested too deeply")
        for row, value in zip(rows, column, strict=True)
        if is_deep(value)
    ]


def _or_too_large(bad: Unreadable, large: dict[int, int]) -> Unreadable:
    if bad.row not in large:
        return bad
    return Unreadable(bad.row, Reason.TOO_LARGE, f"has {large[bad.row]} bytes, more than input.max_bytes")


def _one_text(parts: tuple[Any, ...]) -> Any:
    """The parts as one text, MISSING without any; what is no text comes back instead."""
    given = [part for part in parts if part is not MISSING and part is not None]
    if not given:
        return MISSING
    other = next((part for part in given if not isinstance(part, str)), None)
    return "\n".join(filter(None, given)) if other is None else other


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    kinds: dict[type, str] = {
        int: "a number",
        float: "a number",
        str: "text",
        list: "a list",
        dict: "an object",
    }
    return kinds.get(type(value), "something else")


def _hashes(values: Sequence[str | bytes | None], seed: int) -> NDArray[np.uint64]:
    """64 bits of each, 0 for None alone."""
    hash64: Callable[..., tuple[int, int]] = mmh3.hash64
    found = np.empty(len(values), np.uint64)
    for row, value in enumerate(values):
        if value is None:
            found[row] = 0
            continue
        content = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        found[row] = hash64(content, seed, signed=False)[0] or 1
    return found
