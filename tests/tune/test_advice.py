"""What `tune --judged` recommends, and when it recommends nothing."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calling import SMALL, Run
from tests.generated_posts import generate
from tests.row_files import read_lines
from twinsieve.pipeline.messages.spelling import to_json
from twinsieve.pipeline.settings.load import Override, check_tree, load_settings, tree_of
from twinsieve.pipeline.settings.model import PROFILES, Settings
from twinsieve.pipeline.settings.proposal import proposal_for
from twinsieve.pipeline.tools.evaluate.judged import JudgedPair, Share
from twinsieve.pipeline.tools.tune.advice import LEAST_LABELS, LEVEL, LIMITS_FROM, NARROW, Advice, advise
from twinsieve.pipeline.tools.tune.labels import Labels, distinct_labels
from twinsieve.pipeline.tools.tune.sweep import SIMILARITIES, Curve, Judged, Point, curves_of, with_keys

Json = dict[str, Any]
Reader = tuple[int, str, frozenset[str]]
"""Of a pair: its similarity, its label, and the profiles that keep it apart at any similarity."""


@cache
def defaults() -> Settings:
    return load_settings(None, {}, on_files=True)


@cache
def curves() -> list[Curve]:
    return curves_of(lambda keys: load_settings(None, {}, with_keys([], keys), on_files=True))


def points_of(readers: list[Reader]) -> list[Point]:
    """What a sieve would do that drops a pair from its similarity on, unless the profile keeps it apart."""
    points = []
    for curve in curves():
        for similarity in SIMILARITIES:
            dropped = [
                label for alike, label, apart in readers if alike >= similarity and curve.profile not in apart
            ]
            right, wrong = dropped.count("same"), dropped.count("different")
            same = sum(label == "same" for _, label, _ in readers)
            judged = Judged(Share(right, right + wrong), Share(right, same))
            points.append(Point(curve, similarity, 1, 0, 0, judged=judged))
    return points


def advised(readers: list[Reader], settings: Settings | None = None, sampled: Sequence[str] = ()) -> Advice:
    pairs = [JudgedPair("", f"{n}a", f"{n}b", label) for n, (_, label, _) in enumerate(readers)]
    return advise(points_of(readers), Labels(pairs, []), {}, settings or defaults(), sampled=sampled)


def settings_of(yaml: str) -> Settings:
    """As a file with this content gives them."""
    tree = tree_of({})
    read, findings = check_tree(tree, {}, [Override(*each, "") for each in lines_of(yaml)], on_files=True)
    assert read is not None
    assert findings == []
    return read


def lines_of(yaml: str) -> list[tuple[str, str]]:
    """Each dotted key of the YAML with its value."""
    above: list[str] = []
    keys = []
    for line in yaml.splitlines():
        name, _, value = line.strip().partition(":")
        above = [*above[: (len(line) - len(line.lstrip())) // 2], name]
        if value:
            keys.append((".".join(above), value.strip()))
    return keys


def interval_twin(hits: float, of: float) -> tuple[float, float]:
    """The shares from which the measured one is no further away than z standard errors, found by halving."""

    def end(towards: float) -> float:
        inside, outside = hits / of, towards
        for _ in range(60):
            middle = (inside + outside) / 2
            if abs(hits / of - middle) <= 1.6448536 * (middle * (1 - middle) / of) ** 0.5:
                inside = middle
            else:
                outside = middle
        return inside

    return end(0.0), end(1.0)


def best_twin(readers: list[Reader]) -> set[tuple[str, int]]:
    """Every (profile, similarity) whose measure no other one exceeds, by counting the pairs."""
    same = sum(label == "same" for _, label, _ in readers)
    different = sum(label == "different" for _, label, _ in readers)
    measures: dict[tuple[str, int], float] = {}
    for profile in PROFILES:
        for similarity in range(8_000 if profile == "default" else 7_000, 9_501, 100):
            dropped = [
                label for alike, label, apart in readers if alike >= similarity and profile not in apart
            ]
            right, wrong = dropped.count("same"), dropped.count("different")
            if right:
                wrong_of_many = different * (wrong + 0.15) / (different + 5)
                low, _ = interval_twin(right, right + wrong_of_many)
                measures[profile, similarity] = 10 * low * right / (low * same + 9 * right)
    best = max(measures.values(), default=0.0)
    return {key for key, measure in measures.items() if measure > best - 1e-9}


def some_readers(seed: int, pairs: int) -> list[Reader]:
    """Pairs that are labelled at random, more of them `same` the more alike they are; each profile keeps its own
    share of them apart."""
    chance = random.Random(seed)
    apart = {profile: chance.choice([0.0, 0.1, 0.5]) for profile in PROFILES}
    different = chance.choice([0.0, 0.05, 0.3, 0.9])
    read: list[Reader] = []
    for _ in range(pairs):
        alike = chance.randrange(7_000, 10_000)
        is_same = chance.random() > different * (10_000 - alike) / 1_500
        label = "unsure" if chance.random() < 0.1 else "same" if is_same else "different"
        kept = {name for name in PROFILES if chance.random() < apart[name] * (1 if is_same else 1.8)}
        read.append((alike, label, frozenset(kept)))
    return read


@given(st.integers(0, 1 << 30), st.integers(0, 120))
def test_what_is_recommended_is_what_a_plain_count_finds_best(seed: int, pairs: int) -> None:
    read = some_readers(seed, pairs)
    advice = advised(read)
    assert advice == advised(read)
    labels = [label for _, label, _ in read]
    few = labels.count("same") + labels.count("different") < LEAST_LABELS
    if few or not {"same", "different"} <= set(labels) or not best_twin(read):
        assert advice.yaml is None
    if advice.yaml is None:
        assert advice.reason.startswith("no recommendation: ")
        return
    settings = settings_of(advice.yaml)
    assert (settings.profile, settings.near.similarity) in best_twin(read)


@given(
    st.integers(0, 90), st.integers(0, 90), st.integers(0, 9), st.sampled_from([0, 1, 40]), st.integers(0, 99)
)
def test_pairs_that_differ_are_not_dropped_below_where_all_are_the_same(
    at: int, from_at: int, few: int, more: int, seed: int
) -> None:
    """More labels `different` at a similarity never bring the recommended similarity below it."""
    bad, good = sorted((7_000 + 25 * at, 7_100 + 25 * from_at))
    good = min(max(good, bad + 100), 9_500)
    read: list[Reader] = [(good, "same", frozenset())] * 40
    read += [(min(bad, good - 100), "different", frozenset())] * (20 + few + more)
    random.Random(seed).shuffle(read)
    yaml = advised(read).yaml
    assert yaml is not None
    assert settings_of(yaml).near.similarity > min(bad, good - 100)


@pytest.mark.parametrize(
    ("same", "different", "unsure", "says"),
    [
        (20, 9, 40, "29 of 69 labelled pairs are same or different, 30 are needed; label 1 more"),
        (0, 0, 60, "0 of 60 labelled pairs are same or different, 30 are needed; label 30 more"),
        (0, 0, 0, "0 of 0 labelled pairs"),
        (60, 0, 0, "no pair is labelled different, so nothing shows what drops too much; label more pairs"),
        (0, 60, 0, "no pair is labelled same, so nothing shows what drops too little; label more pairs"),
        (5, 55, 0, "even the best settings drop more pairs labelled different than pairs labelled same"),
    ],
)
def test_too_few_and_one_sided_labels_recommend_nothing(
    same: int, different: int, unsure: int, says: str
) -> None:
    counts = {"same": same, "different": different, "unsure": unsure}
    read: list[Reader] = [
        (9_600, label, frozenset()) for label, count in counts.items() for _ in range(count)
    ]
    advice = advised(read)
    assert advice.yaml is None
    assert advice.reason.startswith(f"no recommendation: {says}")


def test_pairs_that_no_profile_drops_recommend_nothing() -> None:
    read: list[Reader] = [(9_600, "same", frozenset(PROFILES)), (9_600, "different", frozenset())] * 30
    advice = advised(read)
    assert (advice.yaml, advice.reason[:40]) == (None, "no recommendation: no profile drops a pa")


def test_the_profile_in_force_is_kept_where_labels_do_not_tell() -> None:
    read: list[Reader] = [(9_600, "same", frozenset()), (9_600, "different", frozenset(PROFILES))] * 30
    for profile in PROFILES:
        in_force = load_settings(None, {}, [Override("profile", profile, "")], on_files=True)
        advice = advised(read, in_force)
        assert advice.yaml is not None
        settings = settings_of(advice.yaml)
        assert (settings.profile, settings.near.similarity) == (profile, in_force.near.similarity)
        assert "your settings do the same already" in advice.lines


TWEETS = [f"@anna{n} the storm is here, stay safe everyone! http://t.co/{n}" for n in range(300)]


def test_of_profiles_that_the_labels_do_not_tell_apart_that_for_the_kind_of_text_is_recommended() -> None:
    """`dedup` proposes by the same signs, so the two do not contradict each other."""
    apart = frozenset({"default"})
    read: list[Reader] = [(9_600, "same", apart), (9_600, "different", frozenset(PROFILES))] * 30
    advice = advised(read, sampled=TWEETS)
    assert advice.yaml is not None
    assert settings_of(advice.yaml).profile == "plain"
    assert not any("look like" in line for line in advice.lines)
    proposal = proposal_for(defaults())
    assert proposal is not None
    proposal.look(TWEETS)
    assert "profile: plain" in (proposal.end() or "")
    # Who obeys is proposed nothing else.
    assert proposal_for(settings_of(advice.yaml)) is None


@pytest.mark.parametrize(
    "sampled", [TWEETS, [f"오늘 서울 날씨가 정말 좋네요 {n} 그렇죠?" for n in range(300)]]
)
def test_a_recommendation_for_another_kind_of_text_says_so(sampled: list[str]) -> None:
    apart = frozenset(PROFILES) - {"microblog"}
    read: list[Reader] = [(9_600, "same", apart), (9_600, "different", frozenset(PROFILES))] * 30
    advice = advised(read, sampled=sampled)
    assert advice.yaml is not None
    assert settings_of(advice.yaml).profile == "microblog"
    (line,) = (line for line in advice.lines if "microblog is made for posts in Chinese" in line)
    if sampled is TWEETS:
        assert "profile: plain" in line
        assert "recall 0.000" in line, "what the profile for these texts does with the same labels"


def test_the_lines_tell_the_interval_and_how_many_labels_would_narrow_it() -> None:
    read: list[Reader] = [(9_600, "same", frozenset())] * 38 + [(9_600, "different", frozenset())] * 2
    read += [(7_000, "unsure", frozenset())] * 20
    advice = advised(read)
    low, high = interval_twin(38, 40)
    assert advice.lines[:2] == [
        f"precision 0.950 (90% interval {low:.3f} to {high:.3f}): 38 of 40 dropped pairs are labelled same",
        "recall 1.000 (90% interval 0.934 to 1.000): 38 of 38 pairs labelled same are dropped",
    ]
    told = next(line for line in advice.lines if "more labels" in line)
    counts = re.findall(r"to ± ([\d.]+) with about ([\d,]+) more labels", told)
    assert [float(half) for half, _ in counts] == list(NARROW)
    middle = (low + high) / 2
    for half, count in counts:
        more = int(count.replace(",", ""))
        for labels, narrow in ((more, True), (more - 15, False)):
            of = 40 + labels * 40 / 60
            ends = interval_twin(middle * of, of)
            assert (ends[1] - ends[0] <= 2 * float(half)) == narrow


@given(st.integers(1, 500), st.integers(0, 500))
def test_an_interval_of_90_percent_is_that_of_a_plain_search(of: int, hits: int) -> None:
    hits = min(hits, of)
    assert Share(hits, of).interval_at(LEVEL) == pytest.approx(interval_twin(hits, of), abs=1e-6)


def test_a_pair_counts_once_and_two_labels_of_it_are_unsure() -> None:
    def labels(*lines: str) -> Labels:
        return distinct_labels([JudgedPair("", *line.split()) for line in lines])

    found = labels("a b same", "c d same", "b a same", "d c different", "e f unsure", "e f different")
    assert [(pair.later, pair.earlier, pair.label) for pair in found.pairs] == [
        ("a", "b", "same"),
        ("c", "d", "unsure"),
        ("e", "f", "different"),
    ]
    assert found.notes == [
        "3 of 6 labels repeat a pair; each pair counts once",
        "pairs labelled same and different count as unsure: 1",
    ]
    assert labels("a b same", "a c same").notes == []


@pytest.fixture(scope="module")
def posts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("advice") / "posts.jsonl"
    path.write_bytes(b"".join(to_json(post) + b"\n" for post in generate(4_000, seed=7)))
    return path


@pytest.fixture
def alike(run: Run, tmp_path: Path, posts: Path) -> list[Json]:
    """Pairs of posts with a similarity from .70 on."""
    marked = tmp_path / "dropped.jsonl"
    keys = ("--set", "near.differences=off", "--similarity", "0.7")
    ran = run("dedup", posts, "-o", tmp_path / "out.jsonl", "-q", *SMALL, *keys, "--duplicates", marked)
    assert ran.code == 0, ran.err
    return [row for row in read_lines(marked) if row["stage"] == "near"]


def write_labels(path: Path, rows: list[Json], labels: list[str]) -> None:
    lines = [
        f"{row['id']}\t{row['duplicate_of_id']}\t{label}" for row, label in zip(rows, labels, strict=True)
    ]
    path.write_text("\n".join(["later_id\tearlier_id\tlabel", *lines, ""]))


def by_similarity(rows: list[Json]) -> list[str]:
    """Labels that call the less alike third different."""
    edge = sorted(row["similarity"] for row in rows)[len(rows) // 3]
    return ["different" if row["similarity"] < edge else "same" for row in rows]


def evaluated(run: Run, posts: Path, labels: Path, *arguments: str | Path) -> list[str]:
    """Precision and recall as `evaluate --judged` prints them."""
    told = run("evaluate", posts, "--judged", labels, *arguments).out
    row = next(line for line in told.splitlines() if line.startswith("│ all "))
    return [cell.split()[0] for cell in row.strip("│").split("│")][2:]


def tuned(run: Run, tmp_path: Path, posts: Path, labels: Path, *arguments: str | Path) -> tuple[Json, str]:
    """(the recommendation in --stats, stdout)"""
    stats = tmp_path / "points.json"
    ran = run(
        "tune",
        posts,
        "--rows",
        "50",
        "--judged",
        labels,
        "--stats",
        stats,
        *arguments,
        "--report",
        tmp_path / "tune.html",
    )
    assert ran.code == 0, ran.err
    advice: Json = orjson.loads(stats.read_bytes())["advice"]
    return advice, ran.out


def test_the_yaml_gives_the_precision_and_recall_that_are_told(
    run: Run, tmp_path: Path, posts: Path, alike: list[Json]
) -> None:
    labels, advised_yaml = tmp_path / "labels.tsv", tmp_path / "advised.yaml"
    chosen = random.Random(3).sample(alike, 70)
    write_labels(labels, chosen, by_similarity(chosen))
    advice, out = tuned(run, tmp_path, posts, labels)
    assert f"{advice['yaml']}{advice['reason']}\n" in out
    assert all(f"{line}\n" in out for line in advice["lines"])
    assert not any(line.startswith("these keys replace yours") for line in advice["lines"])
    advised_yaml.write_text(advice["yaml"])
    assert evaluated(run, posts, labels, "-c", advised_yaml) == [
        advice["lines"][number].split()[1] for number in (0, 1)
    ]
    assert evaluated(run, posts, labels) != evaluated(run, posts, labels, "-c", advised_yaml)


def test_keys_of_the_yaml_replace_those_of_the_users_file_and_its_others_stay(
    run: Run, tmp_path: Path, posts: Path, alike: list[Json]
) -> None:
    labels, own, both = (tmp_path / name for name in ("labels.tsv", "own.yaml", "both.yaml"))
    chosen = random.Random(4).sample(alike, 70)
    write_labels(labels, chosen, by_similarity(chosen))
    kept = "near:\n  differences: 'off'\n"
    own.write_text(f"profile: sms\n{kept}  similarity: 0.93\n")
    advice, _ = tuned(run, tmp_path, posts, labels, "-c", own)
    assert (
        "these keys replace yours; your other settings were in force here and stay as they are"
        in (advice["lines"])
    )
    both.write_text(advice["yaml"].replace("near:\n", kept))
    told = [advice["lines"][number].split()[1] for number in (0, 1)]
    assert evaluated(run, posts, labels, "-c", both) == told
    alone = tmp_path / "alone.yaml"
    alone.write_text(advice["yaml"])
    assert evaluated(run, posts, labels, "-c", alone) != told


def test_limits_are_recommended_from_200_labels_on_where_labels_speak_for_them(
    run: Run, tmp_path: Path, posts: Path, alike: list[Json]
) -> None:
    """The user's limit keeps nearly all short posts apart, and the labels are what the sieve drops without it."""
    labels, own, both = (tmp_path / name for name in ("labels.tsv", "own.yaml", "both.yaml"))
    own.write_text("near:\n  limits:\n    short: 200\n    replaced_short: 0.01\n")
    marked = tmp_path / "wanted.jsonl"
    run("dedup", posts, "-o", tmp_path / "o.jsonl", "-q", *SMALL, "--duplicates", marked)
    same = {row["id"] for row in read_lines(marked)}
    chosen = random.Random(5).sample(alike, LIMITS_FROM)
    read = ["same" if row["id"] in same else "different" for row in chosen]
    write_labels(labels, chosen, read)
    advice, _ = tuned(run, tmp_path, posts, labels, "-c", own)
    assert re.search(r"^  limits:\n(    .*\n)*    replaced_short: 0\.\d+$", advice["yaml"], re.MULTILINE)
    both.write_text(advice["yaml"] + "    short: 200\n")
    told = [advice["lines"][number].split()[1] for number in (0, 1)]
    assert evaluated(run, posts, labels, "-c", both) == told
    without, _, _ = advice["yaml"].partition("  limits:")
    both.write_text(without + own.read_text().removeprefix("near:\n"))
    plain = evaluated(run, posts, labels, "-c", both)
    assert f"without these limits: precision {plain[0]}, recall {plain[1]}" in advice["lines"]

    write_labels(labels, chosen[:-1], read[:-1])
    few, _ = tuned(run, tmp_path, posts, labels, "-c", own)
    assert few["yaml"] == without
    assert f"limits are recommended from {LIMITS_FROM} labels on" in few["lines"]
