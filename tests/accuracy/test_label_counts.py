"""The counts of labelled pairs in the repository are those of the labels and of the program as it is."""

from __future__ import annotations

import pytest

from tests.accuracy.label_counts import HALF, NONE, OWN, PROFILE, counted, stored
from tests.accuracy.labels import judged_pairs
from tests.accuracy.left_out import SETS, TUNED
from twinsieve.pipeline.settings.proposal import KINDS

_SET_OF = {"microblog": "weibo_dev", "plain": "world_dev", "titles": "headlines_dev", "sms": "sms_dev"}


@pytest.mark.usefixtures("data_dir")
def test_the_stored_counts_are_those_of_the_program() -> None:
    assert counted() == stored(), (
        "run python -m tests.accuracy.label_counts, then python -m scripts.generated_docs"
    )


@pytest.mark.parametrize("profile", KINDS)
def test_a_proposal_names_what_the_profile_drops_of_the_labelled_pairs(profile: str) -> None:
    kind, data = KINDS[profile], _SET_OF[profile]
    of_profile, of_none = stored()[PROFILE][data], stored()[NONE][data]
    assert kind.drops == (of_profile.right, of_profile.wrong)
    assert kind.drops_without == (of_none.right, of_none.wrong)
    assert kind.same == of_profile.same


@pytest.mark.usefixtures("data_dir")
@pytest.mark.parametrize("profile", KINDS)
def test_a_proposal_names_the_number_of_pairs_that_are_labelled_different(profile: str) -> None:
    labels = [pair.label for pair in judged_pairs() if pair.set == _SET_OF[profile]]
    assert KINDS[profile].different == labels.count("different")


@pytest.mark.parametrize("profile", TUNED)
def test_both_halves_of_a_profile_together_are_its_sets(profile: str) -> None:
    halves = [stored()[OWN][f"{profile} {number}"] for number in (0, 1)]
    sets = [counts for name, counts in stored()[PROFILE].items() if SETS[name] == profile]
    assert [sum(column) for column in zip(*halves, strict=True)] == [
        sum(column) for column in zip(*sets, strict=True)
    ]
    others = [stored()[HALF][f"{profile} {number}"].same for number in (0, 1)]
    assert others == [half.same for half in halves]
