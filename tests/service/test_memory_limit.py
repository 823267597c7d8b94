"""The limit of memory is found where the kernel has it: cgroups of both versions, inside a container and outside."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from twinsieve.pipeline.service.memory_limit import anonymous_bytes, limit_bytes, spare_bytes

MIB = 1 << 20


@pytest.fixture(autouse=True)
def large_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1 << 20}.__getitem__)


def files(root: Path, texts: Mapping[str, str]) -> Path:
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


UNIT = "sys/fs/cgroup/system.slice/twinsieve.service/memory.max"
SLICE = "sys/fs/cgroup/system.slice/memory.max"
KUBE = "12:cpu,cpuacct:/kubepods/pod1/abc\n11:memory:/kubepods/pod1/abc\n1:name=systemd:/kubepods/pod1/abc\n"
OLD = "sys/fs/cgroup/memory/"


@pytest.mark.parametrize(
    ("texts", "mib"),
    [
        pytest.param({"proc/self/cgroup": "0::/\n"}, 4096, id="no limit"),
        pytest.param({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 4096, id="max"),
        pytest.param(
            {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": f"{512 * MIB}\n"},
            512,
            id="container",
        ),
        pytest.param(
            {"proc/self/cgroup": "0::/system.slice/twinsieve.service\n", UNIT: f"{300 * MIB}\n", SLICE: "max\n"},
            300,
            id="unit",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "0::/system.slice/twinsieve.service\n",
                UNIT: f"{300 * MIB}\n",
                SLICE: f"{200 * MIB}\n",
            },
            200,
            id="slice around it has less",
        ),
        pytest.param(
            {"proc/self/cgroup": KUBE, f"{OLD}kubepods/pod1/abc/memory.limit_in_bytes": f"{100 * MIB}\n"},
            100,
            id="version 1",
        ),
        pytest.param(
            {"proc/self/cgroup": KUBE, f"{OLD}memory.limit_in_bytes": f"{64 * MIB}\n"},
            64,
            id="version 1, only its own tree is mounted",
        ),
        pytest.param(
            {"proc/self/cgroup": KUBE, f"{OLD}memory.limit_in_bytes": "9223372036854771712\n"},
            4096,
            id="version 1 without a limit says a huge one",
        ),
        pytest.param({"proc/self/cgroup": "5:cpu:/x\n", f"{OLD}memory.limit_in_bytes": "1\n"}, 4096, id="only cpu"),
    ],
)  # fmt: skip
def test_lowest_limit_counts(tmp_path: Path, texts: dict[str, str], mib: int) -> None:
    assert limit_bytes(files(tmp_path, texts)) == mib * MIB


def test_unknown_without_proc(tmp_path: Path) -> None:
    assert limit_bytes(tmp_path) is None
    assert anonymous_bytes(tmp_path) is None


def test_pages_of_files_do_not_count(tmp_path: Path) -> None:
    status = "Name:\tpython\nVmRSS:\t  900 kB\nRssAnon:\t  100 kB\nRssFile:\t  700 kB\nRssShmem:\t   30 kB\n"
    assert anonymous_bytes(files(tmp_path, {"proc/self/status": status})) == 130 * 1024


def test_of_this_process() -> None:
    """In a process of its own: in this one, malloc may give out again what an earlier test has let go."""
    code = (
        "from twinsieve.pipeline.service.memory_limit import anonymous_bytes\n"
        "before = anonymous_bytes()\n"
        "held = bytearray(b'x') * (64 << 20)\n"
        "print(anonymous_bytes() - before, len(held))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    more, held = map(int, done.stdout.split())
    assert held == 64 * MIB
    assert 60 * MIB < more < 80 * MIB


def test_what_is_left_is_the_limit_without_what_is_taken(tmp_path: Path) -> None:
    assert spare_bytes(tmp_path) is None
    texts = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": f"{512 * MIB}\n"}
    root = files(tmp_path, texts | {"proc/self/status": "RssAnon:\t  204800 kB\nRssShmem:\t  1024 kB\n"})
    assert spare_bytes(root) == (512 - 201) * MIB
