"""The other commands: explain, lint, evaluate, generate."""

from __future__ import annotations

import gzip
import json
import re
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from tests.calling import Run, setting
from tests.row_files import write_rows
from tests.stages.differ.test_tails import END, LONG, MIDDLE, TAIL, long_text
from twinsieve import simhash
from twinsieve.pipeline.basics.program import program_version
from twinsieve.pipeline.operate.topic_plan import LOG_ROW_BYTES
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.sizing.process_memory import held_by

_A = "你妈妈喊你回家吃饭哦，回家罗回家罗"
_B = "你妈妈叫你回家吃饭啦，回家罗回家罗"
_SASL = setting("kafka.security.protocol=sasl_ssl", "kafka.security.username=u")
_NO_PASSWORD = (
    "kafka.security.password is missing; set TWINSIEVE_KAFKA__SECURITY__PASSWORD or name a file in "
    "kafka.security.password_file"
)


def _said(out: str) -> dict[str, str]:
    """The explanation's lines by step, wrapped lines joined."""
    said: dict[str, str] = {}
    for line in out.splitlines():
        step, _, what = line.partition("  ")
        said[step.strip()] = what.strip()
    return said


def test_explain_says_what_each_step_says(run: Run) -> None:
    ran = run("explain", _A, _B)
    assert ran.code == 0
    said = _said(ran.out)
    assert said["earlier text"] == _A
    assert said["later body"] == _B.replace("，", "")
    assert said["exact"] == "the key texts differ"
    assert said["similarity"] == "0.8750 (28 of 32), at least 0.8"
    assert said["verdict"] == "near: the later message is dropped, the earlier one leads"


@pytest.mark.parametrize(
    ("earlier", "later", "flags", "step", "what"),
    [
        ("武汉新增确诊12例", "武汉新增确诊15例", (), "differences", "keep them apart: number"),
        ("武汉新增确诊12例", "武汉新增确诊15例", setting("near.differences=off"), "differences",
         "switched off; near.differences: full would (number)"),
        ("武汉新增确诊12例", "武汉新增确诊15例", (), "difference", "武汉新增确诊[12|15]!例"),
        ("The ferry takes a dog on board", "The ferry takes a cat on board", (), "difference",
         "the ferry takes a[dog|cat]!on board"),
        (_A, _A + "！", (), "exact", "the key texts are equal"),
        (_A, "完全没有关系的另一句话在这里", (), "MinHash lane", "0 of 28 bands shared; does not find the pair"),
        ("加油", "加油哦", (), "near", "not compared"),
        (long_text(), long_text(order=(MIDDLE, END, TAIL)), (), "similarity",
         "0.9994 (estimated over the whole bodies), at least 0.8"),
        (long_text(), long_text(order=(MIDDLE, END, TAIL)), (), "differences",
         "none that keeps them apart; only the first 512 characters compared, and the numbers and negations of what "
         "follows if it is about as long"),
        (LONG, LONG.replace("12", "17"), (), "differences",
         "keep them apart: tail (numbers or negations behind the first 512 characters)"),
        (_A, _B, setting("near.method=none"), "near", "switched off (near.method: none)"),
        (_A, _B, setting("near.method=hamming", "near.distances=8:0"), "verdict",
         "unique: the later message is kept"),
    ],
)  # fmt: skip
def test_explain_names_the_step_that_decides(
    run: Run, earlier: str, later: str, flags: tuple[str, ...], step: str, what: str
) -> None:
    ran = run("explain", earlier, later, *flags)
    assert ran.code == 0
    assert _said(ran.out)[step] == what


