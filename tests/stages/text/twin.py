"""The text stage in the simplest way: regular expressions and one message at a time.

Written from the rules alone (the data sets' README, the docstrings of `stages.text`); shares with the kernels
only the published list of unspaced scripts. Card marks are carried as lone surrogates, which normal
forms lack.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import unescape
from html.entities import html5
from typing import NamedTuple

from tests.unicode_twin import (
    CURRENCY,
    DIGIT,
    WORD,
    casefold,
    category,
    class_of,
    combining,
    is_alnum,
    is_decimal,
    normalize,
)
from twinsieve.stages.text.scripts import UNSPACED_RANGES

_UNFOLD = re.compile(r"收起全文d?|展开全文c?")
_URL = re.compile(r"(?:https?://|www\.)[\x21-\x7e]+", re.IGNORECASE)
_LINK = re.compile(r"O?网页链接")
_TOPIC = "\u3040-\u318f\u3400-\u9fff\uac00-\ud7af\U00020000-\U0010ffff"
_TAG = re.compile(
    rf"#(?=[^#\n]*[{_TOPIC}])[^#\n]{{0,79}}[^#\s]#|#[^#\s]{{0,79}}[^#\s'\u2018\u2019(\[{{\"\u201c\u00ab/]#"
)
_REPOST = re.compile(r"//\s*@[^:\n]{1,40}:")
_PLACE = re.compile(r"(?<=\s)2(?![月日号天个位人岁例年次名])[\u4e00-\u9fff·]{2,24}[\s?]*$")
_VIDEO = re.compile(
    r"(?<=[\s#\]])L\S{1,30}的(?:微博|秒拍)视频"
    r"|L[^\sL#@]{0,30}的(?:微博|秒拍)视频"
    r"|(?:(?<=\s)|^)\S{1,30}的(?:微博|秒拍)视频"
)
_CARD = re.compile(r"(?:(?<=\s)|^)[LO](?=[^\x00-\x7f])")
_RETWEET = re.compile(rf"(?<![{WORD}])RT\s+(?=@)")
_NAME = re.compile(rf"@[{WORD}\-·]{{1,30}}")
_CARD_MARK = "\ud800"

_SEPARATORS = {
    **dict.fromkeys(".·٫", "."),
    **dict.fromkeys(",、", ","),
    **dict.fromkeys(":∶", ":"),
    **dict.fromkeys("/⁄∕÷", "/"),
    **dict.fromkeys("-‐‑‒–—―−~〜∼", "-"),
    **dict.fromkeys("+", "+"),
    **dict.fromkeys("*×∗⋅", "*"),
    "^": "^",
    "±": "±",
}
_OPERATORS = {char: kept for char, kept in _SEPARATORS.items() if kept in "+-*/^±"} | {"·": "*"}
_OPERATORS |= {"x": "*", "X": "*"}
_SPACED = re.compile(rf" {{1,2}}([{re.escape(''.join(_OPERATORS))}]) {{1,2}}(?=[{DIGIT}])")
_NUMBER = re.compile(rf"[{DIGIT}]+(?:(?:[{re.escape(''.join(_SEPARATORS))}]|{_SPACED.pattern})[{DIGIT}]+)*")
_TERMS = {**dict.fromkeys("*×∗⋅", "*"), **{sign: sign for sign in "+±∪∩∧∨&|"}}
_THOUSANDS = re.compile(rf"(?!0)[{DIGIT}]{{1,3}}(?:,[{DIGIT}]{{3}}(?![{DIGIT}]))+")
_AMOUNT = rf"(?:[-−–]|[{CURRENCY}][ ]?){{0,2}}[{DIGIT}]"
_SIGN = re.compile(rf"[-−–](?![-−–])(?={_AMOUNT})")
_CURRENCY = re.compile(rf"[{CURRENCY}](?![{CURRENCY}])(?={_AMOUNT})")
_CURRENCY_APART = re.compile(rf"[{CURRENCY}][ ](?={_AMOUNT})")
_COMPARISON = re.compile(rf"(?:([<≤≦⩽])|[>≥≧⩾])(=?)[ ]?(?={_AMOUNT})")
_NO_SIGN_AFTER = frozenset("%‰°)]零〇一二三四五六七八九十百千万亿两萬億兩日号月年点时居號點時-−–")
_IGNORED = {0x34F, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F}
_IGNORED.update(range(0xFE00, 0xFE10))
_IGNORED.update(range(0xE0100, 0xE01F0))
_ANY_MARK = class_of(lambda char: category(char) in ("Mn", "Mc") and ord(char) not in _IGNORED)
_UNSPACED = "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in UNSPACED_RANGES)
_SHAFT = "[-−–—=]"
_MARKS = (
    ("↔", re.compile(rf"<{_SHAFT}{{1,8}}>")),
    ("≤", re.compile(rf"<=(?!{_SHAFT})|[≤≦⩽]=?")),
    ("←", re.compile(rf"<{_SHAFT}{{1,8}}|[←⇐⇦⇠⇽⟵⟸⬅⭠]")),
    ("→", re.compile(rf"{_SHAFT}{{1,8}}>|[→⇒⇨⇢⇾➔➙➛➜➝➞➟➠➡➨⟶⟹⭢]")),
    ("↔", re.compile(r"[↔⇔⇄⇆⇿⟷⟺⬌]")),
    ("↑", re.compile(r"[↑⇑⇧⇡⬆⭡↗⬈]")),
    ("↓", re.compile(r"[↓⇓⇩⇣⬇⭣↘⬊]")),
    ("✓", re.compile(r"[✓✔✅☑√○◯⭕]")),
    ("✗", re.compile(r"[✗✘✕✖❌❎☒×]")),
    ("≥", re.compile(r">=|[≥≧⩾]=?")),
    ("<", re.compile(r"<")),
    (">", re.compile(r">")),
    ("≠", re.compile(r"!=|≠")),
    ("=", re.compile(r"==?")),
)
_MARKS_BEGIN = re.compile(r"[-<>!=−–—≤≦⩽≥≧⩾≠√○◯×\u2190-\u21ff\u2600-\u2bff]|[⟵-⟺]")
_BRACKET = re.compile(r"<(?!\s)[^<>\n]{1,32}(?<!\s)>")
_SHARP = re.compile(rf"#(?![#{WORD}])|#(?=[{_UNSPACED}])")
_PLUSPLUS = re.compile(r"\+\+(?!\+)")
_LINK_HEAD = re.compile(r"(?:https?://(?:www\.(?=.))?|www\.)", re.IGNORECASE | re.DOTALL)
_OPEN_TAG = re.compile(rf"(?<![{WORD}])#([{WORD}{_ANY_MARK}]{{1,80}})")
_RETWEETED = re.compile(rf"(?<![{WORD}])RT\s+$")


class Row(NamedTuple):
    """What `Bodies` should hold for one message."""

    key: str
    word_starts: list[int]
    body_length: int
    own_length: int
    exact_only: bool


@cache
def _begins_with_mark(char: str) -> bool:
    return combining(normalize("NFKD", char)[0]) > 0


def normal_form(text: str) -> str:
    """NFKC, lone surrogates replaced, runs of marks cut after every thirtieth."""
    cut = []
    run = 0
    for char in text:
        char = "\ufffd" if "\ud800" <= char <= "\udfff" else char
        run = run + 1 if _begins_with_mark(char) else 0
        if run == 31:
            cut.append("\u034f")
            run = 1
        cut.append(char)
    return str(normalize("NFKC", "".join(cut)))


def mark_at(text: str, i: int) -> tuple[str, int]:
    """The arrow, mark for yes or no, or comparison at i as it is kept, and where it ends; "" for none."""
    if not _MARKS_BEGIN.match(text, i):
        return "", i
    for kept, pattern in _MARKS:
        found = pattern.match(text, i)
        if found:
            return kept, found.end()
    return "", i


def references(text: str, profile: str, compare: Sequence[str]) -> list[str]:
    """Tokens of the links, @names and tags in a normal form; none where there are more than 16."""
    if not compare:
        return []
    found: set[str] = set()
    i, letters, chained = 0, 0, False
    while i < len(text):
        i, letters, chained = _refer(text, i, letters, chained, profile, compare, found)
    return sorted(found) if len(found) <= 16 else []


def _refer(
    text: str, i: int, letters: int, chained: bool, profile: str, compare: Sequence[str], found: set[str]
) -> tuple[int, int, bool]:
    """Note what begins at i; where it ends, and the letters and chains seen by then."""

    def note(kind: str, said: str) -> None:
        if kind in compare:
            found.add(_token(("links", "mentions", "tags").index(kind), said))

    url = _URL.match(text, i)
    if url:
        head = _LINK_HEAD.match(text, i)
        assert head is not None
        link = text[head.end() : url.end()].rstrip("/.,;:!?'\")]}>")
        host, slash, path = link.partition("/")
        if link:
            note("links", _lower(host) + slash + path)
        return url.end(), letters, chained
    tag = _TAG.match(text, i) if profile == "microblog" else None
    if tag:
        note("tags", _lower(tag[0][1:-1]))
        return tag.end(), letters, chained
    tag = _OPEN_TAG.match(text, i)
    if tag and not all(map(is_decimal, tag[1])):
        note("tags", _lower(tag[1]))
        return tag.end(), letters, chained
    if profile == "microblog" and text.startswith("//", i):
        if text.startswith("//@", i):
            if not chained and letters >= 8:
                return len(text), letters, chained
            chained = True
        marker = _REPOST.match(text, i)
        if marker:
            return marker.end(), letters, chained
    name = _NAME.match(text, i)
    if name:
        if not _RETWEETED.search(text[:i]):
            note("mentions", _lower(name[0][1:]))
        return name.end(), letters + sum(map(is_alnum, name[0])), chained
    return i + 1, letters + is_alnum(text[i]), chained


def _lower(text: str) -> str:
    return "".join(char.lower() if char.isascii() else char for char in text)


def _token(kind: int, text: str) -> str:
    """Two private-use characters."""
    value = 0xCBF29CE484222325
    for char in text:
        value = (value ^ ord(char)) * 0x100000001B3 % 2**64
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
    value ^= value >> 31
    return chr(0xF0000 + kind * 21844 + (value >> 33) % 21844) + chr(0x100000 + value % 2**32 % 65534)


def apply_profile(text: str, profile: str) -> str:
    """Normal form without what the profile drops; card marks are lone surrogates."""
    if profile == "microblog":
        text = _UNFOLD.sub(" ", text)
        text = _URL.sub(" ", text)
        text = _LINK.sub(" ", text)
        text = _TAG.sub(" # ", text)
        chain = text.find("//@")
        if chain >= 0:
            own = text[:chain]
            text = own if sum(map(is_alnum, own)) >= 8 else _REPOST.sub(" ", text)
        text = _PLACE.sub(" ", text)
        text = _VIDEO.sub(" ", text)
        text = _CARD.sub(_CARD_MARK, text)
    else:
        text = _URL.sub(" ", text)
        text = _RETWEET.sub(" ", text)
    return _NAME.sub(" ", text)


_POINTS = re.compile(
    "[\u0610-\u061a\u0640\u064b-\u0652\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0307]"
)


_ONE_LETTER = {"\u0130": "i", "\u0131": "i", "\u06cc": "\u064a", "\u06a9": "\u0643", "\u06c1": "\u0647"}


def folded(char: str) -> str:
    """Case folding of one character; letters i of Turkish, and those of Persian and Arabic keyboards, are one."""
    return _ONE_LETTER.get(char) or casefold(char)


@cache
def kind_of(char: str) -> str:
    """letter, mark, joiner, symbol or other."""
    general = category(char)
    code = ord(char)
    if _POINTS.match(char):
        return "joiner"
    if is_alnum(char):
        return "letter"
    if 0xE0020 <= code <= 0xE007E:
        return "symbol"
    if general in ("Mn", "Mc"):
        return "joiner" if code in _IGNORED else "mark"
    if general in ("Cf", "Me"):
        return "other" if char == "\u200b" else "joiner"
    if char in "'\u2019":
        return "joiner"
    if general[0] == "S":
        return "other" if char in "~^`|" else "symbol"
    return "symbol" if general in ("Co", "Cn") else "other"


@cache
def _is_unspaced(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in UNSPACED_RANGES)


def _before(text: str) -> str:
    """The text up to its last character that is no mark or joiner."""
    while text and kind_of(text[-1]) in ("mark", "joiner"):
        text = text[:-1]
    return text


def prefix(text: str, i: int) -> tuple[str, int]:
    """The sign, currency or comparison at i as it is kept, and where its number begins; "" for none."""
    if kind_of(text[i]) not in ("symbol", "other") or quotes(text, i):
        return "", i
    head = _before(text[:i])
    last = head[-1:]
    if _SIGN.match(text, i):
        spaced = last and (is_decimal(last) or (is_alnum(last) and not _is_unspaced(last)))
        if spaced or (last and last in _NO_SIGN_AFTER):
            return "", i
        if last and is_alnum(last) and _before(head[:-1]) and is_decimal(_before(head[:-1])[-1]):
            return "", i
        return "-", i + 1
    apart = _CURRENCY_APART.match(text, i)
    if apart and not (last and is_decimal(last)):
        return text[i], apart.end()
    if _CURRENCY.match(text, i):
        return text[i], i + 1
    compared = _COMPARISON.match(text, i)
    if compared and not (last and last in "-−–=<>≤≥≦≧⩽⩾"):
        less, equal = compared[1], compared[2] or text[i] not in "<>"
        return ("≤" if equal else "<") if less else ("≥" if equal else ">"), compared.end()
    return "", i


def quotes(text: str, i: int) -> bool:
    """Whether a > begins its line."""
    line = text[:i].rpartition("\n")[2]
    return text[i] == ">" and len(line) <= 8 and not line.strip(" >")


def operator(text: str, i: int) -> str:
    """The operator at i between two terms as it is kept; "" for none."""
    before, behind = text[:i], text[i + 1 :]
    if text[i] not in _TERMS or before.endswith(" ") != behind.startswith(" "):
        return ""
    before, behind = before.removesuffix(" "), behind.removeprefix(" ")
    if not before or not behind:
        return ""
    return _TERMS[text[i]] if _is_term(before[::-1]) and _is_term(behind) else ""


def counts_headlines(text: str, i: int, out: list[str], starts: list[int]) -> bool:
    """Whether the dash at i stands behind the second word of a text, a number, and before a capital."""
    words = "".join(" " * start + char for char, start in zip(out, starts, strict=True)).split(" ")[1:]
    if text[i] not in "-−–" or len(out) > 24 or i > 64 or len(words) != 2 or ":" in text[:i] or out[0] == " ":
        return False
    behind = text[i + 1 :].removeprefix(" ")
    if not (is_alnum(words[0][0]) and not is_decimal(words[0][0]) and all(map(is_decimal, words[1]))):
        return False
    if any(is_alnum(char) and not is_decimal(char) and not _may_begin(char) for char in text[:i]):
        return False
    if not (is_decimal(text[i - 1]) or text[i - 1].isspace()):
        return False
    word = re.match(r"(?s).{0,24}", behind)[0]  # type: ignore[index]
    size = next((k for k, char in enumerate(word) if not is_alnum(char) or is_decimal(char)), len(word))
    return size > 1 and behind[size : size + 1] not in ("-", "−", "–") and _may_begin(behind[0])


def _may_begin(char: str) -> bool:
    """Whether a letter is a capital, or has no case."""
    return folded(char) != char or ord(char) >= 0x590


def _is_term(text: str) -> bool:
    """Whether a text begins with a digit, or with a letter that no other letter or mark follows."""
    if not is_alnum(text[0]) or _is_unspaced(text[0]):
        return False
    text = folded(text[0]) + text[1:]  # a letter of which folding makes several is none
    if is_decimal(text[0]) or len(text) == 1 or is_decimal(text[1]):
        return True
    return kind_of(text[1]) not in ("letter", "mark")


def suffix(text: str, i: int) -> str:
    """What stands at i and belongs to the word that ends there, as it is kept; "" for nothing."""
    if text[i] not in "#+-−–":
        return ""
    word = word_before(text, i)
    lone = len(word) == 1 and word.isascii() and word.isalpha()
    found = _SHARP.match(text, i) or _PLUSPLUS.match(text, i)
    if not word or (found and lone):
        return found[0] if found and lone else ""
    behind = next((char for char in text[i + 1 :] if kind_of(char) != "joiner"), " ")
    joins = kind_of(behind) in ("letter", "mark") or behind in "-−–+=>" or category(behind) == "Sc"
    number = is_decimal(word[-1])
    if text[i] == "+" and text[i + 1 : i + 2] != "+":
        script = is_alnum(behind) and _is_unspaced(behind)
        return "+" if not joins or (script and (number or len(word) <= 3)) else ""
    if text[i] in "-−–" and not joins and len(word) <= 3:
        small = any(not is_decimal(char) and folded(char) == char for char in word if is_alnum(char))
        counted = number and re.search(rf"(^|\n){re.escape(word)}$", text[:i])
        return "" if counted or (small and len(word) > 1) else "-"
    return ""


def word_before(text: str, i: int) -> str:
    """The end of the word of a spaced script that ends at i, without joiners: four characters at most."""
    word = ""
    for char in reversed(text[:i]):
        kind = kind_of(char)
        if kind == "joiner" and word:
            continue
        if kind not in ("letter", "mark") or _is_unspaced(char) or len(word) > 3:
            break
        small = folded(char)
        word = (small if len(small) > 1 else char) + word
    return word


def keep(text: str, *, product: bool, symbols: bool) -> tuple[str, list[int], int | None]:
    """Kept characters, their word starts, and how many stand before the last card mark."""
    out: list[str] = []
    starts: list[int] = []
    own = None
    new_word, side, follows_letter = True, False, False
    marks: list[str] = []  # since the last word
    closing: set[int] = set()
    i = 0

    def settle() -> None:
        if len(marks) == 1 and out:
            out.append(marks[0])
            starts.append(1)
        marks.clear()

    while i < len(text):
        number = _NUMBER.match(text, i) if product else None
        sign, after = prefix(text, i) if product and i not in closing else ("", i)
        mark, end = mark_at(text, i) if product and i not in closing and not number and not sign else ("", i)
        if product and not number and text[i] == "%":
            dropped = len("".join(out)) - len(re.sub(rf"(?<=[{DIGIT}.])\.?0*$", "", "".join(out)))
            if dropped and re.search(rf"[.][{DIGIT}]+$", "".join(out)):
                del out[-dropped:], starts[-dropped:]
        if product and not number and not sign and i not in closing and operator(text, i):
            mark, end = operator(text, i), i + 1
        elif quotes(text, i):
            mark = ""
        if mark == "<" and _BRACKET.match(text, i):
            closing.add(text.index(">", i))
            mark = ""
        if product and not number and not sign and counts_headlines(text, i, out, starts):
            out.append("-")
            starts.append(0)
            new_word, follows_letter = True, False
            i += 1
            continue
        if product and follows_letter and not side:
            grade = suffix(text, i)
            if grade:
                out += grade
                starts += [0] * len(grade)
                new_word, follows_letter = True, False
                i += len(grade)
                continue
        if mark:
            if symbols:
                out.append(mark)
                starts.append(1)
            else:
                marks.append(mark)
            new_word, follows_letter = True, False
            i = end
            continue
        if sign:
            settle()
            starts.append(1)
            out.append(sign)
            new_word, side, follows_letter = False, _is_unspaced(sign), False
            i = after
            continue
        if number:
            kept = number[0]
            grouped = _THOUSANDS.match(kept)
            if grouped:
                kept = grouped[0].replace(",", "") + kept[grouped.end() :]
            kept = _SPACED.sub(lambda found: _OPERATORS[found[1]], kept)
            kept = "".join(_SEPARATORS.get(char, char) for char in kept)
            i = number.end()
        else:
            if text[i] == _CARD_MARK:
                own = len(out)
                marks.clear()
            kept = folded(text[i])
            i += 1
        for char in kept:
            kind = kind_of(char)
            if kind == "letter":
                settle()
                starts.append(int(new_word or side != _is_unspaced(char)))
                out.append(char)
                new_word, side, follows_letter = False, _is_unspaced(char), True
            elif number:
                starts.append(0)
                out.append(char)
            elif kind == "mark":
                if product and follows_letter:
                    starts.append(0)
                    out.append(char)
            elif kind != "joiner":
                new_word, follows_letter = True, False
                if kind == "symbol" and symbols:
                    starts.append(1)
                    out.append(char)
    return "".join(out), starts, own


def read_entities(text: str) -> str:
    """One character at a time: where an entity begins, its longest spelling up to the next semicolon."""
    made, at = "", 0
    while at < len(text):
        if text[at] != "&":
            made, at = made + text[at], at + 1
            continue
        end = text.find(";", at) + 1
        said = text[at:end]
        is_name = said[:1] == "&" and said[1:] in html5
        if is_name or re.fullmatch(r"&#([0-9]+|[xX][0-9a-fA-F]+);", said):
            made, at = made + unescape(said), end
        else:
            made, at = made + text[at], at + 1
    return made


def row(text: str, profile: str, body_rule: str, compare: Sequence[str] = ()) -> Row:
    """What the text stage should say of one message."""
    product = body_rule == "product"
    if product:
        text = read_entities(text)
    normal = normal_form(text)
    rest = apply_profile(normal, profile)
    body, starts, own = keep(rest, product=product, symbols=False)
    digits_alone = not any(kind_of(char) in ("letter", "mark") and not is_decimal(char) for char in body)
    key, raw = body, False
    length, own = len(body), len(body) if own is None else own
    if len(body) < 8:
        if product and (body or not any(c in "#@" or is_alnum(c) for c in normal)):
            key, starts, _ = keep(rest, product=product, symbols=True)
        if not key:
            key = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
            starts, raw = [0] * len(key), True
    exact_only = length < 8 or digits_alone
    if not raw:
        behind = "".join(references(normal, profile, compare))
        key += behind
        starts += [1, 0] * (len(behind) // 2)
        if not exact_only:
            own += len(behind) if own == length else 0
            length += len(behind)
    return Row(key, starts, length, own, exact_only)
