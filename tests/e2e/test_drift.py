"""What people change in clusters by hand, over the wire: found, shown, and treated as the policy says.

A pool is scaled, a tag is changed and another one added, and a pool is deleted: the conditions and the status
of the commit are true before, while a correction runs, and after it.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from localcloud.azure.world.access.directory import FUNCTION_APP
from localcloud.runtime.options import ROOT, Options
from localcloud.runtime.parts.part import shown_notifications
from tests.support import fleet_files
from tests.support.arm_client import arm, path
from tests.support.drift_on_the_wire import ARM_SECONDS, changed, deleted, drifted, settle, without_own
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start
from tests.support.notifications import notifying
from tests.support.roadstead_command import roadstead, write
from tests.support.truth_on_the_wire import DRIFTED, HEALTHY, UPDATING, exists, hold, release, wait_for

AT_ONCE = Options(create_seconds=1, lock_seconds=5, extra={"POLL_SECONDS": "0.5", "UNHEALTHY_MINUTES": "0"})
POOLS = "".join(f"    - {{name: {name}, vmSize: Standard_D4s_v5, count: 1}}\n" for name in ("apps", "spare"))
EXEMPT = 'fields: [tags, "nodePools[*]"], action: ignore, owner: a, reason: b, expires: 2999-12-31'
POLICIES = {
    "reported": "",
    "corrected": "  drift: {action: correct}\n",
    "ignored": f"  drift: {{action: correct, rules: [{{name: by-hand, {EXEMPT}}}]}}\n",
}
CHANGED = {"nodePools[apps].count": ("1", "3"), "tags.cost": ('"a"', '"b"')}
ADDED = {"tags.own": ("", '"x"')}


def fleet() -> dict[str, bytes]:
    """Return a fleet with a cluster for each policy, whose drift is sent to Teams."""
    clusters = {
        f"clusters/{name}/cluster.yaml": fleet_files.cluster(
            name, extra=f"{POOLS}  tags: {{cost: a}}\n{policy}"
        )
        for name, policy in POLICIES.items()
    }
    route = "{name: drift, type: teams, address: TEAMS_WEBHOOK_URL, events: [drift]}"
    return notifying(fleet_files.fleet() | clusters, route)


def notified(operator: Operator) -> str:
    """Return what Teams has got."""
    shown = shown_notifications(operator.cloud.state)
    return shown.read_text() if shown.is_file() else ""


def as_changed(operator: Operator, name: str) -> bool:
    """Return whether the API shows every change, also that a whole pool is missing."""
    found = drifted(operator, name)
    git, live = found.pop("nodePools[spare]", ("", "a pool"))
    return found == CHANGED | ADDED and "Standard_D4s_v5" in git and live == ""


def in_azure(azure: httpx.Client, name: str) -> tuple[int, str, bool]:
    """Return the count of the scaled pool, the changed tag, and whether the deleted pool exists."""
    count = azure.get(path(name, "/agentPools/apps")).json()["properties"]["count"]
    return count, azure.get(path(name)).json()["tags"]["cost"], exists(azure, path(name, "/agentPools/spare"))


def run(operator: Operator, *arguments: str, cwd: Path | None = None) -> str:
    key = operator.cloud.settings["API_KEY_ADMIN"]
    url = operator.cloud.urls.functions
    done = roadstead(*arguments, cwd=cwd, ROADSTEAD_URL=url, ROADSTEAD_KEY=key)
    return done.stdout or done.stderr


@pytest.mark.long
def test_drift_is_found_by_the_next_refresh_and_reported_corrected_or_ignored(
    start: Start, tmp_path: Path
) -> None:
    operator = start(AT_ONCE)
    commit = operator.push(fleet())
    operator.wait_for_status(commit, "success")
    wait_for(operator, dict.fromkeys(POLICIES, HEALTHY), "all are healthy before", refresh=True)
    assert operator.status(commit).startswith("success")
    with arm(operator) as azure:
        changed(operator, azure, *POLICIES)
        deleted(operator, azure, *POLICIES)
        hold(operator, "^PUT .*/managedClusters/corrected")
        during = {"reported": DRIFTED, "corrected": UPDATING, "ignored": HEALTHY}
        wait_for(operator, during, "drift is reported, and a correction begins", refresh=True)
        assert as_changed(operator, "reported")
        assert as_changed(operator, "corrected"), "what a job corrects is shown until it is"
        assert drifted(operator, "ignored") == {}
        (found,) = operator.api.drift("reported")["clusters"]
        assert {field["changedBy"] for field in found["fields"]} == {FUNCTION_APP.id}
        assert all(field["changedAt"] for field in found["fields"])
        assert "reported: differs from git in 4 fields since " in operator.wait_for_status(commit, "failure")
        operator.wait(lambda: "with drift in eastus" in notified(operator), "Teams is notified of drift")
        assert "--- reported in git\n+++ reported in Azure\n" in notified(operator)
        assert "-    cost: a\n+    cost: b" in notified(operator)
        shown = run(operator, "drift", "reported")
        assert {"+    count: 3", "+    own: x", "-  - name: spare"} <= {*shown.splitlines()}
        assert "; set in clusters/reported/cluster.yaml:" in shown
        live = run(operator, "plan", "--live", "--cluster", "reported", cwd=write(tmp_path, fleet()))
        assert {"+    count: 3", "-  - name: spare"} <= {*live.splitlines()}

        release(operator)
        after = {"reported": DRIFTED, "corrected": DRIFTED, "ignored": HEALTHY}
        wait_for(operator, after, "the correction has ended")
        assert drifted(operator, "corrected") == ADDED, "a tag that git does not name is removed by nobody"
        by_hand, by_git = (3, "b", False), (1, "a", True)
        assert in_azure(azure, "corrected") == by_git
        assert [in_azure(azure, name) for name in ("reported", "ignored")] == [by_hand] * 2
        assert operator.status(commit).startswith("failure")

        operator.api.replay("reported")
        operator.wait(lambda: in_azure(azure, "reported") == by_git, "git is written", every=ARM_SECONDS)
        operator.wait(lambda: operator.phases()["reported"] == "Ready", "it is Ready again")
        for name in ("reported", "corrected"):
            settle(operator, azure, name)
        without_own(operator, azure, "reported", "corrected")
    wait_for(operator, dict.fromkeys(POLICIES, HEALTHY), "all are healthy after", refresh=True)
    operator.wait_for_status(commit, "success")


PAGE = ROOT / "docs" / "how-to" / "find-and-correct-drift.md"
SECTION = "## Try it on the local cloud\n"
QUICK = Options(create_seconds=1, lock_seconds=5, extra={"POLL_SECONDS": "0.5"})


def commands() -> list[list[str]]:
    """Return the commands of the section, in their order."""
    section = PAGE.read_text().partition(SECTION)[2]
    return [shlex.split(line) for line in re.findall(r"^\$ \.venv/bin/(.*)$", section, re.MULTILINE)]


def test_the_commands_of_the_page_make_drift_that_is_found_and_corrected(
    start: Start, tmp_path: Path
) -> None:
    operator = start(QUICK)
    (tmp_path / ".localcloud").symlink_to(operator.cloud.state)
    settings = {
        "ROADSTEAD_URL": operator.cloud.urls.functions,
        "ROADSTEAD_KEY": operator.cloud.settings["API_KEY_ADMIN"],
    }
    operator.wait_for_status(operator.push(fleet_files.example()), "success")

    def run(program: str, *arguments: str) -> str:
        if program == "roadstead":
            done = roadstead(*arguments, cwd=tmp_path, **settings)
        else:
            done = subprocess.run(
                [sys.executable, *arguments],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
                cwd=tmp_path,
                env={"PYTHONPATH": str(ROOT)},
            )
        assert done.returncode == 0, (program, arguments, done.stderr)
        return done.stdout

    def fields() -> set[str]:
        found = operator.api.drift("pacific-aks")["clusters"]
        return {field["path"] for cluster in found for field in cluster["fields"]}

    scale, tag, refresh, drift, replay = commands()
    run(*scale)
    run(*tag)
    run(*refresh)
    operator.wait(lambda: fields() == {"nodePools[apps].count", "tags.owner"}, "both changes are found")
    shown = run(*drift)
    assert "-    count: 3\n+    count: 5" in shown
    assert "+    owner: ann" in shown
    run(*replay)
    operator.wait(lambda: fields() == {"tags.owner"}, "the pool is scaled back, and the tag stays")
