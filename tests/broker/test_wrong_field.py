"""`run` on a real broker with a wrong `input.text_field`: it ends, nothing is asked, and nothing is committed."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from tests.broker.services import POSTS, Service, wait_for, written_settings
from tests.logfmt import last_words
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.settings.model import Settings

_TIMEOUT_S = 120.0


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_wrong_field_ends_run_before_anything_is_asked(
    client: str, start: str, bootstrap: str, tmp_path: Path
) -> None:
    written = written_settings(client, bootstrap, tmp_path / "state", start=start, text_field="body")
    settings = Settings.model_validate(written)
    service = Service(settings)
    names, topic = Names(settings.app), settings.input.topics[0]
    row = (b"k", b'{"text": "The bridge over the river is closed until Friday", "n": 1}', [])
    service.produce(*[row] * 300)
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump(written))
    command = [sys.executable, "-m", "twinsieve", "run", "--member", "one", "-c", str(file)]
    began_s = time.monotonic()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and start == "latest":
            # A producer goes on; the topic is read from its end.
            service.produce(row)
        _, said = process.communicate(timeout=_TIMEOUT_S)
    print(f"{client}, {start}: run ended after {time.monotonic() - began_s:.1f} s")
    assert process.returncode == 3, said
    (line,) = last_words(said)
    assert line.startswith(
        f"{topic}[0]@" if start == "latest" else f"{topic}[0]@0: none of the first 200 messages"
    )
    assert "set input.text_field to 'text'" in line
    with closing(service.broker.admin()) as admin:
        assert admin.end_offsets([Partition(names.fingerprints, 0)]) == {Partition(names.fingerprints, 0): 0}
        for group in (names.workers, names.index):
            assert admin.group_offsets(group) == {}
            assert not admin.members(group)
    assert service.count("out", "dup", "dead") == 0
    service.end()


def test_what_has_judged_is_on_record_beside_the_offset_on_a_broker(service: Service) -> None:
    """Both clients write the record and read it again: then messages without a text end no start."""
    service.post(*POSTS)
    service.start()
    wait_for(lambda: service.count("out") == len(POSTS), service)
    service.stop()
    service.produce(*[(b"k", b'{"body": "The bridge is closed"}', [])] * 30)
    service.start()
    wait_for(lambda: service.count("dead") == 30, service)
