"""What the table of fixed fields refuses of a change, a real API server refuses, and it takes the rest."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from typing import Any

import pytest

from localcloud.common.clock import system_clock
from shared.adapters.kubernetes import KubernetesConnections
from shared.cluster.failures.errors import Conflict, Immutable, InvalidManifest
from shared.kubernetes.flux_objects import ref_of
from shared.ports import KubernetesApi
from shared.resource_ids import ObjectRef
from tests.authority.real_cluster import RealCluster
from tests.platform.changed_objects import DEFAULTED, EVERY_ENTRY, REFUSED, TAKEN
from tests.support.kubernetes_ports import CLUSTER

CASES = [*EVERY_ENTRY, *REFUSED, *((old, new, "") for old, new in TAKEN), *DEFAULTED]
POD = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "image": "app:1"}]},
}
WORKLOAD = {"selector": {"matchLabels": {"app": "a"}}, "template": POD}
NEEDED: dict[str, dict[str, Any]] = {
    "Service": {"spec": {"ports": [{"port": 80}]}},
    **{kind: {"spec": WORKLOAD} for kind in ("Deployment", "StatefulSet", "DaemonSet")},
    "PersistentVolumeClaim": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    "RoleBinding": {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}},
}
"""What an object of a kind has besides, to be one: the cases have what is judged alone."""
SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}


PROTECTED = ("PersistentVolume", "VolumeAttributesClass")
"""Kinds with a finalizer whose controller does not run here."""
GROWS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "grows"},
    "provisioner": "disk.csi.azure.com",
    "allowVolumeExpansion": True,
}


def whole(given: dict[str, Any]) -> dict[str, Any]:
    """Return an object that an API server can judge."""
    needed = {} if "selector" in given.get("spec", {}) else NEEDED.get(given["kind"], {})
    found: dict[str, Any] = merged(needed, given)
    if "requests" in given.get("spec", {}).get("resources", {}):
        found["spec"]["storageClassName"] = "grows"
    if found["kind"] == "CustomResourceDefinition":
        found["spec"]["versions"] = [{"schema": SCHEMA, **version} for version in found["spec"]["versions"]]
    if found.get("spec", {}).get("healthCheckNodePort"):
        found["spec"]["externalTrafficPolicy"] = "Local"
    return found


def merged(under: Any, over: Any) -> Any:
    if not (isinstance(under, dict) and isinstance(over, dict)):
        return copy.deepcopy(over)
    both = under.keys() & over.keys()
    return copy.deepcopy({**under, **over}) | {key: merged(under[key], over[key]) for key in both}


@pytest.fixture(scope="module")
def api(cluster: RealCluster) -> Iterator[KubernetesApi]:
    config = cluster.kubeconfig
    with closing(KubernetesConnections(lambda _: config, aad_token=None, clock=system_clock)) as connections:
        found = connections.connect(CLUSTER)
        for name in ("a", "platform"):
            found.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        found.apply(GROWS)
        yield found


@pytest.mark.parametrize(("old", "new", "field"), CASES)
def test_the_api_server_refuses_a_change_that_the_table_refuses(
    api: KubernetesApi, old: dict[str, Any], new: dict[str, Any], field: str
) -> None:
    live = api.apply(whole(old))
    try:
        settle(api, live)
        if not field:
            api.apply(whole(new), dry_run=True)
            return
        with pytest.raises((Immutable, InvalidManifest)):
            api.apply(whole(new), dry_run=True)
    finally:
        remove(api, ref_of(live))


def settle(api: KubernetesApi, live: Mapping[str, Any]) -> None:
    """Let an object become what it is on a cluster: a claim is bound, a definition is served."""
    if live["kind"] == "PersistentVolumeClaim":
        capacity = live["spec"]["resources"]["requests"]
        status = {**live["status"], "phase": "Bound", "capacity": capacity}
        api.replace({**live, "status": status}, status=True)
    deadline = time.monotonic() + 60
    while live["kind"] == "CustomResourceDefinition" and not established(api.get(ref_of(live)) or {}):
        assert time.monotonic() < deadline, f"not established: {live}"
        time.sleep(0.05)


def established(definition: Mapping[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()
    return any((known["type"], known["status"]) == ("Established", "True") for known in conditions)


def remove(api: KubernetesApi, ref: ObjectRef) -> None:
    """Remove an object, and wait until it no longer exists."""
    deadline = time.monotonic() + 60
    while live := api.get(ref):
        assert time.monotonic() < deadline, f"not removed: {live}"
        with suppress(Conflict):  # a controller wrote its status
            if live["metadata"].get("finalizers") and live["kind"] in PROTECTED:
                live = api.replace({**live, "metadata": {**live["metadata"], "finalizers": []}})
            api.delete(live)
        time.sleep(0.05)
