"""Fleets of one cluster with other components of Flux than those of the example."""

from __future__ import annotations

import json
from typing import Any

from localcloud.memory.memory_cloud import MemoryCloud
from shared.json_tree import Json
from tests.support.one_cluster import files
from tests.support.pipeline_runs import push, require_ready

FILE = "flux/gotk-components.yaml"
NAMESPACE = "flux-system"
RECEIVER = {
    "apiVersion": "example.org/v1",
    "kind": "Receiver",
    "metadata": {"name": "a", "namespace": "default"},
}
SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}


def named(kind: str, name: str, api_version: str = "v1", **rest: Any) -> Json:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        **rest,
    }


def deployment(name: str) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "manager", "image": "x:1"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return named("Deployment", name, "apps/v1", spec=spec)


def definition(*versions: str, storage: str) -> Json:
    """Return the definition of the kind Receiver in these versions."""
    served = [{"name": v, "served": True, "storage": v == storage, "schema": SCHEMA} for v in versions]
    names = {"kind": "Receiver", "listKind": "ReceiverList", "plural": "receivers", "singular": "receiver"}
    spec = {"group": "example.org", "scope": "Namespaced", "names": names, "versions": served}
    metadata = {"name": "receivers.example.org"}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**kind, "metadata": metadata, "spec": spec}


def fleet(*more: Json) -> dict[str, bytes]:
    """Return the fleet with more components than those of the example."""
    text = files()[FILE].decode() + "".join(f"---\n{json.dumps(document)}\n" for document in more)
    return files() | {FILE: text.encode()}


def brought(cloud: MemoryCloud, content: dict[str, bytes]) -> str:
    """Bring a fleet about; return what the events say."""
    seen = len(cloud.state.events("one", limit=500))
    push(cloud, content)
    cloud.run()
    require_ready(cloud, "one")
    events = cloud.state.events("one", limit=500)
    return "\n".join(event.message for event in events[: len(events) - seen])


def installed(*more: Json) -> MemoryCloud:
    cloud = MemoryCloud(throttle=False)
    brought(cloud, fleet(*more))
    return cloud
