"""`--role` names the roles of a process. Roles that it cannot have end the start before it asks a broker."""

from __future__ import annotations

from itertools import permutations

import pytest

from tests.calling import Run, setting
from twinsieve.pipeline.service.roles import ROLES, check_roles, roles_of
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.errors import UsageError


@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_list_of_roles_is_read_in_any_order(count: int) -> None:
    for named in permutations(ROLES, count):
        assert roles_of(",".join(named)) == roles_of(", ".join(named)) == set(named)


def test_both_is_as_it_was_without_a_shard() -> None:
    assert roles_of("both") == roles_of("worker,index")


@pytest.mark.parametrize("written", ["", "shards", "worker,", "worker;index", "both,shard", "Worker"])
def test_an_unknown_role_is_named_with_those_there_are(written: str, run: Run) -> None:
    with pytest.raises(UsageError, match=r"there are both, worker, index, shard"):
        roles_of(written)
    ran = run("run", "--role", written, *setting("kafka.bootstrap=127.0.0.1:1"))
    assert (ran.code, ran.out) == (2, "")
    assert "there are both, worker, index, shard" in ran.err


def test_a_role_that_is_named_twice_is_a_mistake() -> None:
    with pytest.raises(UsageError, match="twice"):
        roles_of("worker,index,worker")


@pytest.mark.parametrize("written", ["shard", "worker,index,shard"])
def test_a_shard_needs_somebody_who_reads_its_answers(written: str, run: Run) -> None:
    shards = Settings.model_validate({"near": {"answers": "shards"}})
    check_roles(roles_of(written), shards)
    check_roles(roles_of("both"), Settings())
    with pytest.raises(UsageError, match=r"set near\.answers: shards"):
        check_roles(roles_of(written), Settings())
    ran = run("run", "--role", written, *setting("kafka.bootstrap=127.0.0.1:1", "http.listen=none"))
    assert ran.code == 2
