"""A correction that destroys, over the wire: it waits for an approval, and is carried out as approved."""

from __future__ import annotations

from subprocess import CompletedProcess

import httpx

from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.arm_client import arm, path
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start
from tests.support.roadstead_command import roadstead

ARM_SECONDS = 1.0
"""Between two reads of Azure, which limits them for each cluster."""
KEYS = {f"API_KEY_{role}": role.lower() * 3 for role in ("OPERATOR", "APPROVER")}
QUICK = Options(create_seconds=1, lock_seconds=5, extra={"POLL_SECONDS": "0.5", **KEYS})
NAME, POOL = "one", "byhand"


def fleet() -> dict[str, bytes]:
    manifest = fleet_files.cluster(NAME, extra="  drift: {action: correct}\n")
    return fleet_files.fleet() | {f"clusters/{NAME}/cluster.yaml": manifest}


def pools(azure: httpx.Client) -> list[str]:
    found = azure.get(path(NAME)).json()["properties"]["agentPoolProfiles"]
    return sorted(each["name"] for each in found)


def create_by_hand(azure: httpx.Client) -> None:
    """Create a pool with the tags of another one, as somebody does who copies it in the portal."""
    first = azure.get(path(NAME, "/agentPools/system")).json()["properties"]
    copied = {key: first[key] for key in ("vmSize", "type", "osType")} | {"mode": "User", "count": 1}
    tags = {**first["tags"], "roadstead-pool": POOL}
    created = azure.put(path(NAME, f"/agentPools/{POOL}"), json={"properties": {**copied, "tags": tags}})
    created.raise_for_status()


def waiting(operator: Operator) -> str:
    """Return what identifies the corrections that wait for an approval."""
    return "".join(each["needsApproval"] for each in operator.api.drift(NAME)["clusters"])


def approve(operator: Operator, role: str) -> CompletedProcess[str]:
    return roadstead(
        *("approve", "--cluster", NAME, "--yes", "--reason", "a copy"),
        ROADSTEAD_URL=operator.cloud.urls.functions,
        ROADSTEAD_KEY=KEYS[f"API_KEY_{role}"],
    )


def test_a_pool_that_git_does_not_have_is_deleted_once_an_approver_approves_that(start: Start) -> None:
    operator = start(QUICK)
    operator.wait_for_status(operator.push(fleet()), "success")
    with arm(operator) as azure:
        create_by_hand(azure)
        operator.wait(lambda: POOL in pools(azure), "the pool exists", every=ARM_SECONDS)
        operator.wait(lambda: bool(_compared(operator)), "a comparison shows the pool", every=ARM_SECONDS)
        refused = approve(operator, "OPERATOR")
        assert refused.returncode != 0
        assert "needs the role Approver" in refused.stderr
        assert POOL in pools(azure)
        done = approve(operator, "APPROVER")
        assert done.returncode == 0, done.stderr
        assert "the correction needs an approval: the node pool is deleted" in " ".join(done.stdout.split())
        operator.wait(lambda: pools(azure) == ["system"], "the pool is deleted", every=ARM_SECONDS)
        operator.wait(lambda: set(operator.phases().values()) == {"Ready"}, "the cluster is Ready")
    acts = [(act["action"], act["result"].partition(":")[0]) for act in operator.api.audit(limit=5)["acts"]]
    assert ("approve", "accepted") in acts
    assert waiting(operator) == ""


def _compared(operator: Operator) -> str:
    """Have the cluster compared, and return what waits; it is left alone while Azure works on it."""
    if not waiting(operator):
        operator.api.refresh([NAME])
    return waiting(operator)
