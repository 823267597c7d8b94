"""The dashboard: every query finds something in an app that is well, by metrics that a process exports."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from tests.broker.deployment import poll_until
from tests.deploy.played import DEPLOY, asked_of, play
from tests.deploy.scraping import scraping
from tests.deploy.series import app, counted, well
from tests.runbooks.on_call import OnCall
from tests.service.stepped import unlike
from twinsieve.pipeline.service.metrics import declared

BOARD = DEPLOY / "grafana/twinsieve.json"


def queries(app: str = "$app") -> list[str]:
    """As Grafana asks for this app."""
    panels = json.loads(BOARD.read_text("utf-8"))["panels"]
    written = [target["expr"] for panel in panels for target in panel["targets"]]
    return [one.replace("$__rate_interval", "1m").replace("$app", app) for one in written]


def test_queries_find_something_and_of_their_app_alone(promtool: str, tmp_path: Path) -> None:
    series = well()
    app(series, "other", instances=("c:8080",), judges="c:8080")
    series.change("twinsieve_dead_letters_total", counted(5, 300), reason="too_large")
    asked = queries("posts")
    found = play(promtool, tmp_path, series, [(one, 330) for one in asked])
    for query, samples in zip(asked, found, strict=True):
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


@pytest.mark.minutes
def test_real_processes_have_something_for_each_query(
    bootstrap: str, prometheus: str, tmp_path: Path
) -> None:
    """A worker, an index and a shard, into which unique posts, copies, other numbers and no posts come."""
    with (
        scraping(prometheus) as server,
        OnCall(bootstrap, tmp_path, server, snapshot_every="1s", segment=50) as on_call,
    ):
        deployment = on_call.deployment
        deployment.set("near", window={"messages": 200}, answers="shards")
        deployment.create_topics()
        for role in ("index", "worker", "shard"):
            on_call.start(role)
        # The last one: the shard takes part.
        empty = {*queries(deployment.app), "twinsieve_shard_segments > 0"}
        numbers = itertools.count()

        def each_found_something() -> bool:
            body = unlike(next(numbers))
            first, second = (f'{{"text": "{body}{degrees}度"}}' for degrees in (12, 31))
            on_call.post(first, first, second, "{no json")
            empty.difference_update([query for query in empty if server.found(query)])
            return not empty

        assert poll_until(each_found_something, 240.0), empty
