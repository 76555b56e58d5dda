"""Rollouts over the wire: an upgrade with a canary, a soak, a failure, its fix and an approval.

The next change is reverted in the middle, and a stopped cluster gets the last one later than the others.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

import httpx
import pytest

from cli.errors import RequestRefused
from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.arm_client import arm, path
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start
from tests.support.roadstead_command import roadstead

SOAK_SECONDS = 5
STAGES = f"""\
  environments: [development, test, production]
  rollout:
    stages:
      - name: development
        select: {{environments: [development]}}
        groups: [{{clusters: "1", soak: {SOAK_SECONDS}s}}, {{maxConcurrency: "100%"}}]
      - {{name: test, select: {{environments: [test]}}}}
      - {{name: production, select: {{environments: [production]}}, approval: true}}
"""
CLUSTERS = {"d1": "development", "d2": "development", "t1": "test", "p1": "production", "p2": "production"}
QUICK = Options(create_seconds=1, lock_seconds=5, extra={"POLL_SECONDS": "0.5"})
OLD, NEW = "1.35", "1.36"


def fleet(version: str, *, count: int = 1, **extra: str) -> dict[str, bytes]:
    """Return a fleet of three environments with a version and so many nodes each.

    ``extra`` is YAML in the spec of a cluster.
    """
    files = fleet_files.fleet()
    text = (
        files["fleet.yaml"].decode().replace('kubernetesVersion: "1.36"', f'kubernetesVersion: "{version}"')
    )
    start, end = text.index("  environments:"), text.index("  guards:")
    files["fleet.yaml"] = (text[:start] + STAGES + text[end:]).encode()
    files["environments/test.yaml"] = files["environments/development.yaml"].replace(b"development", b"test")
    for name, environment in CLUSTERS.items():
        own = f"  environment: {environment}\n{extra.get(name, '')}"
        files[f"clusters/{name}/cluster.yaml"] = fleet_files.cluster(name, count=count, extra=own)
    return files


def versions(azure: httpx.Client) -> dict[str, str]:
    """Return the minor version of each control plane."""
    found = {name: azure.get(path(name)).json()["properties"] for name in CLUSTERS}
    return {name: document["currentKubernetesVersion"].rpartition(".")[0] for name, document in found.items()}


def newest(operator: Operator) -> str:
    """Return the state of the newest rollout, "" while there is none."""
    return next((rollout["state"] for rollout in operator.api.rollouts()["rollouts"]), "")


def act(operator: Operator, *arguments: str) -> str:
    key = operator.cloud.settings["API_KEY_ADMIN"]
    done = roadstead("rollout", *arguments, ROADSTEAD_URL=operator.cloud.urls.functions, ROADSTEAD_KEY=key)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_an_upgrade_stops_at_a_failure_and_its_fix_goes_through_all_environments(start: Start) -> None:
    operator = start(QUICK)
    operator.wait_for_status(operator.push(fleet(OLD)), "success", seconds=120)
    refused = {"error": {"code": "InvalidParameter", "message": "no vCPUs are left"}}
    rule = {"match": r"^PUT .*/managedClusters/t1($|\?)", "status": 400, "times": 1, "body": refused}
    operator.faults(operator.cloud.urls.arm, [rule])
    upgrade = operator.push(fleet(NEW))
    operator.wait(lambda: newest(operator) == "Paused: failure budget spent", "t1 stops it", seconds=120)
    assert "t1" in operator.wait_for_status(upgrade, "failure")
    with arm(operator) as azure:
        assert versions(azure) == {"d1": NEW, "d2": NEW, "t1": OLD, "p1": OLD, "p2": OLD}
        fix = operator.push(_fixed())
        operator.wait(lambda: newest(operator) == "Waiting for approval", "production waits", seconds=120)
        assert versions(azure) == {"d1": NEW, "d2": NEW, "t1": NEW, "p1": OLD, "p2": OLD}
        assert "stage production" in act(operator, "show")
        act(operator, "approve", "production", "--reason", "tested")
        operator.wait_for_status(fix, "success", seconds=120)
        assert set(versions(azure).values()) == {NEW}
        assert newest(operator) == "Completed"
        _in_order(operator)
        _goes_back_in_the_middle(operator, azure)
        _catches_up_after_a_stop(operator, azure)


def _fixed(count: int = 1) -> dict[str, bytes]:
    """Return the upgraded fleet with so many nodes in each cluster."""
    return fleet(NEW, count=count, t1="  tags: {fixed: again}\n")


def _with_nodes(azure: httpx.Client, count: int) -> set[str]:
    """Return the clusters that have so many nodes in Azure."""
    pools = {name: azure.get(path(name)).json()["properties"]["agentPoolProfiles"] for name in CLUSTERS}
    return {name for name, found in pools.items() if found[0]["count"] == count}


def _goes_back_in_the_middle(operator: Operator, azure: httpx.Client) -> None:
    """Revert a change that waits for the approval of production: the clusters that have it go back."""
    operator.push(_fixed(count=2))
    operator.wait(lambda: newest(operator) == "Waiting for approval", "production waits again", seconds=120)
    assert _with_nodes(azure, 2) == {"d1", "d2", "t1"}
    before = {name: _generation(operator, name) for name in ("p1", "p2")}
    operator.wait_for_status(operator.push(_fixed()), "success", seconds=120)
    assert _with_nodes(azure, 2) == set()
    assert {name: _generation(operator, name) for name in ("p1", "p2")} == before
    assert newest(operator) == "Completed"


def _generation(operator: Operator, name: str) -> int:
    return max(event["generation"] for event in operator.api.events(name, limit=200)["events"])


def _catches_up_after_a_stop(operator: Operator, azure: httpx.Client) -> None:
    """Change the fleet while a cluster is stopped: the others do not wait, and it follows by itself."""
    azure.post(path("d2", "/stop")).raise_for_status()
    operator.wait(lambda: _is_found(operator, "Failed"), "the sweep finds d2 stopped", every=2)
    change = operator.push(_fixed(count=3))
    operator.wait(lambda: newest(operator) == "Waiting for approval", "nobody waits for d2", seconds=120)
    act(operator, "approve", "production")
    operator.wait(lambda: _with_nodes(azure, 3) == {*CLUSTERS} - {"d2"}, "the others have it", seconds=120)
    azure.post(path("d2", "/start")).raise_for_status()
    operator.wait(lambda: _is_found(operator, "Ready"), "d2 catches up", seconds=120, every=2)
    operator.wait_for_status(change, "success", seconds=120)
    assert _with_nodes(azure, 3) == {*CLUSTERS}
    assert newest(operator) == "Completed"


def _is_found(operator: Operator, phase: str) -> bool:
    """Return whether d2 has a phase, after what a sweep finds; a job that runs finds that itself."""
    with suppress(RequestRefused):
        operator.api.refresh(["d2"])
    return operator.phases()["d2"] == phase


def _in_order(operator: Operator) -> None:
    """Check that the canary was watched before the other one, and that production was changed in turn."""
    assert _time(operator, "d2", "Accepted") - _time(operator, "d1", "Ready") >= timedelta(
        seconds=SOAK_SECONDS
    )
    assert _time(operator, "p2", "Accepted") >= _time(operator, "p1", "Ready")


def _time(operator: Operator, name: str, reason: str) -> datetime:
    """Return when something first happened to a cluster at the generation of the upgrade."""
    events = operator.api.events(name, limit=200)["events"]
    times = [event["at"] for event in events if (event["generation"], event["reason"]) == (2, reason)]
    return datetime.fromisoformat(str(times[-1]))
