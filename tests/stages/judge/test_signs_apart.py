"""Near copies with a sign in place of its opposite: 📈 and 📉, two flags."""

from __future__ import annotations

import pytest

from tests.twins import batch_of
from twinsieve.stages.contract import Kind, NearConfig, SieveConfig
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig


@pytest.mark.parametrize(
    ("earlier", "later", "kind"),
    [
        ("Harbour shares this morning 📈 for all", "Harbour shares this morning 📉 for all", Kind.UNIQUE),
        ("今天的海滩情况 🟢 大家自己看吧", "今天的海滩情况 🔴 大家自己看吧", Kind.UNIQUE),
        ("The winner of tonight is 🇫🇮 again", "The winner of tonight is 🇵🇹 again", Kind.UNIQUE),
        ("Harbour shares this morning 📈 for all", "Harbour shares this morning for all", Kind.NEAR),
        ("Harbour shares this morning 📈 for all", "Harbour shares this morning 🎉 for all", Kind.NEAR),
        ("Harbour shares this morning 📈📉 for all", "Harbour shares this morning 📉 for all", Kind.NEAR),
    ],
)
def test_a_sign_in_place_of_its_opposite_keeps_near_copies_apart(
    earlier: str, later: str, kind: Kind
) -> None:
    """Without the exact stage equal bodies are near copies, too."""
    batch = batch_of(*Scheme(SchemeConfig()).read([earlier, later]))
    batch.fingerprints.digests[1, 0] += 1
    said = BatchSieve(SieveConfig(near=NearConfig(candidates="scan"))).judge(batch)
    assert said.kinds.tolist() == [Kind.UNIQUE, kind]
    assert Rule(int(said.reasons[1])) == (Rule.SIGN if kind == Kind.UNIQUE else Rule.NONE)
