"""A profile with a low floor has an index that finds similar bodies from there on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.calling import Run
from twinsieve.pipeline.operate.topic_plan import LOG_ROW_BYTES
from twinsieve.pipeline.settings.load import check_tree, tree_of, tree_of_file
from twinsieve.pipeline.settings.model import PROFILES, LayoutSettings, Settings
from twinsieve.pipeline.settings.show import settings_in_force
from twinsieve.pipeline.settings.stage_config import band_layout, scheme_of, sieve_config
from twinsieve.stages.contract import BandLayout
from twinsieve.stages.judge.batch_sieve import worst_case_bytes

LOW = ["microblog", "titles", "sms"]
MAX_MORE_BYTES = 100


def settings_of(**given: object) -> Settings:
    settings, findings = check_tree(tree_of(given))
    assert settings is not None
    assert findings == []
    return settings


@pytest.mark.parametrize("profile", LOW)
def test_a_profile_brings_its_layout(profile: str) -> None:
    layout = PROFILES[profile]["layout"]
    assert isinstance(layout, LayoutSettings)
    assert band_layout(settings_of(profile=profile)) == BandLayout(**layout.model_dump())
    assert band_layout(settings_of(profile=profile)) != BandLayout()


def test_under_default_the_layout_is_the_default() -> None:
    assert band_layout(settings_of()) == BandLayout()
    assert band_layout(settings_of(profile="default")) == BandLayout()


def test_written_layout_counts_before_that_of_the_profile() -> None:
    whole = LayoutSettings().model_dump()
    assert band_layout(settings_of(profile="microblog", near={"layout": whole})) == BandLayout()
    own = band_layout(settings_of(profile="microblog"))
    some = band_layout(settings_of(profile="microblog", near={"layout": {"bands": own.bands - 1}}))
    assert (some.bands, some.rows) == (own.bands - 1, own.rows)


def test_listing_names_the_profile_as_origin_of_what_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("profile: titles\nnear: {layout: {bands: 20}}\n")
    settings, _ = check_tree(tree := tree_of_file(path))
    assert settings is not None
    shown = {one.key: (one.value, one.origin) for one in settings_in_force(settings, tree)}
    assert shown["near.layout.bands"] == ("20", f"{path}:2")
    assert shown["near.layout.rows"] == (str(band_layout(settings).rows), "profile titles")
    plain = {one.key: one.origin for one in settings_in_force(settings_of(), tree_of({}))}
    assert plain["near.layout.rows"] == "default"


@pytest.mark.parametrize("profile", LOW)
def test_layout_of_a_profile_takes_at_most_100_bytes_more_a_kept_message(profile: str) -> None:
    def index_bytes(settings: Settings) -> int:
        return worst_case_bytes(sieve_config(settings, ""))["buckets"]

    settings = settings_of(profile=profile)
    more = index_bytes(settings) - index_bytes(settings_of())
    assert 0 < more <= MAX_MORE_BYTES * settings.near.window.messages


def test_lint_counts_the_layout_of_the_profile(run: Run) -> None:
    default, low = (run("lint", "--rate", 5000, *more).out for more in ((), ("--profile", "microblog")))
    assert f"at {LOG_ROW_BYTES} bytes a message" in default
    bands = band_layout(settings_of(profile="microblog")).bands
    assert f"at {LOG_ROW_BYTES + 4 * (bands - band_layout(settings_of()).bands)} bytes a message" in low
    buckets = [
        float(line.split()[1]) for out in (default, low) for line in out.splitlines() if "buckets" in line
    ]
    assert buckets[1] / buckets[0] == pytest.approx((bands + 0.5) / 28.5, rel=0.01)


def test_scheme_of_a_profile_with_a_layout_is_another_one() -> None:
    assert scheme_of(settings_of()).scheme_id != scheme_of(settings_of(profile="microblog")).scheme_id
    whole = {"layout": LayoutSettings().model_dump()}
    with_default = settings_of(profile="microblog", near=whole)
    assert scheme_of(settings_of()).scheme_id == scheme_of(with_default).scheme_id
