"""The page of `audit --html`: its figures are those of the file, and no text of a stranger acts in it."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.audit.dropped_rows import row
from tests.calling import SMALL, Run
from tests.generated_posts import generate
from tests.pages.hostile import TEXTS
from tests.row_files import read_lines, write_rows
from twinsieve.pipeline.basics.printable import acts
from twinsieve.pipeline.basics.program import program_version
from twinsieve.pipeline.tools.audit import page as pages


class Page(HTMLParser):
    """Elements, cells of tables, articles and text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: Counter[str] = Counter()
        self.addresses: list[str] = []
        self.rows: list[list[str]] = []
        self.articles: list[str] = []
        self.text = ""
        self._inside: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names[tag] += 1
        self._inside.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action")]
        assert not [name for name, _ in attrs if name.startswith("on")]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "article":
            self.articles.append("")

    def handle_endtag(self, tag: str) -> None:
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "script" in self._inside or "style" in self._inside:
            return
        self.text += data
        if "td" in self._inside or "th" in self._inside:
            self.rows[-1][-1] += data
        if "article" in self._inside:
            self.articles[-1] += data


def page(run: Run, path: Path, *words: str | Path) -> tuple[Page, str]:
    target = path.parent / "page.html"
    found = run("audit", path, "--html", target, *words)
    assert (found.code, found.out) == (0, "")
    html = target.read_text("utf-8")
    return Page(html), html


def number(text: str) -> int:
    return int(text.replace(",", ""))


def test_figures_of_the_page_are_those_of_the_file(run: Run, tmp_path: Path) -> None:
    posts = write_rows(tmp_path / "posts.jsonl", generate(4_000, seed=21))
    path, apart = tmp_path / "dropped.jsonl", tmp_path / "apart.jsonl"
    files = ("-o", tmp_path / "u", "--duplicates", path, "--kept-apart", apart)
    assert run("dedup", posts, "-q", *files, *SMALL).code == 0
    rows, (found, _) = read_lines(path), page(run, path, "--top", "6", "--kept-apart", apart)
    cells = {one[0]: one for one in found.rows if one}
    for stage, count in Counter(one["stage"] for one in rows).items():
        assert f"{count:,}{stage}" in found.text.replace("\n", "")
    assert number(cells["exact"][1]) == sum(one["stage"] == "exact" for one in rows)
    near = [one["similarity"] for one in rows if one["stage"] == "near"]
    assert number(cells["near, from 0.9"][1]) == sum(0.9 <= one < 0.95 for one in near)
    unconfirmed = sum("unconfirmed" in one.get("flags", []) for one in rows)
    assert number(cells["flag unconfirmed"][1]) == unconfirmed > 0
    for reason, count in Counter(one["reason"] for one in read_lines(apart)).items():
        assert number(cells[reason][1]) == count
    dropped = {one["position"] for one in rows}
    parts = [one for one in found.rows if len(one) == 5 and one[1][:1].isdecimal()]
    assert 30 < len(parts) <= 60
    for part in parts:
        first, last, drops = map(number, part[:3])
        assert drops == sum(first <= position <= last for position in dropped)
        assert part[3] == f"{drops / (last - first + 1):.1%}"
    sizes = Counter(one["duplicate_of"] for one in rows if one["duplicate_of"] is not None)
    biggest = sorted(sizes.items(), key=lambda one: (-one[1], one[0]))[:6]
    ids = {one["duplicate_of"]: one["duplicate_of_id"] for one in rows}
    heads = re.findall(r"([\d,]+) drops, [\d.]+%: \S+ \(id (\w+)\)", found.text)
    assert [(number(drops), id_) for drops, id_ in heads] == [(drops, ids[at]) for at, drops in biggest]
    (words,) = re.findall(r"6 of ([\d,]+) kept messages with drops; they have ([\d,]+) of", found.text)
    assert tuple(map(number, words)) == (len(sizes), sum(drops for _, drops in biggest))
    assert f"All {len(rows):,}" in found.text or "evenly spread" in found.text


