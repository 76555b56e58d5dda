"""Deletes and corrections that destroy wait for an approval, and are carried out, over the wire."""

from __future__ import annotations

import json
from subprocess import CompletedProcess

import httpx
import pytest

from cli.errors import RequestRefused
from localcloud.runtime.options import Options
from shared.resource_ids import ClusterId
from tests.support import fleet_files
from tests.support.arm_client import arm, path
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start
from tests.support.pull_request_author import Author
from tests.support.roadstead_command import roadstead

ONE = ClusterId("00000000-0000-0000-0000-000000000001", "rg-one", "one")


@pytest.mark.long
def test_a_commit_that_deletes_every_cluster_waits_for_the_approval_of_exactly_that(start: Start) -> None:
    operator = start(Options(create_seconds=1, extra={"POLL_SECONDS": "0.5"}))
    url = operator.cloud.urls.functions
    operator.wait_for_status(operator.push(fleet_files.fleet("one", "two")), "success")

    written = roadstead("import", ONE.resource, "--url", url)
    assert (written.returncode, "name: one" in written.stdout) == (0, True)
    assert not [line for line in written.stdout.splitlines() if line.startswith("#")]

    author = Author(operator, "empty")
    proposed = author.push(fleet_files.fleet())
    author.propose()
    author.wait_for("#### 2 clusters: **deletes that need approval**")
    assert operator.status(proposed) == "success: 2 needs approval"
    assert author.checks(proposed) == []

    commit = operator.push(fleet_files.fleet())
    status = operator.wait_for_status(commit, "failure")
    assert status.startswith(
        "failure: one, two: the commit removes 2 clusters, guards.deleteBudget in fleet.yaml"
    )
    author.wait_for("**Out of date**")
    release = f"2 removals need approval (roadstead approve {commit[:8]}): one, two"
    assert release in " ".join(roadstead("status", "--url", url).stdout.split())
    planned = roadstead("plan", "--exit-code", "--url", url, cwd=operator.checkout.folder)
    assert planned.returncode == 3
    assert release in " ".join(planned.stdout.split())
    plan = operator.plan(commit)
    assert plan is not None
    assert (plan["needsApproval"], plan["howToApprove"][:26]) == (
        ["one", "two"],
        f"roadstead approve {commit[:8]}",
    )
    with pytest.raises(RequestRefused, match="exactly the deletes that need it: one, two"):
        operator.api.post(f"plans/{commit}/approve", {"clusters": ["one"]})

    newer = operator.push({**fleet_files.fleet(), "README.md": b"A fleet\n"})
    operator.wait_for_status(newer, "failure")
    refused = roadstead("approve", commit, "--yes", "--url", url)
    assert (refused.returncode, f"a newer commit than {commit[:8]} is planned" in refused.stderr) == (1, True)
    with pytest.raises(RequestRefused, match="is no longer the commit that was planned last"):
        operator.api.post(f"plans/{commit}/approve", {"clusters": ["one", "two"]})
    assert operator.phases() == {"one": "Ready", "two": "Ready"}

    done = roadstead("approve", newer[:8], "--yes", "--url", url)
    assert done.returncode == 0, done.stderr
    status = operator.wait_for_status(newer, "success")
    assert status == "success: 2 of 2 clusters in sync (2 delete)"
    assert operator.phases() == {}
    accepted = operator.accepted()
    assert {name: accepted["delete", name] for name in ("one", "two")} == {"one": 1, "two": 1}


@pytest.mark.long
def test_a_team_approves_deletes_by_a_review_before_or_after_the_merge(start: Start) -> None:
    extra = {"POLL_SECONDS": "0.5", "APPROVAL_TEAMS": "example/approvers"}
    operator = start(Options(create_seconds=1, extra=extra))
    operator.wait_for_status(operator.push(fleet_files.fleet("one", "two", "three", "four")), "success")

    before = Author(operator, "before")
    before.push(fleet_files.fleet("one", "two"))
    before.propose()
    before.wait_for("or an approving review of its pull request by example/approvers releases")
    review = before.reviewed("reviewer")
    status = operator.wait_for_status(before.merge(), "success")
    assert status == "success: 4 of 4 clusters in sync (2 delete, 2 unchanged)"

    after = Author(operator, "after")
    after.push(fleet_files.fleet())
    after.propose()
    after.reviewed("contributor")
    commit = after.merge()
    operator.wait_for_status(commit, "failure")
    plan = operator.plan(commit)
    assert plan is not None
    assert plan["reviews"].endswith("(contributor is no member)")
    assert sorted(operator.phases()) == ["one", "two"]
    late = after.reviewed("reviewer")
    operator.wait_for_status(commit, "success")
    assert operator.phases() == {}

    audit = roadstead("audit", "--output", "json", "--url", operator.cloud.urls.functions)
    acts = [act for act in json.loads(audit.stdout)["acts"] if act["action"] == "approve"]
    assert [(act["address"], act["by"]) for act in acts] == [
        (late, "reviewer on GitHub"),
        (review, "reviewer on GitHub"),
    ]


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
    return sorted(document["name"] for document in found)


def create_by_hand(azure: httpx.Client) -> None:
    """Create a pool with the tags of another one, as somebody does who copies it in the portal."""
    first = azure.get(path(NAME, "/agentPools/system")).json()["properties"]
    copied = {key: first[key] for key in ("vmSize", "type", "osType")} | {"mode": "User", "count": 1}
    tags = {**first["tags"], "roadstead-pool": POOL}
    created = azure.put(path(NAME, f"/agentPools/{POOL}"), json={"properties": {**copied, "tags": tags}})
    created.raise_for_status()


def waiting(operator: Operator) -> str:
    """Return what identifies the corrections that wait for an approval."""
    return "".join(cluster["needsApproval"] for cluster in operator.api.drift(NAME)["clusters"])


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
    acts = [
        (act["action"], act["result"].partition(":")[0]) for act in operator.api.get("audit?limit=5")["acts"]
    ]
    assert ("approve", "accepted") in acts
    assert waiting(operator) == ""


def _compared(operator: Operator) -> str:
    """Have the cluster compared, and return what waits; it is left alone while Azure works on it."""
    if not waiting(operator):
        operator.api.refresh([NAME])
    return waiting(operator)
