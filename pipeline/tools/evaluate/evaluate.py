"""Measure how well the sieve drops the rows that an ideal filter would drop, on a file and its true pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import orjson

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.files.format import Format, formats
from twinsieve.pipeline.files.input_reader import InputReader
from twinsieve.pipeline.files.source import InputSource
from twinsieve.pipeline.files.write import Output
from twinsieve.pipeline.messages.fields import id_text
from twinsieve.pipeline.messages.verdict_values import similarity_at
from twinsieve.pipeline.settings.model import InputSettings, Settings
from twinsieve.pipeline.tools.evaluate.row_names import NamedTexts
from twinsieve.pipeline.tools.evaluate.scores import Scores, score
from twinsieve.pipeline.tools.evaluate.truth import Truth, covered_rows, ideal_pass, read_pairs
from twinsieve.stages.contract import (
    LEVELS,
    NO_LEADER,
    SIMILARITY_SCALE,
    Batch,
    Bodies,
    Fingerprints,
    Flag,
    Kind,
    SieveConfig,
    Verdicts,
    Window,
)
from twinsieve.stages.differ.rules import Rule, counts_by_name
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

_NO_TEXT = (DeadLetterReason.NOT_AN_OBJECT, DeadLetterReason.MISSING_FIELD, DeadLetterReason.NOT_TEXT)

BodyRule = Literal["letters", "product"]


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run the sieve.

    body_rule: how bodies are made of texts; `letters` is the rule with which the truth files were made,
        `product` is the rule that runs by default
    differences: which differences keep two similar messages apart, so that both are kept; one of LEVELS
    """

    body_rule: BodyRule
    differences: str

    def __str__(self) -> str:
        return f"{self.body_rule}, differences {self.differences}"


VARIANTS = tuple(Variant(rule, level) for rule in get_args(BodyRule) for level in LEVELS)


@dataclass(slots=True)
class Run:
    """The result of one variant.

    exact, near: number of rows that each stage dropped
    kept_apart: number of rows that were kept although a leader was similar enough, by the name of the reason
    """

    variant: Variant
    scores: Scores
    exact: int
    near: int
    kept_apart: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class EvaluationReport:
    """The results of all variants on one input. `--stats` writes `as_json`.

    rows: number of rows that were judged, from the start of the input
    at: least similarity of near duplicates, out of SIMILARITY_SCALE
    to_drop: number of rows that the ideal filter (`ideal_pass`) drops
    near_to_drop: number of these rows that no earlier row equals in its body
    own: the variant of the user's settings
    """

    input: str
    pairs: str
    rows: int
    at: int
    to_drop: int
    near_to_drop: int
    runs: list[Run]
    own: Variant

    def as_json(self) -> bytes:
        """The report, with precision, recall and F1, as one JSON object and a newline."""
        report: dict[str, Any] = asdict(self)
        for run, plain in zip(self.runs, report["runs"], strict=True):
            scores = plain["scores"]
            for name, counts in (("every", run.scores.every), ("near", run.scores.near)):
                scores[name] |= {"precision": counts.precision, "recall": counts.recall, "f1": counts.f1}
        return orjson.dumps(report, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_INDENT_2)


def run_evaluate(
    input_path: Path,
    pairs_path: Path,
    *,
    scheme: SchemeConfig,
    sieve: SieveConfig,
    similarity: int | None = None,
    rows: int | None = None,
    variants: Sequence[Variant] = VARIANTS,
    wrong_path: Path | None = None,
    text_fields: Sequence[str] = ("text",),
    id_field: str = "id",
    format_: Format | None = None,
) -> EvaluationReport:
    """Run the sieve once in each variant, and score which rows it dropped.

    The standard is an ideal filter (`ideal_pass`). It takes the similar pairs of rows from the pairs file,
    and drops a row if and only if an earlier row that it kept is similar enough.
    The sieve runs as configured, except for the settings that the measurement fixes: the similarity is
    `similarity` (default: the configured one); both windows cover all rows and have no age limit; rows have
    no time, id or scope; body rule and differences are those of the variant. `scores.score` says how rows are
    scored.

    input_path: a file with `text_fields` and `id_field`; ids are unique; format_: default JSON lines
    rows: number of rows at the beginning of the input that the pairs file covers; the others are left out.
        Default: all rows up to the last one that the pairs file names
    wrong_path: file for each row that a variant wrongly kept or dropped, as JSON lines with both whole texts
    raises: UsageError, which names path and line; FileError if a file cannot be read or written
    """
    similarity = sieve.near.similarity if similarity is None else similarity
    pairs = read_pairs(pairs_path)
    ids, texts = read_texts(input_path, text_fields, id_field, format_)
    count = covered_rows(ids, pairs) if rows is None else min(rows, len(ids))
    if not count:
        raise UsageError(
            f"{pairs_path}: none of its ids occurs in {input_path}; give the pairs of this input, or name "
            "the field of its ids with --id-field"
        )
    ids, texts = ids[:count], texts[:count]
    truth = ideal_pass(ids, pairs, similarity)
    runs: list[Run] = []
    wrong: list[bytes] = []
    read: dict[BodyRule, tuple[Bodies, Fingerprints]] = {}
    for variant in variants:
        rule = variant.body_rule
        if rule not in read:
            read[rule] = Scheme(replace(scheme, text=replace(scheme.text, body_rule=rule))).read(texts)
        batch = batch_of(*read[rule])
        verdicts = BatchSieve(variant_config(sieve, variant, similarity, count)).judge(batch)
        runs.append(_run(variant, truth, batch.bodies, verdicts))
        if wrong_path is not None:
            wrong += _wrong_rows(variant, truth, batch.bodies, verdicts, ids, texts)
    if wrong_path is not None:
        with Output(str(wrong_path)) as output:
            output.write(b"".join(wrong))
            output.finish()
    return EvaluationReport(
        input=str(input_path),
        pairs=str(pairs_path),
        rows=count,
        at=similarity,
        to_drop=sum(leader >= 0 for leader in truth.leaders),
        near_to_drop=sum(
            leader >= 0 and not seen for leader, seen in zip(truth.leaders, truth.seen_before, strict=True)
        ),
        runs=runs,
        own=Variant(scheme.text.body_rule, LEVELS[sieve.near.differences.level]),
    )