def test_page_and_summary_show_the_rows_and_settings_of_the_run(run: Run, tmp_path: Path) -> None:
    posts = write_rows(tmp_path / "posts.jsonl", generate(2_000, seed=21))
    path, stats = tmp_path / "dropped.jsonl", tmp_path / "stats.json"
    words = ("-o", tmp_path / "u", "--duplicates", path, "--stats", stats, "--profile", "microblog", *SMALL)
    assert run("dedup", posts, "-q", *words).code == 0
    said = json.loads(stats.read_bytes())
    drops = said["exact"] + said["near"]
    most = max(Counter(one["duplicate_of"] for one in read_lines(path)).values())
    sentence = (
        f"Of 2,000 messages {drops / 2_000:.1%} ({drops:,}) are repeats of earlier ones; "
        f"{most} of them repeat the same message."
    )
    found, _ = page(run, path, "--stats", stats)
    cells = {one[0]: one[1] for one in found.rows if len(one) == 2}
    assert (cells["profile"], cells["near.similarity"]) == ("microblog", "0.7")
    assert cells.items() >= said["settings"].items()
    for words_ in (sentence, str(posts), program_version()):
        assert words_ in found.text
    summary = run("audit", path, "--stats", stats).out
    assert summary.startswith(sentence)
    assert "profile microblog" in summary
    assert json.loads(run("audit", path, "--stats", stats, "--json").out)["run"]["rows"] == 2_000
    # Without the file the page says what is missing; chosen drops are not compared with all rows.
    assert "audit --stats FILE" in page(run, path)[0].text
    assert "Of 2,000" not in page(run, path, "--stats", stats, "--search", "a")[0].text


def test_stats_of_another_run_or_kind_are_refused(run: Run, tmp_path: Path) -> None:
    posts = write_rows(tmp_path / "posts.jsonl", generate(500, seed=21))
    path, stats = tmp_path / "dropped.jsonl", tmp_path / "stats.json"
    assert run("dedup", posts, "-o", tmp_path / "u", "--duplicates", path, "--stats", stats, *SMALL).code == 0
    other = tmp_path / "other.jsonl"
    other.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    wrong = run("audit", other, "--stats", stats)
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert "is of another run" in wrong.err
    for content in (
        b"",
        b"[1]",
        b'{"rows": 5}',
        stats.read_bytes().replace(b'"settings": {', b'"settings": {"a": 1,'),
    ):
        stats.write_bytes(content)
        wrong = run("audit", path, "--stats", stats)
        assert (wrong.code, wrong.err.count("\n")) == (2, 1)
        assert "is not a file of dedup --stats" in wrong.err


def test_a_file_too_large_for_stats_is_not_read_to_its_end(run: Run, tmp_path: Path) -> None:
    """Its end is cut off, which nobody notices who stops before."""
    path, stats = write_rows(tmp_path / "d.jsonl", [row(2, 1)]), tmp_path / "stats.json.gz"
    stats.write_bytes(gzip.compress(b" " * (64 << 20), compresslevel=1)[:-100])
    wrong = run("audit", path, "--stats", stats)
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert f"{stats}: has more than 16 MiB unpacked" in wrong.err


