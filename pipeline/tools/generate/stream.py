"""Generates a made-up microblog stream: new posts, reposts, edits, repost chains, polls and reports.

The same seed gives the same posts on every machine and with every version of NumPy. No text of a real person
is used. For each repeat the source is known, so that dropped posts can be checked against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.tools.generate.dress import DRAWS, Dress, Dresser, TweetDresser
from twinsieve.pipeline.tools.generate.edits import renumbered
from twinsieve.pipeline.tools.generate.grammar import Grammar
from twinsieve.pipeline.tools.generate.languages import LANGUAGES

CHUNK = 8_192
"""Number of posts generated at a time. Changing it changes the posts that a seed gives."""

SOURCES = 32_768
"""Repeats are chosen from at least this many of the latest original posts."""

MEAN_AGE = 4_000
"""Average number of original posts between a repeat and its source; for most repeats it is smaller."""

REPORTS = 400
POLLS = 400
"""Number of different reports and polls. Posts of the same report or poll are about 30,000 posts apart."""
_START_MS = 1_704_067_200_000
_ZONE = timezone(timedelta(hours=8))
_LANGUAGE_SHARES = (0.92, 0.05, 0.01, 0.01, 0.01)
_MAX_LENGTH = 500
_MEDIAN_LENGTH, _SPREAD = 41.0, 0.85
"""Median and spread (sigma) of the log-normal body lengths, chosen as in real posts: the mean is about 59
characters, a tenth of the bodies are below 14 and a tenth above 120."""


class Origin(IntEnum):
    """How a post was made.

    Duplicates of an earlier post, their source: COPY (the same bytes), DRESSED (other tags, links, mentions),
    EDIT (1 to 6 characters changed, and other tags), CHAIN (a repost chain: few own words before the source),
    SHORT (a short reaction; a duplicate if the same text came before).
    Not duplicates: FRESH (a new text), POLL (own words before the shared text of a poll), REPORT (a report
    with new numbers; in one language, an earlier post with another number).
    """

    FRESH = 0
    COPY = 1
    DRESSED = 2
    EDIT = 3
    CHAIN = 4
    SHORT = 5
    POLL = 6
    REPORT = 7


REPEAT_SHARES = {Origin.COPY: 0.32, Origin.DRESSED: 0.24, Origin.EDIT: 0.36, Origin.CHAIN: 0.08}
OTHER_SHARES = {Origin.SHORT: 0.05, Origin.POLL: 0.01, Origin.REPORT: 0.02}


@dataclass(slots=True)
class Posts:
    """n made-up posts as columns, in the order of their time.

    texts: the n texts
    created_ms: int64[n], time of each post, ms since 1970, ascending
    origins: uint8[n], `Origin` of each post
    sources: int64[n], number in the stream of the post that this one repeats, or -1
    first: number in the stream of the first of these posts
    """

    texts: list[str]
    created_ms: NDArray[np.int64]
    origins: NDArray[np.uint8]
    sources: NDArray[np.int64]
    first: int

    def __len__(self) -> int:
        return len(self.texts)


def post_id(number: int) -> str:
    """The id of a post, by its number in the stream.

    >>> post_id(41)
    'p0000000041'
    """
    return f"p{number:010d}"


def generate(
    count: int,
    seed: int = 1,
    *,
    repeats: float = 0.28,
    rate: float = 200.0,
    truth: bool = False,
    language: str | None = None,
) -> Iterator[dict[str, Any]]:
    """`count` posts as `{"id", "text", "created_at"}`; see `generate_columns` for the parameters.

    truth: add `kind` (the `Origin`) to each post, and to duplicates `duplicate_of` (the id of the source)

    >>> [post["kind"] for post in generate(3, seed=5, repeats=0, truth=True)]
    ['fresh', 'fresh', 'fresh']
    """
    for posts in generate_columns(count, seed, repeats=repeats, rate=rate, language=language):
        columns = (posts.texts, posts.created_ms.tolist(), posts.origins.tolist(), posts.sources.tolist())
        for number, (text, created_ms, origin, source) in enumerate(
            zip(*columns, strict=True), start=posts.first
        ):
            created = datetime.fromtimestamp(created_ms / 1000, _ZONE)
            post = {
                "id": post_id(number),
                "text": text,
                "created_at": created.isoformat(timespec="milliseconds"),
            }
            if truth:
                post["kind"] = Origin(origin).name.lower()
                if source >= 0:
                    post["duplicate_of"] = post_id(source)
            yield post


def generate_columns(
    count: int,
    seed: int = 1,
    *,
    repeats: float = 0.28,
    rate: float = 200.0,
    language: str | None = None,
) -> Iterator[Posts]:
    """`count` posts in chunks of CHUNK.

    repeats: share of posts that repeat an earlier post (COPY, DRESSED, EDIT and CHAIN), 0 to 0.9
    rate: average number of posts per second, by the times of the posts
    language: of all posts, one of LANGUAGES: without Chinese tags and chains, reactions and polls.
        None: mainly Chinese
    raises: ValueError for values out of range
    """
    if count < 0 or not 0 <= repeats <= 0.9 or not 0 < rate < 1e6:
        raise ValueError(
            f"generate: count {count}, repeats {repeats}, rate {rate}: take a count from 0, repeats "
            "from 0 to 0.9 and a rate up to a million a second"
        )
    stream = _Stream(seed, repeats, rate, language)
    for first in range(0, count, CHUNK):
        yield stream.chunk(first, min(CHUNK, count - first))


class Series:
    """Reports whose numbers change with every post, and polls that many people answer.

    chinese: grammar for the subjects; random: generator that chooses them
    """

    def __init__(self, chinese: Grammar, random: np.random.Generator) -> None:
        texts = chinese.texts(np.full(REPORTS + POLLS, 3), random)
        names = chinese.slots["PERSON"]
        subjects = [text.rstrip("，。！？；…~") for text in texts]
        self._reports = [
            f"【{subjects[i]}】今日新增{{new}}例，累计{{total}}例，另有{{open}}人等候" for i in range(REPORTS)
        ]
        self._totals = (50 + random.random(REPORTS) * 900).astype(np.int64).tolist()
        self._steps = [0] * REPORTS
        self._polls = [
            f"我参与了@{names[i % len(names)]}发起的投票【{subjects[REPORTS + i]}？】，"
            "我投给了“{answer}”这个选项，你也快来表态吧~"
            for i in range(POLLS)
        ]

    def report(self, draws: Sequence[float]) -> str:
        """The next report on one subject; all its numbers differ from those of the previous report.

        draws: random numbers in [0, 1); draws[2] chooses the subject
        """
        number = int(draws[2] * REPORTS)
        self._steps[number] += 1
        new = 2 + (self._steps[number] * 7 + number) % 89
        self._totals[number] += new
        return self._reports[number].format(
            new=new, total=self._totals[number], open=100 + (self._steps[number] * 13 + number) % 887
        )

    def poll(self, own: str, draws: Sequence[float]) -> str:
        """A post with own words before the text of a poll; many posts share that text.

        own: the own words; draws: random numbers in [0, 1) that choose the poll and the answer
        """
        poll = self._polls[int(draws[2] * POLLS)]
        return f"{own[:40]} {poll.format(answer='支持' if draws[3] < 0.5 else '反对')}"


class _Stream:
    def __init__(self, seed: int, repeats: float, rate: float, language: str | None) -> None:
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._gap_ms = 1000.0 / rate
        self._now_ms = float(_START_MS)
        self._grammars = [Grammar(language) for language in LANGUAGES]
        self._reacts = Dresser(self._grammars[0])
        self._dresser: Dress = self._reacts
        self._languages = np.array(_LANGUAGE_SHARES)
        others = OTHER_SHARES
        if language is not None:
            chosen = LANGUAGES.index(language)
            self._languages = np.eye(len(LANGUAGES))[chosen]
            if language == "en":
                # Mixed streams keep their English sentences, because measured figures rest on these streams.
                self._grammars[chosen] = Grammar(language, "tweet")
            self._dresser = TweetDresser(self._grammars[chosen], self._grammars[0].slots["EMOJI"])
            others = {Origin.REPORT: OTHER_SHARES[Origin.REPORT]}
        self._series = Series(self._grammars[0], self._random) if language is None else None
        self._sources: list[tuple[int, str, str]] = []
        self._shorts: dict[str, int] = {}
        shares = {origin: share * repeats for origin, share in REPEAT_SHARES.items()} | others
        if not repeats:
            shares = {Origin.FRESH: 0.0}
        self._origins = np.array([int(origin) for origin in shares], dtype=np.int64)
        self._limits = np.cumsum(list(shares.values()))

    def chunk(self, first: int, size: int) -> Posts:
        """The next `size` posts.

        The random numbers of a whole CHUNK are drawn even for fewer posts, so that a shorter stream is always
        a prefix of a longer one.
        """
        random = self._random
        picks = np.searchsorted(self._limits, random.random(CHUNK), side="right")
        origins = np.append(self._origins, int(Origin.FRESH))[picks]
        gaps = -np.log1p(-random.random(CHUNK)) * self._gap_ms
        created = self._now_ms + np.cumsum(gaps)
        self._now_ms = float(created[-1])
        bodies = self._bodies(CHUNK)
        ages = (-np.log1p(-random.random(CHUNK)) * MEAN_AGE).astype(np.int64).tolist()
        luck = random.random((CHUNK, DRAWS)).tolist()
        texts: list[str] = []
        sources = np.full(size, -1, dtype=np.int64)
        for row, origin in enumerate(origins.tolist()[:size]):
            number, draws = first + row, luck[row]
            report = self._report(draws, ages[row]) if origin == Origin.REPORT else ""
            if report is None or (origin in REPEAT_SHARES and not self._sources):
                origins[row] = origin = int(Origin.FRESH)
            if origin == Origin.FRESH:
                text = self._dresser.dress(bodies[row], draws)
                self._remember(number, bodies[row], text)
            elif origin == Origin.SHORT:
                text = self._reacts.short(draws)
                sources[row] = self._shorts.setdefault(text, number)
                if sources[row] == number:
                    sources[row] = -1
            elif origin == Origin.POLL and self._series is not None:
                text = self._series.poll(bodies[row], draws)
            elif report:
                text = report
            else:
                source, body, text = self._source(ages[row])
                sources[row] = source
                if origin == Origin.DRESSED:
                    text = self._dresser.dress(body, draws)
                elif origin == Origin.EDIT:
                    text = self._dresser.dress(self._dresser.edited(body, draws, bodies[row]), draws)
                elif origin == Origin.CHAIN:
                    text = self._dresser.chain(body, draws)
            texts.append(text)
        return Posts(texts, created[:size].astype(np.int64), origins[:size].astype(np.uint8), sources, first)

    def _source(self, age: int) -> tuple[int, str, str]:
        """Number, body and text of an earlier original post; age: how many original posts ago it came."""
        return self._sources[-1 - age % len(self._sources)]

    def _report(self, draws: Sequence[float], age: int) -> str | None:
        """A report whose numbers are new; None if it would repeat a post that has no number."""
        if self._series is not None:
            return self._series.report(draws)
        body = renumbered(self._source(age)[1], draws) if self._sources else None
        return None if body is None else self._dresser.dress(body, draws)

    def _remember(self, number: int, body: str, text: str) -> None:
        self._sources.append((number, body, text))
        if len(self._sources) >= 2 * SOURCES:
            del self._sources[:SOURCES]

    def _bodies(self, count: int) -> list[str]:
        """Texts of `count` new posts in all languages, without the tags and links that `Dresser` adds."""
        random = self._random
        # The sum of twelve uniform numbers is close enough to a normal distribution, and the arithmetic is
        # exact on every machine.
        normal = random.random((count, 12)).sum(axis=1) - 6.0
        lengths = np.minimum(_MEDIAN_LENGTH * np.exp(_SPREAD * normal), _MAX_LENGTH)
        languages = np.searchsorted(np.cumsum(self._languages[:-1]), random.random(count), side="right")
        bodies = np.empty(count, dtype=object)
        for language, grammar in enumerate(self._grammars):
            rows = np.flatnonzero(languages == language)
            if not len(rows):
                continue
            # Texts in languages with blanks between words need more characters for the same content.
            wanted = np.minimum(lengths[rows] * (2.0 if grammar.glue else 1.0), _MAX_LENGTH)
            fewest = 1 if language == 0 else 2
            sentences = np.maximum(np.rint(wanted / grammar.mean_length), fewest).astype(np.int64)
            bodies[rows] = grammar.texts(sentences, random)
        return bodies.tolist()
