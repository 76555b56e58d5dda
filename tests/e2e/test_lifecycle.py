"""Existing clusters over the wire: upgrade under faults, pool replacement, delete, adoption, replay."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from localcloud.runtime.options import Options
from shared.adapters.servicebus import ServiceBusQueue, service_bus_client
from shared.ports import Message
from tests.support import fleet_files
from tests.support.arm_client import SUBSCRIPTION, arm, path
from tests.support.fleet_operator import Operator
from tests.support.inside_clusters import kubernetes
from tests.support.local_cloud_start import Start
from tests.support.roadstead_command import roadstead
from tests.support.workloads import budget, run_blocked_pod

QUICK = Options(
    create_seconds=1,
    lock_seconds=5,
    resend_schedule="*/2 * * * * *",
    extra={"POLL_SECONDS": "0.5", "RETRY_LIMITS": "Unavailable=60/1 Throttled=forever/1 Conflict=forever/1"},
)
BROKEN = {"error": {"code": "InternalServerError", "message": "try again"}}


def faults(match: str, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return faults for more than a tenth of the requests: throttled, failed, or done and not answered."""
    often: dict[str, Any] = {"match": match, "times": None, "share": 0.1}
    return [
        {**often, "status": 429, "headers": {"Retry-After": "1"}, "body": body},
        {**often, "status": 500, "body": body},
        {**often, "status": 503, "body": body, "after": True},
    ]


def pool(name: str, size: str = "Standard_D4s_v5", **fields: Any) -> str:
    more = "".join(f", {key}: {value}" for key, value in fields.items())
    return f"    - {{name: {name}, vmSize: {size}, count: 1{more}}}\n"


def fleet(**clusters: str) -> dict[str, bytes]:
    """Return a fleet of clusters, each with YAML below its spec, after its pool "system"."""
    manifests = {
        f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, extra=extra)
        for name, extra in clusters.items()
    }
    return fleet_files.fleet(budget=5) | manifests


def pools(operator: Operator, name: str) -> dict[str, Mapping[str, Any]]:
    with arm(operator) as client:
        found = client.get(path(name)).json()["properties"]["agentPoolProfiles"]
    return {profile["name"]: profile for profile in found}


@pytest.mark.long
def test_a_cluster_with_three_pools_is_upgraded_by_two_minors_under_faults(start: Start) -> None:
    operator = start(QUICK)
    more = pool("apps") + pool("batch")
    before = fleet(one=f'{more}  kubernetesVersion: "1.34"\n')
    operator.wait_for_status(operator.push(before), "success")
    calm = len(operator.cloud.requests("arm"))
    operator.faults(operator.cloud.urls.arm, faults("/subscriptions/", BROKEN))
    commit = operator.push(fleet(one=f'{more}  kubernetesVersion: "1.36"\n'))
    operator.wait_for_status(commit, "success", seconds=150)
    operator.faults(operator.cloud.urls.arm, [])
    found = pools(operator, "one")
    assert {p["currentOrchestratorVersion"].rpartition(".")[0] for p in found.values()} == {"1.36"}
    calls = operator.cloud.requests("arm")[calm:]
    failed = [call for call in calls if call.get("fault")]
    assert len(failed) >= len(calls) / 10
    minors = [
        event["message"]
        for event in operator.api.get("clusters/one/events?limit=500")["events"]
        if "every node runs" in event["message"]
    ]
    assert minors == ["every node runs 1.35; on to 1.36"]


def test_a_node_pool_replacement_waits_until_the_disruption_budget_allows_the_eviction(start: Start) -> None:
    operator = start(QUICK)
    operator.wait_for_status(operator.push(fleet(one=pool("apps"))), "success")
    with kubernetes(operator, "one") as api:
        run_blocked_pod(api, "apps")
        commit = operator.push(fleet(one=pool("apps", "Standard_D8s_v5")))
        blocked = "blocked: default/web"
        operator.wait(lambda: blocked in operator.api.get("clusters/one")["reason"], blocked)
        assert set(pools(operator, "one")) == {"system", "apps", "appsb"}
        api.apply(budget(minAvailable=0))
        operator.wait_for_status(commit, "success")
        assert api.list("v1", "Pod", fields="metadata.name=web") == []
    assert set(pools(operator, "one")) == {"system", "appsb"}


@pytest.mark.long
def test_a_delete_supersedes_a_create(start: Start) -> None:
    operator = start(replace(QUICK, create_seconds=10))
    operator.push(fleet(one=""))
    operator.wait(lambda: operator.accepted()["create", "one"] == 1, "one is being created")
    time.sleep(2)  # a push in the second of the last read of the head would await confirmation
    commit = operator.push(fleet())
    operator.wait_for_status(commit, "success")
    assert operator.phases() == {}
    with arm(operator) as client:
        assert client.get(path("one")).status_code == 404
    assert operator.accepted()["create", "one"] == 1
    reasons = [event["reason"] for event in operator.api.get("clusters/one/events")["events"]]
    assert reasons[0] == "Deleted"
    assert "Ready" not in reasons
    assert reasons.count("Accepted") == 2


