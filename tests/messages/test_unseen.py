"""What is said of fields that no message has names fields of strangers: cut, escaped, few."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twinsieve.pipeline.messages.documents import Decoded
from twinsieve.pipeline.messages.paths import path_of
from twinsieve.pipeline.messages.unseen import FieldWatch


def _line(document: dict[str, object], field: str = "tenat") -> str:
    watch = FieldWatch([("scope", path_of(field))], flat=False)
    (told,) = watch.look(Decoded([document]))
    return told.line("messages")


def test_a_long_name_is_cut_and_says_so() -> None:
    line = _line({"tenat" + "y" * 60: 1})
    assert f"'tenat{'y' * 55}…'" in line
    assert "y" * 56 not in line


def test_a_name_around_the_nearest_one_is_cut_too() -> None:
    line = _line({"A" * 1_000_000: {"tenat": 1}})
    assert line.endswith(f"did you mean '{'A' * 60}…'?")


@given(
    st.lists(st.text(min_size=1, max_size=300), min_size=1, max_size=40, unique=True),
    st.booleans(),
)
def test_no_name_makes_a_long_line_or_breaks_it(names: list[str], inside: bool) -> None:
    held = {f"{name}{number}": {name: 1} if inside else 1 for number, name in enumerate(names)}
    line = _line(held, "no.such.field")
    assert line.isprintable()
    # A character takes ten where it is escaped; a dozen names are shown, the one asked for and the nearest.
    assert len(line) < 14 * 650


def test_a_message_of_many_names_is_looked_at_in_part() -> None:
    """Every name of every message, below every name, would be as many steps as the square of the bytes."""
    looked = []

    class Counted(dict[str, object]):
        def get(self, key: str, default: object = None) -> object:
            looked.append(key)
            return super().get(key, default)

        def __getitem__(self, key: str) -> object:
            looked.append(key)
            return super().__getitem__(key)

    document = Counted({f"name {number}": number for number in range(300_000)})
    assert "has the field" in _line(document)
    assert len(looked) < 10_000
