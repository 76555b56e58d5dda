"""The addresses with which an author is compared are those of the token, and of nothing else."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest

from localcloud.azure.wire.identity_server import IdentityServer
from localcloud.azure.world.access.directory import ACCOUNTS, API
from localcloud.functions.easy_auth import AuthSettings
from localcloud.memory.memory_cloud import MemoryCloud
from shared.pipeline.intake.accept import accept
from tests.support import fleet_files
from tests.support.pipeline_runs import push, pushed
from tests.support.served_api import served


@pytest.mark.parametrize(("author", "status"), [("Approver@example.com", 403), ("ada@example.com", 202)])
def test_the_author_of_a_removal_is_recognised_by_the_token(author: str, status: int) -> None:
    cloud = MemoryCloud()
    cloud.with_ports(lambda ports: replace(ports, config=replace(ports.config, approval_by_others=True)))
    push(cloud, fleet_files.fleet("one", "two"))
    cloud.run()
    gone = dict.fromkeys(("clusters/one/cluster.yaml", "clusters/two/cluster.yaml"))
    commit = cloud.repository.commit(gone, author=author)
    accept(pushed(cloud, commit), cloud.ports)
    cloud.run()
    approver = next(account for account in ACCOUNTS if account.name == "approver")
    with (
        IdentityServer(header="h") as identity,
        served(cloud.ports, AuthSettings(identity.authority, (API,))) as url,
    ):
        headers = {"Authorization": f"Bearer {identity.issue(API, approver)[0]}"}
        body = {"clusters": ["one", "two"], "reason": "retired"}
        address = f"{url}/api/plans/{commit}/approve"
        reply = httpx.post(address, json=body, headers=headers, trust_env=False)
    assert reply.status_code == status, reply.text
    (act,) = cloud.state.acts(5)
    assert (act.by, act.by_id, act.result[:7]) == (
        "approver@example.com",
        approver.id,
        "accepted"[:7] if status == 202 else "refused",
    )
