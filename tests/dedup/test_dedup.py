"""`twinsieve dedup` on small files: what goes where, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rapidfuzz import fuzz

from tests.calling import SMALL, Run, setting
from tests.generated_posts import generate
from tests.row_files import read_lines, write_rows

_POST = "今天武汉下雨了，大家出门记得带伞，注意安全。"


def test_unique_rows_come_out_byte_for_byte_and_the_rest_is_explained(tmp_path: Path, run: Run) -> None:
    first = b'{"text": "' + _POST.encode() + b'",   "id": 1, "extra": [1.50]}\r'
    other = '{"id":"c","text":"完全不同的另外一个句子在这里"}'.encode()
    source = tmp_path / "in.jsonl"
    source.write_bytes(
        b"\n".join(
            [
                first,
                json.dumps({"id": 2, "text": "#天气# " + _POST}).encode(),
                json.dumps({"id": 3, "text": _POST.replace("带伞", "带雨伞")}).encode(),
                b"{broken",
                other,
            ]
        )
    )
    files = ("-o", tmp_path / "out", "--duplicates", tmp_path / "d", "--dead-letter", tmp_path / "x")
    ran = run("dedup", source, *files, *SMALL)
    assert ran.code == 0
    assert (tmp_path / "out").read_bytes() == first + b"\n" + other
    assert read_lines(tmp_path / "d") == [
        {
            "position": 2, "id": 2, "source": str(source), "line": 2, "duplicate_of": 1, "duplicate_of_id": 1,
            "leader_source": str(source), "leader_line": 1, "stage": "exact", "similarity": 1.0,
            "text": "#天气# " + _POST, "leader_text": _POST,
        },
        {
            "position": 3, "id": 3, "source": str(source), "line": 3, "duplicate_of": 1, "duplicate_of_id": 1,
            "leader_source": str(source), "leader_line": 1, "stage": "near", "similarity": 0.9743,
            "text": _POST.replace("带伞", "带雨伞"), "leader_text": _POST,
        },
    ]  # fmt: skip
    (dead,) = read_lines(tmp_path / "x")
    assert dead == {
        "position": 4, "source": str(source), "line": 4, "reason": "invalid_json", "bytes": 7, "raw": "{broken",
        "detail": dead["detail"],
    }  # fmt: skip
    assert ran.out == ""
    assert f"unreadable: 1 of 5 rows (1 invalid_json); the first, {source}:4, is not JSON" in ran.err


def test_duplicates_and_pairs_kept_apart_have_the_time_of_a_row_that_has_one(
    tmp_path: Path, run: Run
) -> None:
    when = ["2020-02-12T00:00:00Z", "2020-02-12T00:00:01.5Z", None, "soon", 1581465600]
    rows = [{"id": number, "text": _POST, "at": time} for number, time in enumerate(when)]
    numbers = [
        "at nine the ferry left the old harbour of the island",
        "at ten the ferry left the old harbour of the island",
    ]
    rows += [{"text": text, "at": 1} for text in numbers]
    source = write_rows(tmp_path / "in.jsonl", rows)
    files = ("-o", tmp_path / "out", "--duplicates", tmp_path / "d", "--kept-apart", tmp_path / "a")
    assert run("dedup", "-q", source, *files, "--time-field", "at", *SMALL).code == 0
    dropped = read_lines(tmp_path / "d")
    assert [(row["id"], row.get("time_ms", "none")) for row in dropped] == [
        (1, 1_581_465_601_500), (2, "none"), (3, "none"), (4, 1_581_465_600_000),
    ]  # fmt: skip
    assert list(dropped[0])[:6] == ["position", "id", "source", "line", "time_ms", "duplicate_of"]
    assert [row["time_ms"] for row in read_lines(tmp_path / "a")] == [1000]


def test_every_row_goes_to_exactly_one_place(tmp_path: Path, run: Run) -> None:
    posts = list(generate(3000, seed=3))
    source = write_rows(tmp_path / "in.jsonl", posts)
    stats = tmp_path / "stats.json"
    files = ("-o", tmp_path / "out", "--duplicates", tmp_path / "d", "--stats", stats)
    ran = run("dedup", source, *files, "-q", *setting("near.window.messages=5000", "near.threads=1"))
    assert (ran.code, ran.err) == (0, "")
    kept = {post["id"] for post in read_lines(tmp_path / "out")}
    dropped = read_lines(tmp_path / "d")
    told = json.loads(stats.read_text())
    assert kept | {entry["id"] for entry in dropped} == {post["id"] for post in posts}
    assert len(kept) + len(dropped) == 3000 == told["rows"]
    assert (told["unique"], told["exact"] + told["near"]) == (len(kept), len(dropped))
    assert set(told["micros_per_row"]) == {"read", "text", "fingerprints", "judge", "write", "state"}
    by_id = {post["id"]: post["text"] for post in posts}
    assert len(dropped) > 500
    for entry in dropped:
        assert entry["duplicate_of_id"] in kept
        assert entry["duplicate_of"] < entry["position"]
        assert entry["leader_text"] == by_id[entry["duplicate_of_id"]]
        assert entry["text"] == by_id[entry["id"]]
        assert posts[entry["position"] - 1]["id"] == entry["id"]
        assert posts[entry["duplicate_of"] - 1]["id"] == entry["duplicate_of_id"]


def test_a_hit_at_the_filters_word_has_no_leader(tmp_path: Path, run: Run) -> None:
    texts = [_POST, *(f"第{n}个句子和别的都不一样{n * 7919}" for n in range(40)), _POST]
    source = write_rows(tmp_path / "in.jsonl", ({"id": n, "text": text} for n, text in enumerate(texts)))
    windows = setting("near.window.messages=10", "exact.window.messages=1000", "near.threads=1")
    run("dedup", source, "-o", tmp_path / "out", "--duplicates", tmp_path / "d", *windows)
    entry = read_lines(tmp_path / "d")[-1]
    assert entry == {
        "position": 42, "id": 41, "source": str(source), "line": 42, "duplicate_of": None, "duplicate_of_id": None,
        "leader_source": None, "leader_line": None, "stage": "exact", "similarity": 1.0,
        "text": _POST, "leader_text": None, "flags": ["unconfirmed"],
    }  # fmt: skip


def test_a_near_duplicate_is_as_alike_as_it_says(tmp_path: Path, run: Run) -> None:
    texts = [_POST, _POST + "谢谢", _POST[2:], "刚刚" + _POST]
    source = write_rows(tmp_path / "in.jsonl", ({"id": n, "text": text} for n, text in enumerate(texts)))
    run("dedup", source, "-o", tmp_path / "out", "--duplicates", tmp_path / "d", *SMALL)
    for entry in read_lines(tmp_path / "d"):
        bodies = ["".join(c for c in entry[key] if c.isalnum()) for key in ("text", "leader_text")]
        assert entry["similarity"] == round(fuzz.ratio(*bodies) / 100, 4)
    assert [entry["id"] for entry in read_lines(tmp_path / "d")] == [1, 2, 3]


def test_csv_keeps_its_header_and_quoted_newlines(tmp_path: Path, run: Run) -> None:
    header = b"\xef\xbb\xbfid,body text\r\n"
    rows = [
        f'1,"{_POST}\n第二行也在这里"\r\n'.encode(),
        f'2,"{_POST}\n第二行也在这里！"\r\n'.encode(),
        b"3,too,many\r\n",
        "4,另外一个完全不同的句子\r\n".encode(),
    ]
    source = tmp_path / "in.csv"
    source.write_bytes(header + b"".join(rows))
    options = ("--text-field", "body text", "--duplicates", tmp_path / "d", "--dead-letter", tmp_path / "x")
    assert run("dedup", source, source.with_name("copy.csv"), *options, *SMALL).code == 2
    assert run("dedup", source, "-o", tmp_path / "out.csv", *options, *SMALL).code == 0
    assert (tmp_path / "out.csv").read_bytes() == header + rows[0] + rows[3]
    assert [(entry["position"], entry["id"]) for entry in read_lines(tmp_path / "d")] == [(2, "2")]
    (dead,) = read_lines(tmp_path / "x")
    assert (dead["position"], dead["line"], dead["reason"]) == (3, 6, "invalid_csv")


def test_plain_lines_are_their_own_text(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "in.txt"
    source.write_bytes(f"{_POST}\r\n{_POST}\n\n\xff{_POST}x\n".encode().replace("\xff".encode(), b"\xff"))
    ran = run("dedup", source, "-o", tmp_path / "out", "--dead-letter", tmp_path / "x", *SMALL)
    assert ran.code == 0
    assert (tmp_path / "out").read_bytes() == f"{_POST}\r\n".encode()
    assert [entry["reason"] for entry in read_lines(tmp_path / "x")] == ["not_utf8"]


_BAD_ROWS: list[tuple[bytes, str]] = [
    (b"{", "invalid_json"),
    (b"\x00", "invalid_json"),
    (b'{"text": "a\x00b"}', "invalid_json"),
    (b'{"text": NaN}', "not_text"),
    (b'{"text": "\xff"}', "not_utf8"),
    (b'{"txt": "a"}', "missing_field"),
    (b'{"text": 7}', "not_text"),
    (b'{"text": null}', "not_text"),
    (b'["text"]', "not_an_object"),
    (b'"text"', "not_an_object"),
    (b"[" * 100_000, "invalid_json"),
    (b'{"text": "' + b"x" * 5_000_000 + b'"}', "too_large"),
    (b'\xef\xbb\xbf{"text": "a second mark"}', "invalid_json"),
]


def test_bad_rows_are_counted_with_position_and_reason_and_no_other_is_lost(tmp_path: Path, run: Run) -> None:
    good = json.dumps({"id": "ok", "text": _POST}).encode()
    rows = [row for row, _ in _BAD_ROWS]
    source = tmp_path / "in.jsonl"
    source.write_bytes(b"\n".join([rows[0], good, *rows[1:]]) + b"\n")
    files = ("-o", tmp_path / "out", "--dead-letter", tmp_path / "x")
    ran = run("dedup", source, *files, *setting("input.null_text=dead_letter"), *SMALL)
    assert ran.code == 0
    assert (tmp_path / "out").read_bytes() == good + b"\n"
    dead = read_lines(tmp_path / "x")
    assert [entry["reason"] for entry in dead] == [reason for _, reason in _BAD_ROWS]
    assert [entry["position"] for entry in dead] == [1, *range(3, len(rows) + 2)]
    assert [entry["bytes"] for entry in dead] == [len(row) for row in rows]
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    "text",
    ["\ud800 lone", "\u0000", "👍", "", "१२३ हिन्दी", "\u202eright to left", "a" * 1_000_000, "9" * 30],
    ids=lambda text: ascii(text)[:12],
)
def test_any_text_is_judged(tmp_path: Path, run: Run, text: str) -> None:
    row = json.dumps({"id": "1", "text": text}) + "\n"
    source = tmp_path / "in.jsonl"
    source.write_text(row * 2)
    files = ("-o", tmp_path / "out", "--duplicates", tmp_path / "d")
    ran = run("dedup", source, *files, "--examples", "1", *SMALL)
    assert ran.code == 0
    assert (tmp_path / "out").read_text() == row
    (entry,) = read_lines(tmp_path / "d")
    assert (entry["text"], entry["leader_text"]) == (text, text)


def test_a_stamp_from_2099_expires_nothing(tmp_path: Path, run: Run) -> None:
    rows = [
        {"id": 1, "text": _POST, "created_at": "2020-02-12T08:00:00+08:00"},
        {"id": 2, "text": "来自未来的一条完全不同的消息", "created_at": "2099-01-01"},
        {"id": 3, "text": _POST, "created_at": 1581465700},
        {"id": 4, "text": _POST + "！", "created_at": "yesterday"},
    ]
    source = write_rows(tmp_path / "in.jsonl", rows)
    ageless = setting("exact.window.age=none", "near.window.age=none")
    ran = run("dedup", source, "-o", tmp_path / "out", *ageless, *SMALL)
    assert [row["id"] for row in read_lines(tmp_path / "out")] == [1, 2]
    assert "1 with a time that could not be read" in " ".join(ran.err.split())


def test_examples_are_shown_where_all_drops_are_copies_and_with_quiet(tmp_path: Path, run: Run) -> None:
    rows = [{"id": n, "text": _POST if n < 3 else _POST + "另外"} for n in range(4)]
    source = write_rows(tmp_path / "in.jsonl", rows[:3])
    ran = run("dedup", source, "-q", "-o", tmp_path / "out", "--examples", "1", *SMALL)
    assert ran.err.splitlines()[0] == "exact: #2 (1) repeats #1 (0), equal but for what the profile drops"
    assert ran.err.count("repeats") == 1
    ran = run("dedup", write_rows(source, rows), "-q", "-o", tmp_path / "out", "--examples", "2", *SMALL)
    assert [line.split(":")[0] for line in ran.err.splitlines() if "repeats" in line] == ["near", "exact"]
    assert run("dedup", source, "-q", "-o", tmp_path / "out", *SMALL).err == ""


def test_examples_say_how_many_hashes_are_in_common(tmp_path: Path, run: Run) -> None:
    rows = [{"id": 1, "text": _POST}, {"id": 2, "text": _POST + "另外还有一些别的话"}]
    source = write_rows(tmp_path / "in.jsonl", rows)
    signatures = setting("near.method=signatures", "near.signature.share=2")
    files = ("-o", tmp_path / "out", "--duplicates", tmp_path / "dropped")
    ran = run("dedup", source, "-q", *files, "--examples", "1", *SMALL, *signatures)
    (dropped,) = read_lines(tmp_path / "dropped")
    shown = f"near: #2 (2) repeats #1 (1), {dropped['shared']} hashes in common"
    assert (ran.code, ran.err.splitlines()[0]) == (0, shown)


def test_with_kept_apart_the_examples_end_with_a_pair_of_the_most_frequent_reason(
    tmp_path: Path, run: Run
) -> None:
    texts = [
        "The mountain road to the village is open again this evening",
        "The mountain road to the village is closed again this evening",
        "The ferry to the island leaves the old harbour at 9:15 today",
        "The ferry to the island leaves the old harbour at 9:45 today",
        "The ferry to the island leaves the old harbour at 9:55 today",
    ]
    source = write_rows(tmp_path / "in.jsonl", [{"id": n, "text": text} for n, text in enumerate(texts)])
    outputs = ("-o", tmp_path / "out", "--kept-apart", tmp_path / "apart")
    ran = run("dedup", source, "-q", *outputs, "--examples", "1", *SMALL)
    similarity = read_lines(tmp_path / "apart")[1]["similarity"]
    assert ran.err.splitlines() == [
        f"kept apart: #4 (3) and #3 (2), {similarity:.2%} alike, number 9:15/9:45",
        f"  kept     {texts[2]}",
        f"  kept too {texts[3]}",
        "",
    ]


def test_scopes_never_meet_and_fields_decide(tmp_path: Path, run: Run) -> None:
    rows = [
        {"id": 1, "text": _POST, "u": {"t": "a"}},
        {"id": 2, "text": _POST, "u": {"t": "b"}},
        {"id": 1, "text": "x", "u": {"t": "a"}},
    ]
    source = write_rows(tmp_path / "in.jsonl", rows)
    run("dedup", source, "-o", tmp_path / "out", *SMALL, *setting("scope=u.t"))
    assert len(read_lines(tmp_path / "out")) == 3
    fields = setting("exact.fields=id,u.t", "near.method=none")
    run("dedup", source, "-o", tmp_path / "out", *SMALL, *fields)
    assert read_lines(tmp_path / "out") == rows[:2]


def test_what_a_message_holds_cannot_reach_the_terminal(tmp_path: Path, run: Run) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J" + _POST
    rows = [{"id": "\x1b[31m", "text": evil}, {"id": "[red]", "text": evil + "了[/bold]"}]
    source = write_rows(tmp_path / "in.jsonl", rows)
    ran = run("dedup", source, "-o", tmp_path / "out", "--examples", "3", *SMALL)
    assert ran.code == 0
    assert "\x1b" not in ran.err
    assert "\\x1b]0;owned\\x07" in ran.err.replace("\n", "")
    assert "[/bold]" in ran.err.replace("\n", "")


def test_a_small_exit_code_tells_failed_from_misused(tmp_path: Path, run: Run) -> None:
    source = write_rows(tmp_path / "in.jsonl", [{"id": 1, "text": _POST}])
    assert run("dedup", tmp_path / "none").code == 2
    assert run("dedup", tmp_path / "none.jsonl", "-o", tmp_path / "out").code == 2
    assert run("dedup", source, "-o", tmp_path / "no" / "folder").code == 1
    assert run("dedup", source, "--no-such-flag").code == 2
    assert run("dedup", source, "--similarity", "7").code == 2
    assert run("dedup", source, "-c", tmp_path / "none.yaml").code == 2
    assert run("dedup", source, "x.csv").code == 2
    assert run("dedupe").code == 2
    assert not list(tmp_path.glob("*.part"))