def read_texts(
    path: Path, text_fields: Sequence[str] = ("text",), id_field: str = "id", format_: Format | None = None
) -> tuple[list[str], list[str]]:
    """The ids and the texts of a file in any format that `dedup` reads.

    text_fields: like `input.text_field` of the settings
    raises: FileError if the file cannot be read; UsageError, which names path and line, if any row has no
        readable text or no id, because a measurement must not leave out rows
    """
    reader = _reader(text_fields, id_field, format_)
    ids: list[str] = []
    texts: list[str] = []
    named = " or ".join(map(repr, text_fields))
    with InputSource(str(path)) as source:
        for chunk in reader.chunks(source):
            columns = chunk.columns
            for bad in columns.unreadable:
                problem = f"{bad.detail}; repair the row, or name the format with --format"
                if bad.reason in _NO_TEXT:
                    problem = f"{bad.detail}: no text in {named}; name the field with --text-field"
                raise UsageError(f"{path}:{chunk.line_of(bad.row)}: {problem}")
            for row, message_id in zip(columns.rows, map(id_text, columns.ids), strict=True):
                if message_id is None:
                    where = f"{path}:{chunk.line_of(row)}"
                    raise UsageError(f"{where}: has no id in {id_field!r}; name the field with --id-field")
                ids.append(message_id)
            texts += columns.texts
    return ids, texts


def read_named_texts(
    path: Path,
    names: Iterable[str],
    text_fields: Sequence[str] = ("text",),
    id_field: str = "id",
    format_: Format | None = None,
) -> dict[str, str]:
    """The texts of the rows with these names (`row_names`); a name without a readable row has none.

    Reading ends at the last row that is named. raises: FileError if the file cannot be read
    """
    wanted = NamedTexts(names)
    reader = _reader(text_fields, id_field, format_)
    before = 0
    with InputSource(str(path)) as source:
        for chunk in reader.chunks(source):
            wanted.add(chunk.columns, before)
            if wanted.is_complete:
                break
            before += len(chunk.rows)
    return wanted.texts


def _reader(text_fields: Sequence[str], id_field: str, format_: Format | None) -> InputReader:
    fields = InputSettings(
        text_field=tuple(text_fields),
        id_field=id_field,
        time_field=None,
        max_bytes=1 << 50,
        null_text="dead_letter",
    )
    return InputReader(Settings(input=fields), format_ or formats()[0]())


def batch_of(bodies: Bodies, fingerprints: Fingerprints, scopes: Sequence[int] | None = None) -> Batch:
    """A batch at positions from 0, without times and ids. scopes: one for each row; None: no scopes"""
    batch = Batch.blank(len(bodies))
    batch.positions[:] = np.arange(len(bodies))
    if scopes is not None:
        batch.scopes[:] = scopes
    return replace(batch, bodies=bodies, fingerprints=fingerprints)


def variant_config(sieve: SieveConfig, variant: Variant, similarity: int, count: int) -> SieveConfig:
    """The configuration with the variant's differences, this similarity and windows of `count` rows."""
    return replace(
        sieve,
        exact=replace(sieve.exact, window=Window(count)),
        near=replace(
            sieve.near,
            similarity=similarity,
            window=Window(count),
            differences=sieve.near.differences._replace(level=LEVELS.index(variant.differences)),
        ),
        scoped=False,
    )


def _run(variant: Variant, truth: Truth, bodies: Bodies, verdicts: Verdicts) -> Run:
    dropped = verdicts.kinds != Kind.UNIQUE
    return Run(
        variant=variant,
        scores=score(truth, dropped.tolist(), bodies.body_lengths.tolist()),
        exact=int(np.count_nonzero(verdicts.kinds == Kind.EXACT)),
        near=int(np.count_nonzero(verdicts.kinds == Kind.NEAR)),
        kept_apart=counts_by_name(verdicts.reasons[~dropped]),
    )


def _wrong_rows(
    variant: Variant, truth: Truth, bodies: Bodies, verdicts: Verdicts, ids: list[str], texts: list[str]
) -> Iterator[bytes]:
    def named(row: int, similarity: float) -> dict[str, Any]:
        return {"id": ids[row], "similarity": similarity, "text": texts[row], "body": bodies.text(row)}

    for row, (kind, ideal_leader) in enumerate(zip(verdicts.kinds.tolist(), truth.leaders, strict=True)):
        if (kind != Kind.UNIQUE) == (ideal_leader >= 0):
            continue
        leader_row = int(verdicts.leaders[row])
        yield orjson.dumps(
            {
                "variant": str(variant),
                "wrongly": "kept" if kind == Kind.UNIQUE else "dropped",
                "position": row,
                "id": ids[row],
                "kind": Kind(kind).name.lower(),
                "flags": [flag.name for flag in Flag(int(verdicts.flags[row]))],
                "reason": Rule(int(verdicts.reasons[row])).words,
                "text": texts[row],
                "body": bodies.text(row),
                "ideal_leader": named(ideal_leader, truth.similarities[row] / SIMILARITY_SCALE)
                if ideal_leader >= 0
                else None,
                "leader": named(leader_row, similarity_at(verdicts, row))
                if leader_row != NO_LEADER
                else None,
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )
