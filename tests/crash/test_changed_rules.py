"""Rules that differ between the processes of an app, or from those of the run before: nobody is refused.

Who judges next judges by his own rules, and reports that once. What was judged stays judged.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.members import Member, run, settings_at
from tests.service.conftest import scheme as scheme
from tests.service.test_changed_settings import Deployment, deployment, posts, with_section
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.settings.model import LimitSettings, Settings
from twinsieve.pipeline.wire.judged_by import rules_in
from twinsieve.stages.judge.scheme import Scheme

COUNT = 200


def with_full_differences(settings: Settings) -> Settings:
    return with_section(settings, "near", differences="full")


def changed(settings: Settings, change: str, folder: Path) -> Settings:
    """These settings, with another limit or another list of words."""
    if change == "a limit":
        return with_section(
            settings, "near", limits=LimitSettings.model_validate({"replaced_short": 0.3, "in_place": 9})
        )
    words = folder / "words.yaml"
    words.write_text("light: 新 增\n", "utf-8")
    return with_section(settings, "near", words_file=str(words))


def reported(member: Member) -> list[str]:
    return [notice for notice in member.index.notices if "other rules" in notice]


def rules_of_decisions(world: Deployment) -> list[str]:
    """Without repeats in a row."""
    world.decisions.update(world.cluster.log(Partition("t.decisions", 0)).visible())
    found = [rules_in(entry.headers) for _, entry in sorted(world.decisions.items())]
    return [rules for rules, before in zip(found, ["", *found], strict=False) if rules != before]


@pytest.mark.parametrize("change", ["a limit", "a list"])
def test_an_index_that_starts_with_other_rules_goes_on_from_what_it_has_and_reports_it_once(
    change: str, scheme: Scheme, tmp_path: Path
) -> None:
    before = with_full_differences(settings_at(str(tmp_path / "state")))
    after = changed(before, change, tmp_path)
    world = deployment(before, scheme)
    changes = []
    for seed, settings in enumerate((before, after, after), 1):
        world.produce(posts(seed, COUNT))
        old = world.judged()
        member = Member(world, settings, "one")
        assert (member.index.state.next_offset > 0) == (seed > 1), "restored from a snapshot"
        run(world, member)
        world.check_whole(old, seed * COUNT)
        changes.append((member.index.rules_changes, len(reported(member))))
        member.end()
    assert changes == [(0, 0), (1, 1), (0, 0)]
    assert not [notice for notice in world.notices if "other rules" not in notice], world.notices
    assert len(rules_of_decisions(world)) == 2


def test_a_standby_of_the_older_rules_follows_and_takes_over(scheme: Scheme, tmp_path: Path) -> None:
    older = with_full_differences(settings_at(str(tmp_path / "one")))
    newer = changed(older, "a limit", tmp_path)
    world = deployment(older, scheme)
    world.produce(posts(1, COUNT))
    leader = Member(world, newer, "one")
    standby = Member(world, with_section(older, "state", dir=str(tmp_path / "two")), "two", works=False)
    run(world, leader, standby)
    for _ in range(20):
        standby.step()
    ours, theirs = (member.index.state for member in (leader, standby))
    assert (ours.next_offset, ours.link, ours.numbering) == (
        theirs.next_offset,
        theirs.link,
        theirs.numbering,
    )
    assert ours.sieve.judged_by == theirs.sieve.judged_by == ours.sieve.rules != theirs.sieve.rules
    sections = [state.sieve.near.to_sections() for state in (ours, theirs)]
    assert {name: array.tobytes() for name, array in sections[0].items()} == {
        name: array.tobytes() for name, array in sections[1].items()
    }
    assert not reported(leader)
    assert not reported(standby), "it has judged nothing"
    leader.kill()
    old = world.judged()
    world.produce(posts(2, COUNT))
    worker = Member(world, older, "worker")
    run(world, standby, worker)
    assert standby.index.live
    world.check_whole(old, 2 * COUNT)
    assert (standby.index.rules_changes, len(reported(standby))) == (1, 1)
    assert len(rules_of_decisions(world)) == 2
    for member in (worker, standby):
        member.end()
