"""What the look-ups of a row find: each entry once, and of those that one look-up finds only the closest."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.property.streams import batch_of
from twinsieve.stages.contract import (
    OFF,
    BandLayout,
    Differences,
    ExactConfig,
    Kind,
    NearConfig,
    SieveConfig,
    Window,
)
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.kernel import kernel
from twinsieve.stages.near.found_entries import (
    FOUND_LINES,
    add_found,
    begin_row,
    keep_allowed,
    new_found_entries,
)
from twinsieve.stages.window import buckets
from twinsieve.stages.window.buckets import SIGNATURE_MASK
from twinsieve.stages.window.lengths import length_code, signature_limits

_MOST = 48


@kernel
def _left(found, line, entries, limits, code):  # type: ignore[no-untyped-def]
    begin_row(found, line)
    for number in range(len(entries)):
        add_found(found, line, entries[number, 0], entries[number, 1], entries[number, 2])
    return keep_allowed(found, line, limits, code)


@settings(max_examples=examples(200))
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1 << 33)), max_size=_MOST),
        min_size=1,
        max_size=2 * FOUND_LINES,
    ),
    st.booleans(),
)
def test_each_entry_is_left_once_and_in_order(rows: list[list[tuple[int, int]]], few: bool) -> None:
    """Rows take turns in the lines, and nothing of an earlier row is left.

    few: most entries are found again
    """
    found = new_found_entries(_MOST)
    limits = np.zeros((2, 256, 256), np.int8)
    limits[0], limits[1] = 4, 7
    for row, met in enumerate(rows):
        kept = [index % 5 if few else index for _, index in met]
        # The bits belong to the message, so they are the same at each meeting.
        entries = np.array([(index, 100, index % 10) for index in kept], np.int64).reshape(-1, 3)
        line = row % FOUND_LINES
        count = _left(found, line, entries, limits, 100)
        times = Counter(kept)
        allowed = [index for index, often in times.items() if index % 10 <= (7 if often > 1 else 4)]
        assert found.kept[line, :count].tolist() == allowed


def _edited(text: str, edits: int, rng: random.Random) -> str:
    letters = list(text)
    for place in rng.sample(range(len(letters)), edits):
        letters[place] = chr(0x4E00 + rng.randrange(5_000))
    return "".join(letters)


@pytest.mark.parametrize("similarity", [8_000, 8_500])
def test_a_copy_is_found_if_enough_look_ups_or_bits_say_so(
    similarity: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the rule written out, with the fingerprints of two texts, at the edge of what is alike."""
    monkeypatch.setattr(buckets, "KEYED_FROM", 1)
    layout = BandLayout(bands=10, rows=4, tables=0)
    window, pairs = Window(10_000), 1_500
    near = NearConfig(similarity=similarity, window=window, bucket_load=1, differences=Differences(OFF))
    limits = signature_limits(similarity, keyed=True)
    rng = random.Random(similarity)
    texts: list[str] = []
    for _ in range(pairs):
        length = rng.randint(24, 80)
        text = "".join(chr(0x4E00 + rng.randrange(5_000)) for _ in range(length))
        texts += [text, _edited(text, length * (10_000 - similarity) // 10_000, rng)]
    batch = batch_of([(text, None, 0, 0) for text in texts], layout=layout)
    prints = batch.fingerprints
    kinds = BatchSieve(SieveConfig(ExactConfig("none"), near, layout=layout)).judge(batch).kinds
    seen: Counter[tuple[bool, bool]] = Counter()
    for row in range(0, len(texts), 2):
        look_ups = int((prints.band_keys[row] == prints.band_keys[row + 1]).sum())
        differing = (prints.signatures[row] ^ prints.signatures[row + 1]) & np.uint32(SIGNATURE_MASK)
        bits, code = int(np.bitwise_count(differing)), length_code(len(texts[row]))
        is_found = look_ups > 0 and bits <= limits[int(look_ups > 1), code, code]
        assert (kinds[row + 1] == Kind.NEAR) == is_found
        seen[look_ups == 1 and bits <= limits[1, code, code], is_found] += 1
    # Copies that one look-up finds: some are found for their bits, and others are not.
    assert min(seen[True, True], seen[True, False]) > 5


@pytest.mark.parametrize("seed", range(3))
def test_what_rows_of_a_chunk_push_out_is_found_less_often(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy that two look-ups find when the chunk begins, and one when it is judged, alone or with others."""
    monkeypatch.setattr(buckets, "KEYED_FROM", 1)
    layout = BandLayout(bands=12, rows=3, tables=0)
    near = NearConfig(similarity=8_000, window=Window(1_200), differences=Differences(OFF))
    config = SieveConfig(ExactConfig("none"), near, layout=layout)
    rng = random.Random(seed)

    def fresh() -> str:
        return "".join(chr(0x4E00 + rng.randrange(5_000)) for _ in range(rng.randint(24, 60)))

    texts = [fresh() for _ in range(600)]
    later = [fresh() for _ in range(300)] + [_edited(text, len(text) // 5, rng) for text in texts]
    rng.shuffle(later)
    batch = batch_of([(text, None, 0, 0) for text in [*texts, *later]], layout=layout)
    together, alone = BatchSieve(config), BatchSieve(config)
    for sieve in (together, alone):
        sieve.judge(batch.slice(0, len(texts)))
    expected = together.judge(batch.slice(len(texts), len(batch))).kinds.tolist()
    rows = range(len(texts), len(batch))
    assert [int(alone.judge(batch.slice(row, row + 1)).kinds[0]) for row in rows] == expected
    assert expected.count(Kind.NEAR) > 20
