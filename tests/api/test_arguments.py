"""A wrong argument is a UsageError that names the one that was probably meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from twinsieve import Sieve, UsageError


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s: s(0.8), "Sieve takes arguments by name alone, but 0.8 has none; did you mean Sieve(similarity=0.8)?"),
        (lambda s: s("a.yaml"), "Sieve takes arguments by name alone, but 'a.yaml' has none; did you mean Sieve(settings="),
        (lambda s: s(threshold=0.8), "Sieve has no argument 'threshold'; did you mean similarity=?"),
        (lambda s: s(n_jobs=2), "Sieve has no argument 'n_jobs'; did you mean threads=?"),
        (lambda s: s(similarty=0.8), "Sieve has no argument 'similarty'; did you mean similarity=?"),
        (lambda s: s(SIMILARITY=0.8), "Sieve has no argument 'SIMILARITY'; did you mean similarity=?"),
        (lambda s: s(num_perm=128), "Sieve has no argument 'num_perm'; it takes similarity, profile, window, "),
        (lambda s: s().judge(["x"], id=[1]), "judge has no argument 'id'; did you mean ids=?"),
        (lambda s: s().judge(), "judge: missing a required argument: 'texts'; it takes texts, ids, "),
        (lambda s: s().dedup([], column="text"), "dedup has no argument 'column'; did you mean text=?"),
        (lambda s: s().dedup([], threshold=0.8), "dedup has no argument 'threshold'; it takes items, text, "),
        (lambda s: s().query(["x"], scope="a"), "query has no argument 'scope'; did you mean scopes=?"),
        (lambda s: s().dedup(["x"], keep="newest"), "keep is 'newest'; choose first, last, longest"),
        (lambda s: s().dedup(["x"], on_drop=[]), "on_drop is a list; give a function of an item and its verdict"),
        (lambda s: s().dedup(["x"], on_drop=print, keep="last"), "on_drop goes with keep='first' alone"),
        (lambda s: s().dedup(["x"], text=[]), "text is []; give a name, or a list of names"),
        (lambda s: s().explain("x", None), "explain needs two texts; one is missing"),
    ],
)  # fmt: skip
def test_the_nearest_argument_is_named(call: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(UsageError) as error:
        call(Sieve)
    assert str(error.value).startswith(said)


def test_an_error_inside_a_call_is_not_taken_for_a_wrong_argument() -> None:
    def text(_item: object) -> str:
        raise TypeError("of the caller")

    with pytest.raises(TypeError, match="of the caller"):
        list(Sieve().dedup([1], text=text))


def test_fields_that_the_settings_join_count_or_are_refused() -> None:
    joined = {"input.text_field": ["title", "body"]}
    rows: list[dict[str, Any]] = [
        {"title": "Bridge closed", "body": "until Friday for repairs"},
        {"title": "Bridge closed", "body": "because of a storm tonight"},
        {"title": None, "body": "until Friday for repairs"},
        {"body": "until friday, for repairs"},
    ]
    expected = [rows[0], rows[1], rows[2]]
    assert list(Sieve(settings=joined).dedup(rows)) == expected
    assert list(Sieve().dedup(rows, text=["title", "body"])) == expected
    columns = {name: [row.get(name) for row in rows] for name in ("title", "body")}
    assert Sieve(settings=joined).judge(columns).kept.tolist() == [True, True, True, False]
    with pytest.raises(
        UsageError, match=r"text is 'body', but input\.text_field of the settings is \[title, body\]"
    ):
        Sieve(settings=joined).dedup(rows, text="body")
    with pytest.raises(
        UsageError, match=r"items\[0\] is a str, but its text has several fields; give mappings"
    ):
        list(Sieve(settings=joined).dedup(["a text"]))