def test_an_existing_cluster_is_imported_and_adopted(start: Start) -> None:
    operator = start(QUICK)
    body = {
        "location": "eastus",
        "identity": {"type": "SystemAssigned"},
        "sku": {"name": "Base", "tier": "Free"},
        "tags": {"team": "shop"},
        "properties": {
            "dnsPrefix": "grown",
            "kubernetesVersion": "1.35",
            "agentPoolProfiles": [
                {"name": "system", "mode": "System", "vmSize": "Standard_D2s_v5", "count": 2}
            ],
        },
    }
    with arm(operator) as client:
        group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-grown?api-version=2024-11-01"
        assert client.put(group, json={"location": "eastus"}).is_success
        assert client.put(path("grown"), json=body).is_success
        state = "provisioningState"
        operator.wait(
            lambda: client.get(path("grown")).json()["properties"][state] == "Succeeded", "it is created"
        )
    resource = path("grown").partition("?")[0]
    imported = roadstead("import", resource, "--url", operator.cloud.urls.functions)
    assert imported.returncode == 0, imported.stdout + imported.stderr
    assert "when-equal" in imported.stdout
    before = operator.accepted()
    files = {path: text for path, text in fleet_files.fleet().items() if not path.startswith("classes/")}
    files["fleet.yaml"] = b"""\
apiVersion: roadstead.dev/v1alpha1
kind: Fleet
metadata: {name: example}
spec:
  environments: [development, production]
  defaults:
    flux: {repository: https://github.com/example/fleet, path: ./platform}
"""
    manifest = imported.stdout.encode()
    operator.wait_for_status(operator.push(files | {"clusters/grown/cluster.yaml": manifest}), "success")
    assert operator.phases() == {"grown": "Ready"}
    new = operator.accepted() - before
    assert {name for kind, name in new if kind == "create"} == set()
    assert new["update", "grown"] == 1  # our tags, and nothing else
    with arm(operator) as client:
        tags = client.get(path("grown")).json()["tags"]
    assert (tags["team"], tags["roadstead-fleet"]) == ("shop", "example")


@pytest.mark.long
def test_failed_jobs_and_dead_letters_can_be_replayed(start: Start) -> None:
    operator = start(QUICK)
    urls = operator.cloud.urls
    quota = {"error": {"code": "InvalidParameter", "message": "no cores left"}}
    refused = {"match": "^PUT .*/managedClusters/", "status": 409, "body": quota, "times": None}
    operator.faults(urls.arm, [refused])
    commit = operator.push(fleet(one="", two=""))
    operator.wait_for_status(commit, "failure")
    operator.wait(lambda: set(operator.phases().values()) == {"Failed"}, "both failed")
    unreadable = ['{"schema_version": 1, "cluster": "one"}', "neither JSON nor anything else"]
    send(operator, [Message("one", f"unreadable-{n}", body) for n, body in enumerate(unreadable)])
    operator.wait(lambda: len(operator.api.get("dead-letters")["deadLetters"]) == 2, "two dead letters")
    bodies = {letter["body"] for letter in operator.api.get("dead-letters")["deadLetters"]}
    assert bodies == set(unreadable)
    why = roadstead("why", "one", "--url", urls.functions).stdout
    assert "InvalidManifest" in why
    assert "no cores left" in why

    operator.faults(urls.arm, [])
    sent = [
        Message(name, f"by-hand-{name}-{number}", job(operator, name, number))
        for number in (3, 1, 2)
        for name in ("one", "two")
    ]
    send(operator, sent + [Message("one", f"again-{n}", body) for n, body in enumerate(unreadable)])
    replayed = roadstead("replay", "--all", "--url", urls.functions)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    operator.wait_for_status(commit, "success")
    assert operator.phases() == {"one": "Ready", "two": "Ready"}
    assert operator.accepted()["create", "one"] == operator.accepted()["create", "two"] == 1


def send(operator: Operator, messages: list[Message]) -> None:
    """Send raw messages to the queue of jobs, as an operator's tool does."""
    with closing(service_bus_client(connection_string=operator.cloud.settings["ServiceBus"])) as client:
        queue = ServiceBusQueue(client, "jobs")
        for message in messages:
            queue.send(message)


def job(operator: Operator, name: str, sequence: int) -> str:
    """Return an old message of a cluster's job."""
    recorded = operator.api.get("recorded")["clusters"]
    uid = next(cluster["uid"] for cluster in recorded if cluster["name"] == name)
    body = f'"cluster": "{name}", "uid": "{uid}", "generation": 1, "sequence": {sequence}'
    return "{" + f'"schema_version": 1, "kind": "job", {body}' + "}"
