"""With the rights that the manifests and the compose file leave it, the program works: any user of group 0, no
capabilities, a root file system that is read-only but for `state.dir` and /tmp."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.broker.deployment import Deployment, Watcher, in_thread, judge, poll_until
from tests.broker.load import Load
from tests.broker.worlds import fresh
from tests.deploy.rights import restricted
from twinsieve.stages.kernel import folder as kernels

_POSTS = 2000
_DEADLINE_S = 300.0


@pytest.mark.needs("restricted")
def test_any_user_on_a_read_only_root_works_and_stops(bootstrap: str, stranger: int) -> None:
    app = fresh("rights")
    deployment = Deployment(bootstrap, app)
    writable = Path(deployment.settings["state"]["dir"])
    deployment.folder.chmod(0o755)
    writable.mkdir()
    os.chown(writable, stranger, 0)
    # As in the image: kernels are root's, and others read them.
    shutil.copytree(kernels.path(), deployment.folder / "kernels" / kernels.path().name)
    for path in (deployment.folder / "kernels").rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    cache = f"NUMBA_CACHE_DIR={deployment.folder / 'kernels'}"
    program = restricted(deployment.folder, stranger, "env", cache, sys.executable, "-m", "twinsieve")
    deployment.create_topics()
    load, watcher = Load(bootstrap, f"{app}.in", _POSTS), Watcher(bootstrap, deployment.outputs)
    in_thread(watcher.run)
    try:
        process = deployment.start("pod-0", program=program)
        load.run()
        assert poll_until(lambda: len(watcher.seen) == _POSTS or process.poll() is not None, _DEADLINE_S)
        assert process.poll() is None, deployment.log("pod-0").read_text("utf-8")
        status, mounts = (
            Path(f"/proc/{process.pid}/{name}").read_text("utf-8") for name in ("status", "mounts")
        )
        assert f"Uid:\t{stranger}\t{stranger}" in status
        assert f"CapBnd:\t{0:016x}" in status
        assert re.search(r"^\S+ / \S+ ro\b", mounts, re.MULTILINE)
        process.send_signal(signal.SIGTERM)
        assert process.wait(_DEADLINE_S) == 0
        found = judge(load, watcher, deployment.outputs[0])
        assert found.good, found
        (snapshot,) = writable.rglob("*.snapshot")
        assert snapshot.stat().st_uid == stranger
        assert "compiled kernels" not in deployment.log("pod-0").read_text("utf-8")
    finally:
        watcher.stop.set()
        deployment.close()
