"""`twinsieve run` without one of the permissions it needs: it says which, once, and ends."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml

from tests.broker.cluster import PASSWORDS, SecureCluster
from tests.broker.grants import allow
from tests.broker.services import POSTS, value_of, written_settings
from tests.broker.worlds import write
from tests.logfmt import last_words
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.commands.kafka.connect import connect, connect_by_settings
from twinsieve.pipeline.operate.acls import Grant, grants
from twinsieve.pipeline.operate.topic_checks import create
from twinsieve.pipeline.service.run import run_service
from twinsieve.pipeline.settings.model import KafkaSettings, Settings
from twinsieve.stages.errors import SieveError

_TIMEOUT_S = 120.0


class App:
    """All topics of an app, a message in its input, and the settings of a user who may do what is granted."""

    def __init__(self, client: str, broker: SecureCluster, chief: Broker, folder: Path) -> None:
        secret = folder / "password"
        secret.write_text(PASSWORDS["nobody"])
        settings = written_settings(client, broker.secure, folder / "state")
        self.name = settings["app"]
        settings["kafka"]["security"] = broker.login("nobody", password_file=str(secret))
        self._file = folder / "settings.yaml"
        self._file.write_text(yaml.safe_dump(settings))
        self.settings = Settings.model_validate(settings)
        self._bootstrap = broker.bootstrap
        chief.admin().create_topic(NewTopic(f"{self.name}-in", 1))
        create(self.settings, chief.admin())
        write(chief, Partition(f"{self.name}-in", 0), [value_of(POSTS[0])])

    def allow_all_but(self, resource: str, name: str, operation: str) -> None:
        kept = []
        for grant in grants(self.settings):
            here = grant.resource == resource and grant.name in (f"{self.name}{name}", f"{self.name}.")
            operations = tuple(each for each in grant.operations if not (here and each == operation))
            kept.append(Grant(grant.resource, grant.name, operations, grant.prefix))
        assert kept != grants(self.settings)
        allow(self._bootstrap, "User:nobody", kept)

    def refused_here(self) -> str:
        """What a service in this process ends with: a start of the program takes as much of a core as the rest."""
        ended: list[str] = []

        def serve() -> None:
            try:
                run_service(self.settings, connect_by_settings, member="one", stop=stop)
            except SieveError as error:
                ended.append(str(error))

        stop = threading.Event()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        thread.join(_TIMEOUT_S)
        if thread.is_alive():
            stop.set()
            pytest.fail(f"the service has not ended within {_TIMEOUT_S:g} s")
        (said,) = ended
        return said.replace(self.name, "app")

    def refused(self) -> str:
        """What `run` says before it ends with exit code 3, in the name of no app."""
        command = [sys.executable, "-m", "twinsieve", "run", "--member", "one", "-c", str(self._file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        assert done.returncode == 3, done.stderr
        (said,) = last_words(done.stderr)
        return said.replace(self.name, "app")


@pytest.mark.parametrize(
    ("resource", "name", "operation", "where"),
    [
        ("transactional-id", "", "Write", ("transaction app.",)),
        ("group", "", "Read", ("group app.workers", "group app.index")),
        ("topic", ".fingerprints", "Write", ("app.fingerprints",)),
        ("topic", ".verdicts", "Read", ("app.verdicts",)),
        ("topic", ".decisions", "Write", ("app.decisions",)),
        ("topic", "-out", "Write", ("app-out",)),
    ],
)
def test_a_missing_permission_ends_run_with_its_name(
    client: str,
    secure_broker: SecureCluster,
    tmp_path: Path,
    resource: str,
    name: str,
    operation: str,
    where: tuple[str, ...],
) -> None:
    chief = connect(KafkaSettings(bootstrap=secure_broker.bootstrap))
    app = App(client, secure_broker, chief, tmp_path)
    app.allow_all_but(resource, name, operation)
    said = app.refused() if resource == "group" else app.refused_here()
    assert any(each in said for each in where), said
    assert "grant it (twinsieve topics acls prints what is needed)" in said
    chief.close()
