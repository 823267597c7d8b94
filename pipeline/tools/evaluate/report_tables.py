"""Show an evaluation report as tables on a terminal."""

from __future__ import annotations

from collections import Counter

from rich.table import Table
from rich.text import Text

from twinsieve.pipeline.tools.evaluate.evaluate import EvaluationReport
from twinsieve.pipeline.tools.evaluate.scores import LENGTH_CLASSES, Counts, length_class
from twinsieve.stages.contract import MIN_NEAR_LENGTH, SIMILARITY_SCALE


def report_tables(report: EvaluationReport) -> list[Table]:
    """Two tables: scores by variant, and near recall by length of body.

    Columns: exact, near: number of rows that each stage dropped; P, R, F1: precision, recall and F1 of all
    rows; near P, R, F1: the same of rows without an earlier equal body, where exact comparison alone has a
    recall of 0; kept apart: number of rows that were kept only because of a difference, by reason.
    A star marks the variant of the user's settings.
    """
    title = (
        f"{report.input}, first {report.rows:,} rows at {report.at / SIMILARITY_SCALE:.4g}: "
        f"{report.to_drop:,} to drop, {report.near_to_drop:,} of them without an earlier equal body"
    )
    scores = Table(title=Text(title), title_justify="left")
    scores.add_column("body rule, differences")
    for name in ("exact", "near", "P", "R", "F1", "near P", "near R", "near F1"):
        scores.add_column(name, justify="right")
    scores.add_column("wrongly dropped/kept", justify="right")
    scores.add_column("kept apart")
    scores.caption, scores.caption_justify = Text("* what your settings ask for"), "left"
    lengths = Table(title="near recall by body length (rows to drop)", title_justify="left")
    lengths.add_column("body rule, differences")
    classes = [length_class(low) for low, _ in LENGTH_CLASSES if low >= MIN_NEAR_LENGTH]
    for name in classes:
        lengths.add_column(name, justify="right")
    for run in report.runs:
        every, near = run.scores.every, run.scores.near
        shares = (every.precision, every.recall, every.f1, near.precision, near.recall, near.f1)
        name = f"{'*' if run.variant == report.own else ' '} {run.variant}"
        scores.add_row(
            name,
            f"{run.exact:,}",
            f"{run.near:,}",
            *(f"{share:.4f}" for share in shares),
            f"{every.wrongly_dropped:,}/{every.wrongly_kept:,}",
            ", ".join(f"{reason} {count:,}" for reason, count in Counter(run.kept_apart).most_common()),
        )
        by_length = (run.scores.near_by_length[name] for name in classes)
        lengths.add_row(name, *map(_recall, by_length))
    return [scores, lengths]


def _recall(counts: Counts) -> str:
    """The recall and the number of rows to drop; a dash if there are none, because the recall would be 1."""
    return f"{counts.recall:.3f} ({counts.to_drop:,})" if counts.to_drop else "–"
