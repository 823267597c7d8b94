"""Compute SimHash fingerprints of texts, and find all pairs of fingerprints that differ in few bits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from twinsieve.api.first_call import compile_kernels
from twinsieve.api.sieve_options import Options, settings_of
from twinsieve.api.user_columns import a_type, is_null, shown, texts_of, values_of
from twinsieve.pipeline.settings.stage_config import scheme_of
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.scheme import Scheme
from twinsieve.stages.pairs.all_pairs import all_pairs

MAX_PAIRS = 100_000_000
"""Default limit of `find_all`; so many pairs take 1.6 GB."""

_SLICE = 8_192
"""Number of texts read in one step. Limits memory: a step holds all characters and features of its texts."""


def simhash(
    texts: object,
    bits: Literal[64, 128] = 64,
    *,
    profile: Literal["plain", "microblog"] | None = None,
    settings: str | os.PathLike[str] | Mapping[str, object] | None = None,
) -> np.ma.MaskedArray[Any, np.dtype[np.uint64]]:
    """SimHash fingerprint of each text's body; a row is masked if its text has no fingerprint.

    The body of a text is its normalized form, which is compared. Equal bodies have equal fingerprints;
    similar bodies differ in few bits. A missing text (None, NaN, NA) has no fingerprint, nor has a body of
    fewer than 8 characters or of digits only: the row is masked, and `find_all` skips it. Masked rows hold 0
    in `.data`; this 0 is not a fingerprint, so do not compare `.data`.

    texts: column of str: list, NumPy, Arrow, pandas or polars
    bits: 64 gives uint64[n]; 128 gives uint64[n, 2], whose column 0 is the 64-bit fingerprint
    profile: what is removed from a text to make its body: `plain` (default) removes links and @names,
        `microblog` also hashtags, repost chains and card tails; fingerprints of different profiles or
        versions cannot be compared
    settings: path of a YAML file, or a mapping with the same keys, as for `Sieve`. Its section `features`
        says what the fingerprints are made of; a text without features has no fingerprint
    raises: UsageError, ConfigError

    >>> found = simhash(["The ferry leaves at nine.", "The ferry leaves at nine!", "ok"])
    >>> found.dtype, bool(found[0] == found[1]), found.mask.tolist()
    (dtype('uint64'), True, [False, False, True])
    >>> shingles = {"features": {"kind": "shingles", "width": 40}}
    >>> simhash(["The ferry leaves at nine."], settings=shingles).mask.tolist()
    [True]
    """
    if bits not in (64, 128):
        raise UsageError(f"bits is {shown(bits)}; choose 64 or 128")
    column = texts_of(texts)
    compile_kernels()
    options = Options(profile=profile)
    scheme = _default_scheme(options) if settings is None else scheme_of(settings_of(options, settings))
    if scheme.config.fields is not None:
        raise UsageError(
            "settings has near.distances_by_field, which gives each field a SimHash of its own; "
            "leave it out, and give the texts of one field"
        )
    values = np.zeros((len(column), 2), np.uint64)
    has = np.zeros(len(column), np.bool_)
    for low in range(0, len(column), _SLICE):
        part = column[low : low + _SLICE]
        _, prints = scheme.read(["" if text is None else text for text in part])
        values[low : low + _SLICE] = prints.simhashes
        has[low : low + _SLICE] = prints.has_simhash
    if bits == 64:
        return np.ma.MaskedArray(values[:, 0].copy(), mask=~has)
    return np.ma.MaskedArray(values, mask=np.repeat(~has[:, None], 2, axis=1))


def find_all(fingerprints: object, k: int, *, max_pairs: int = MAX_PAIRS) -> NDArray[np.int64]:
    """int64[m, 2]: every pair of rows whose fingerprints differ in at most k bits.

    Each pair appears exactly once, with the smaller row number first; pairs are sorted. Masked and missing
    rows are in no pair. n equal fingerprints make n * n / 2 pairs, so more than `max_pairs` pairs are an
    error. The time grows with n log n for small k.

    fingerprints: uint64[n], as from `simhash(…, bits=64)`: NumPy (masked or not), list of int, Arrow,
        pandas, polars
    k: bits, 0 to 7
    raises: UsageError for another dtype or k, or more than `max_pairs` pairs

    >>> find_all([0b1011, 0b1010, 0b0100], 1).tolist()
    [[0, 1]]
    >>> found = np.array([0b1011, 0b1010, 0b0100], dtype=np.uint64)
    >>> pairs = find_all(found, 3)
    >>> np.bitwise_count(found[pairs[:, 0]] ^ found[pairs[:, 1]]).tolist()
    [1, 3]
    """
    for name, value in (("k", k), ("max_pairs", max_pairs)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise UsageError(f"{name} is {a_type(value)} ({shown(value)}), not a whole number")
    values, rows = _fingerprints_of(fingerprints)
    compile_kernels()
    return rows[all_pairs(values, int(k), int(max_pairs))]


@lru_cache(maxsize=8)
def _default_scheme(options: Options) -> Scheme:
    # Tags are words of the text here, unless a profile says otherwise.
    return scheme_of(settings_of(replace(options, profile=options.profile or "plain"), None))


def _fingerprints_of(column: object) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """uint64[m] fingerprints that are not missing, and int64[m] their row numbers, ascending."""
    if isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype == np.uint64:
        there = np.flatnonzero(~np.ma.getmaskarray(column)).astype(np.int64)
        return np.ascontiguousarray(np.ma.getdata(column)[there]), there
    values = values_of(column, "fingerprints")
    rows: list[int] = []
    for row, value in enumerate(values):
        if is_null(value):
            continue
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise UsageError(f"fingerprints[{row}] is {a_type(value)} ({shown(value)}), not a uint64")
        if not 0 <= value < 1 << 64:
            raise UsageError(
                f"fingerprints[{row}] is {value}, outside uint64; view signed ones with .view('uint64')"
            )
        rows.append(row)
    return np.array([values[row] for row in rows], dtype=np.uint64), np.array(rows, dtype=np.int64)
