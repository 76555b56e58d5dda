"""What a check counts in a cluster: every object once, and few of them by name."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shared.json_tree import Json
from shared.kubernetes.health import PATIENCE, Fault, flux_faults, missing, node_faults, report_of
from shared.kubernetes.inside import MESSAGE_LIMIT, NAMED, Count, InsideReading, Part, workload_faults
from shared.resource_ids import ObjectRef

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LONG_AGO = NOW - PATIENCE - timedelta(hours=1)
STATES = ("True", "False", "Unknown", "suspended", "new")
LABEL = "pool"


def kustomization(name: str, state: str) -> Json:
    """Return a Kustomization that is ready, failed, at work for long or a moment, or suspended."""
    since = (NOW if state == "new" else LONG_AGO).isoformat()
    status = {"suspended": "True", "new": "Unknown"}.get(state, state)
    ready = {"type": "Ready", "status": status, "reason": "Because", "message": "m" * 1000}
    return {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": name, "namespace": "shop", "creationTimestamp": since},
        "spec": {"suspend": state == "suspended"},
        "status": {"conditions": [{**ready, "lastTransitionTime": since}]},
    }


def counted(objects: list[Json], faults: list[Fault]) -> Part:
    return Count(NOW).flux("Kustomization", [*map(report_of, objects)], faults)


@given(st.lists(st.sampled_from(STATES), max_size=30))
def test_each_object_is_counted_once_and_few_are_named(states: list[str]) -> None:
    objects = [kustomization(f"apps-{number}", state) for number, state in enumerate(states)]
    part = counted(objects, list(flux_faults(map(report_of, objects), NOW)))
    assert (part.total, part.ready) == (len(states), states.count("True"))
    assert part.suspended == states.count("suspended")
    assert part.failed == states.count("False") + states.count("Unknown")
    assert len(part.unhealthy) == min(part.failed, NAMED)
    assert all(len(unhealthy.message) <= MESSAGE_LIMIT for unhealthy in part.unhealthy)


def test_an_object_that_is_missing_is_failed_although_the_cluster_has_no_such_one() -> None:
    ref = ObjectRef("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", "flux-system")
    part = counted([], [missing(ref)])
    assert (part.total, part.ready, part.failed) == (0, 0, 1)
    assert part.unhealthy[0].reason == "ObjectMissing"


def test_an_object_with_two_faults_is_one_object() -> None:
    objects = [kustomization("apps", "False")]
    (fault,) = flux_faults(map(report_of, objects), NOW)
    assert counted(objects, [fault, replace(fault, reason="Suspended")]).failed == 1


def node(name: str, pool: str, *, ready: bool, version: str = "1.36.2") -> Json:
    status = {"type": "Ready", "status": str(ready), "lastTransitionTime": LONG_AGO.isoformat()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {LABEL: pool} if pool else {}},
        "status": {"conditions": [status], "nodeInfo": {"kubeletVersion": f"v{version}"}},
    }


def test_nodes_are_counted_by_their_pools_with_the_versions_that_run() -> None:
    nodes = [
        node("a-0", "apps", ready=True),
        node("a-1", "apps", ready=False, version="1.35.7"),
        node("s-0", "system", ready=True),
        node("x", "", ready=True),
    ]
    parts = list(Count(NOW).pools(nodes, LABEL, {}, node_faults(nodes, NOW)))
    numbers = [(part.pool, part.total, part.ready, part.failed, part.versions) for part in parts]
    assert numbers == [
        ("", 1, 1, 0, ("1.36.2",)),
        ("apps", 2, 1, 1, ("1.35.7", "1.36.2")),
        ("system", 1, 1, 0, ("1.36.2",)),
    ]
    assert [(unhealthy.name, unhealthy.since) for part in parts for unhealthy in part.unhealthy] == [
        ("a-1", LONG_AGO)
    ]


def stateful_set(name: str = "web") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "creationTimestamp": LONG_AGO.isoformat()}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": {"replicas": 2}}


def test_an_object_without_a_time_is_unhealthy_since_the_check_that_found_it_first() -> None:
    faults = list(workload_faults([stateful_set()], NOW))
    first = Count(NOW).workloads("StatefulSet", [stateful_set()], faults)
    later = Count(NOW + timedelta(hours=4), InsideReading(NOW, (first,)))
    assert later.workloads("StatefulSet", [stateful_set()], faults).unhealthy[0].since == NOW
    another = list(workload_faults([stateful_set("db")], NOW))
    assert later.workloads("StatefulSet", [stateful_set("db")], another).unhealthy[0].since == later.now
