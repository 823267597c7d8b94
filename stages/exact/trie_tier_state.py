"""A sealed tier as named arrays, and back."""

from __future__ import annotations

import marisa_trie
import numpy as np

from twinsieve.stages.exact.packed import PackedColumn
from twinsieve.stages.exact.sections import SectionReader, Sections
from twinsieve.stages.exact.trie_tier import SealedTier, empty_filter


def tier_to_sections(tier: SealedTier) -> Sections:
    """The arrays of a tier: `level`, `trie` in marisa's own format, `filter` and the columns, not copied."""
    sections: Sections = {
        "level": np.array([tier.level], dtype=np.int64),
        "trie": np.frombuffer(tier.trie.tobytes(), dtype=np.uint8),
        "filter": tier.filter.bits,
        "low": tier.low,
        "second": tier.second,
    }
    for name in _PACKED:
        column: PackedColumn = getattr(tier, name)
        sections[f"{name}.bases"] = column.bases
        sections[f"{name}.deltas"] = column.deltas
    return sections


def tier_from_sections(reader: SectionReader) -> SealedTier:
    """The tier. raises: StateError if the arrays do not belong together"""
    low = reader.array("low", np.uint32, (None,)).astype(np.uint32)
    n = len(low)
    second = reader.array("second", np.uint64, (n,)).astype(np.uint64)
    level = int(reader.array("level", np.int64, (1,))[0])
    raw = reader.array("trie", np.uint8, (None,)).tobytes()
    trie = marisa_trie.BinaryTrie()
    try:
        trie.frombytes(raw)
    except RuntimeError as error:
        raise reader.damaged(f"marisa cannot read a trie ({error})") from error
    if n == 0 or len(trie) != n:
        raise reader.damaged(f"a trie has {len(trie)} keys for {n} entries")
    columns = {name: _packed(reader, name, n) for name in _PACKED}
    if (np.sort(columns["rows"].at(np.arange(n))) != np.arange(n)).any():
        raise reader.damaged("rows of a tier are not a permutation")
    bits = reader.array("filter", np.uint8, empty_filter(n).bits.shape).astype(np.uint8)
    return SealedTier(
        level=level, trie=trie, low=low, second=second, **columns, filter_bits=bits, trie_bytes=len(raw)
    )


_PACKED = ("rows", "kept_less_row", "positions", "times")


def _packed(reader: SectionReader, name: str, n: int) -> PackedColumn:
    column = PackedColumn(
        reader.array(f"{name}.bases", np.int64, (None,)).astype(np.int64),
        reader.array(f"{name}.deltas", np.uint8, (n, None)).astype(np.uint8),
    )
    if not column.is_sound(n):
        raise reader.damaged(f"column {name!r} of a tier does not hold {n} values")
    return column
