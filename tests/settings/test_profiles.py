"""A profile may have a similarity, differences and limits of its own; what is written beside it counts more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.calling import Run
from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.load import Override, load_settings
from twinsieve.pipeline.settings.model import PROFILES, NearSettings, Section
from twinsieve.pipeline.settings.stage_config import sieve_config
from twinsieve.stages.contract import FULL, Differences


def near_of(
    tmp_path: Path, text: str, environ: dict[str, str] | None = None, *flags: Override
) -> NearSettings:
    path = tmp_path / "s.yaml"
    path.write_text(text)
    return load_settings(path, environ, flags).near


@pytest.mark.parametrize(
    ("text", "similarity", "differences"),
    [
        ("app: a\n", 8_000, "full"),
        ("profile: default\n", 8_000, "full"),
        ("profile: plain\n", 7_200, "full"),
        ("profile: microblog\n", 7_000, "full"),
        ("profile: titles\n", 7_500, "full"),
        ("profile: sms\n", 8_000, "full"),
        ("profile: microblog\nnear: {similarity: 0.9}\n", 9_000, "full"),
        ("profile: microblog\nnear: {differences: guards}\n", 7_000, "guards"),
        ("profile: titles\nnear: {differences: off, similarity: 0.85}\n", 8_500, "off"),
    ],
)
def test_a_profile_that_is_written_says_where_alike_begins(
    tmp_path: Path, text: str, similarity: int, differences: str
) -> None:
    near = near_of(tmp_path, text)
    assert (near.similarity, near.differences) == (similarity, differences)


@pytest.mark.parametrize(
    ("profile", "name"),
    [(profile, name) for profile, own in PROFILES.items() for name in own],
)
def test_a_user_may_write_what_a_profile_has(profile: str, name: str) -> None:
    value = PROFILES[profile][name]
    if isinstance(value, Section):
        written = {key: getattr(value, key) for key in value.model_fields_set}
        assert written
        assert type(value).model_validate(written) == value
    assert NearSettings.model_validate({name: value}).model_copy() == NearSettings().model_copy(
        update={name: value}
    )


def test_it_is_written_wherever_it_stands(tmp_path: Path) -> None:
    assert near_of(tmp_path, "app: a\n", {"TWINSIEVE_PROFILE": "titles"}).similarity == 7_500
    assert near_of(tmp_path, "app: a\n", None, Override("profile", "sms", "--profile")).similarity == 8_000
    flag = Override("near.similarity", "0.9", "--set")
    assert near_of(tmp_path, "profile: titles\n", None, flag).similarity == 9_000


def test_one_written_limit_leaves_the_profile_its_others(tmp_path: Path) -> None:
    near = near_of(tmp_path, "profile: microblog\nnear: {limits: {longest: 5}}\n")
    limits = near.limits.model_dump()
    assert [limits[name] for name in ("longest", "own", "places", "only_short")] == [5, 30, 1, 1000]
    near = near_of(tmp_path, "profile: titles\nnear: {limits: {replaced: 0.1}}\n")
    limits = near.limits.model_dump()
    assert [limits[name] for name in ("replaced", "replaced_short", "in_place")] == [100, 80, 1]


def test_limits_reach_the_sieve_in_its_units(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("profile: microblog\n")
    told = sieve_config(load_settings(path), "").near.differences
    assert told == Differences(
        FULL, short=20, replaced_short=200, replaced=200, only_short=1000, longest=10,
        places=1, own=30, own_share=450,
    )  # fmt: skip
    path.write_text("app: a\n")
    assert sieve_config(load_settings(path), "").near.differences == Differences(FULL)


@pytest.mark.parametrize(
    ("key", "new"),
    [("number_guard", "differences: guards"), ("card_guard", "differences: guards"), ("shards", "threads")],
)
def test_a_key_of_earlier_versions_says_what_to_write(tmp_path: Path, key: str, new: str) -> None:
    with pytest.raises(ConfigError, match=rf"near\.{key}'; .*write near\.{new}"):
        near_of(tmp_path, f"near: {{{key}: 1}}\n")


@pytest.mark.parametrize(
    "limit", ["replaced: 1.1", "replaced: 0.0001", "own: -1", "longest: 513", "replaced: x"]
)
def test_a_limit_that_cannot_be_is_refused(tmp_path: Path, limit: str) -> None:
    with pytest.raises(ConfigError, match=rf"near\.limits\.{limit.partition(':')[0]}"):
        near_of(tmp_path, f"near: {{limits: {{{limit}}}}}\n")


def test_lint_names_what_is_in_force_and_warns_of_a_low_similarity(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("profile: titles\n")
    shown = run("lint", "-c", path)
    assert "near: similarity from 0.75, differences: full" in shown.out + shown.err
    assert "much is lost" not in shown.out + shown.err
    path.write_text("near: {similarity: 0.75, differences: guards}\n")
    shown = run("lint", "-c", path)
    assert "near: similarity from 0.75, differences: guards" in shown.out + shown.err
    assert "below 0.8 write near.differences: full, or much is lost" in shown.out + shown.err


def test_show_names_the_profile_as_the_origin(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("profile: microblog\nnear: {differences: guards}\n")
    lines = {
        line.split()[0]: line for line in run("lint", "--show", "-c", path).out.splitlines() if line.strip()
    }
    assert "profile microblog" in lines["near.similarity"]
    assert "profile microblog" not in lines["near.differences"]
    assert "default" in lines["near.bucket_load"]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", ["config/kafka", "config/production", "config/microblog", "docker/settings"])
def test_an_example_takes_a_profile_as_it_is(root: Path, name: str, profile: str) -> None:
    near = load_settings(root / f"{name}.yaml", {}, [Override("profile", profile, "--profile")]).near
    plain = load_settings(None, {}, [Override("profile", profile, "--profile")]).near
    own = ("similarity", "differences", "limits", "layout")
    assert [getattr(near, key) for key in own] == [getattr(plain, key) for key in own]


@pytest.mark.parametrize(
    ("text", "hints"),
    [
        ("profile: plain\nnear: {similarity: 0.8}\n", ["near.similarity is 0.8, and profile plain has 0.72"]),
        (
            "profile: microblog\nnear: {differences: guards, limits: {short: 9, inside: 100}, layout: {bands: 30}}\n",
            [
                "near.differences is guards, and profile microblog has full",
                "near.limits.short is 9, and profile microblog has 20",
                "near.limits.inside is 100, and profile microblog has 512",
                "near.layout.bands is 30, and profile microblog has 38",
            ],
        ),
        ("profile: plain\nnear: {similarity: 0.72}\n", []),
        ("near: {similarity: 0.9}\n", []),
    ],
)
def test_lint_says_what_is_set_to_another_value_than_the_profile_has(
    tmp_path: Path, run: Run, text: str, hints: list[str]
) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(text)
    ran = run("lint", path)
    assert ran.code == 0
    said = [line for line in ran.out.splitlines() if "and profile" in line]
    assert said == [f"{hint}; remove the key to have the profile's" for hint in hints]
