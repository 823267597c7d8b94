"""The dashboard: every query finds something in an app that is well, by metrics that a process exports."""

from __future__ import annotations

import json
from pathlib import Path

from tests.deploy.played import DEPLOY, asked_of, play
from tests.deploy.series import app, counted, well
from twinsieve.pipeline.service.metrics import declared

BOARD = DEPLOY / "grafana/twinsieve.json"


def queries() -> list[str]:
    panels = json.loads(BOARD.read_text("utf-8"))["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def test_queries_find_something_and_of_their_app_alone(promtool: str, tmp_path: Path) -> None:
    series = well()
    app(series, "other", instances=("c:8080",), judges="c:8080")
    series.change("twinsieve_dead_letters_total", counted(5, 300), reason="too_large")
    filled = [one.replace("$__rate_interval", "1m").replace("$app", "posts") for one in queries()]
    found = play(promtool, tmp_path, series, [(one, 330) for one in filled])
    for query, samples in zip(filled, found, strict=True):
        assert samples.startswith("{"), f"{query}: {samples}"
        assert "other" not in samples
        assert "c:8080" not in samples


def test_queries_ask_for_metrics_that_exist() -> None:
    assert asked_of(queries()) <= well().names


def test_made_up_series_have_the_names_and_labels_of_real_ones() -> None:
    """So what rules and queries find in them, they find in a process. Others are of Prometheus, or of its client."""
    labels = {each.name: {*each.labels, "job", "instance"} for each in declared().values()}
    labels |= {f"{name}_total": held for name, held in labels.items()}
    ours = [key for key in well().held if key[0].startswith("twinsieve_")]
    for name, held in ours:
        phase = {"phase"} if name.endswith("_phase") else set()
        assert labels[name] | phase == {key for key, _ in held}, name
