"""What people change in clusters by hand, over the wire: found, shown, and treated as the policy says."""

from __future__ import annotations

from pathlib import Path

import httpx

from localcloud.azure.world.directory import FUNCTION_APP
from localcloud.runtime.options import Options
from localcloud.runtime.parts.part import shown_notifications
from tests.support import fleet_files
from tests.support.arm_client import arm, path
from tests.support.drift_on_the_wire import ARM_SECONDS, changed, drifted, in_sync
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start
from tests.support.notices import notifying
from tests.support.roadstead_command import roadstead, write

QUICK = Options(create_seconds=1, lock_seconds=5, extra={"POLL_SECONDS": "0.5"})
POOL = "    - {name: apps, vmSize: Standard_D4s_v5, count: 1}\n  tags: {cost: a}\n"
EXEMPTION = "{name: costs, fields: [tags.cost], action: ignore, owner: a, reason: b, expires: 2999-12-31}"
POLICIES = {
    "reported": "",
    "corrected": "  drift: {action: correct}\n",
    "ignored": f"  drift: {{action: correct, rules: [{EXEMPTION}]}}\n",
}


def fleet() -> dict[str, bytes]:
    """Return a fleet with a cluster for each policy, whose drift is sent to Teams."""
    clusters = {
        f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, extra=POOL + policy)
        for name, policy in POLICIES.items()
    }
    route = "{name: drift, type: teams, address: TEAMS_WEBHOOK_URL, events: [drift]}"
    return notifying(fleet_files.fleet() | clusters, route)


def notified(operator: Operator) -> str:
    """Return what Teams has got."""
    shown = shown_notifications(operator.cloud.state)
    return shown.read_text() if shown.is_file() else ""


def apps(azure: httpx.Client, name: str) -> int | None:
    """Return the count of a pool, None where there is no such pool."""
    answer = azure.get(path(name, "/agentPools/apps"))
    return None if answer.status_code == 404 else int(answer.json()["properties"]["count"])


def test_drift_is_found_by_the_next_refresh_and_reported_corrected_or_ignored(
    start: Start, tmp_path: Path
) -> None:
    operator = start(QUICK)
    commit = operator.push(fleet())
    operator.wait_for_status(commit, "success")
    assert [in_sync(operator, name) for name in POLICIES] == ["True"] * 3
    with arm(operator) as azure:
        for name in POLICIES:
            changed(operator, azure, name)
        operator.api.refresh([*POLICIES])
        scaled, cost = {"nodePools[apps].count": ("1", "3")}, {"tags.cost": ('"a"', '"b"')}
        own = {"tags.own": ("", '"x"')}
        operator.wait(lambda: drifted(operator, "reported") == scaled | cost | own, "drift is reported")
        (found,) = operator.api.drift("reported")["clusters"]
        assert {field["changedBy"] for field in found["fields"]} == {FUNCTION_APP.id}
        assert all(field["changedAt"] for field in found["fields"])
        assert in_sync(operator, "reported") == "False"
        operator.wait(lambda: "with drift in eastus" in notified(operator), "Teams is notified of drift")
        assert "--- reported in git\n+++ reported in Azure\n" in notified(operator)
        assert "-    count: 1\n+    count: 3" in notified(operator)
        operator.wait(lambda: apps(azure, "corrected") == 1, "the pool is scaled back", every=ARM_SECONDS)
        operator.wait(
            lambda: apps(azure, "ignored") == 1,
            "the pool next to an exempt tag is scaled back",
            every=ARM_SECONDS,
        )
        operator.wait(lambda: set(operator.phases().values()) == {"Ready"}, "all are Ready again")
        tags = {name: azure.get(path(name)).json()["tags"]["cost"] for name in POLICIES}
        assert tags == {"reported": "b", "corrected": "a", "ignored": "b"}
        assert apps(azure, "reported") == 3
        shown = roadstead(
            "drift",
            "reported",
            ROADSTEAD_URL=operator.cloud.urls.functions,
            ROADSTEAD_KEY=operator.cloud.settings["API_KEY_ADMIN"],
        )
        assert "-    count: 1\n+    count: 3" in shown.stdout, shown.stderr
        assert "; set in clusters/reported/cluster.yaml:" in shown.stdout
        live = roadstead(
            *("plan", "--live", "--cluster", "reported"),
            cwd=write(tmp_path, fleet()),
            ROADSTEAD_URL=operator.cloud.urls.functions,
            ROADSTEAD_KEY=operator.cloud.settings["API_KEY_ADMIN"],
        )
        assert "-    count: 1\n+    count: 3" in live.stdout, live.stderr
        azure.delete(path("corrected", "/agentPools/apps")).raise_for_status()
        operator.wait(lambda: apps(azure, "corrected") is None, "the pool is deleted", every=ARM_SECONDS)
        operator.api.refresh(["corrected"])
        operator.wait(lambda: apps(azure, "corrected") == 1, "the pool is created again", every=ARM_SECONDS)
        operator.api.replay("reported")
        operator.wait(lambda: drifted(operator, "reported") == own, "the values of git are written")
        assert apps(azure, "reported") == 1
        operator.wait(lambda: operator.status(commit).startswith("success"), "the commit is a success again")
