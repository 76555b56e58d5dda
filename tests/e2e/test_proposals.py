"""Drift that a policy proposes, over the wire: a pull request, its plan, and a merge that writes nothing."""

from __future__ import annotations

import base64
from typing import Any

import httpx
import pytest

from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.arm_client import arm, path
from tests.support.drift_on_the_wire import ARM_SECONDS, changed, drifted
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start
from tests.support.roadstead_command import roadstead
from tests.support.truth_on_the_wire import truths

QUICK = Options(create_seconds=1, lock_seconds=5, extra={"POLL_SECONDS": "0.5"})
MANIFEST = fleet_files.cluster(
    "one",
    extra="""\
    - {name: apps, vmSize: Standard_D4s_v5, count: 1}   # the shop
  tags: {cost: a}
  drift: {action: propose}
""",
)
BRANCH = "roadstead/drift/example/one"


def pull_requests(operator: Operator) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = operator.github.get(f"{operator.repository}/pulls?state=all").json()
    return found


def on_branch(operator: Operator, branch: str) -> str:
    url = f"{operator.repository}/contents/clusters/one/cluster.yaml"
    return base64.b64decode(operator.github.get(url, params={"ref": branch}).json()["content"]).decode()


def state(azure: httpx.Client, pool: str) -> str:
    return str(azure.get(pool).json()["properties"]["provisioningState"])


@pytest.mark.long
def test_drift_is_proposed_planned_and_merged_without_a_write_to_azure(start: Start) -> None:
    operator = start(QUICK)
    commit = operator.push(fleet_files.fleet() | {"clusters/one/cluster.yaml": MANIFEST})
    operator.wait_for_status(commit, "success")
    with arm(operator) as azure:
        changed(operator, azure, "one")
        pool = path("one", "/agentPools/apps")
        operator.wait(lambda: state(azure, pool) == "Succeeded", "the pool is scaled", every=ARM_SECONDS)
    operator.api.refresh(["one"])
    operator.wait(lambda: len(pull_requests(operator)) == 1, "the drift is proposed")
    (pull,) = pull_requests(operator)
    assert (pull["head"]["ref"], pull["base"]["ref"], pull["state"]) == (BRANCH, "main", "open")
    proposed = (
        MANIFEST.decode().replace("count: 1}   #", "count: 3}   #").replace("cost: a", "cost: b, own: x")
    )
    assert on_branch(operator, BRANCH) == proposed
    comments = f"{operator.repository}/issues/{pull['number']}/comments"
    operator.wait(lambda: bool(operator.github.get(comments).json()), "the proposal is planned", seconds=90)
    (comment,) = operator.github.get(comments).json()
    assert "1 update" in comment["body"]
    shown = roadstead(
        *("drift", "one"),
        ROADSTEAD_URL=operator.cloud.urls.functions,
        ROADSTEAD_KEY=operator.cloud.settings["API_KEY_ADMIN"],
    )
    assert pull["html_url"] in shown.stdout, shown.stderr
    before = operator.accepted()
    merged = operator.github.put(f"{operator.repository}/pulls/{pull['number']}/merge", json={})
    assert merged.status_code == 200, merged.text
    operator.wait_for_status(merged.json()["sha"], "success")
    operator.wait(lambda: truths(operator)["one"].InSync == "True", "the cluster is in sync")
    assert (drifted(operator, "one"), operator.accepted()) == ({}, before)
    operator.api.refresh([])
    gone = f"{operator.repository}/git/ref/heads/{BRANCH}"
    operator.wait(lambda: operator.github.get(gone).status_code == 404, "the branch is deleted")
    assert [pull_request["merged_at"] is not None for pull_request in pull_requests(operator)] == [True]
