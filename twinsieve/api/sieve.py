"""`Sieve`: drops duplicates from columns of texts and from streams of items, in one process."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice
from typing import Any, Literal, NoReturn, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from twinsieve.api import saved_sieve
from twinsieve.api.frames import FrameT, column_of, is_frame, rows_of
from twinsieve.api.given import Given, Part, join_columns, read_columns, read_items
from twinsieve.api.leader_ids import LeaderIds
from twinsieve.api.saved_sieve import LastSave
from twinsieve.api.sieve_options import Options, engine_config, settings_of
from twinsieve.api.times import TimeUnit
from twinsieve.api.user_columns import a_type, is_arrow, refuse_no_column, values_of
from twinsieve.api.verdicts import NO_POSITION, Verdicts, blank_columns
from twinsieve.pipeline.messages.columns import ten_thousandths
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.stage_config import judging_scheme_of
from twinsieve.stages.contract import NO_LEADER, SIMILARITY_SCALE, Batch, Kind, SieveStats
from twinsieve.stages.contract import Verdicts as EngineVerdicts
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme

Item = TypeVar("Item")

_SLICE = 8_192
"""Number of texts judged in one step; twice as many without a near stage, where steps hold less. It limits
memory, because a step holds the bodies and fingerprints of all its texts. Verdicts do not depend on it."""

_log = logging.getLogger("twinsieve")


class Sieve:
    """Keeps the first of several similar texts, and names for every dropped text the kept text it repeats.

    A text is compared with the texts that this sieve kept before, in this call or an earlier one, and never
    with a dropped text. Verdicts depend on the settings and on the texts in their order, not on how the texts
    are split into calls.

    similarity: 0.5 to 1; two texts count as similar from this value on (default: 0.8, or the profile's)
    profile: the kind of text, with a similarity, limits and an index of its own (docs/DIFFERENCES.md).
        `microblog`: posts in Chinese; `plain`: posts in alphabets; `titles`: headlines; `sms`: text messages.
        Without one, what is safest for all kinds of text together holds, as for the commands. The default and
        `microblog` remove links, @names, hashtags, repost chains, card and video tails from texts before they
        are compared, the others links and @names
    window: near duplicates are searched among this number of the newest kept texts (default 200,000); takes
        about 300 bytes for each at once, and later 2 bytes per character (at most 512 characters of a text)
    exact_window: the same for equal texts (default 2,000,000); takes about 5 bytes for each
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
        A setting that it does not name has the default of `twinsieve dedup -c`: profile `default`, windows of
        1,000,000 and 10,000,000 kept texts, no age limit. With a file, environment variables override it, as
        for the commands. `{"exact.fields": ["text"]}`: texts are equal only character by character, and the
        near stage is off unless `near.method` is set
    raises: ConfigError with every problem, UsageError

    Several threads may use one sieve; their calls are judged one after the other. A sieve works only in the
    process that made it; to use it after a fork or in another process, `save` and `load` it. The first call
    after an installation compiles kernels for a minute or two. `twinsieve warm-up` does this in advance;
    later processes load the compiled kernels.

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
        config = engine_config(chosen, scheme.scheme_id)
        engine, ids = BatchSieve(config), LeaderIds(saved_sieve.leader_window(config))
        engine.seal_into(saved_sieve.scratch_segments(chosen, scheme).write)
        self._begin(chosen, scheme, engine, ids, 0)
        self._warns_when_full = window is None and settings is None

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
            Bytes and numbers are refused. With `near.distances_by_field` in the settings: a data frame, or a
            mapping of columns, with the fields of `input.text_field`; a row may lack some of them
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
        if self._fields:
            texts = join_columns(texts, self._fields)
        return self._judge(read_columns(texts, ids, times, scopes, time_unit))

    @property
    def _fields(self) -> tuple[str, ...]:
        """The columns of a text, where each is compared by itself (`near.distances_by_field`); else ()."""
        return self._settings.input.text_field if self._settings.near.distances_by_field else ()

    @overload
    def dedup(
        self,
        items: FrameT,
        text: str,
        *,
        ids: str | None = None,
        times: str | None = None,
        scopes: str | None = None,
        time_unit: TimeUnit | None = None,
        chunk: int = 1_000,
    ) -> FrameT: ...

    @overload
    def dedup(
        self,
        items: Iterable[Item],
        text: Part | None = None,
        *,
        ids: Part | None = None,
        times: Part | None = None,
        scopes: Part | None = None,
        time_unit: TimeUnit | None = None,
        chunk: int = 1_000,
    ) -> Iterator[Item]: ...

    def dedup(
        self,
        items: Any,
        text: Part | None = None,
        *,
        ids: Part | None = None,
        times: Part | None = None,
        scopes: Part | None = None,
        time_unit: TimeUnit | None = None,
        chunk: int = 1_000,
    ) -> Any:
        """The kept items, unchanged and in order; the sieve remembers their texts.

        A data frame (pandas, polars) or an Arrow table is judged at once. The result is a frame of the same
        type with the kept rows and all columns; `text`, `ids`, `times` and `scopes` are names of columns.
        Any other iterable is read in chunks: `chunk` items are read and judged, and the kept ones yielded.
        Smaller chunks yield items sooner, but take more time per item. If the caller stops early, up to
        `chunk` items are judged and never yielded. If `items` raises, the items read before are judged and
        yielded first. Items without text are kept.

        items: texts, or objects from which `text` gets a text; read once, while results are taken. Or a frame
        text, ids, times, scopes: key of an item (`item[key]`) or a function of it; without `text` the item
            is the text, or with `near.distances_by_field` a mapping that has the fields
        raises: UsageError, which names argument and item, as in `text[17]`; then no item of its chunk was
            judged

        >>> posts = [{"n": 1, "body": "Rain until Friday."}, {"n": 2, "body": "rain until friday"}]
        >>> [post["n"] for post in Sieve().dedup(posts, text="body")]
        [1]
        """
        parts = {"text": text, "ids": ids, "times": times, "scopes": scopes}
        if self._fields and text is not None:
            raise UsageError(
                f"text is given, but near.distances_by_field takes {', '.join(self._fields)}; leave it out"
            )
        if is_frame(items):
            columns = {
                name: column_of(items, part, name)
                for name, part in parts.items()
                if part is not None or (name == "text" and not self._fields)
            }
            text_column, id_column, time_column, scope_column = map(columns.get, parts)
            if self._fields:
                text_column = join_columns(items, self._fields)
            given = read_columns(text_column, id_column, time_column, scope_column, time_unit, name="text")
            return rows_of(items, self._judge(given).kept)
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
        return self._kept(iter(items), parts, time_unit, chunk)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sieve to a folder that only its owner can read, because it holds texts of kept posts.

        The folder is made if there is none. A later save to the same folder, also of the loaded sieve, writes
        only what is new, as long as no more texts were kept in between than a 16th of the window (at least
        4,096; they are held in memory until then). A new save counts only when it is complete, and then
        replaces the one before. It holds the settings (but no secret seed), the kept texts, the leaders' ids,
        and checksums of all files.

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
        raises: StateError if a file is damaged or missing, has another format, or was saved under other rules
            (by another version of twinsieve, or with another dictionary): then load it with the version that
            saved it, or start with a new Sieve; UsageError, FileError
        """
        saved = saved_sieve.read(_path(path), seed)
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
        self, items: Iterator[Item], parts: dict[str, Part | None], unit: TimeUnit | None, chunk: int
    ) -> Iterator[Item]:
        first = 0
        while True:
            taken: list[Item] = []
            try:
                for item in islice(items, chunk):
                    taken.append(item)
            except Exception:
                yield from self._kept_of(taken, parts, unit, first)
                raise
            yield from self._kept_of(taken, parts, unit, first)
            first += len(taken)
            if len(taken) < chunk:
                return

    def _kept_of(
        self, taken: list[Item], parts: dict[str, Part | None], unit: TimeUnit | None, first: int
    ) -> Iterator[Item]:
        kept = self._judge(read_items(taken, parts, unit, first, self._fields)).kept
        return (taken[row] for row in np.flatnonzero(kept).tolist())

    def _judge(self, given: Given) -> Verdicts:
        with self._used():
            if self._rows == 0:
                _log.info(
                    "the first call takes longer: it loads compiled code, or compiles it once after an "
                    "installation"
                )
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

        if len(given) <= size or self._engine.config.near.shards < 2:
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
        leaders = _positions(judged.leaders)
        verdicts = {
            "kind": judged.kinds,
            "leader": leaders,
            "similarity": _similarities(judged),
            "distance": judged.distances,
            "shared": judged.shared,
            "flags": judged.flags,
            "reason_code": judged.reasons,
            "apart_from": _positions(judged.apart_from),
        }
        leader_ids = self._leader_ids(leaders, given, first)
        if leader_ids is not None:
            verdicts["leader_id"] = leader_ids
        for name, values in verdicts.items():
            columns[name][slice(None) if rows is None else rows] = values
        if given.ids is not None:
            kept = batch.positions[judged.kinds == Kind.UNIQUE]
            self._ids.add(kept, [given.ids[row] for row in (kept - first).tolist()])

    def _leader_ids(self, leaders: NDArray[np.int64], given: Given, first: int) -> NDArray[np.object_] | None:
        """object[n]: the id of each leader, which is a text of `given` (from position `first` on) or older.
        None if no text has an id.

        Call this before the new ids are added: `given` may have more kept texts than the memory of ids holds.
        """
        if given.ids is None and not len(self._ids):
            return None
        ids = self._ids.find(leaders)
        if given.ids is not None:
            for row in np.flatnonzero(leaders >= first).tolist():
                ids[row] = given.ids[int(leaders[row]) - first]
        return ids

    def _warn_when_full(self) -> None:
        if not self._warns_when_full:
            return
        stats = self._engine.stats()
        if stats.held == stats.capacity:
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
