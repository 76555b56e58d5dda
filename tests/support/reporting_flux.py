"""A cluster whose Flux reports what it does, and the events that somebody sends by hand.

The definitions of Provider and Alert are cut down to the fields that Roadstead sets: those of
``notification.toolkit.fluxcd.io/v1beta3`` in notification-controller v1.6.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

from localcloud.memory.memory_cloud import MemoryCloud
from shared.ports import FleetConfig, Timing
from tests.support.flux_components import FILE, deployment, fleet
from tests.support.one_cluster import branch_files
from tests.support.pipeline_runs import push, require_ready

URL = "https://app.example"
KEY, NEXT_KEY = "a-key-of-this-cluster-alone-1", "a-key-of-this-cluster-alone-2"
EVENTS = """\
  bootstrapSecrets:
    - {name: roadstead-events, vault: platform, keys: {token: flux-one}}
  flux:
    events: {secretRef: {name: roadstead-events}}
"""
"""YAML that switches the events on, for ``files``."""
REFERENCE = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
_KINDS = ["Bucket", "GitRepository", "HelmRelease", "Kustomization", "OCIRepository"]
_SOURCE = {
    "type": "object",
    "properties": {
        "kind": {"type": "string", "enum": _KINDS},
        "name": {"type": "string", "minLength": 1, "maxLength": 53},
    },
    "required": ["kind", "name"],
}
_TYPES = ["slack", "msteams", "discord", "generic", "generic-hmac"]
SPECS: dict[str, dict[str, Any]] = {
    "Provider": {
        "properties": {
            "type": {"type": "string", "enum": _TYPES},
            "address": {"type": "string", "maxLength": 2048},
            "channel": {"type": "string", "maxLength": 2048},
            "secretRef": REFERENCE,
        },
        "required": ["type"],
    },
    "Alert": {
        "properties": {
            "eventSeverity": {"type": "string", "enum": ["info", "error"]},
            "eventSources": {"type": "array", "items": _SOURCE},
            "providerRef": REFERENCE,
        },
        "required": ["eventSources", "providerRef"],
    },
}


def notification(kind: str) -> dict[str, Any]:
    """Return the definition of a kind of the notification-controller."""
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "properties": {"spec": {"type": "object", **SPECS[kind]}}}
    version = {"name": "v1beta3", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    group = "notification.toolkit.fluxcd.io"
    spec = {"group": group, "names": names, "scope": "Namespaced", "versions": [version]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": spec,
    }


COMPONENTS = fleet(notification("Provider"), notification("Alert"), deployment("notification-controller"))[
    FILE
]


def reporting_files(extra: str = EVENTS) -> dict[str, bytes]:
    """Return a fleet of one cluster with the notification-controller."""
    return branch_files(extra) | {FILE: COMPONENTS}


def cloud_with_key(url: str = URL) -> MemoryCloud:
    """Return a cloud whose vault has the key of the cluster, and whose app is at an address."""
    config = FleetConfig(
        "example", "example/fleet", timing=Timing(lease_seconds=20, poll_seconds=5), public_url=url
    )
    cloud = MemoryCloud(throttle=False, config=config)
    cloud.vault.set("flux-one", KEY)
    return cloud


def reporting(extra: str = EVENTS) -> MemoryCloud:
    """Return a cloud in which the cluster is Ready, and its Flux reports."""
    cloud = cloud_with_key()
    push(cloud, reporting_files(extra))
    cloud.run()
    require_ready(cloud, "one")
    return cloud


def event(cloud: MemoryCloud, **changed: Any) -> bytes:
    """Return the body of an event of now."""
    found = {
        "involvedObject": {
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
            "kind": "Kustomization",
            "name": "flux-system",
            "namespace": "flux-system",
        },
        "severity": "info",
        "reason": "Progressing",
        "message": "ConfigMap/base/where configured",
        "reportingController": "kustomize-controller",
        "timestamp": cloud.clock().isoformat(),
    }
    return json.dumps({**found, **changed}).encode()


def signed(body: bytes, key: str = KEY) -> dict[str, str]:
    """Return the headers of an event."""
    return {"X-Signature": f"sha256={hmac.new(key.encode(), body, hashlib.sha256).hexdigest()}"}


def sent(cloud: MemoryCloud, body: bytes, key: str = KEY, cluster: str = "one") -> int:
    """Send an event; return the status of the answer."""
    return cloud.reported(cluster, signed(body, key), body).status
