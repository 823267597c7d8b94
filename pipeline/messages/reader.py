"""Reads raw messages into columns, and columns into a batch for the sieve; used for files and for Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import numpy as np
import orjson
from numpy.typing import NDArray

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason, UnreadableError
from twinsieve.pipeline.broker.records import Header
from twinsieve.pipeline.messages.decode import Unreadable, decode_json, decode_rows, decode_text, too_large
from twinsieve.pipeline.messages.documents import (
    WORTH_SCANNING,
    Decoded,
    Documents,
    Scanned,
    listed,
)
from twinsieve.pipeline.messages.fields import as_bytes, id_text, is_deep, text_of, time_ms
from twinsieve.pipeline.messages.keyless import is_empty, keyless_rows, set_apart
from twinsieve.pipeline.messages.paths import EACH, MISSING, Path, field_at, list_of, name_of, path_of
from twinsieve.pipeline.messages.spelling import spelled, spelled_strings
from twinsieve.pipeline.messages.unseen import TEXT, FieldWatch, Unseen
from twinsieve.pipeline.messages.verdict_values import pick
from twinsieve.pipeline.registry.framing import id_headers, unframed
from twinsieve.pipeline.registry.values import values_of
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.contract import NO_TIME, Batch, Bodies, Fingerprints
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.digest import Keys
from twinsieve.stages.fingerprint.hashing import Hash, hash_bytes, hash_texts, joined_texts, padded
from twinsieve.stages.fingerprint.secret import Secret
from twinsieve.stages.judge.scheme import join_fields
from twinsieve.stages.rows.byte_column import ByteColumn
from twinsieve.stages.rows.lines import Lines
from twinsieve.stages.rows.strings import Strings
from twinsieve.stages.rows.times import read_time_lines, read_times

KEYS_BY = "spelling"
"""How numbers in ids, scopes and exact keys are compared. This word must change whenever the comparison does,
so that saved keys are not compared with new ones."""


@dataclass(slots=True)
class MessageColumns:
    """The m readable messages among n raw messages, as columns.

    rows: indices of the m readable messages among the n, ascending
    texts: the text of each readable message
    ids: the id of each readable message as in the input, None without one; a `Written` if the decoded value
        does not keep its spelling
    id_hashes: uint64[m], 0 without an id; scopes: uint64[m], 0 if no scope is configured
    times_ms: int64[m], ms since 1970 or NO_TIME
    keys: exact keys made of `exact.fields`, or texts that are the keys themselves (`text_key`); None if that
        setting is empty, so the key text decides
    keyless: indices of readable messages with an empty key, ascending (see `keyless`)
    unreadable: the other rows, ascending, except those in `no_text`
    no_text: rows that are kept although their text is null or missing; they are not compared
    bad_times: indices of readable messages whose time could not be parsed, ascending; it counts as NO_TIME
    unseen: fields that no message has had so far, if it is time to report them (see `FieldWatch`)
    """

    rows: list[int]
    texts: Sequence[str]
    ids: Sequence[object]
    id_hashes: NDArray[np.uint64]
    times_ms: NDArray[np.int64]
    scopes: NDArray[np.uint64]
    keys: list[bytes] | list[str] | None
    unreadable: list[Unreadable] = field(default_factory=list)
    bad_times: list[int] = field(default_factory=list)
    unseen: list[Unseen] = field(default_factory=list)
    no_text: list[Unreadable] = field(default_factory=list)
    keyless: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)


class Reads(Protocol):
    """Interface of a scheme that turns texts into bodies and fingerprints."""

    def read(self, texts: Sequence[str], keys: Keys | None = None) -> tuple[Bodies, Fingerprints]:
        """Bodies and fingerprints of a batch; keys: exact keys, None if the text decides."""


def make_batch(
    columns: MessageColumns,
    bodies: Bodies,
    fingerprints: Fingerprints,
    positions: NDArray[np.int64],
    arrivals_ms: int,
    places: NDArray[np.uint64] | None = None,
) -> Batch:
    """The readable messages as a batch that the sieve can judge.

    fingerprints: the digests of messages without a key are changed
    positions: int64[m], a unique number for each readable message, which verdicts use to name it
    arrivals_ms: time at which the messages arrived, ms since 1970, or NO_TIME
    places: as for `set_apart`; None if the positions are already unique
    """
    set_apart(fingerprints.digests, columns.keyless, positions if places is None else places)
    return Batch(
        positions=positions,
        times_ms=columns.times_ms,
        arrivals_ms=np.full(len(columns), arrivals_ms, dtype=np.int64),
        stream_ms=np.full(len(columns), NO_TIME),
        ids=columns.id_hashes,
        scopes=columns.scopes,
        bodies=bodies,
        fingerprints=fingerprints,
    )


class ListsError(UsageError):
    """Fields name each item of a list (`[*]`) where a row or message is one message.

    problems: for each such field its setting, and what is wrong
    """

    def __init__(self, named: Sequence[tuple[str, str]]) -> None:
        why = (
            "makes a message of each item of a list, in JSON files only; split the messages before, or name "
            "one item, as [0]"
        )
        self.problems = [(setting, f"{name!r} {why}") for setting, name in named]
        super().__init__(f"{', '.join(f'{setting}: {name!r}' for setting, name in named)} {why}")


class MessageReader:
    """Turns raw messages into columns; the settings say which fields are text, id, time, scope and exact key.

    flat: field names are plain names (of CSV columns), not paths
    ids_shown: ids are written to an output byte for byte, so string ids keep their escapes
    cuts_lists: whether a field may name each item of a list (`[*]`); the caller makes a message of each
    passes_null: if True, a message whose text is null or missing is in `no_text`, otherwise in `unreadable`
    text_roots: names of the top-level members that hold the text
    each: path of the list of which each item is a message; None if a row is one
    reads_headers: whether a header of a message may hold the id of its schema
    values: what reads values whose schemas a registry holds; None for other messages
    now_s: a monotonic clock
    secret: keys ids and scopes; None: that of the settings, if they have one
    raises: UsageError for a field name that is not a path, with its setting and column
    """

    def __init__(
        self,
        settings: Settings,
        *,
        flat: bool = False,
        ids_shown: bool = False,
        passes_null: bool = False,
        cuts_lists: bool = False,
        now_s: Callable[[], float] = time.monotonic,
        secret: Secret | None = None,
    ) -> None:
        source = settings.input
        keyed_by = (secret or Secret.of_seed(settings.digest.seed)).bytes
        self._ids_by, self._scopes_by = Hash.of("id", keyed_by), Hash.of("scope", keyed_by)
        self._json = source.encoding in ("json", "json_schema")
        self.reads_headers = source.encoding in ("avro", "json_schema", "protobuf")
        self._part = source.part
        # A plain text message is treated as a document with one field.
        flat = flat or source.encoding == "text"

        def paths(setting: str, names: Sequence[str | None]) -> list[Path]:
            try:
                return [(name,) if flat else path_of(name) for name in names if name is not None]
            except UsageError as error:
                raise UsageError(f"{setting}: {error}") from error

        self._texts = paths("input.text_field", source.text_field)
        self._join = _field_lines if settings.near.distances_by_field else one_text
        self.text_roots = [str(path[0]) for path in self._texts]
        self._id = next(iter(paths("input.id_field", [source.id_field])), None)
        self._time = next(iter(paths("input.time_field", [source.time_field])), None)
        self._scope = paths("scope", settings.scope)
        self._key = paths("exact.fields", settings.exact.fields)
        self.values = values_of(source, self.roots, now_s)
        self._shown = (lambda path: str(path[0])) if flat else name_of
        self._text_needed = not (settings.exact.fields and settings.near.method == "none")
        self._keyless_unreadable = settings.exact.empty_key == "dead_letter"
        self._max_bytes = source.max_bytes
        self._ids_shown = ids_shown
        self._passes_null = passes_null
        self._cuts_lists = cuts_lists
        self.each = self._list_of_messages(source.model_fields_set)
        self._watch = FieldWatch(
            self._watched(source.model_fields_set),
            flat=flat,
            lists=(self._watched_lists() if cuts_lists else frozenset()),
        )

    def _list_of_messages(self, given: set[str]) -> Path | None:
        """The list of which each item is a message, None without one. raises: UsageError

        The fields of id and time that the user did not name are those of the item.
        """
        named = [("input.text_field", path) for path in self._texts]
        named += [("input.id_field", self._id or ()), ("input.time_field", self._time or ())]
        named += [("scope", path) for path in self._scope] + [("exact.fields", path) for path in self._key]
        starred = [(setting, path) for setting, path in named if list_of(path) is not None]
        if not starred:
            return None
        if not self._cuts_lists:
            raise ListsError([(setting, name_of(path)) for setting, path in starred])
        first = starred[0][1]
        for other, path in starred:
            if starred[0][0] != TEXT or list_of(path) != list_of(first):
                raise UsageError(
                    f"{other}: {name_of(path)!r} names each item of a list that is not that of "
                    f"{TEXT}; name the text with [*] in the same list"
                )
        each = first[: len(list_of(first) or ())]
        if self._id is not None and "id_field" not in given:
            self._id = (*each, EACH, *self._id)
        if self._time is not None and "time_field" not in given:
            self._time = (*each, EACH, *self._time)
        return each

    def _watched_lists(self) -> frozenset[str]:
        """The settings for which a field of each item of a list may be proposed."""
        return frozenset({TEXT} if self.each is None else {TEXT, "scope", "exact.fields"})

    def _watched(self, given: set[str]) -> list[tuple[str, Path]]:
        """The fields that some message should have.

        id_field and time_field count only if the user set them; by default messages need not have them.
        """
        watched = [("scope", path) for path in self._scope]
        watched += [("exact.fields", path) for path in self._key]
        if (self._json or self.values is not None) and self._text_needed:
            watched += [(TEXT, path) for path in self._texts]
        for name, path in (("id_field", self._id), ("time_field", self._time)):
            if path is not None and name in given:
                watched.append((f"input.{name}", path))
        return watched

    @property
    def roots(self) -> set[str]:
        """Names of all top-level members that the reader uses."""
        paths = [*self._texts, self._id or (), self._time or (), *self._scope, *self._key]
        return {str(path[0]) for path in paths if path}

    def read(
        self,
        messages: Sequence[bytes | None],
        unreadable: Mapping[int, Unreadable] | None = None,
        headers: Sequence[Sequence[Header]] = (),
    ) -> MessageColumns:
        """Columns of raw messages (`input.encoding`).

        messages: None for a message without a value
        unreadable: rows already known to be unreadable, by index; they are not decoded
        headers: of each message; needed if `reads_headers`, and empty where messages have none
        raises: AbortableError if a schema registry does not answer what `values` asks
        """
        bad = dict(unreadable or {})
        if _longest(messages) > self._max_bytes:
            for row, message in enumerate(messages):
                if message is not None and len(message) > self._max_bytes:
                    bad.setdefault(row, too_large(row, len(message), self._max_bytes))
        if self.reads_headers:
            ids = id_headers(headers or [()] * len(messages), self._part)
            rows, values = [*zip(messages, ids, strict=True)], self.values
            if values is not None:
                documents = decode_rows(rows, lambda row: values.decode(unframed(*row)), bad)
                return self._columns(Decoded(documents), bad, None)
            messages = decode_rows(rows, lambda row: unframed(*row).value, bad)
        return self._columns(self._decoded(messages, bad), bad, messages if self._json else None)

    def schemas(
        self, messages: Sequence[bytes | None], headers: Sequence[Sequence[Header]]
    ) -> list[int | str | None]:
        """The id or GUID of each message's schema; None for a message that has none, or is too large to be
        read. messages, headers: as for `read`"""
        ids = id_headers(headers or [()] * len(messages), self._part)
        found: list[int | str | None] = []
        for message, header in zip(messages, ids, strict=True):
            try:
                is_read = message is None or len(message) <= self._max_bytes
                found.append(unframed(message, header).schema if is_read else None)
            except UnreadableError:
                found.append(None)
        return found

    def columns(self, documents: Sequence[Any], bad: Mapping[int, Unreadable]) -> MessageColumns:
        """Columns of decoded messages whose values have only one spelling.

        documents: one decoded value for each row; those that are not mappings become unreadable
        bad: rows already known to be unreadable, by index
        """
        return self._columns(Decoded(documents), bad, None)

    def _columns(
        self,
        documents: Documents,
        bad: Mapping[int, Unreadable],
        messages: Sequence[bytes | None] | None,
    ) -> MessageColumns:
        """Columns of documents. messages: the JSON of these; None if their values have only one spelling"""
        rows = [row for row in range(len(documents)) if row not in bad] if bad else [*range(len(documents))]
        wanted = documents.only(rows)
        parts = [_whole_texts(wanted.values(path)) for path in self._texts]
        texts = parts[0] if len(parts) == 1 else list(map(self._join, *parts))
        if not self._text_needed and not isinstance(texts, Strings):
            texts = [text if isinstance(text, str) else "" for text in texts]
        keys = [listed(wanted.values(path)) for path in self._key]
        ids: list[Any] | Strings = wanted.values(self._id) if self._id else []
        scopes = [listed(wanted.values(path)) for path in self._scope]
        refused: list[Unreadable] = []
        if not _are_texts(texts) or any(MISSING in column for column in keys):
            refused = self._find_bad(rows, wanted, texts)
        if not refused:
            for path, column in zip(
                [self._id or (), *self._key, *self._scope], [ids, *keys, *scopes], strict=True
            ):
                refused += _too_deep(rows, path, column)
        if refused:
            return self._columns(
                documents, {**bad, **{bad_row.row: bad_row for bad_row in refused}}, messages
            )
        keyless = keyless_rows(keys)
        if keyless and self._keyless_unreadable:
            more = {rows[index]: self._without_key(rows[index], keys, index) for index in keyless}
            return self._columns(documents, {**bad, **more}, messages)
        raw = None if messages is None else pick(messages, rows)
        if raw is not None:
            keys = [spelled(column, path, raw) for path, column in zip(self._key, keys, strict=True)]
            scopes = [spelled(column, path, raw) for path, column in zip(self._scope, scopes, strict=True)]
            if self._id and not isinstance(ids, Strings):
                ids = spelled(ids, self._id, raw)
        id_hashes = hash_ids(ids, self._ids_by) if ids else np.zeros(len(rows), np.uint64)
        if raw is not None and self._id and self._ids_shown:
            ids = spelled_strings(listed(ids), self._id, raw)
        if not isinstance(ids, Strings):
            ids = [None if value is MISSING else value for value in ids]
        times, bad_times = _times_of(wanted.values(self._time) if self._time else [])
        count = len(rows)
        others = [bad[row] for row in sorted(bad)]
        return MessageColumns(
            rows=rows,
            texts=texts,
            ids=ids or [None] * count,
            id_hashes=id_hashes,
            times_ms=times if len(times) else np.full(count, NO_TIME, np.int64),
            scopes=hash_scopes(list(zip(*scopes, strict=True)), self._scopes_by)
            if scopes
            else np.zeros(count, np.uint64),
            keys=_joined(keys) if keys else None,
            unreadable=[bad_row for bad_row in others if not (bad_row.no_text and self._passes_null)],
            no_text=[bad_row for bad_row in others if bad_row.no_text and self._passes_null],
            bad_times=bad_times,
            unseen=self._watch.look(documents),
            keyless=keyless,
        )

    def _decoded(self, messages: Sequence[bytes | None], bad: dict[int, Unreadable]) -> Documents:
        """The documents of raw messages. bad: gets those that are unreadable"""
        if not self._json:
            return Decoded(decode_rows(messages, self._only_text, bad))

        def decode(rows: Sequence[int]) -> list[Any]:
            if not bad:
                try:
                    return [orjson.loads(messages[row]) for row in rows]  # type: ignore[arg-type]
                except orjson.JSONDecodeError:
                    pass
            found: dict[int, Unreadable] = {place: bad[row] for place, row in enumerate(rows) if row in bad}
            documents = decode_rows([messages[row] for row in rows], decode_json, found)
            bad.update({rows[place]: each._replace(row=rows[place]) for place, each in found.items()})
            return documents

        if len(messages) < WORTH_SCANNING:
            return Decoded(decode(range(len(messages))))
        return Scanned(messages, list(self.roots), decode)

    def _only_text(self, message: bytes | None) -> dict[str | int, str]:
        return {self._texts[0][0]: decode_text(message)}

    def _find_bad(self, rows: list[int], documents: Documents, texts: Sequence[Any]) -> list[Unreadable]:
        return [
            self._without_text(row, documents[index], text)
            for index, (row, text) in enumerate(zip(rows, texts, strict=True))
            if not isinstance(text, str) or (not self._text_needed and not isinstance(documents[index], dict))
        ]

    def _without_text(self, row: int, document: Any, text: Any) -> Unreadable:
        """Why a row has no text."""
        if not isinstance(document, dict):
            return Unreadable(row, DeadLetterReason.NOT_AN_OBJECT, f"is {_kind(document)}, not an object")
        if text is MISSING and all(field_at(document, path) is MISSING for path in self._texts):
            wanted = " or ".join(repr(self._shown(path)) for path in self._texts)
            detail = f"has no field {wanted}"
            return Unreadable(row, DeadLetterReason.MISSING_FIELD, detail, no_text=True)
        is_null = text is None or text is MISSING
        return Unreadable(row, DeadLetterReason.NOT_TEXT, self._not_text(document), no_text=is_null)

    def _without_key(self, row: int, keys: Sequence[Sequence[Any]], index: int) -> Unreadable:
        """Why a row has no key. keys: values of each field of the key; index: of the row in these"""
        empty = next(path for path, column in zip(self._key, keys, strict=True) if is_empty(column[index]))
        detail = f"has nothing in {self._shown(empty)!r}, which is in exact.fields"
        return Unreadable(row, DeadLetterReason.EMPTY_KEY, detail)

    def _not_text(self, document: Any) -> str:
        values = [(path, field_at(document, path)) for path in self._texts]
        wrong = [
            (path, value) for path, value in values if not isinstance(value, str) and value is not MISSING
        ]
        path, value = max(wrong, key=lambda item: item[1] is not None)
        if self._cuts_lists and self.each is None and isinstance(value, list) and value:
            item = (*path, EACH) if isinstance(value[0], str) else (*path, EACH, "text")
            advice = f"if each is a text, name it {name_of(item)!r}"
            return f"field {self._shown(path)!r} is a list of {len(value):,}, not text; {advice}"
        return f"field {self._shown(path)!r} is {_kind(value)}, not text"


def load_kernels() -> None:
    """Load, or compile, what reading many rows of JSON needs."""
    # Two of each, because arrays of one row have other flags, and a kernel is looked up by these.
    values = Scanned([b'{"a":"b","c":"d"}'] * 2, ["a", "c"], lambda _rows: []).values(("a",))
    if isinstance(values, Strings):
        values.code_points()
    hash_ids(values, Hash.of("id"))
    _times_of(values)


def hash_ids(ids: Sequence[object], by: Hash) -> NDArray[np.uint64]:
    """uint64[n]: hashes of ids, 0 for a missing id; the number 7 and the text "7" are the same id."""
    content = None
    if isinstance(ids, Strings):
        content = padded(ids.content)
    elif ids and _are_texts(ids):
        content = joined_texts(cast("Sequence[str]", ids))
    if content is not None:
        digests = np.empty((len(ids), 2), np.uint64)
        if hash_texts(content, by, digests, as_keys=False):
            ends = np.flatnonzero(np.frombuffer(content, np.uint8) == 0)[: len(ids)]
            is_given = np.diff(ends, prepend=-1) > 1
            return np.where(is_given, np.maximum(digests[:, 0], np.uint64(1)), np.uint64(0))
    texts = map(id_text, ids)
    return _hashes([text if text is None else text.encode("utf-8", "surrogatepass") for text in texts], by)


def hash_scopes(scopes: Sequence[Sequence[object] | None], by: Hash) -> NDArray[np.uint64]:
    """uint64[n]: hashes of scopes, each given as the values of its fields; 0 only for None."""
    return _hashes([None if scope is None else b"".join(map(as_bytes, scope)) for scope in scopes], by)


def _longest(messages: Sequence[bytes | None]) -> int:
    if isinstance(messages, (Lines, ByteColumn)):
        return messages.longest
    return max(map(len, filter(None, messages)), default=0)


def _are_texts(values: Sequence[object]) -> bool:
    """Whether all values are `str`."""
    return isinstance(values, Strings) or not set(map(type, values)) - {str}


def _whole_texts(values: list[Any] | Strings) -> list[Any] | Strings:
    """The values of a text field; texts in pieces are joined."""
    if isinstance(values, Strings) or list not in set(map(type, values)):
        return values
    return [text_of(value) for value in values]


def _joined(keys: list[list[Any]]) -> list[bytes] | list[str]:
    """One key for each row, of the values of all fields. A column of texts alone is that of its keys."""
    if len(keys) == 1 and set(map(type, keys[0])) == {str}:
        return keys[0]
    return [b"".join(map(as_bytes, row)) for row in zip(*keys, strict=True)]


def _times_of(values: list[Any] | Strings) -> tuple[NDArray[np.int64], list[int]]:
    """int64[n]: times in ms since 1970, NO_TIME for none; and the indices of values that are not times."""
    if isinstance(values, Strings):
        times, is_read = read_time_lines(values.content.replace(b"\0", b"\n"), len(values))
    elif set(map(type, values)) == {str}:
        times, is_read = read_times(values)
    else:
        times, is_read = np.empty(len(values), np.int64), np.zeros(len(values), np.bool_)
    bad = []
    for row in np.flatnonzero(~is_read).tolist():
        time = time_ms(values[row])
        if time is None:
            bad.append(row)
        times[row] = NO_TIME if time is None else time
    return times, bad


def _too_deep(rows: list[int], path: Path, column: Sequence[Any]) -> list[Unreadable]:
    """The rows whose value in this column is nested too deeply to be written as JSON again."""
    if isinstance(column, Strings) or not {list, dict} & set(map(type, column)):
        return []
    return [
        Unreadable(row, DeadLetterReason.INVALID_JSON, f"field {name_of(path)!r} is nested too deeply")
        for row, value in zip(rows, column, strict=True)
        if is_deep(value)
    ]


def one_text(*parts: Any) -> Any:
    """The parts joined by newlines, without empty parts; MISSING if all are missing or null.

    If a part is not text, that part is returned instead.
    """
    given = [part for part in parts if part is not MISSING and part is not None]
    if not given:
        return MISSING
    other = next((part for part in given if not isinstance(part, str)), None)
    return "\n".join(filter(None, given)) if other is None else other


def _field_lines(*parts: Any) -> Any:
    """Like `one_text`, but the fields can be separated again (`join_fields`)."""
    joined = one_text(*parts)
    if not isinstance(joined, str):
        return joined
    return join_fields([part if isinstance(part, str) else "" for part in parts])


_KINDS = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
}


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "something else")


def _hashes(values: Sequence[bytes | None], by: Hash) -> NDArray[np.uint64]:
    """uint64[n]: 64-bit hashes of the values; 0 only for None."""
    digests = np.empty((len(values), 2), np.uint64)
    hash_bytes([value or b"" for value in values], by, digests)
    is_given = np.array([value is not None for value in values], np.bool_)
    return np.where(is_given, np.maximum(digests[:, 0], np.uint64(1)), np.uint64(0))
