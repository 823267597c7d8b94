"""The counts of labelled pairs in the repository are those of the labels and of the program as it is."""

from __future__ import annotations

import pytest

from tests.accuracy.label_counts import counted, stored


@pytest.mark.usefixtures("data_dir")
def test_the_stored_counts_are_those_of_the_program() -> None:
    assert counted() == stored(), "run python -m tests.accuracy.label_counts, then python -m scripts.pages"
