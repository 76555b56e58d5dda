"""A Kubernetes API under test, in either implementation, and the ConfigMap that tests apply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from localcloud.kubernetes.world.kinds import BUILT_IN, ResourceKind
from localcloud.kubernetes.world.object_store import At, Object, WriteMode
from shared.json_tree import Json
from shared.ports import Kubernetes, KubernetesApi
from shared.resource_ids import ClusterId, ObjectRef

CLUSTER = ClusterId("00000000-0000-0000-0000-000000000001", "rg-fleet", "alpha")
NOWHERE = ClusterId("00000000-0000-0000-0000-000000000001", "rg-fleet", "nowhere")
CONFIG_MAP = next(kind for kind in BUILT_IN if kind.kind == "ConfigMap")
SETTINGS = ObjectRef("v1", "ConfigMap", "settings", "default")


class Others(Protocol):
    """What others do to the cluster, past the port: the world in memory, or a real API server's client."""

    def get(self, at: At) -> Object: ...
    def create(self, kind: ResourceKind, namespace: str, body: Any, write: WriteMode = ...) -> Object: ...
    def apply(self, at: At, body: Any, write: WriteMode = ...) -> Object: ...
    def delete(self, at: At) -> Object: ...
    def set_status(self, at: At, status: Mapping[str, Any], *, manager: str) -> None: ...


@dataclass(frozen=True)
class Setting:
    """One implementation: its port, others in the same cluster, how time goes by, and the cluster's power."""

    port: Kubernetes
    world: Others
    wait: Callable[[], None]
    power: Callable[[bool], None]

    @property
    def api(self) -> KubernetesApi:
        return self.port.connect(CLUSTER)

    def until(self, happens: Callable[[], bool]) -> None:
        for _ in range(200):
            if happens():
                return
            self.wait()
        raise AssertionError("it did not happen")


def config_map(data: dict[str, str], **metadata: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "default", **metadata},
        "data": data,
    }


def widgets(plural: str = "widgets", kind: str = "Widget") -> Json:
    """Return the definition of a kind whose objects take any field."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": schema,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [version],
        },
    }
