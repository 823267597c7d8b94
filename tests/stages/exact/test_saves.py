"""Saves of the exact stage write what is new, and each of them restores the filter or the trie of its moment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.stages.exact.files import Files, bytes_of, random_digests, same
from tests.stages.exact.filters import add
from twinsieve.stages.contract import Window
from twinsieve.stages.errors import StateError
from twinsieve.stages.exact import bloom, key_notes, runs
from twinsieve.stages.exact.bloom import BloomGenerations
from twinsieve.stages.exact.key_notes import NOTE_BYTES, joined_keys, run_to_join
from twinsieve.stages.exact.trie import TierSizes, TrieTiers

_DIGESTS = random_digests(4_000, seed=11)
_RATE = 1e-6


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    """Notes in blocks of four keys, runs that are joined by threes, and runs in small generations too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bloom, "NOTE_BYTES", 1e-9)
        patch.setattr(key_notes, "_BLOCK", 4)
        patch.setattr(key_notes, "_LARGEST_JOINED", 40)
        patch.setattr(runs, "FAN_IN", 3)
        yield


class _Bloom:
    """A sieve's filters, the files of its saves, and filters with the same keys that are never saved."""

    def __init__(self, window: Window, limit: int, generations: int) -> None:
        self.window, self.limit, self.generations = window, limit, generations
        self.count = 0
        self.plain = BloomGenerations(window, _RATE, generations)
        self.seen = self._limited(BloomGenerations(window, _RATE, generations))
        self.files = Files()

    def _limited(self, seen: BloomGenerations) -> BloomGenerations:
        seen._notes._limit = self.limit
        return seen

    def keep(self, count: int, *, noted: bool = True) -> None:
        digests = _DIGESTS[self.count : self.count + count]
        times = np.arange(self.count, self.count + count, dtype=np.int64)
        for seen in (self.plain, self.seen):
            add(seen, digests, self.count, times)
        if noted:
            self.seen.note(self.count, digests)
        self.count += count

    def save(self) -> Any:
        """Save, join small runs as a journal does, and delete what the save does not name."""
        frozen = self.seen.freeze(self.files.parts.keys())
        read = self.files.save(frozen)
        self.files.keep_only(frozen)
        while (joined := run_to_join(self.files.parts)) is not None:
            name, names = joined
            self.files.parts[name] = joined_keys([self.files.parts[each] for each in names])
        return read

    def restored(self, read: Any) -> BloomGenerations:
        return self._limited(BloomGenerations.from_sections(read(), self.window, _RATE, self.generations))


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["keep", "keep", "unnoted", "save", "restart", *["keep and save"] * 8]),
        st.integers(1, 9),
    ),
    max_size=40,
)
_MANY = st.one_of(st.integers(1, 200), st.sampled_from([400, 2_000]))


