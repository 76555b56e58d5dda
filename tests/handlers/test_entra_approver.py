"""Who approves, and with which addresses authors are compared, is what the token says, and nothing else."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import httpx
import pytest

from handlers.sign_in import PRINCIPAL, SignIn
from localcloud.azure.wire.identity_server import IdentityServer
from localcloud.azure.world.access.directory import ACCOUNTS, API
from localcloud.functions.easy_auth import AuthSettings
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.accept import accept
from shared.ports import ApprovalRules
from tests.support import fleet_files
from tests.support.pipeline_runs import push, pushed
from tests.support.served_api import served

OTHERS = ApprovalRules(by_others=True)


@pytest.mark.lives
@pytest.mark.parametrize(("author", "status"), [("Approver@example.com", 403), ("ada@example.com", 202)])
def test_the_author_of_a_removal_is_recognised_by_the_token(author: str, status: int) -> None:
    cloud = MemoryCloud()
    cloud.with_ports(lambda ports: replace(ports, config=replace(ports.config, approvals=OTHERS)))
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


@pytest.mark.parametrize(
    ("claims", "name", "person"),
    [
        ({"preferred_username": "ada@example.com", "azp": "0b1c"}, "ada@example.com", True),
        ({"name": "app owner", "azp": "0b1c"}, "app owner", True),
        ({"azp": "0b1c"}, "app 0b1c", False),
    ],
)
def test_an_app_of_entra_is_no_person_whatever_people_are_called(
    claims: dict[str, str], name: str, person: bool
) -> None:
    said = [{"typ": kind, "val": value} for kind, value in {"oid": "1", **claims}.items()]
    header = base64.b64encode(json.dumps({"auth_typ": "aad", "claims": said}).encode()).decode()
    caller = SignIn("entra", platform_verifies=True).caller({PRINCIPAL: header})
    assert caller is not None
    assert (caller.name, caller.principal.person) == (name, person)
