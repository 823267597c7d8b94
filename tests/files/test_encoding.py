"""Inputs that are not UTF-8: told, or read as --encoding says and written as they came."""

from __future__ import annotations

import codecs
import json
from pathlib import Path

import pytest

from tests.calling import SMALL, Run
from tests.row_files import read_lines
from twinsieve.pipeline.files.encoding import encoding_seen

_TEXTS = [
    "今天武汉下雨了，大家出门记得带伞。",
    "完全不同的另外一个句子在这里",
    "今天武汉下雨了，大家出门记得带伞。",
]
_FORMS = {
    "jsonl": "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in _TEXTS),
    "csv": "id,text\n" + "".join(f'{n},"{text},\n"\n' for n, text in enumerate(_TEXTS)),
    "txt": "\n".join(_TEXTS) + "\n",
}


def _kept(form: str) -> str:
    """The content without its last row, which repeats the first."""
    content = _FORMS[form]
    return content[: content.rindex(_TEXTS[0])].rpartition("\n")[0] + "\n"


@pytest.mark.parametrize("form", _FORMS)
@pytest.mark.parametrize(
    "encoding", ["gbk", "GB18030", "big5", "utf-16-le", "utf-16-be", "utf-32-le", "utf-16"]
)
def test_rows_are_read_and_come_out_byte_for_byte(tmp_path: Path, run: Run, form: str, encoding: str) -> None:
    translate = {ord(a): b for a, b in zip("汉带伞这里个门记", "漢帶傘這裡個門記", strict=True)}
    source, out = tmp_path / f"p.{form}", tmp_path / f"o.{form}"
    whole, kept = (text.translate(translate).encode(encoding) for text in (_FORMS[form], _kept(form)))
    source.write_bytes(whole)
    files = ("-o", out, "--duplicates", tmp_path / "d")
    ran = run("dedup", "-q", source, *files, "--encoding", encoding, *SMALL)
    assert (ran.code, ran.err) == (0, "")
    assert out.read_bytes() == kept
    assert json.loads((tmp_path / "d").read_bytes())["stage"] == "exact"


@pytest.mark.parametrize("said", ["utf-16", "utf-16-le"])
@pytest.mark.parametrize(
    ("mark", "codec"), [(codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")]
)
def test_a_byte_order_mark_decides_and_is_kept(
    tmp_path: Path, run: Run, mark: bytes, codec: str, said: str
) -> None:
    source, out = tmp_path / "p.csv", tmp_path / "o.csv"
    source.write_bytes(mark + _FORMS["csv"].encode(codec))
    assert run("dedup", "-q", source, "-o", out, "--encoding", said, *SMALL).code == 0
    assert out.read_bytes() == mark + _kept("csv").encode(codec)


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("utf-16", "is not UTF-8 but UTF-16 (begins with its byte order mark); add --encoding utf-16"),
        ("utf-32", "is not UTF-8 but UTF-32 (begins with its byte order mark); add --encoding utf-32"),
        ("utf-16-le", "is not UTF-8 but UTF-16-LE ("),
        ("utf-16-be", "is not UTF-8 but UTF-16-BE ("),
    ],
)
@pytest.mark.parametrize("form", _FORMS)
def test_utf_16_is_told_and_not_read_as_text(
    tmp_path: Path, run: Run, encoding: str, said: str, form: str
) -> None:
    source = tmp_path / f"p.{form}"
    source.write_bytes(_FORMS[form].encode(encoding))
    ran = run("dedup", "-q", source, "-o", tmp_path / "out", *SMALL)
    assert (ran.code, len(ran.err.splitlines())) == (1, 1)
    assert f"twinsieve: {source}: {said}" in ran.err


def test_utf_8_that_looks_like_utf_16_is_read_as_the_utf_8_it_is_named(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "p.txt"
    source.write_bytes(b"a\0b\n")
    assert "or --encoding utf-8 if it is UTF-8" in run("dedup", "-q", source, *SMALL).err
    ran = run("dedup", "-q", source, "--encoding", "utf-8", *SMALL)
    assert (ran.code, ran.out) == (0, "a\0b\n")


def test_nuls_in_utf_8_are_text() -> None:
    assert encoding_seen(b"a\0\0b\n" * 9) is None
    assert encoding_seen(b'{"text": "a line of ASCII with one bad byte \xff and a NUL \0"}\n' * 9) is None
    assert encoding_seen("今天\0武汉\n".encode() * 9) is None


def test_a_file_that_is_not_utf_8_says_how_to_name_its_encoding(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "p.txt"
    source.write_bytes(_FORMS["txt"].encode("gbk"))
    ran = run("dedup", "-q", source, *SMALL)
    assert ran.code == 1
    said = "if it is gb18030, big5, shift_jis, cp1252 or another one, add it, as --encoding gb18030"
    assert said in ran.err


def test_rows_that_are_not_in_the_encoding_are_counted(tmp_path: Path, run: Run) -> None:
    source, dead = tmp_path / "p.txt", tmp_path / "dead"
    source.write_bytes(_TEXTS[0].encode("gbk") + b"\n\xff\xff\n")
    ran = run("dedup", "-q", source, "--encoding", "gbk", "-o", tmp_path / "o", "--dead-letter", dead, *SMALL)
    assert (ran.code, (tmp_path / "o").read_bytes()) == (0, _TEXTS[0].encode("gbk") + b"\n")
    (entry,) = read_lines(dead)
    assert (entry["reason"], entry["raw_base64"]) == ("not_utf8", "//8=")
    assert entry["detail"] == "is not gbk at byte 0"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("klingon", "--encoding 'klingon': is not an encoding; name one, as utf-16, gb18030 or big5"),
        ("base64", "--encoding base64: text in it cannot be split into rows"),
        ("utf-7", "text in it cannot be split into rows; turn it into UTF-8 first, as with `iconv`"),
        ("cp037", "--encoding cp037: text in it cannot be split into rows"),
        ("iso2022_jp", "--encoding iso2022_jp: text in it cannot be split into rows"),
    ],
)
def test_an_encoding_that_cannot_be_read_is_refused(tmp_path: Path, run: Run, given: str, said: str) -> None:
    (tmp_path / "p.txt").write_bytes(b"a\n")
    ran = run("dedup", "-q", tmp_path / "p.txt", "--encoding", given, *SMALL)
    assert (ran.code, said in ran.err) == (2, True)


def test_a_cut_off_character_is_an_error(tmp_path: Path, run: Run) -> None:
    (tmp_path / "p.txt").write_bytes("ab\n".encode("utf-16-le")[:-1])
    ran = run("dedup", "-q", tmp_path / "p.txt", "--encoding", "utf-16-le", *SMALL)
    assert (ran.code, "is not utf-16-le" in ran.err) == (1, True)


def test_dead_letters_show_rows_as_text_of_their_encoding(tmp_path: Path, run: Run) -> None:
    """These bytes of GBK would be another letter in UTF-8."""
    source, dead = tmp_path / "p.jsonl", tmp_path / "dead"
    source.write_bytes('{"text": "a"}\n{伞\n'.encode("gbk") + b"{\x81\n")
    words = ("--dead-letter", dead, "--encoding", "gbk")
    assert run("dedup", "-q", source, "-o", tmp_path / "out", *words, *SMALL).code == 0
    assert [entry.get("raw", entry.get("raw_base64")) for entry in read_lines(dead)] == ["{伞", "e4E="]