def test_samples_are_least_alike_first_and_of_different_texts(run: Run, tmp_path: Path) -> None:
    rows = [row(n, 1, similarity=0.99 - n // 2 / 100, text=f"text {n // 2}") for n in range(2, 22)]
    rows += [row(n, 1, stage="exact", similarity=1.0, text="text 10") for n in range(22, 25)]
    found, _ = page(run, write_rows(tmp_path / "d.jsonl", rows))
    shown = re.findall(r"near: ([.\d]+) similar", found.articles[0])
    assert shown == ["0.89", "0.9", "0.91", "0.92"]
    assert re.findall(r"dropped\s+text (\d+)", found.articles[0]) == ["10", "9", "8", "7"]


def test_page_needs_no_network_and_says_that_it_holds_posts(run: Run, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "d.jsonl", [row(n, 1, time_ms=n * 1000) for n in range(2, 30)])
    found, html = page(run, path)
    assert found.names["img"] == 3
    assert all(address.startswith("data:image/svg+xml;base64,") for address in found.addresses)
    assert not {"link", "iframe", "object", "form", "input", "a"} & set(found.names)
    assert "This page contains messages" in found.text
    assert "mode 0600" in found.text
    assert "default-src &#39;none&#39;" in html
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == 0o600
    _, same = page(run, path)
    assert same == html


def test_hostile_texts_add_nothing_to_the_page(run: Run, tmp_path: Path) -> None:
    def drops(texts: list[str]) -> list[dict[str, Any]]:
        more = ("id", "source", "duplicate_of_id", "leader_source", "text", "leader_text")
        return [
            row(n, n % 5 + 1, flags=[text[:40]], **dict.fromkeys(more, text))
            for n, text in enumerate(texts, start=10)
        ]

    def apart(texts: list[str]) -> list[dict[str, Any]]:
        more = ("apart_from_text", "text", "says", "apart_from_says", "id", "source", "apart_from_id")
        return [{"apart_from": 1, "reason": text[:40], **dict.fromkeys(more, text)} for text in texts]

    def made(texts: list[str]) -> tuple[Page, str]:
        for name, rows in (("d.jsonl", drops(texts)), ("a.jsonl", apart(texts))):
            (tmp_path / name).write_text("".join(json.dumps(one) + "\n" for one in rows))
        return page(run, tmp_path / "d.jsonl", "--kept-apart", tmp_path / "a.jsonl", "--search", texts[0][:0])

    plain, _ = made([f"plain text {n}" if text else "" for n, text in enumerate(TEXTS.values())])
    found, html = made(list(TEXTS.values()))
    marks = ("del", "ins")
    assert {name: count for name, count in found.names.items() if name not in marks} == {
        name: count for name, count in plain.names.items() if name not in marks
    }
    assert not [char for char in set(html) if acts(char) and char != "\n"]
    for name in ("script", "end of a table", "references", "template", "formula"):
        assert TEXTS[name][:100] in found.text
    assert "invoice \\u202egpj.exe" in found.text
    assert len(html) < 2_000_000


def test_size_is_bounded_and_the_remainder_is_said(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MOST_CLUSTERS", 3)
    monkeypatch.setattr(pages, "_LISTED", 10)
    rows = [row(n + 100, n % 50, text="t" * 3_000 + str(n)) for n in range(500)]
    found, html = page(run, write_rows(tmp_path / "d.jsonl", rows), "--top", "10000")
    assert "3 of 50 kept messages with drops; they have 30 of 500 drops" in found.text
    assert "10 of 500, evenly spread" in found.text
    assert len(found.articles) == 13
    assert max(map(len, found.articles)) < 4 * 2_200
    assert len(html) < 300_000


def test_page_without_leaders_times_positions_or_drops(run: Run, tmp_path: Path) -> None:
    alone = row(2, None, stage="exact", similarity=1.0, flags=["unconfirmed"], position=None)
    found, _ = page(run, write_rows(tmp_path / "d.jsonl", [alone, row(3, 1, leader_text=None)]))
    for words in (
        "the positions of the drops do not ascend",
        "no drop has a time",
        "the earlier copy is known to the bloom filter only",
        "1 drops belong to a kept message that the file does not name",
        "its text is unknown",
    ):
        assert words in found.text.lower()
    (tmp_path / "none.jsonl").touch()
    empty, _ = page(run, tmp_path / "none.jsonl", "--kept-apart", tmp_path / "none.jsonl")
    assert "0dropped" in empty.text.replace("\n", "")
    assert not empty.names["section"]


def test_page_of_chosen_drops_names_the_choice(run: Run, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "d.jsonl", [row(n, n % 2, text=f"<b>{n}") for n in range(2, 12)])
    found, _ = page(run, path, "--leader", "p1", "--search", "<B>")
    assert "only drops with leader 'p1', text '<B>'" in found.text
    assert len(re.findall(r"near: 0.9 similar to", found.text)) == 5


def test_a_part_of_the_time_may_begin_before_year_1(run: Run, tmp_path: Path) -> None:
    first, last = -62_135_596_800_000, 253_402_300_799_999
    path = write_rows(tmp_path / "d.jsonl", [row(n + 2, 1, time_ms=(first, last)[n % 2]) for n in range(9)])
    shown, _ = page(run, path)
    assert ["1-01-01", "5"] in shown.rows
