"""A fleet's life with three apps: each is a host of its own, and Azure refuses what its role lacks."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from localcloud.runtime.options import Options
from shared.configuration.settings import App
from shared.version import VERSION
from tests.support import fleet_files
from tests.support.deployed_rights import actions
from tests.support.fleet_operator import Operator
from tests.support.identity_access import ROLE
from tests.support.local_cloud_start import Start
from tests.support.roadstead_command import roadstead

ROLES = {app.value: sorted(actions(app)) for app in App}
PRIVATE = "  apiServerAccessProfile: {enablePrivateCluster: true}\n  flux: {install: extension}\n"
HIDDEN = {"clusters/two/cluster.yaml": fleet_files.cluster("two", extra=PRIVATE)}
"""A private cluster, which no app has a way to: its Flux is Microsoft's extension."""
QUICK = {"POLL_SECONDS": "0.5", "RETRY_LIMITS": "Unauthorized=2/1"}


@pytest.mark.long
def test_clusters_are_created_changed_and_deleted_by_three_identities(start: Start) -> None:
    operator = start(Options(create_seconds=1, roles=ROLES, extra=QUICK))
    ready = {"one": "Ready", "two": "Ready"}
    role = fleet_files.cluster("one", extra=ROLE)
    operator.push(fleet_files.fleet("one") | HIDDEN | {"clusters/one/cluster.yaml": role})
    operator.wait(lambda: operator.phases() == ready, "both are Ready", seconds=120)
    changed = fleet_files.cluster("one", extra=ROLE + "  tags: {a: b}\n")
    operator.push(fleet_files.fleet("one") | HIDDEN | {"clusters/one/cluster.yaml": changed})
    operator.wait(lambda: operator.accepted()["update", "one"] == 1, "one is changed", seconds=120)
    operator.wait(lambda: operator.phases() == ready, "one is Ready again", seconds=120)
    commit = operator.push(fleet_files.fleet() | HIDDEN)
    operator.wait_for_status(commit, "success", seconds=120)
    assert operator.phases() == {"two": "Ready"}
    assert operator.accepted()["delete", "one"] == 1
    assert operator.accepted()["put-configuration", "flux-system"] == 1
    kinds = Counter(kind for kind, _ in operator.accepted().elements())
    assert kinds["put-role-assignment"] == kinds["delete-role-assignment"] == 1
    refused = Counter(
        request["path"] for request in operator.cloud.requests("arm") if request["status"] == 403
    )
    assert refused == {}
    entered = {
        request["path"]
        for request in operator.cloud.requests("arm")
        if "credential" in request["path"].lower()
    }
    assert [path for path in entered if "/two/" in path] == []


def test_azure_refuses_a_delete_by_an_identity_without_the_right(start: Start) -> None:
    """The roles of the worker and of the deleter, exchanged: nothing is created."""
    exchanged = {**ROLES, "worker": ROLES["deleter"], "deleter": ROLES["worker"]}
    operator = start(Options(create_seconds=1, roles=exchanged, extra=QUICK))
    operator.push(fleet_files.fleet("one"))
    operator.wait(lambda: operator.phases() == {"one": "Failed"}, "one is Failed", seconds=120)
    assert not operator.accepted()
    reason = operator.api.get("clusters/one")["reason"]
    assert reason.startswith("Unauthorized: ")
    assert "microsoft.resources/subscriptions/resourcegroups/write" in reason


def doctor(operator: Operator) -> tuple[int, dict[str, Any]]:
    cloud = operator.cloud
    key = cloud.settings["API_KEY_ADMIN"]
    done = roadstead("doctor", "-o", "json", ROADSTEAD_URL=cloud.urls.functions, ROADSTEAD_KEY=key)
    return done.returncode, json.loads(done.stdout)


@pytest.mark.long
def test_each_of_three_apps_examines_itself(start: Start) -> None:
    """Three hosts that answer on queues of their own; then GitHub refuses the credential of all."""
    operator = start(Options(create_seconds=1, roles=ROLES, extra=QUICK))
    operator.push(fleet_files.fleet("one"))
    operator.wait(lambda: operator.phases() == {"one": "Ready"}, "one is Ready", seconds=120)
    code, well = doctor(operator)
    assert (code, well["findings"]) == (0, [])
    apps = {app["app"]: app["version"] for app in well["apps"]}
    assert apps == dict.fromkeys(("control", "worker", "deleter"), VERSION)
    functions = {app["app"]: set(app["functions"]) for app in well["apps"]}
    assert functions["worker"] == {"worker", "changer", "dead_jobs", "dead_changes"}
    assert functions["deleter"] == {"deleter", "dead_deletes"}
    assert {"github", "planner", "ready", "doctor"} <= functions["control"]
    operator.faults(operator.cloud.urls.github, [{"match": "^GET .*/git/", "status": 401, "times": None}])
    code, ill = doctor(operator)
    assert code == 1
    found = [finding for finding in ill["findings"] if finding["what"] == "GitHub"]
    assert {finding["app"] for finding in found} == apps.keys()
    assert all(finding["problem"].startswith("Unauthenticated") for finding in found)
