"""HTML entities are read before anything else, as Python reads them, but only with their semicolon."""

from __future__ import annotations

from hashlib import blake2b
from html import unescape
from html.entities import html5

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.stages.text.test_signs import body, judged
from tests.stages.text.test_text import rows
from tests.stages.text.twin import read_entities
from twinsieve.stages.contract import Kind
from twinsieve.stages.text.normalizer import unescaped

NAMES = "3892c484074bcf29f7fa5b2199484cc7"
NUMBERS = "3a05070d96c45184a8d399700f5a3ef6"

TEXTS = st.lists(
    st.text("ab 1", max_size=3)
    | st.sampled_from(
        ["&", "&amp;", "&#39;", "&#x27;", "&#X1F600;", "&lt", ";", "#", "&copy", "&notit;", "&nothing;"]
    )
    | st.sampled_from(sorted(html5)).map(lambda name: f"&{name}")
    | st.integers(0, 0x120000).map(lambda code: f"&#{code};")
    | st.integers(0, 0x120000).map(lambda code: f"&#x{code:x};"),
    max_size=12,
).map("".join)


def test_the_table_of_names_and_numbers_is_the_same_under_every_python() -> None:
    # Bodies depend on it: another table would be another scheme (RULES_VERSION).
    names = blake2b(repr(sorted(html5.items())).encode(), digest_size=16)
    numbers = blake2b(digest_size=16)
    for code in (*range(0x3000), *range(0xD7F0, 0xE010), *range(0xFDC0, 0x10010), *range(0x10FFF0, 0x110010)):
        numbers.update(unescape(f"&#{code};").encode("utf-32-le"))
    assert (names.hexdigest(), numbers.hexdigest()) == (NAMES, NUMBERS)


@settings(max_examples=examples(300))
@given(TEXTS)
def test_entities_with_a_semicolon_are_read_as_python_reads_them(text: str) -> None:
    assert unescaped([text, "none"]) == [read_entities(text), "none"]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Tom &amp; Jerry don&#39;t", "tomjerrydont"),
        ("Tom &#x26; Jerry don&rsquo;t", "tomjerrydont"),
        ("caf&eacute; &Uuml;ber", "caféüber"),
        ("x &lt; y", "x<y"),
        ("&lt;b&gt;Jerry&lt;/b&gt;", "bjerryb"),
        ("from&nbsp;Boston&hellip; &rarr; Denver", "fromboston→denver"),
        ("it costs &pound;5 &amp; &euro;7", "itcosts£5€7"),
        ("S23&plus; A&minus;", "s23+a-"),
        # once, and only with the semicolon
        ("R&amp;amp;D", "rampd"),
        ("a &lt b &copy c", "altbcopyc"),
        ("?a=1&copy=2&lt=3", "a=1copy=2lt=3"),
        # no entities
        ("&nothing; &; &#; &#x; &#xg;", "nothingxxg"),
        ("AA&BB; AT&T", "aabbatt"),
    ],
)
def test_an_entity_is_what_it_stands_for(text: str, kept: str) -> None:
    assert body(f"{text}\n") == kept


@pytest.mark.parametrize(
    "digits", ["0" * 5000 + "39", "9" * 5000, "110000", "55296", "0", "128", "2", "65534"]
)
def test_no_number_is_too_long_or_too_large(digits: str) -> None:
    (made,) = unescaped([f"a&#{digits};b"])
    assert made == f"a{unescape(f'&#{digits.lstrip(chr(48))[:9] or 0};')}b"


def test_the_raw_text_of_a_row_without_letters_has_its_entities_read() -> None:
    assert [row.key for row in rows(["&amp;", "&", "&hearts;", "♥"])] == ["&", "&", "♥", "♥"]


@pytest.mark.parametrize("profile", ["microblog", "plain"])
@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Tom &amp; Jerry say they don&#39;t know who did it", "Tom & Jerry say they don't know who did it"),
        (
            "Read it here http://t.example/?a=1&amp;b=2 all of you",
            "Read it here http://t.example/?a=1&b=2 all of you",
        ),
    ],
)
def test_a_post_with_entities_is_the_post_without(earlier: str, later: str, profile: str) -> None:
    assert judged(earlier, later, profile)[0] is judged(later, earlier, profile)[0] is Kind.EXACT


@pytest.mark.parametrize("unit", ["&", "&#", "&#1", "&a", "&amp", ";", "&#x1;", "&amp;"])
def test_long_rows_of_entities_take_linear_work(unit: str) -> None:
    assert len(rows([unit * 100_000])) == 1
