"""Strings in one piece of UTF-8 against the same strings in a list."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tests.stages.text.test_entities import TEXTS
from tests.stages.text.test_text import CONFIGS, messages, normalizer_of, rows_of
from twinsieve.stages.rows.strings import Strings
from twinsieve.stages.text.normalizer import unescaped

_EDGES = "\x01\x7f\x80\u07ff\u0800\ud7ff\ue000\ufffd\uffff\U00010000\U0010ffff"
_CHARS = st.characters(exclude_categories=("Cs",), exclude_characters="\0") | st.sampled_from(_EDGES)
_LISTS = st.lists(st.text(_CHARS), max_size=6)


def packed(texts: list[str]) -> Strings:
    return Strings("".join(f"{text}\0" for text in texts).encode(), len(texts))


@given(_LISTS)
@example([_EDGES, ""])
def test_they_are_the_strings_of_the_list(texts: list[str]) -> None:
    strings = packed(texts)
    chars, starts = strings.code_points()
    assert starts.tolist() == [sum(map(len, texts[:row])) for row in range(len(texts) + 1)]
    assert "".join(map(chr, chars.tolist())) == "".join(texts)
    assert (len(strings), [*strings], strings.listed(), strings[1:]) == (len(texts), texts, texts, texts[1:])


@given(st.lists(TEXTS, max_size=5))
def test_entities_are_read_in_each_string_alone(texts: list[str]) -> None:
    split = [*texts, "&am", "p;", "&", ""]
    assert [*unescaped(packed(split))] == unescaped(split)


@given(st.lists(messages, max_size=6), st.sampled_from(CONFIGS))
def test_their_bodies_are_those_of_the_list(texts: list[str], config: tuple[str, str]) -> None:
    texts = [text.encode("utf-8", "replace").decode().replace("\0", "") for text in texts]
    normalizer = normalizer_of(*config)
    assert [*rows_of(normalizer.bodies(packed(texts)))] == [*rows_of(normalizer.bodies(texts))]