def test_explain_finds_texts_by_id_in_file_order(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "in.jsonl.gz"
    rows = [{"id": 7, "text": _A}, {"id": "x", "text": "别的"}, {"id": 9, "text": _B}]
    source.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    ran = run("explain", "--input", source, "--id", "9", "--id", "7")
    assert ran.code == 0
    assert (_said(ran.out)["earlier text"], _said(ran.out)["later text"]) == (_A, _B)
    ran = run("explain", "--input", source, "--id", "9", "--id", "8")
    said = f"twinsieve: {source}: has no readable row with id '8'; see --id-field\n"
    assert (ran.code, ran.err) == (2, said)
    assert run("explain", "one text").code == 2


def test_explain_finds_texts_by_position_as_dedup_counts_them(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "in.txt"
    source.write_text(f"{_A}\n\nsomething else\n{_A} 了\n", "utf-8")
    ran = run("explain", "--input", source, "--position", "4", "--position", "1")
    assert ran.code == 0
    said = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert said[0] == f"earlier text {_A}"
    assert said[1] == f"later text {_A} 了"
    ran = run("explain", "--input", source, "--position", "2", "--position", "1")
    assert (ran.code, ran.err) == (2, f"twinsieve: {source}: has no readable row at position 2\n")
    assert run("explain", "--input", source, "--position", "1", "--id", "1").code == 2
    assert run("explain", _A, _A, "--position", "1").code == 2


def test_explain_knows_the_fields_and_scopes_of_messages_in_a_file(tmp_path: Path, run: Run) -> None:
    rows = [("a", 1, "x"), ("b", 1, "x"), ("c", 2, "x"), ("d", 1, "y")]
    source = write_rows(tmp_path / "in.jsonl", ({"id": i, "k": k, "t": t, "text": _A} for i, k, t in rows))
    fields = setting("exact.fields=k", "scope=t")
    for other, said in (("b", "verdict  exact"), ("c", "verdict  unique"), ("d", "verdict  unique")):
        ran = run("explain", "--input", source, "--id", "a", "--id", other, *fields)
        assert (ran.code, said in ran.out) == (0, True)
        assert ("the fields k are equal" in ran.out) == (other in "bd")
        assert ("never compared" in ran.out) == (other == "d")
    ran = run("explain", _A, _A, *fields)
    assert "which two texts do not have" in ran.out
    assert "verdict  unique" in ran.out


def test_explain_shows_what_a_fingerprint_is_made_of(run: Run) -> None:
    pairs = ("--set", "features.kind=shingles", "--set", "features.unit=words", "--set", "features.width=3")
    text = "The ferry is late. The ferry is late?"
    ran = run("explain", "--features", text, *pairs)
    assert ran.code == 0
    lines = ran.out.splitlines()
    features = [line.split(None, 2) for line in lines[3:7]]
    assert [(weight, told) for _, weight, told in features] == [
        ("2", "the ferry is"),
        ("2", "ferry is late"),
        ("1", "is late the"),
        ("1", "late the ferry"),
    ]
    sums = [int(total) for line in lines[8:16] for total in line.split()[1:]]
    weighted = [(int(hashed, 16), int(weight)) for hashed, weight, _ in features]
    assert sums == [
        sum(weight if one >> bit & 1 else -weight for one, weight in weighted) for bit in range(63, -1, -1)
    ]
    bits = lines[16].removeprefix("bits").replace(" ", "")
    assert bits == "".join("1" if total > 0 else "0" for total in sums)
    assert lines[17] == f"hex   {int(bits, 2):016x}"
    found = simhash([text], settings={"features": {"kind": "shingles", "unit": "words", "width": 3}})
    assert int(bits, 2) == int(found[0])


def test_explain_shows_the_distance_of_two_fingerprints(run: Run) -> None:
    one, other = (int(value) for value in simhash([_A, _B], settings={"profile": "default"}))
    assert run("explain", "--features", _A, _B).out.splitlines()[-1] == (
        f"distance  {(one ^ other).bit_count()} of 64 bits"
    )
    ran = run("explain", "--features", _A, "加油")
    assert "no fingerprint: under 8 characters or digits alone, so compared exactly only" in ran.out
    assert ran.out.splitlines()[-1] == "distance  none: a text without fingerprint is similar to no other"
    ran = run("explain", "--features", _A, "--set", "features.kind=shingles", "--set", "features.width=64")
    assert ran.out.splitlines()[-1] == "no fingerprint: fewer than 1 features (features.min_features)"
    assert run("explain", "--features").code == 2
    assert run("explain", "--features", _A, _A, _A).code == 2


def test_explain_shows_the_fingerprint_of_each_field(tmp_path: Path, run: Run) -> None:
    source, config = tmp_path / "in.jsonl", tmp_path / "s.yaml"
    rows = [{"id": "a", "title": _A, "body": _B}, {"id": "b", "title": _A, "body": "短"}]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config.write_text(
        "near: {method: hamming, distances_by_field: {title: 3, body: 3}}\n"
        "input: {text_field: [title, body]}\nprofile: plain\n"
    )
    ran = run("explain", "--features", "-c", config, "--input", source, "--id", "a", "--id", "b")
    lines = ran.out.splitlines()
    body = lines.index("field body")
    assert lines[:2] == ["field title", f"text  {_A}"]
    assert lines[body - 1] == "distance  0 of 64 bits"
    assert lines[body + 1] == f"text  {_B}"
    assert f"hex   {int(simhash([_B])[0]):016x}" in lines[body:]
    assert lines[-1].startswith("distance  none")


def test_explain_shows_what_a_terminal_would_obey(run: Run) -> None:
    ran = run("explain", "\x1b[2J\u202e" + _A, _A)
    assert ran.code == 0
    assert "\x1b[2J" not in ran.out
    assert "\\x1b[2J\\u202e" + _A in ran.out


def test_lint_shows_every_problem_and_exits_with_2(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("profil: plain\nnear: {similarity: 7}\n")
    ran = run("lint", path)
    assert ran.code == 2
    assert ran.out.splitlines() == [
        f"{path}:1:1: unknown key 'profil'; did you mean 'profile'?",
        f"{path}:2:20: near.similarity is 7; it lies between 0.5 and 1 (0.85 is a good start)",
    ]


def test_lint_finds_what_only_the_stages_see(tmp_path: Path, run: Run) -> None:
    (tmp_path / "idf.tsv").write_text("词\t1.5\nno number\n")
    path = tmp_path / "s.yaml"
    path.write_text("features: {kind: keywords, idf_file: idf.tsv}\n")
    ran = run("lint", path)
    assert ran.code == 2
    assert ran.out.startswith(f"{tmp_path / 'idf.tsv'}:2:1: is not `feature<TAB>idf`")


def test_lint_says_what_the_windows_cover_and_what_the_log_takes(run: Run) -> None:
    windows = setting("near.window.messages=720000", "near.window.age=3h")
    ran = run("lint", "--rate", "100", *windows)
    assert ran.code == 0
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["near", "2.00", "3.00", "messages"] in lines
    assert f"{100 * 86_400 * LOG_ROW_BYTES / 1e9:.1f} GB a day" in ran.out
    ran = run("lint", "--rate", "10", *windows)
    assert ["near", "3.00", "3.00", "age"] in [line.split() for line in ran.out.splitlines()]


@pytest.mark.parametrize(
    ("window", "rate", "said"),
    [
        ({"messages": 1_000_000, "age": "24h"}, 5000,
         "near: 3.33 min of 24 h; raise near.window.messages (24 h hold 432,000,000)"),
        ({"messages": 10_000, "age": "7d"}, 10, "near: 16.7 min of 7 d; raise near.window.messages (7 d hold 6,048,000)"),
        ({"messages": 10, "age": "1h"}, 1, "near: 10 s of 1 h; raise near.window.messages (1 h hold 3,600)"),
        ({"messages": 3_600, "age": "1h"}, 1, None),
        ({"messages": 10, "age": "none"}, 1000, None),
    ],
)  # fmt: skip
def test_lint_says_which_window_ends_before_its_age(
    run: Run, window: dict[str, object], rate: int, said: str | None
) -> None:
    windows = setting(*(f"near.window.{key}={value}" for key, value in window.items()))
    ran = run("lint", "--rate", rate, *setting("exact.method=none"), *windows)
    found = [line for line in ran.out.splitlines() if re.match(r"near: [0-9]", line)]
    assert (ran.code, found) == (0, [said] if said else [])


@pytest.mark.parametrize(
    ("method", "most"),
    [("text", "4,000,000,000"), ("signatures", "16,000,000"), ("hamming", "1,073,741,824")],
)
def test_lint_names_the_largest_window_of_the_method(run: Run, method: str, most: str) -> None:
    ran = run("lint", "--rate", 500_000, *setting(f"near.method={method}", "near.window.age=24h"))
    assert ran.code == 0
    assert f"at most {most}: " in ran.out


def test_lint_counts_what_a_whole_run_may_hold(run: Run) -> None:
    held = held_by(Settings(), 64)
    out = run("lint", "--partitions", "64").out
    waiting = next(line for line in out.splitlines() if "kafka.pending_bytes" in line)
    assert waiting.split()[-1] == f"{held.waiting / 2**20:,.1f}"
    assert f"both roles: {held.process / 2**20:,.1f} MiB" in out
    assert "with 8 input partitions" in run("lint", *setting("kafka.bootstrap=b:9092")).out
    assert run("lint", "--partitions", "0").code == 2


def test_lint_says_that_it_did_not_see_a_secret(tmp_path: Path, run: Run) -> None:
    assert f"not checked: secrets; {_NO_PASSWORD}" in run("lint", *_SASL).out.splitlines()
    (tmp_path / "password").write_text("hunter2\n")
    named = setting(f"kafka.security.password_file={tmp_path / 'password'}")
    assert "not checked" not in run("lint", *_SASL, *named).out
    assert "not checked" not in run("lint").out
    missing = run("lint", *_SASL, *setting("kafka.security.password_file=/no/such/file"))
    assert (missing.code, "which cannot be read: No such file" in missing.out) == (2, True)


def test_what_generate_makes_is_the_same_for_a_seed(tmp_path: Path, run: Run) -> None:
    for name in ("a", "b.gz", "c"):
        run("generate", "--messages", "50", "--seed", 3 if name != "c" else 4, "-o", tmp_path / name)
    first = (tmp_path / "a").read_bytes()
    assert gzip.decompress((tmp_path / "b.gz").read_bytes()) == first != (tmp_path / "c").read_bytes()
    assert len(first.splitlines()) == 50
    assert run("generate", "--messages", "50", "--seed", "3").out.encode() == first


def test_evaluate_measures_against_true_pairs(tmp_path: Path, run: Run) -> None:
    rows = [("a", _A), ("b", "毫无关系的一句话放在中间"), ("c", _B), ("d", _A)]
    source = write_rows(tmp_path / "in.jsonl", ({"id": name, "text": text} for name, text in rows))
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text(
        "later\tearlier\tsimilarity\tkind\nc\ta\t0.8750\tnear\nd\ta\t1.0000\traw\nd\tc\t0.8750\tnear\n"
    )
    stats, wrong = tmp_path / "stats.json", tmp_path / "wrong.jsonl"
    ran = run("evaluate", source, pairs, "--stats", stats, "--wrong", wrong)
    assert ran.code == 0
    report = json.loads(stats.read_text())
    assert (report["rows"], report["to_drop"], report["near_to_drop"]) == (4, 2, 1)
    assert all(one["scores"]["every"]["f1"] == 1.0 for one in report["runs"])
    assert wrong.read_bytes() == b""
    assert "near F1" in ran.out
    assert run("evaluate", source, pairs, "--at", "7").code == 2
    assert run("evaluate", source, tmp_path / "none").code == 2
    assert run("evaluate", source, pairs, "--stats", source).code == 2


def test_rights_are_printed_without_a_broker(run: Run) -> None:
    ran = run("topics", "acls", *setting("app=news"), "--principal", "User:x")
    assert ran.code == 0
    assert all(line.startswith("kafka-acls.sh ") and "User:x" in line for line in ran.out.splitlines())
    assert "news." in ran.out


def test_a_missing_password_is_said_before_anything_connects(run: Run) -> None:
    for command in (("run",), ("topics", "check"), ("topics", "create")):
        ran = run(*command, *_SASL)
        assert (ran.code, ran.err) == (2, f"settings: {_NO_PASSWORD}\n")


def test_the_version_is_told_with_and_without_an_installation(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("--version").out == f"twinsieve {program_version()}\n"

    def not_installed(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", not_installed)
    program_version.cache_clear()
    told = run("--version")
    program_version.cache_clear()
    assert (told.code, told.out, told.err) == (0, "twinsieve unreleased\n", "")


def test_why_by_id_says_that_ids_are_off_before_it_asks_a_broker(run: Run, tmp_path: Path) -> None:
    settings = tmp_path / "s.yaml"
    settings.write_text("kafka: {bootstrap: '127.0.0.1:1'}\ninput: {id_field: none}\n")
    ran = run("why", "--id", "p1", "-c", settings)
    assert ran.code == 2
    assert "input.id_field is none" in ran.err
    assert "--set input.id_field=id" in ran.err
