"""Make the screenshots of the documentation, from generated posts.

    python -m tests.pages.screenshots [--output docs] [NAME ...]

Each is a PNG of at most 150,000 bytes. Look at them before they are committed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import DEVNULL

from tests.broker.server import free_ports
from tests.memory.broker import MemoryBroker, MemoryCluster
from tests.pages import chromium
from tests.pages.chromium import Browser
from tests.pages.pictures import need_fonts, small_png
from tests.service.running import Service
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import Messages, Partition
from twinsieve.pipeline.service.run import SystemClock
from twinsieve.pipeline.settings.load import check_tree, tree_of

_ROOT = Path(__file__).resolve().parents[2]
_SEED = 7
_MESSAGES = 20_000
_WIDTH = 1100


class Scene:
    """Generated posts, and what the commands make of them; a browser to look at it."""

    def __init__(self, folder: Path, browser: Browser) -> None:
        self.folder = folder
        self.browser = browser

    _generated = ("generate", "--messages", _MESSAGES, "--seed", _SEED)

    def posts(self) -> str:
        return self._made("posts.jsonl", *self._generated, "-o").name

    def dropped(self) -> str:
        outputs = ["-o", "kept.jsonl", "--stats", "stats.json", "--kept-apart", "apart.jsonl", "--duplicates"]
        return self._made("dropped.jsonl", "dedup", self.posts(), *outputs).name

    def audit_page(self) -> Path:
        beside = ["--kept-apart", "apart.jsonl", "--stats", "stats.json"]
        return self._made("audit.html", "audit", self.dropped(), *beside, "--html")

    def tune_page(self) -> Path:
        return self._made("tune.html", "tune", self.posts(), "--report")

    def judged_page(self) -> Path:
        """The report with labels, which say what the generator knows: both posts come from one."""
        truth = self._made("truth.jsonl", *self._generated, "--truth", "-o")
        source = {row["id"]: row.get("duplicate_of") for row in map(json.loads, truth.open("rb"))}

        def first(post: str) -> str:
            return first(source[post]) if source[post] else post

        self.browser.open(self.tune_page())
        _, *lines = self.browser.text("#label-lines").splitlines()
        pairs = [line.split("\t")[:2] for line in lines]
        labels = ["same" if first(later) == first(earlier) else "different" for later, earlier in pairs]
        rows = [
            ["later_id", "earlier_id", "label"],
            *([*pair, label] for pair, label in zip(pairs, labels, strict=True)),
        ]
        (self.folder / "labels.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
        return self._made("judged.html", "tune", self.posts(), "--judged", "labels.tsv", "--report")

    def _made(self, name: str, *command: object) -> Path:
        """The file of this name, which the command writes whose last argument it is, once."""
        path = self.folder / name
        if not path.exists():
            self._run(*command, name)
        return path

    def _run(self, *arguments: object) -> None:
        """Run a command in the folder, so that pages name files without the way to them."""
        command = [sys.executable, "-m", "twinsieve", *map(str, arguments)]
        paths = {**os.environ, "PYTHONPATH": str(_ROOT)}
        subprocess.run(command, cwd=self.folder, env=paths, check=True, stdout=DEVNULL, stderr=DEVNULL)


def _audit(scene: Scene) -> bytes:
    scene.browser.open(scene.audit_page(), width=_WIDTH)
    return scene.browser.picture(height=1_400)


def _tune(scene: Scene) -> bytes:
    scene.browser.open(scene.tune_page(), width=_WIDTH)
    return scene.browser.picture(height=1_400)


def _judged(scene: Scene) -> bytes:
    """The recommendation, and precision and recall by labels."""
    scene.browser.open(scene.judged_page(), width=_WIDTH)
    return scene.browser.picture(height=1_600)


def _labels(scene: Scene) -> bytes:
    """Pairs to label, some of which have a label."""
    browser = scene.browser
    browser.open(scene.tune_page(), width=_WIDTH)
    browser.resize(_WIDTH, 620)
    browser.click("#label-start")
    browser.press("sssd")
    browser.evaluate("document.getElementById('label-bar').scrollIntoView()")
    return browser.window()


def _status(scene: Scene) -> bytes:
    """The status page of a service on the broker in memory, a quarter of a minute after its first post."""
    (port,) = free_ports(1)
    cluster = MemoryCluster(SystemClock())
    cluster.create(NewTopic("posts", 2))
    settings, findings = check_tree(
        tree_of(
            {
                "app": "example",
                "profile": "microblog",
                "topics": {"auto_create": True},
                "state": {"dir": tempfile.mkdtemp(dir=scene.folder)},
                "http": {"listen": "none", "pages": f"127.0.0.1:{port}"},
            }
        )
    )
    assert settings is not None, findings
    posts, stop, browser = scene.folder / scene.posts(), threading.Event(), scene.browser
    service = Service(settings, cluster, member="worker-1")
    writer = threading.Thread(target=_write, args=(posts, cluster, stop))
    writer.start()
    try:
        time.sleep(15)
        browser.open(f"http://127.0.0.1:{port}/", width=_WIDTH)
        picture = browser.picture(height=1_250)
        browser.leave()
        return picture
    finally:
        stop.set()
        writer.join()
        service.end()


def _write(posts: Path, cluster: MemoryCluster, stop: threading.Event) -> None:
    """Write 200 posts a second to both partitions, until the event or the last post."""
    append = MemoryBroker(cluster).appender().append
    with open(posts, "rb") as lines:
        for number, line in enumerate(lines):
            messages = Messages()
            messages.add(None, line.rstrip())
            append(Partition("posts", number % 2), messages)
            if stop.wait(0.005):
                return


SHOTS: dict[str, Callable[[Scene], bytes]] = {
    "audit": _audit,
    "tune": _tune,
    "tune-labels": _labels,
    "tune-judged": _judged,
    "status": _status,
}
"""What takes each picture, by the name of its file."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SHOTS)} (all)")
    parser.add_argument("--output", type=Path, default=_ROOT / "docs", help="folder to write to (docs)")
    options = parser.parse_args()
    if unknown := set(options.names) - set(SHOTS):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(SHOTS)}")
    need_fonts()
    with tempfile.TemporaryDirectory(prefix="twinsieve-screenshots-") as name:
        folder = Path(name)
        browser = chromium.started(folder / "profile")
        try:
            browser.use(folder)
            for shot in options.names or SHOTS:
                picture = small_png(SHOTS[shot](Scene(folder, browser)))
                browser.require_calm()
                (options.output / f"{shot}.png").write_bytes(picture)
                print(f"{options.output / shot}.png: {len(picture):,} bytes")
        finally:
            browser.driver.quit()


if __name__ == "__main__":
    main()