def _played(steps: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """The steps one by one, and at the end a save of a few more keys."""
    played: list[tuple[str, int]] = []
    for step, size in steps:
        played += [("keep", size), ("save", 0)] if step == "keep and save" else [(step, size)]
    return [*played, ("save", 0), ("keep", 5), ("save", 0)]


@settings(max_examples=examples(200), deadline=None)
@given(
    st.builds(Window, _MANY, st.one_of(st.none(), st.integers(0, 200))),
    st.sampled_from([0, 20, 400]),
    st.integers(2, 8),
    _STEPS,
)
def test_every_save_restores_the_filters_of_its_moment(
    window: Window, limit: int, generations: int, steps: list[tuple[str, int]]
) -> None:
    life = _Bloom(window, limit, generations)
    for step, size in _played(steps):
        if step in ("keep", "unnoted"):
            life.keep(size, noted=step == "keep")
            continue
        expected = life.plain.freeze().whole()
        read = life.save()
        restored = life.restored(read)
        assert same(restored.freeze().whole(), expected)
        if step == "restart":
            life.seen = restored


def test_a_save_is_of_its_moment_however_late_it_is_written() -> None:
    life = _Bloom(Window(4_000), 50, 8)
    life.keep(20)
    life.save()
    for _ in range(30):
        life.keep(7)
        expected = life.plain.freeze().whole()
        frozen = life.seen.freeze(life.files.parts.keys())
        life.keep(3)
        read = life.files.save(frozen)
        assert same(life.restored(read).freeze().whole(), expected)


def test_a_save_writes_the_keys_since_the_last_one_and_none_writes_nothing() -> None:
    life = _Bloom(Window(800_000), 2_000, 8)
    life.keep(500)
    life.save()
    assert life.files.new == ["keys-0-500"]
    life.keep(300)
    read = life.save()
    assert life.files.new == ["keys-500-800"]
    assert bytes_of(life.files.parts["keys-500-800"]) == 300 * NOTE_BYTES
    life.save()
    assert life.files.new == []
    life.seen = life.restored(read)
    life.keep(200)
    life.save()
    assert life.files.new == ["keys-800-1000"], "after a restart too"
    assert bytes_of(life.seen.freeze(life.files.parts).sections) < 1_000


def test_without_notes_the_newest_bits_are_a_part_and_later_saves_go_on_from_it() -> None:
    life = _Bloom(Window(800_000), 2_000, 8)
    life.keep(500, noted=False)
    life.save()
    assert life.files.new == ["bits-0-500"]
    life.keep(100)
    life.save()
    assert life.files.new == ["keys-500-600"]
    assert set(life.files.parts) == {"bits-0-500", "keys-500-600"}


def test_bits_that_are_smaller_than_the_new_keys_are_written_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bloom, "NOTE_BYTES", NOTE_BYTES)
    life = _Bloom(Window(4_000), 2_000, 8)
    stride = life.seen.sizing.stride
    life.keep(stride // NOTE_BYTES)
    life.save()
    assert life.files.new == [f"keys-0-{stride // NOTE_BYTES}"]
    life.keep(stride // NOTE_BYTES + 1)
    read = life.save()
    assert life.files.new == [f"bits-0-{life.count}"]
    assert same(life.restored(read).freeze().whole(), life.plain.freeze().whole())


def test_a_full_generation_is_written_once_and_its_runs_are_not_needed_any_more() -> None:
    life = _Bloom(Window(800), 2_000, 8)
    names: list[str] = []
    for _ in range(40):
        life.keep(13)
        life.save()
        names += life.files.new
    assert len(set(names)) == len(names)
    full = [name for name in names if name.startswith("bloom-")]
    assert full == [f"bloom-{first}" for first in range(0, 500, 100)]


def test_a_key_is_written_a_few_times_however_often_the_filter_is_saved() -> None:
    life = _Bloom(Window(32_000), 2_000, 8)
    written = 0
    for _ in range(600):
        life.keep(2)
        before = set(life.files.parts)
        life.save()
        written += sum(bytes_of(life.files.parts[name]) for name in set(life.files.parts) - before)
    assert written <= 5 * 1_200 * NOTE_BYTES
    # Runs of two keys become one of 6, these one of 18; three of those would have more than 40.
    assert len(life.files.parts) <= 1_200 // 18 + 6
    assert all(len(part) == 2 for name, part in life.files.parts.items() if name == "keys-0-18")


def test_of_deleted_runs_the_next_save_is_whole() -> None:
    life = _Bloom(Window(800_000), 100_000, 8)
    life.keep(300)
    life.save()
    life.keep(300)
    life.save()
    # The notes of the first run are dropped by now.
    life.seen._notes.drop_before(300)
    frozen = life.seen.freeze(life.files.parts)
    lost = Files()
    with pytest.raises(StateError, match=r"the file of keys-0-300 was deleted; the next one is whole"):
        lost.save(frozen)
    read = lost.save(life.seen.freeze(()))
    assert lost.new == ["bits-0-600"]
    assert same(life.restored(read).freeze().whole(), life.plain.freeze().whole())


def _sections() -> dict[str, Any]:
    life = _Bloom(Window(800_000), 2_000, 8)
    life.keep(50, noted=False)
    life.save()
    life.keep(20)
    life.save()
    life.keep(30)
    sections: dict[str, Any] = life.save()()
    return sections


@pytest.mark.parametrize(
    "damage",
    [
        {"runs": np.array([[50, 70]])},
        {"runs": np.array([[70, 100], [50, 70]])},
        {"runs": np.array([[50, 70], [71, 100]])},
        {"runs": np.array([[50, 70], [70, 101]])},
        {"runs": np.array([[50, 70], [70, 70]])},
        {"runs": np.array([[-1, 70], [70, 100]])},
        {"runs": np.array([50, 70])},
        {"base": np.array([49])},
        {"base": np.array([-1])},
        {"base": np.array([101])},
        {"run0.0.states": np.zeros(21, np.uint64)},
        {"run0.0.states": np.zeros(0, np.uint64), "run0.0.steps": np.zeros(0, np.uint16)},
        {"run1.0.steps": np.zeros(29, np.uint16)},
        {"run1.0.steps": np.zeros(30, np.uint64)},
        {"base.bits": np.zeros(64, np.uint8)},
    ],
)
def test_damaged_runs_are_refused(damage: dict[str, Any]) -> None:
    BloomGenerations.from_sections(_sections(), Window(800_000), _RATE)
    with pytest.raises(StateError, match=r"^bloom: .*; the state is damaged, begin with a new state"):
        BloomGenerations.from_sections(_sections() | damage, Window(800_000), _RATE)


def _entries(first: int, count: int) -> tuple[Any, ...]:
    kept = np.arange(first, first + count, dtype=np.int64)
    return _DIGESTS[first : first + count], kept * 3, kept, kept + 7


@settings(max_examples=examples(150), deadline=None)
@given(
    st.builds(Window, _MANY, st.one_of(st.none(), st.integers(0, 200))),
    st.builds(TierSizes, st.integers(1, 60), st.integers(2, 4), st.integers(60, 90)),
    _STEPS,
)
def test_every_save_restores_the_tiers_of_its_moment(
    window: Window, sizes: TierSizes, steps: list[tuple[str, int]]
) -> None:
    plain, tiers, files, count = TrieTiers(window, sizes), TrieTiers(window, sizes), Files(), 0
    for step, size in _played(steps):
        if step in ("keep", "unnoted"):
            for each in (plain, tiers):
                each.add(*_entries(count, size))
            count += size
            continue
        frozen = tiers.freeze(files.parts)
        read = files.save(frozen)
        files.keep_only(frozen)
        restored = TrieTiers.from_sections(read(), window, sizes)
        for found, expected in zip(
            restored.find(_DIGESTS[:count]), plain.find(_DIGESTS[:count]), strict=True
        ):
            assert (found == expected).all()
        assert len(restored) == len(plain)
        if step == "restart":
            tiers = restored


def test_a_save_writes_the_new_entries_of_the_head_and_none_writes_nothing() -> None:
    tiers, files = TrieTiers(Window(1_000_000)), Files()
    for first, end in ((0, 200), (200, 300)):
        tiers.add(*_entries(first, end - first))
        files.save(tiers.freeze(files.parts))
        assert files.new == [f"head-{first}-{end}"]
    files.save(tiers.freeze(files.parts))
    assert files.new == []
    assert bytes_of(files.parts["head-200-300"]) == 100 * 40


def test_an_entry_of_the_head_is_written_a_few_times_however_often_it_is_saved() -> None:
    tiers, files, written = TrieTiers(Window(100_000)), Files(), 0
    for first in range(0, 2_000, 2):
        tiers.add(*_entries(first, 2))
        frozen = tiers.freeze(files.parts)
        files.save(frozen)
        written += sum(bytes_of(files.parts[name]) for name in files.new)
        files.keep_only(frozen)
        assert len(files.parts) < 40
    assert written < 9 * 2_000 * 40


def test_the_parts_of_a_trie_are_not_copied_while_it_is_frozen() -> None:
    tiers = TrieTiers(Window(30_000))
    tiers.add(*(np.concatenate([column]) for column in _entries(0, 3_000)))
    frozen = tiers.freeze()
    assert [name for name, part in frozen.parts.items() if not name.startswith("run")] == ["0", "1"]
    assert bytes_of(frozen.sections) < 1_000
