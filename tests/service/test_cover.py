"""Settings that are proposed cover what was asked, fit into the machine and are accepted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.calling import Run, setting
from twinsieve.pipeline.settings.load import check_tree, load_settings, tree_of
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.segment_bytes import Texts
from twinsieve.pipeline.settings.stage_config import sieve_config
from twinsieve.pipeline.sizing.cost import cost_of
from twinsieve.pipeline.sizing.cover import Asked, Proposal, settings_to_cover
from twinsieve.pipeline.sizing.process_memory import held_by
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.batch_sieve import worst_case_bytes
from twinsieve.stages.judge.near_window import near_bytes

_HOUR_MS = 3_600_000
_GIB = 1 << 30


def _settings(**written: object) -> Settings:
    settings, findings = check_tree(
        tree_of({name.replace("__", "."): value for name, value in written.items()})
    )
    assert not findings
    assert settings is not None
    return settings


def _of_keys(keys: Mapping[str, object]) -> Settings:
    return _settings(**{key.replace(".", "__"): value for key, value in keys.items()})


def _with(settings: dict[str, object], proposal: Proposal) -> Settings:
    """The settings of a user who writes the proposal beside the own ones, through every check."""
    return _of_keys(settings | dict(proposal.keys))


def _proposed(settings: Settings, asked: Asked) -> Proposal | None:
    """The proposal; None if one line says how much is possible."""
    try:
        return settings_to_cover(settings, asked)
    except UsageError as error:
        if re.search(r"at most|covers nothing|enough for", str(error)):
            return None
        raise


@given(
    st.floats(0.001, 1e6),
    st.one_of(st.integers(1, 10 * 365 * 24 * _HOUR_MS), st.integers(1, 48 * _HOUR_MS)),
    st.integers(1, 4096).map(lambda gib: gib * _GIB),
    st.sampled_from([0.0, 0.4, 0.9]),
    st.floats(1, 1000),
    st.sampled_from(["none", "trie"]),
    st.sampled_from([{}, {"near.segment": 5_000}, {"state.memory": "2GiB", "near.segment": 100_000}]),
)
@example(5_000.0, 24 * _HOUR_MS, 128 * _GIB, 0.4, 60.0, "none", {})
@example(5_000.0, 24 * _HOUR_MS, 4096 * _GIB, 0.0, 5.0, "none", {})
# Two segments of short texts take less than two of the mean length that the check of `state.memory` assumes.
@example(4_722.0, _HOUR_MS, 33 * _GIB // 2, 0.0, 1.0, "none", {})
def test_a_proposal_covers_the_time_fits_the_machine_and_is_accepted(
    rate: float,
    cover_ms: int,
    machine: int,
    repeats: float,
    characters: float,
    exact: str,
    own: dict[str, object],
) -> None:
    own = own | {"exact.method": exact, "near.threads": 64}
    asked = Asked(rate, cover_ms, machine, repeats, Texts(characters))
    proposal = _proposed(_of_keys(own), asked)
    if proposal is None:
        return
    got = _with(own, proposal)
    assert got.near.window == proposal.settings.near.window
    assert (got.near.segment, got.state.memory) == (
        proposal.settings.near.segment,
        proposal.settings.state.memory,
    )
    assert got.near.window.age_ms == cover_ms
    assert got.near.window.messages >= rate * (1 - repeats) * cover_ms / 1000 * (1 - 1e-12)
    if exact != "none":
        assert got.exact.window.messages >= got.near.window.messages
        assert got.exact.window.age_ms is not None
        assert got.exact.window.age_ms >= cover_ms
    (estimate,) = (each for each in proposal.estimates if each.repeats == repeats)
    assert estimate.hours == pytest.approx(cover_ms / _HOUR_MS)
    assert estimate.memory.needed <= machine
    assert not estimate.memory.hot, "look-ups read nothing from files"
    (again,) = (each for each in cost_of(got, rate, Texts(characters)).estimates if each.repeats == 0.4)
    assert again.us == estimate.us


@pytest.mark.parametrize("repeats", ["0", "0.4"])
def test_what_lint_proposes_is_a_settings_file_that_lint_says_covers_the_time(
    repeats: str, run: Run, tmp_path: Path
) -> None:
    own = setting("near.layout.bands=24", "near.layout.rows=4", "exact.error_rate=0.01")
    asked = ("--rate", "5000", "--cover", "24h", "--repeats", repeats, "--memory", "128GiB")
    ran = run("lint", *own, *asked)
    assert (ran.code, ran.err) == (0, "")
    path = tmp_path / "proposed.yaml"
    path.write_text(ran.out)
    settings = load_settings(path)
    assert settings.near.window.age_ms == 24 * _HOUR_MS
    assert settings.near.window.messages == (432_000_000 if repeats == "0" else 260_000_000)
    assert settings.state.memory is not None
    checked = run("lint", path, *own, "--rate", "5000")
    assert (checked.code, checked.err) == (0, "")
    (covered,) = re.findall(r"^near window covers +([0-9.]+) h +([0-9.]+) h$", checked.out, re.MULTILINE)
    assert float(covered[0 if repeats == "0" else 1]) >= 24
    # What was said of the proposal is what is said of the file.
    said = [line.removeprefix("# ") for line in ran.out.splitlines() if line.startswith("# ")]
    assert all(line in checked.out.splitlines() for line in said)


def test_a_proposal_keeps_what_is_larger_and_takes_back_what_no_longer_fits() -> None:
    mine: dict[str, object] = {"exact.window.age": "30d", "exact.window.messages": 50_000_000}
    proposal = settings_to_cover(
        _settings(exact__window__age="30d", exact__window__messages=50_000_000), Asked(10, _HOUR_MS, 8 * _GIB)
    )
    assert proposal.keys["exact.window.age"] == "30d"
    assert proposal.keys["exact.window.messages"] == "50000000"
    assert proposal.keys["near.window.messages"] == "36000"
    assert "near.segment" not in proposal.keys
    assert "state.memory" not in proposal.keys
    assert _with(mine, proposal) == proposal.settings
    small = _settings(near__segment=10_000, state__memory="300MiB")
    back = settings_to_cover(small, Asked(10, _HOUR_MS, 8 * _GIB)).keys
    assert (back["near.segment"], back["state.memory"]) == ("16000000", "none")


@pytest.mark.parametrize(("age", "proposed"), [("1h", "2h"), ("none", "none"), ("3h", "3h")])
def test_the_exact_window_reaches_back_as_far(age: str, proposed: str) -> None:
    keys = settings_to_cover(_settings(exact__window__age=age), Asked(10, 2 * _HOUR_MS, 8 * _GIB)).keys
    assert keys["exact.window.age"] == proposed


def test_a_window_is_cut_into_the_largest_segments_that_fit() -> None:
    settings, machine = _settings(exact__method="none"), 16 * _GIB
    proposal = settings_to_cover(settings, Asked(5_000, 2 * _HOUR_MS, machine))
    assert proposal.keys["near.segment"] == "6000000"
    held = held_by(settings, 8)
    room = machine * 7 // 8 - (held.process - held.sieve)
    keys: dict[str, object] = {"exact.method": "none", **proposal.keys, "state.memory": "64GiB"}

    def needed(segment: int) -> int:
        cut = keys | {"near.segment": segment}
        return cost_of(_of_keys(cut), 5_000).estimates[0].memory.needed

    assert needed(6_000_000) <= room < needed(7_000_000)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--cover", "24"), "lint: --cover is '24', not a duration; write a number and a unit (ms, s, m, h, d, w), as in 24h"),
        (("--cover", "soon"), "lint: --cover is 'soon', not a duration; write a number and a unit (ms, s, m, h, d, w), as in 24h"),
        (("--cover", "0h"), ": --cover is 0s; give a time above 0, 3650d at most"),
        (("--cover", "1000w"), ": --cover is 7000d; give a time above 0, 3650d at most"),
        (("--cover", "30d"), ": --cover 30d at 5,000 messages/s is 13,000,000,000 kept messages, and a near window holds at "
         "most 4,000,000,000: 9.26 d; ask for a shorter time"),
        (("--cover", "24h", "--memory", "much"), "lint: --memory is 'much', not a size; write a number and a unit (B, kB, MB, "
         "GB, KiB, MiB, GiB), as in 512MiB"),
        (("--cover", "24h", "--memory", "1GiB", *setting("near.threads=2", "exact.method=none")),
         ": one machine of 1GiB cannot cover 24h at 5,000 messages/s: 432,000,000 kept messages take 93.7 GiB, beside "
         "2.0 GiB for all else; it covers nothing; several machines: --machines N"),
        (("--cover", "24h", "--memory", "64GiB", *setting("near.threads=2", "exact.method=none")),
         ": one machine of 64GiB cannot cover 24h at 5,000 messages/s: 432,000,000 kept messages take 93.7 GiB, beside "
         "9.8 GiB for all else; it covers 13.9 h at most; several machines: --machines N"),
        (("--cover", "10m", "--rate", "100000", "--memory", "512GiB", *setting("near.threads=1", "exact.method=none")),
         ": one machine cannot cover 10m at 100,000 messages/s: to judge takes 22.7 µs a message, 2.3 threads; "
         "near.threads is 1, enough for 44,117 messages/s"),
        (("--cover", "1h", *setting("near.method=hamming")), ": --cover is for near.method: text, and it is hamming"),
        (("--cover", "1h", *setting("near.candidates=scan")),
         ": --cover is for near.candidates: index, and it is scan; a scan reads all of a window"),
        (("--repeats", "0.3"), "lint: --repeats is for --cover; add the time to cover, as --cover 24h"),
        (("--memory", "64GiB"), "lint: --memory is for --cover; add the time to cover, as --cover 24h"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line(options: tuple[str, ...], said: str, run: Run) -> None:
    ran = run("lint", *options)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.removeprefix("twinsieve").removeprefix(" ").splitlines() == [said]


@pytest.mark.parametrize(
    "option",
    [
        ("--repeats", "1"),
        ("--characters", "0"),
        ("--characters", "nan"),
        ("--rate", "inf"),
        ("--rate", "nan"),
        ("--repeats", "nan"),
        ("--rate", "0"),
    ],
)
def test_a_number_out_of_range_is_refused(option: tuple[str, str], run: Run) -> None:
    ran = run("lint", "--cover", "1h", *option)
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1


def test_a_machine_that_is_not_named_is_this_one(run: Run) -> None:
    assert run("lint", "--cover", "1m", "--rate", "10").code == 0


@pytest.mark.parametrize("other", ["near.method=hamming", "near.method=none", "near.candidates=scan"])
def test_other_methods_have_no_model_and_say_nothing(other: str, run: Run) -> None:
    assert "near window covers" not in run("lint", "--rate", "10", *setting(other)).out
    assert "near window covers" in run("lint", "--rate", "10").out


def test_what_a_process_may_hold_counts_the_index_of_segments_that_stay_in_memory() -> None:
    keys: dict[str, object] = {
        "exact.method": "none",
        "near.window.messages": 10_000_000,
        "near.segment": 1_000_000,
    }
    worst = sum(worst_case_bytes(sieve_config(_of_keys(keys), "")).values())
    cut = near_bytes(sieve_config(_of_keys(keys), ""), 1)
    # The column of tags counts to the ring.
    hot = cut["buckets"] + cut["tags"] + 8 * 1_000_000

    def sieve(memory: str) -> int:
        return held_by(_of_keys(keys | {"state.memory": memory}), 1).sieve

    assert sieve("none") == worst == sieve("1GiB")
    assert sieve("4GiB") == 4 * _GIB, "two segments of the longest texts take 2.7 GiB"
    assert sieve("64GiB") == worst + 9 * hot
    assert cost_of(_of_keys(keys | {"state.memory": "64GiB"}), 1).total_bytes == sieve("64GiB")
