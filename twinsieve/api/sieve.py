"""`Sieve`: drops duplicates from columns of texts and from streams of items, in one process."""

from __future__ import annotations

import logging
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, get_args, overload

import numpy as np
from numpy.typing import NDArray

from twinsieve.api import saved_sieve
from twinsieve.api.arguments import names_what_was_meant
from twinsieve.api.first_call import compile_kernels
from twinsieve.api.frames import (
    FrameT,
    Relation,
    check_column,
    column_of,
    is_frame,
    pieces_of,
    rows_of,
    with_rows,
)
from twinsieve.api.given import Given, Part, join_columns, join_items, read_columns, read_items
from twinsieve.api.leader_ids import LeaderIds
from twinsieve.api.saved_sieve import LastSave
from twinsieve.api.sieve_options import Options, engine_config, settings_of, with_windows_of
from twinsieve.api.time_column import TimeUnit
from twinsieve.api.user_columns import a_type, is_arrow, refuse_no_column, shown, texts_of, values_of
from twinsieve.api.verdicts import NO_POSITION, NO_TEXT, Verdict, Verdicts, blank_columns
from twinsieve.pipeline.dedup import Keep
from twinsieve.pipeline.dedup.chosen import Chosen
from twinsieve.pipeline.messages.keyless import is_empty
from twinsieve.pipeline.messages.verdict_values import differing_words, ten_thousandths
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.stage_config import judging_scheme_of
from twinsieve.stages.contract import NO_LEADER, NO_TIME, SIMILARITY_SCALE, Batch, Kind, SieveStats
from twinsieve.stages.contract import Verdicts as EngineVerdicts
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.digest import text_key
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme

if TYPE_CHECKING:
    from twinsieve.pipeline.why.explain import Explanation

Item = TypeVar("Item")

_SLICE = 8_192
"""Number of texts judged in one step; twice as many without a near stage, where steps hold less. It limits
memory, because a step holds the bodies and fingerprints of all its texts. Verdicts do not depend on it."""

_log = logging.getLogger("twinsieve")


