"""`python -m bench.peers`: one table of this program and its peers, JSON beside it, and plots for the docs.

    [--rows 200000] [--messages 300000] [--more 1000000] [--rate 1000] [--times 3]
    [--only files|kafka|latency] [--plots]

Each program runs in turn, `--times` times; medians count. A peer that does not install or run is named with
its error. JSON goes to `build/peers/results.json`, plots (--plots) to `docs/peers-*.svg`.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import orjson

from bench.classics_data import markdown, save, svg_pyplot
from bench.kafka_meter import FIRST, SECOND, Figure, prepared
from bench.machine import machine_line
from bench.peers.files import Contestant, contestants, traps_dropped
from bench.peers.installation import Installation, installed
from bench.peers.latency import Latency, latencies
from bench.peers.programs import WORKERS, medians
from bench.peers.throughput import Result, results
from twinsieve.pipeline.tools.evaluate.judged import Share
from twinsieve.pipeline.tools.generate.stream import generate

_ROOT = Path(__file__).resolve().parents[2]
_LATENCY_S = 20.0
_TICKETS = 20_000
_JSON = _ROOT / "build" / "peers" / "results.json"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000, help="posts of the file")
    parser.add_argument("--messages", type=int, default=FIRST, help="posts on Kafka, of the first figure")
    parser.add_argument("--more", type=int, default=SECOND, help="posts on Kafka, of the second figure")
    parser.add_argument(
        "--rate", type=float, default=1_000.0, help="messages a second where latency is taken"
    )
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--only", choices=["files", "kafka", "latency"])
    parser.add_argument("--plots", action="store_true", help="draw docs/peers-*.svg")
    given = parser.parse_args()
    peers = installed()
    line = f"{machine_line()}; load before {os.getloadavg()[0]:.1f}"
    print(line, flush=True)
    found: dict[str, Any] = {"machine": line, "versions": peers.versions()}
    if given.only in (None, "files"):
        found["files"] = _files(peers, given.rows, given.times, plots=given.plots)
    if given.only in (None, "kafka"):
        found["kafka"] = _kafka(peers, given.messages, given.more, given.times, plots=given.plots)
    if given.only in (None, "latency"):
        found["latency"] = _latency(peers, given.rate, given.times)
    _JSON.write_bytes(orjson.dumps(found, lambda figure: figure._asdict(), orjson.OPT_INDENT_2))
    print(f"wrote {_JSON.relative_to(_ROOT)}")


def _files(peers: Installation, rows: int, times: int, *, plots: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "posts.jsonl"
        with source.open("wb") as lines:
            lines.writelines(orjson.dumps(post) + b"\n" for post in generate(rows, 1, truth=True))
        found, errors = contestants(source, Path(name), peers, times)
        traps = traps_dropped(_TICKETS, Path(name), peers, [each.name for each in found])
    print(f"input: a file of {rows:,} generated posts; medians of {times} runs in turn, start included\n")
    head = ["program", "posts/s", "lowest, highest", "CPU, s", "MiB", "repeats dropped", "edited", "lost"]
    head += [f"traps dropped, of {_TICKETS:,} tickets"]
    table = [
        [*_row_of_file(each, rows), _percent(traps[each.name], 1) if each.name in traps else "–"]
        for each in found
    ]
    print(markdown(head, table), flush=True)
    _print_errors(errors)
    if plots:
        labels = {each.name: f"{each.score.near.value:.0%} of edited ones found" for each in found}
        _bars({each.name: each.rate(rows) for each in found}, labels, "posts a second", "peers-files.svg")
    runs = {
        each.name: {
            "runs": [run._asdict() for run in each.runs],
            "score": each.score._asdict(),
            "traps": traps.get(each.name),
        }
        for each in found
    }
    return {"rows": rows, "programs": runs, "errors": errors}


def _row_of_file(each: Contestant, rows: int) -> list[str]:
    rates = sorted(rows / run.seconds for run in each.runs)
    middle = sorted(each.runs)[len(each.runs) // 2]
    return [
        each.name,
        f"{each.rate(rows):,.0f}",
        f"{rates[0]:,.0f}, {rates[-1]:,.0f}",
        f"{middle.cpu:.1f}",
        f"{middle.mib:,.0f}",
        f"{each.score.exact.value:.1%}",
        _percent(each.score.near, 1),
        _percent(each.score.lost, 2),
    ]


def _percent(share: Share, digits: int) -> str:
    low, high = share.interval
    return f"{share.value:.{digits}%} ({low * 100:.{digits}f}–{high * 100:.{digits}f})"


def _kafka(peers: Installation, messages: int, more: int, times: int, *, plots: bool) -> dict[str, Any]:
    posts = prepared(messages, more)
    found, errors = results(
        peers, posts, times, lambda run: print(f"  {run.name}: {run.first}; then {run.second}", flush=True)
    )
    print(
        f"\ninput: generated posts: {posts}; {WORKERS} workers and the index, or {WORKERS} "
        f"threads of Kafka Streams; broker and all on one machine; medians of {times} runs in turn\n"
    )
    head = ["program", "messages/s", "lowest, highest", "CPU, µs a message", "of the broker", "cores idle"]
    head += ["s, of which written"]
    tables = {f"the first {messages:,}": "first", f"{more:,} more": "second"}
    for title, part in tables.items():
        print(f"{title}\n")
        print(markdown(head, [_row_of_kafka(runs, part) for runs in found.values()]), flush=True)
    for name, (run, *_) in found.items():
        right = "exact and similar" if run.right is None else "exact"
        print(f"{name}: {run.out:,} came out ({right} repeats dropped)")
    _print_errors(errors)
    if plots:
        rates = {name: medians([run.first for run in runs]).rate for name, runs in found.items()}
        labels = {name: "" if runs[0].right else "similar ones too" for name, runs in found.items()}
        _bars(rates, labels, "messages a second", "peers-kafka.svg")
    runs = {name: [run._asdict() for run in each] for name, each in found.items()}
    return {"input": str(posts), "programs": runs, "errors": errors}


def _row_of_kafka(runs: list[Result], part: str) -> list[str]:
    figures: list[Figure] = [getattr(run, part) for run in runs]
    rates = sorted(each.rate for each in figures)
    middle = medians(figures)
    return [
        runs[0].name,
        f"{middle.rate:,.0f}",
        f"{rates[0]:,.0f}, {rates[-1]:,.0f}",
        f"{middle.cpu:.1f}",
        f"{middle.broker:.1f}",
        f"{middle.idle:.0%}",
        f"{middle.seconds:.1f}, {middle.writing:.1f}",
    ]


def _latency(peers: Installation, rate: float, times: int) -> dict[str, Any]:
    def told(run: Latency) -> None:
        print(f"  {run.name}: p50 {run.p50:.0f} ms, p99 {run.p99:.0f} ms", flush=True)

    found, errors = latencies(peers, rate, _LATENCY_S, times, told)
    print(
        f"\ninput: posts that repeat nothing, {rate:,.0f}/s for {_LATENCY_S:g} s, one process each; "
        f"medians of {times} runs in turn\n"
    )
    shown = [medians(runs) for runs in found.values()]
    print(
        markdown(["program", "p50, ms", "p99, ms"], [[x.name, f"{x.p50:.0f}", f"{x.p99:.0f}"] for x in shown])
    )
    _print_errors(errors)
    runs = {name: [run._asdict() for run in each] for name, each in found.items()}
    return {"rate": rate, "programs": runs, "errors": errors}


def _print_errors(errors: dict[str, str]) -> None:
    for name, error in errors.items():
        print(f"{name} was left out: {error}")


def _bars(rates: dict[str, float], labels: dict[str, str], across: str, name: str) -> None:
    """A bar for each program, the fastest above, with its number and label."""
    figure, axes = svg_pyplot().subplots(figsize=(8, 0.5 * len(rates) + 1))
    names = sorted(rates, key=lambda each: rates[each])
    axes.barh(names, [rates[each] for each in names], color="#4477aa")
    for place, each in enumerate(names):
        axes.text(rates[each], place, f" {rates[each]:,.0f} {labels[each]}", va="center", fontsize="small")
    axes.set_xlabel(across)
    axes.set_xlim(0, 1.6 * max(rates.values()))
    save(figure, str(_ROOT / "docs" / name))


if __name__ == "__main__":
    main()
