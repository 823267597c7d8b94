"""`state.memory` is refused where what always lies in memory does not fit, with a segment that does."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from twinsieve.pipeline.settings.load import check_tree, tree_of
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.segment_bytes import Texts, largest_segment, least_memory, segment_parts
from twinsieve.pipeline.settings.stage_config import sieve_config
from twinsieve.pipeline.settings.values import MAX_SEGMENTS
from twinsieve.stages.contract import MAX_WINDOW, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.near_window import segment_count


def _config(window: int, segment: int) -> SieveConfig:
    return SieveConfig(near=NearConfig(window=Window(window), segment=segment))


def _findings(**keys: object) -> list[str]:
    written = {name.replace("__", "."): value for name, value in keys.items()}
    return [str(finding) for finding in check_tree(tree_of(written))[1]]


@pytest.mark.parametrize("window", [1000, 1001, 5000])
def test_what_always_lies_in_memory_is_the_open_segment(window: int) -> None:
    one = segment_parts(_config(1000, 1000), Texts())
    assert least_memory(_config(window, 1000), Texts()) == sum(one.values())


@given(
    st.integers(1, MAX_WINDOW),
    st.one_of(st.integers(1, 1 << 40), st.integers(1 << 20, 1 << 26)),
    st.floats(1, 1000),
)
@example(window=MAX_WINDOW, memory=1 << 36, characters=60.0)
@example(window=10, memory=1 << 36, characters=60.0)
def test_the_proposed_segment_fits_and_none_larger_by_a_tenth_does(
    window: int, memory: int, characters: float
) -> None:
    texts, config = Texts(characters), _config(window, 16_000_000)

    def fits(segment: int) -> bool:
        cut = replace(config, near=replace(config.near, segment=segment))
        return least_memory(cut, texts) <= memory

    fewest = max(1, -(-window // (MAX_SEGMENTS - 1)))
    segment = largest_segment(config, memory, texts)
    if segment is None:
        assert not fits(fewest)
        return
    assert fits(segment)
    assert segment_count(replace(config, near=replace(config.near, segment=segment))) <= MAX_SEGMENTS
    larger = max(segment + 1, segment * 11 // 10 + 1)
    assert larger > min(window, 16_000_000) or not fits(larger)


@given(st.integers(1, MAX_WINDOW), st.integers(1, 16_000_000))
def test_a_window_is_refused_where_it_has_more_than_a_thousand_segments(window: int, segment: int) -> None:
    found = _findings(near__window__messages=window, near__segment=segment)
    count = segment_count(_config(window, segment))
    assert bool(found) == (count > MAX_SEGMENTS)
    if found:
        (least,) = re.findall(r"use (\d+) or more$", found[0])
        assert not _findings(near__window__messages=window, near__segment=least)
        assert _findings(near__window__messages=window, near__segment=int(least) - 1)


@pytest.mark.parametrize("window", [1_000_000, 50_000_000, MAX_WINDOW])
@pytest.mark.parametrize("memory", ["1MiB", "100MiB", "1GiB", "8GiB"])
def test_following_the_advice_on_a_memory_ends_the_complaint(window: int, memory: str) -> None:
    said = _findings(near__window__messages=window, state__memory=memory)
    if not said:
        settings = check_tree(tree_of({"near.window.messages": window, "state.memory": memory}))[0]
        assert isinstance(settings, Settings)
        assert settings.state.memory is not None
        assert least_memory(sieve_config(settings, ""), Texts()) <= settings.state.memory
        return
    assert len(said) == 1
    assert said[0].startswith(f"settings: state.memory is {memory}; ")
    segment = re.search(r"near\.segment: (\d+) or less", said[0])
    assert segment is None or not _findings(
        near__window__messages=window, near__segment=segment[1], state__memory=memory
    )
    (enough,) = re.findall(r"(\d+MiB|\d+GiB) or more$", said[0])
    assert not _findings(near__window__messages=window, state__memory=enough)


def test_a_words_file_that_is_missing_is_reported_once(tmp_path: Path) -> None:
    """`state.memory` is checked with the stages' configuration, which reads that file."""
    missing = str(tmp_path / "none.yaml")
    said = _findings(near__words_file=missing, state__memory="1GiB")
    assert all("state.memory" not in line for line in said)