class Sieve:
    """Keeps the first of several similar texts, and names for every dropped text the kept text it repeats.

    A text is compared with the texts that this sieve kept before, in this call or an earlier one, and never
    with a dropped text. Verdicts depend on the settings and on the texts in their order, not on how the texts
    are split into calls; but a first call that has more rows than the default window enlarges it (`window`).

    similarity: 0.5 to 1; two texts count as similar from this value on (default: 0.8, or the profile's)
    profile: the kind of text, with a similarity, limits and an index of its own (docs/DIFFERENCES.md).
        `microblog`: posts in Chinese; `plain`: posts in alphabets; `titles`: headlines; `sms`: text messages.
        Without one, what is safest for all kinds of text together holds, as for the commands. The default and
        `microblog` remove links, @names, hashtags, repost chains, card and video tails from texts before they
        are compared, the others links and @names
    window: near duplicates are searched among this number of the newest kept texts (default 1,000,000). A new
        sieve whose first call has more rows than that takes their number. Memory grows with the kept texts: 2
        bytes for each character (at most 512 of a text), and about 330 bytes for each text of the window as
        soon as a twelfth of it is kept. Near verdicts depend a little on the size (docs/GUARANTEES.md)
    exact_window: the same for equal texts (default 10,000,000, or the rows of a larger first call); takes
        about 5 bytes for each
    max_age: search only among kept texts that are not older, as "24h" or a timedelta (default: no limit).
        Ages are computed from `times`, so without `times` no text grows old
    near: how near duplicates are found: `text` (default), `hamming` (SimHash bits, see `distance`),
        `signatures` (hashes of parts of a text, see `near.signature` of the settings) or `none`
    exact: how equal texts are found: `bloom` (default), `trie` (never wrong, more memory) or `none`
    distance: for near="hamming": the most bits in which duplicates differ, 0 to 7 (default 3)
    error_rate: for exact="bloom": share of new texts that are wrongly dropped as old ones (default 1e-6);
        their verdicts name no leader
    differences: which differences keep two similar texts apart, so that both are kept. `guards`: numbers,
        days, opposites, corrections. `full` (default): also the amount of text that was replaced or added.
        `off`: none
    seed: secret whole number (default 0); a stranger who knows it could make different texts that collide
    threads: the most threads to use (default: one per core)
    settings: path of a YAML file, or a mapping with the same keys (nested or dotted), for all other settings.
        A setting that it does not name has the default of `twinsieve dedup`. With a file, environment
        variables override it, as for the commands. `{"exact.fields": ["text"]}`: texts are equal only
        character by character, and the near stage is off unless `near.method` is set
    raises: ConfigError with every problem, UsageError

    Several threads may use one sieve; their calls are judged one after the other. A sieve works only in the
    process that made it; to use it after a fork or in another process, `save` and `load` it. The first call
    after an installation compiles kernels for a minute or two, and says so in a warning of the logger
    `twinsieve`, which Python writes to stderr. `twinsieve warm-up` compiles them in advance; later processes
    load them.

    >>> sieve = Sieve(similarity=0.85)
    >>> verdicts = sieve.judge(
    ...     ["The bridge is closed until Friday.", "Nobody was late.", "The bridge is closed until Friday!!"],
    ...     ids=["a", "b", "c"],
    ... )
    >>> verdicts.kept.tolist(), verdicts[2].stage, verdicts[2].leader_id
    ([True, True, False], 'exact', 'a')
    >>> list(sieve.dedup(["The bridge is now closed until Friday.", "Somebody else was late"]))
    ['Somebody else was late']
    """

    @names_what_was_meant
    def __init__(
        self,
        *,
        similarity: float | None = None,
        profile: Literal["plain", "microblog", "titles", "sms"] | None = None,
        window: int | None = None,
        exact_window: int | None = None,
        max_age: str | timedelta | None = None,
        near: Literal["text", "hamming", "signatures", "none"] | None = None,
        exact: Literal["bloom", "trie", "none"] | None = None,
        distance: int | None = None,
        error_rate: float | None = None,
        differences: Literal["off", "guards", "full"] | None = None,
        seed: int | None = None,
        threads: int | None = None,
        settings: str | os.PathLike[str] | Mapping[str, object] | None = None,
    ) -> None:
        options = Options(
            similarity=similarity,
            profile=profile,
            window=window,
            exact_window=exact_window,
            max_age=max_age,
            near=near,
            exact=exact,
            distance=distance,
            error_rate=error_rate,
            differences=differences,
            seed=seed,
            threads=threads,
        )
        chosen = settings_of(options, settings)
        scheme = judging_scheme_of(chosen)
        self._begin(chosen, scheme, *_new_engine(chosen, scheme), 0)
        self._warns_when_full = "messages" not in chosen.near.window.model_fields_set

    def _begin(
        self,
        settings: Settings,
        scheme: Scheme,
        engine: BatchSieve,
        ids: LeaderIds,
        rows: int,
        last: LastSave | None = None,
    ) -> None:
        self._settings = settings
        self._scheme = scheme
        self._engine = engine
        self._ids = ids
        self._rows = rows
        self._last = last
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._is_judging = False
        self._warns_when_full = False
        windows = (engine.config.near, engine.config.exact)
        self._warns_without_times = any(
            stage.window.age_ms is not None for stage in windows if stage.method != "none"
        )

    @names_what_was_meant
    def judge(
        self,
        texts: object,
        ids: object = None,
        times: object = None,
        scopes: object = None,
        *,
        time_unit: TimeUnit | None = None,
    ) -> Verdicts:
        """A verdict for each text, in order; the sieve remembers the kept ones.

        Columns are lists or other iterables, NumPy arrays, Arrow arrays, Series of pandas or polars. Their
        rows are matched by order; the index of a pandas Series is ignored.

        texts: str. A missing text (None, NaN, NA) is kept with stage `no_text`, and compared with nothing.
            Bytes and numbers are refused. If `input.text_field` of the settings names several fields: a data
            frame, or a mapping of columns, with these; a row may lack some of them
        ids: int or str, or None for a text without id; `Verdicts.leader_id` returns them unchanged, for
            leaders within the window
        times: datetimes, dates, numpy.datetime64, pandas timestamps, ISO 8601 text, or numbers with
            `time_unit`. A time without a zone is UTC. Times matter only if there is an age limit. A time more
            than 5 minutes ahead of the clock counts as 5 minutes ahead
        scopes: int, str or tuples of these; texts of different scopes are never compared. None is a scope too
        time_unit: the unit of numbers in `times`: s, ms, us or ns since 1970
        raises: UsageError, which names argument and row; then no text was judged

        >>> texts = ["the same words in two forums", "the same words in two forums"]
        >>> Sieve().judge(texts, scopes=["a", "b"]).kept.tolist()
        [True, True]
        """
        return self._judge(read_columns(self._joined(texts), ids, times, scopes, time_unit))

    @names_what_was_meant
    def query(self, texts: object, ids: object = None, scopes: object = None) -> Verdicts:
        """The verdict that `judge` would return for each text if that text alone came next. Nothing is kept.

        Texts of one call are not compared with one another. Ages are computed up to the newest time that the
        sieve was given.

        texts, ids, scopes, raises: as for `judge`; ids matter only with `near.same_id: pass`

        >>> sieve = Sieve()
        >>> sieve.judge(["The bridge is closed until Friday."], ids=["a"]).kept.tolist()
        [True]
        >>> found = sieve.query(["The bridge is closed until Friday!", "Nobody was late.", "Nobody was late"])
        >>> found.kept.tolist(), found[0].leader_id
        ([False, True, True], 'a')
        """
        given = read_columns(self._joined(texts), ids, None, scopes, None)
        compile_kernels()
        columns = blank_columns(len(given), 0)
        columns["position"][:] = NO_POSITION
        with self._used():
            for low in range(0, len(given), _SLICE):
                part = given.rows(low, low + _SLICE)
                # Positions that no kept text has: what an empty key is made unique by.
                batch, rows = self._read_slice(part, -len(part), NO_TIME)
                written = {name: column[low : low + len(part)] for name, column in columns.items()}
                self._write(self._engine.query(batch), part, rows, written)
        return Verdicts(**columns)

    @names_what_was_meant
    def explain(self, earlier: object, later: object) -> Explanation:
        """What each step finds for two texts, if the earlier one was kept; `print` shows it, a line a step.

        The texts are not judged, and what the sieve has kept does not matter.
        earlier, later: texts, or mappings if `input.text_field` of the settings names several fields

        >>> print(Sieve().explain("Three dead in the fire in Leeds", "Five dead in the fire in Leeds"))
        ... # doctest: +ELLIPSIS
        earlier text ...
        verdict ...unique: the later message is kept
        """
        # Imported here because it needs the readers of files.
        from twinsieve.pipeline.why.explain import Message, explain

        pair = [earlier, later]
        if all(isinstance(text, Mapping) for text in pair) and self._fields:
            pair = list(join_items(pair, self._fields, 0, apart=self._is_apart))
        texts = texts_of(pair)
        if None in texts:
            raise UsageError("explain needs two texts; one is missing")
        compile_kernels()
        raw_keys = bool(self._settings.exact.fields)
        first, second = (
            Message(text, text_key(text) if raw_keys and not is_empty(text) else None)
            for text in texts
            if text is not None
        )
        return explain(first, second, self._settings)

    @names_what_was_meant
    def similarity(self, earlier: object, later: object) -> float:
        """The similarity of two texts, 0 to 1, rounded down to four decimals; 1.0 only for equal bodies.

        It is twice the length of the longest common subsequence of the two bodies, divided by the sum of
        their lengths (the Indel ratio); an estimate for bodies of more than 512 characters. 0.0 if a body has
        fewer than 8 characters or only digits: such bodies are compared for equality alone.
        This is for single pairs: it takes milliseconds. earlier, later: as for `explain`

        >>> Sieve().similarity("The ferry leaves at nine today", "The ferry leaves at ten today")
        0.8979
        """
        report = self.explain(earlier, later).report
        if report.verdict == "exact":
            return 1.0
        return ten_thousandths(report.matched, max(report.compared, 1)) / SIMILARITY_SCALE

    @property
    def _fields(self) -> tuple[str, ...]:
        """The fields that the settings make a text of, if there are several; else ()."""
        fields = self._settings.input.text_field
        return fields if len(fields) > 1 or self._is_apart else ()

    @property
    def _is_apart(self) -> bool:
        """Whether each field is compared by itself (`near.distances_by_field`)."""
        return bool(self._settings.near.distances_by_field)

    def _joined(self, texts: object) -> object:
        """The column of texts, made of the fields that the settings name if these are several."""
        if self._is_apart or (self._fields and (isinstance(texts, Mapping) or is_frame(texts))):
            return join_columns(texts, self._fields, apart=self._is_apart)
        return texts

    @overload
    def dedup(
        self,
        items: Relation,
        text: str | Sequence[str] | None = None,
        *,
        ids: str | None = None,
        times: str | None = None,
        scopes: str | None = None,
        time_unit: TimeUnit | None = None,
        keep: Keep = "first",
    ) -> Any: ...

    @overload
    def dedup(
        self,
        items: FrameT,
        text: str | Sequence[str] | None = None,
        *,
        ids: str | None = None,
        times: str | None = None,
        scopes: str | None = None,
        time_unit: TimeUnit | None = None,
        keep: Keep = "first",
    ) -> FrameT: ...

    @overload
    def dedup(
        self,
        items: Iterable[Item],
        text: Part | Sequence[str] | None = None,
        *,
        ids: Part | None = None,
        times: Part | None = None,
        scopes: Part | None = None,
        time_unit: TimeUnit | None = None,
        chunk: int = 1_000,
        keep: Keep = "first",
        on_drop: Callable[[Item, Verdict], object] | None = None,
    ) -> Iterator[Item]: ...

    @names_what_was_meant
    def dedup(
        self,
        items: Any,
        text: Part | Sequence[str] | None = None,
        *,
        ids: Part | None = None,
        times: Part | None = None,
        scopes: Part | None = None,
        time_unit: TimeUnit | None = None,
        chunk: int = 1_000,
        keep: Keep = "first",
        on_drop: Callable[[Any, Verdict], object] | None = None,
    ) -> Any:
        """The kept items, unchanged and in order; the sieve remembers their texts.

        A data frame (pandas, polars), an Arrow table or a Hugging Face `Dataset` is judged at once. The
        result is of the same type, with the kept rows and all columns; of a DuckDB relation, an Arrow table.
        `text`, `ids`, `times` and `scopes` are names of columns.
        Any other iterable is read in chunks: `chunk` items are read and judged, and the kept ones yielded.
        Smaller chunks yield items sooner, but take more time per item. If the caller stops early, up to
        `chunk` items are judged and never yielded. If `items` raises, the items read before are judged and
        yielded first. Items without text are kept.

        items: texts, or objects from which `text` gets a text; read once, while results are taken. Or a frame
        text, ids, times, scopes: key of an item (`item[key]`) or a function of it; without `text` the item
            is the text. `text` may be several keys or columns: their texts are lines of one text, and an item
            may lack some. Without `text`, several fields that `input.text_field` of the settings names
        keep: which item of a cluster is kept: the first, the last, the longest, or none (only items without a
            duplicate are kept). All are compared with the first one. Unless it is `first`, all items are read
            before one is yielded; of a cluster whose first text was kept in an earlier call, none is
        on_drop: called with each dropped item and its `Verdict`, between the kept ones in the order of the
            items; for items of an iterable, with keep="first"
        raises: UsageError, which names argument and item, as in `text[17]`; then no item of its chunk was
            judged (of a Dataset: no row of its batch of 65,536)

        >>> posts = [{"n": 1, "body": "Rain until Friday."}, {"n": 2, "body": "rain until friday"}]
        >>> [post["n"] for post in Sieve().dedup(posts, text="body")]
        [1]
        >>> [post["n"] for post in Sieve().dedup(posts, text="body", keep="last")]
        [2]
        """
        fields = self._fields_of(text)
        one: Any = None if fields else text
        parts: dict[str, Any] = {"text": one, "ids": ids, "times": times, "scopes": scopes}
        if keep not in get_args(Keep):
            raise UsageError(f"keep is {shown(keep)}; choose {', '.join(get_args(Keep))}")
        if on_drop is not None and (keep != "first" or not callable(on_drop)):
            raise UsageError(
                f"on_drop goes with keep='first' alone, because verdicts name the first of a cluster ({keep})"
                if callable(on_drop)
                else f"on_drop is {a_type(on_drop)}; give a function of an item and its verdict"
            )
        if is_frame(items):
            if on_drop is not None:
                raise UsageError("on_drop is for an iterable of items; of a frame, judge(…) has all verdicts")
            frame = with_rows(items)
            pieces = self._read_frame(frame, parts, fields, time_unit)
            return rows_of(frame, self._chosen(pieces, keep, len(frame)))
        refuse_no_column(items, "items")
        if not isinstance(items, Iterable):
            raise UsageError(f"items is {a_type(items)}; give a list, a generator or another iterable")
        if isinstance(chunk, bool) or not isinstance(chunk, int) or chunk < 1:
            raise UsageError(f"chunk is {chunk!r}; it is a whole number of items, at least 1")
        for name, part in parts.items():
            if part is not None and not callable(part) and not isinstance(part, str):
                raise UsageError(f"{name} is {a_type(part)}; give a key or a function of an item")
        if is_arrow(items):
            items = values_of(items, "items")

        def read(taken: list[Any], first: int) -> Given:
            return read_items(taken, parts, time_unit, first, fields, apart=self._is_apart)

        if keep != "first":
            return self._kept_of_all(items, read, keep)
        total = len(items) if isinstance(items, Sized) else 0
        return self._kept(iter(items), read, chunk, total, on_drop)

    def _fields_of(self, text: object) -> tuple[str, ...]:
        """The fields that make the text of an item, if `text` or the settings name several; else ()."""
        fields = tuple(text) if isinstance(text, (list, tuple)) else ()
        if not all(isinstance(name, str) for name in fields) or (not fields and text in ([], ())):
            raise UsageError(f"text is {shown(text)}; give a name, or a list of names")
        if self._fields and text is not None and fields != self._fields:
            raise UsageError(
                f"text is {shown(text)}, but input.text_field of the settings is "
                f"[{', '.join(self._fields)}]; leave out one of the two"
            )
        return fields or self._fields

    def _read_frame(
        self, frame: Any, parts: Mapping[str, Any], fields: tuple[str, ...], unit: TimeUnit | None
    ) -> Iterator[Given]:
        """The rows of a frame as columns of texts, piece by piece. raises: UsageError"""
        names = {
            name: check_column(frame, part, name)
            for name, part in parts.items()
            if part is not None or (name == "text" and not fields)
        }
        for name in fields:
            check_column(frame, name, "text")
        first = 0
        for piece in pieces_of(frame, {**dict.fromkeys(names.values()), **dict.fromkeys(fields)}):
            columns = {name: column_of(piece, column, name) for name, column in names.items()}
            if fields:
                columns["text"] = join_columns(piece, fields, first, apart=self._is_apart)
            text, ids, times, scopes = map(columns.get, parts)
            given = read_columns(text, ids, times, scopes, unit, first, name="text")
            first += len(given)
            yield given

    def _chosen(self, pieces: Iterable[Given], keep: Keep, total: int) -> NDArray[np.bool_]:
        """Judge the rows. returns: bool[total], which of them are kept"""
        compile_kernels()
        # Positions of the rows must follow one another, so no other call comes between two pieces.
        with self._used():
            chosen = Chosen(keep, self._rows)
            for given in pieces:
                verdicts = self._judge_used(given, total)
                has_text = verdicts.kind != NO_TEXT
                rated, _ = given.with_text()
                chosen.take(
                    len(given),
                    np.flatnonzero(has_text),
                    verdicts.kind[has_text],
                    verdicts.leader[has_text],
                    rated.texts,
                    np.flatnonzero(~has_text),
                )
        mask = chosen.mask()
        if total > 0 and keep != "none" and not mask.any():
            warnings.warn(
                f"all {total:,} rows are copies of texts that this sieve kept in earlier calls, and none is "
                "returned; a new Sieve() judges them anew",
                stacklevel=4,
            )
        return mask

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sieve to a folder that only its owner can read, because it holds texts of kept posts.

        The folder is made if there is none. A later save to the same folder, also of the loaded sieve, writes
        only what is new, as long as no more texts were kept in between than a 16th of the window (at least
        4,096, at most 131,072; they are held in memory until then). A new save counts only when it is
        complete, and then replaces the one before. It holds the settings (but no secret seed), the kept
        texts, the leaders' ids, and checksums of all files.

        path: a folder that is new, empty, or holds a saved sieve
        raises: FileError; StateError if the folder holds something else. Then what was saved before is
            unchanged
        """
        name = _path(path)
        with self._used():
            self._last = saved_sieve.write(
                name, self._settings, self._rows, self._ids, self._engine, self._last
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, seed: int | None = None) -> Sieve:
        """The saved sieve. It judges later texts as the original would have, and continues its positions.

        path: the folder of `save`. A file that an earlier version saved is refused
        seed: the secret seed that the sieve was made with, if it has one
        raises: StateError if a file is damaged or missing, has another format, or was saved under another
            fingerprint scheme (by another version of twinsieve, or with another dictionary): then load it
            with the version that saved it, or start with a new Sieve; UsageError, FileError

        If this version has other rules of differences, a warning says so, and it judges later texts by them.
        """
        name = _path(path)
        compile_kernels()
        saved = saved_sieve.read(name, seed)
        sieve = cls.__new__(cls)
        sieve._begin(saved.settings, saved.scheme, saved.engine, saved.ids, saved.rows, saved.last)
        return sieve

    def stats(self) -> SieveStats:
        """How full the sieve is: kept texts, entries in the window, bytes."""
        with self._used():
            return self._engine.stats()

    def __repr__(self) -> str:
        near = self._settings.near
        how = (
            f"similarity={near.similarity / SIMILARITY_SCALE:g}"
            if near.method == "text"
            else f"near={near.method!r}"
        )
        kept = self._engine.stats().kept
        return (
            f"<Sieve {how}, profile={self._settings.profile!r}: {self._rows:,} texts judged, {kept:,} kept>"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Sieve cannot be copied or pickled; use save(path) and Sieve.load(path)")

    def _kept(
        self,
        items: Iterator[Item],
        read: Callable[[list[Item], int], Given],
        chunk: int,
        total: int,
        on_drop: Callable[[Item, Verdict], object] | None,
    ) -> Iterator[Item]:
        first = 0
        while True:
            taken: list[Item] = []
            try:
                for item in islice(items, chunk):
                    taken.append(item)
            except Exception:
                yield from self._kept_of(taken, read(taken, first), total, on_drop)
                raise
            yield from self._kept_of(taken, read(taken, first), total, on_drop)
            first += len(taken)
            if len(taken) < chunk:
                return

    def _kept_of(
        self,
        taken: list[Item],
        given: Given,
        total: int,
        on_drop: Callable[[Item, Verdict], object] | None,
    ) -> Iterator[Item]:
        verdicts = self._judge(given, total)
        if on_drop is None:
            yield from (taken[row] for row in np.flatnonzero(verdicts.kept).tolist())
            return
        for item, verdict in zip(taken, verdicts, strict=True):
            if verdict.kept:
                yield item
            else:
                on_drop(item, verdict)

    def _kept_of_all(
        self, items: Iterable[Item], read: Callable[[list[Item], int], Given], keep: Keep
    ) -> Iterator[Item]:
        taken = list(items)
        kept = self._chosen([read(taken, 0)], keep, len(taken))
        yield from (taken[row] for row in np.flatnonzero(kept).tolist())

    def _judge(self, given: Given, total: int = 0) -> Verdicts:
        """total: how many rows come in this call and the next ones, if that is known"""
        compile_kernels()
        with self._used():
            return self._judge_used(given, total)

    def _judge_used(self, given: Given, total: int) -> Verdicts:
        if self._rows == 0:
            self._fit_windows(max(total, len(given)))
        first = self._rows
        columns = blank_columns(len(given), first)
        for part, batch, rows, read_next in self._batches(given):
            low = self._rows - first
            verdicts = {name: column[low : low + len(part)] for name, column in columns.items()}
            self._judge_slice(part, batch, rows, verdicts, read_next)
        self._is_judging = False
        self._warn_when_full()
        self._warn_without_times(given)
        return Verdicts(**columns)

    def _fit_windows(self, rows: int) -> None:
        """Enlarge the windows that are not set, if these rows do not fit. Nothing was judged before."""
        settings = with_windows_of(rows, self._settings)
        if settings is not self._settings:
            self._settings = settings
            self._engine, self._ids = _new_engine(settings, self._scheme)
            # The next save writes all: nobody has noted what this engine keeps from now on.
            self._last = None

    def _batches(
        self, given: Given
    ) -> Iterator[tuple[Given, Batch, NDArray[np.int64] | None, Callable[[], None] | None]]:
        """The slices of the rows, each with the batch of its rows with a text; and which rows these are, or
        None for all; and a function that begins to read the next slice in another thread, or None.

        A batch does not depend on verdicts, so the next slice can be read while the caller judges this one.
        Reading needs the interpreter (GIL) most of the time, judging only before and after its kernels. So
        the caller begins the reading when its kernels begin: if it began earlier, judging would wait for it,
        and nothing would run at the same time.
        """
        first, arrival_ms = self._rows, time.time_ns() // 1_000_000
        size = _SLICE if self._engine.config.near.method != "none" else 2 * _SLICE
        lows = iter(range(0, len(given), size))

        def read(low: int) -> tuple[Given, Batch, NDArray[np.int64] | None]:
            part = given.rows(low, low + size)
            return part, *self._read_slice(part, first + low, arrival_ms)

        if len(given) <= size or self._engine.config.near.threads < 2:
            for low in lows:
                yield (*read(low), None)
            return
        with ThreadPoolExecutor(1, "twinsieve-read") as reader:
            ahead: list[Future[tuple[Given, Batch, NDArray[np.int64] | None]]] = []

            def read_next() -> None:
                ahead.extend(reader.submit(read, low) for low in islice(lows, 1))

            read_next()
            while ahead:
                yield (*ahead.pop().result(), read_next)
                if not ahead:
                    # The slice had no text, so there was nothing to judge.
                    read_next()

    def _read_slice(
        self, given: Given, first: int, arrival_ms: int
    ) -> tuple[Batch, NDArray[np.int64] | None]:
        rated, rows = given.with_text()
        batch = rated.batch(
            self._scheme,
            np.arange(first, first + len(given)) if rows is None else rows + first,
            arrival_ms,
            self._scheme.config.digest.secret,
            raw_keys=not self._engine.config.key_is_text,
            ids_count=self._engine.config.near.same_id == "pass",
        )
        return batch, rows

    def _judge_slice(
        self,
        given: Given,
        batch: Batch,
        rows: NDArray[np.int64] | None,
        columns: Mapping[str, NDArray[Any]],
        meanwhile: Callable[[], None] | None,
    ) -> None:
        """Judge the batch and write its verdicts into `columns`, which are those of `blank_columns`.

        given: the rows of the slice; rows: those of the batch among them, or None for all
        meanwhile: as in `BatchSieve.judge`
        """
        first = self._rows
        # From here on the engine's state changes. If an exception ends this step, the state contains texts
        # for which the caller has no verdict.
        self._is_judging = True
        judged = self._engine.judge(batch, meanwhile)
        self._rows += len(given)
        self._write(judged, given, rows, columns)
        if given.ids is not None:
            kept = batch.positions[judged.kinds == Kind.UNIQUE]
            self._ids.add(kept, [given.ids[row] for row in (kept - first).tolist()])

    def _write(
        self,
        judged: EngineVerdicts,
        given: Given,
        rows: NDArray[np.int64] | None,
        columns: Mapping[str, NDArray[Any]],
    ) -> None:
        """Write verdicts into `columns`, before the ids of `given` are added to those of leaders. rows: as of
        `_judge_slice`"""
        leaders, apart_from = _positions(judged.leaders), _positions(judged.apart_from)
        verdicts: dict[str, NDArray[Any]] = {
            "kind": judged.kinds,
            "leader": leaders,
            "similarity": _similarities(judged),
            "distance": judged.distances,
            "shared": judged.shared,
            "flags": judged.flags,
            "reason_code": judged.reasons,
            "apart_from": apart_from,
        }
        first = int(columns["position"][0]) if len(given) else 0
        for name, named in (("leader_id", leaders), ("apart_from_id", apart_from)):
            ids = self._leader_ids(named, given, first)
            if ids is not None:
                verdicts[name] = ids
        for name, values in verdicts.items():
            columns[name][slice(None) if rows is None else rows] = values
        for row in np.flatnonzero(judged.detail_rows >= 0).tolist():
            place = row if rows is None else int(rows[row])
            words = differing_words(judged, row)
            if words is not None:
                columns["apart_from_says"][place], columns["says"][place] = words

    def _leader_ids(self, leaders: NDArray[np.int64], given: Given, first: int) -> NDArray[np.object_] | None:
        """object[n]: the id of each leader, which is a text of `given` (from position `first` on, unless that
        is NO_POSITION) or older. None if no text has an id.

        Call this before the new ids are added: `given` may have more kept texts than the memory of ids holds.
        """
        if given.ids is None and not len(self._ids):
            return None
        ids = self._ids.find(leaders)
        if given.ids is not None and first != NO_POSITION:
            for row in np.flatnonzero(leaders >= first).tolist():
                ids[row] = given.ids[int(leaders[row]) - first]
        return ids

    def _warn_when_full(self) -> None:
        if not self._warns_when_full:
            return
        stats = self._engine.stats()
        if stats.kept > stats.capacity:
            self._warns_when_full = False
            _log.warning(
                "the window of %s kept texts is full: older ones are no longer compared; "
                "Sieve(window=…) keeps more",
                f"{stats.capacity:,}",
            )

    def _warn_without_times(self, given: Given) -> None:
        if self._warns_without_times and len(given):
            self._warns_without_times = False
            if given.times_ms is None:
                _log.warning(
                    "max_age has no effect, because no times were given; "
                    "give judge(…, times=…), or no max_age"
                )

    @contextmanager
    def _used(self) -> Iterator[None]:
        """Lock the sieve for one call. raises: UsageError if the sieve can no longer be used"""
        if os.getpid() != self._process:
            raise UsageError(
                "this sieve was made in another process; use save(path) there and Sieve.load(path) here"
            )
        with self._lock:
            if self._is_judging:
                raise UsageError(
                    "an earlier call was interrupted while it judged: the sieve holds texts without "
                    "a verdict; "
                    "load the last saved one, or make a new Sieve"
                )
            yield


def _new_engine(settings: Settings, scheme: Scheme) -> tuple[BatchSieve, LeaderIds]:
    """An empty sieve, and the memory for ids of its leaders."""
    config = engine_config(settings, scheme.scheme_id)
    engine = BatchSieve(config)
    engine.seal_into(saved_sieve.scratch_segments(settings, scheme).write)
    return engine, LeaderIds(saved_sieve.leader_window(config))


def _positions(leaders: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(leaders == NO_LEADER, NO_POSITION, leaders)


def _similarities(verdicts: EngineVerdicts) -> NDArray[np.float64]:
    """float64[n]: similarity of near rows in steps of 1/10,000; 1 for exact rows; NaN for kept rows and for
    rows that were not compared by text."""
    compared = np.where(verdicts.compared > 0, verdicts.compared, 1).astype(np.int64)
    shares = ten_thousandths(verdicts.matched.astype(np.int64), compared) / SIMILARITY_SCALE
    similarities = np.where(verdicts.compared > 0, shares, np.nan)
    similarities[verdicts.kinds == Kind.EXACT] = 1.0
    similarities[verdicts.kinds == Kind.UNIQUE] = np.nan
    return similarities


def _path(path: str | os.PathLike[str]) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise UsageError(f"path is {a_type(path)}; give the name of a folder")
    name = os.fspath(path)
    if name in ("", "-") or not isinstance(name, str):
        raise UsageError(f"path is {name!r}; give the name of a folder")
    return name
