"""Tables restored to the middle of a job: what early steps wrote is read again before the cluster is Ready.

A commit that the tables do not know was carried out since. It changed nothing of the cluster itself, so no
tag says so, and the newest commit is as the restored record has it.
"""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.recipes import Step
from shared.cluster.record import Phase
from shared.ports.azure import ListFederatedCredentials, ListMaintenance, ListPolicyAssignments
from tests.support.bootstrap_secrets import AGE, SOPS, with_value
from tests.support.checks import check
from tests.support.identity_access import (
    ACCESS,
    CREDENTIAL,
    ISSUER,
    ROLE,
    SECOND_ROLE,
    access_writes,
    assignments,
    credentials,
    with_identity,
)
from tests.support.one_cluster import ONE, WINDOW, api, files, record
from tests.support.pipeline_runs import one_step_a_message, phases, push, step_until
from tests.support.policies import ADDON, DENY, POLICIES, policies, policy_writes
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import drifted

AGAIN = {"README.md": b"git is as it was before the commit that the tables lost"}
OTHER_DAY = WINDOW.replace("Sunday", "Monday")
LOST = [
    pytest.param(ACCESS, ISSUER, id="a federated credential and a role"),
    pytest.param(ACCESS, ISSUER + CREDENTIAL, id="a role"),
    pytest.param(ACCESS, ISSUER + ROLE, id="a federated credential"),
    pytest.param(ISSUER + CREDENTIAL + ROLE, ISSUER + CREDENTIAL + ROLE + SECOND_ROLE, id="one role more"),
    pytest.param(POLICIES, ADDON, id="policies"),
    pytest.param(ADDON + "  policies:\n" + DENY, POLICIES, id="one policy more"),
    pytest.param(WINDOW, OTHER_DAY, id="a maintenance window"),
    pytest.param(AGE, "", id="a bootstrap secret"),
]
"""What the record and git have, and what the commit had that the tables lost."""


def written(cloud: MemoryCloud) -> Any:
    """Return what Azure has around the cluster, and the bootstrap secret in it."""
    windows = {name: one["properties"] for name, one in cloud.azure.peek_maintenance(ONE).items()}
    secret = api(cloud).get(SOPS)
    data = secret["data"] if secret else None
    return credentials(cloud), sorted(assignments(cloud)), policies(cloud), windows, data


def carried_out(cloud: MemoryCloud, extra: str) -> None:
    push(cloud, files(extra))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def until_flux(cloud: MemoryCloud) -> None:
    """Run a job until it is to install Flux, one step a message."""
    usual = cloud.ports
    one_step_a_message(cloud)
    step_until(cloud, lambda: bool(phases(cloud)) and record(cloud).job.step.name is Step.FLUX_COMPONENTS)
    cloud.ports = usual


def restored(extra: str, lost: str, newest: str) -> tuple[MemoryCloud, Any]:
    """Return a cloud with tables of a job of ``extra`` that is to install Flux, and what it left.

    After it ``lost`` was carried out. ``newest`` is the head, and no webhook announced it.
    """
    cloud = with_value(with_identity())
    push(cloud, files(extra))
    until_flux(cloud)
    older = cloud.state.backup()
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    before = written(cloud)
    cloud.clock.advance(600)
    carried_out(cloud, lost)
    assert written(cloud) != before
    cloud.repository.push(files(newest) | AGAIN)
    cloud.state.restore(older)
    return cloud, before


@pytest.mark.parametrize(("extra", "lost"), LOST)
def test_what_a_lost_commit_changed_is_as_in_git_once_the_cluster_is_ready(extra: str, lost: str) -> None:
    cloud, before = restored(extra, lost, extra)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert record(cloud).generation == 1
    assert written(cloud) == before


@pytest.mark.parametrize(("extra", "newest"), LOST)
def test_what_a_newer_commit_has_changed_is_not_taken_back_before_that_is_planned(
    extra: str, newest: str
) -> None:
    cloud, _ = restored(extra, newest, newest)
    after, writes = written(cloud), [*cloud.azure.accepted]
    cloud.run(until=lambda: record(cloud).job.reason.endswith("is planned first"))
    assert not record(cloud).ready
    cloud.run()
    assert (phases(cloud), record(cloud).generation) == ({"one": Phase.READY}, 2)
    assert written(cloud) == after
    assert [*cloud.azure.accepted] == writes


def test_a_job_that_ends_soon_reads_nothing_twice() -> None:
    cloud = with_value(with_identity())
    everything = ACCESS + POLICIES + WINDOW
    carried_out(cloud, everything)
    read: list[str] = []
    azure = cloud.ports.azure

    def count(operation: Any) -> Any:
        read.append(type(operation).__name__)
        return azure.call(operation)

    for kind in (ListFederatedCredentials, ListMaintenance, ListPolicyAssignments):
        on_azure(cloud, kind, count)
    carried_out(cloud, everything + "  tags: {team: shop}\n")
    assert sorted(read) == ["ListFederatedCredentials", "ListMaintenance", "ListPolicyAssignments"]


def test_a_job_that_takes_long_reads_again_and_writes_nothing_again() -> None:
    cloud = with_value(with_identity())
    everything = ACCESS + POLICIES + WINDOW
    carried_out(cloud, everything)
    push(cloud, files(ISSUER + CREDENTIAL + ADDON + "  policies:\n" + DENY + OTHER_DAY))
    until_flux(cloud)
    cloud.clock.advance(120)
    writes = access_writes(cloud), policy_writes(cloud)
    read: list[object] = []
    azure = cloud.ports.azure

    def count(operation: Any) -> Any:
        read.append(operation)
        return azure.call(operation)

    on_azure(cloud, ListFederatedCredentials, count)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert len(read) == 1
    assert (access_writes(cloud), policy_writes(cloud)) == writes
    ready = record(cloud).condition("Ready")
    assert ready is not None
    assert ready.message.startswith("Flux applied ")
    assert ";" not in ready.message


@pytest.mark.parametrize(("extra", "lost"), LOST[:3])
def test_what_a_lost_commit_took_from_a_cluster_that_was_ready_is_found_by_a_check(
    extra: str, lost: str
) -> None:
    cloud = with_value(with_identity())
    carried_out(cloud, extra)
    older = cloud.state.backup()
    carried_out(cloud, lost)
    cloud.repository.push(files(extra) | AGAIN)
    cloud.state.restore(older)
    cloud.run()
    assert (phases(cloud), record(cloud).generation) == ({"one": Phase.READY}, 1)
    check(cloud)
    assert drifted(record(cloud)) != {}
