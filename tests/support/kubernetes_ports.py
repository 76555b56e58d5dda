"""A Kubernetes API under test, in either implementation, and the ConfigMap that tests apply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from localcloud.kubernetes.world.kinds import BUILT_IN
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from shared.fleet.json_tree import Json
from shared.fleet.resource_ids import ClusterId, ObjectRef
from shared.ports import Kubernetes, KubernetesApi

CLUSTER = ClusterId("00000000-0000-0000-0000-000000000001", "rg-fleet", "alpha")
NOWHERE = ClusterId("00000000-0000-0000-0000-000000000001", "rg-fleet", "nowhere")
CONFIG_MAP = next(kind for kind in BUILT_IN if kind.kind == "ConfigMap")
SETTINGS = ObjectRef("v1", "ConfigMap", "settings", "default")


@dataclass(frozen=True)
class Setting:
    """One implementation: its port, the world behind it, how time goes by, and the cluster's power."""

    port: Kubernetes
    world: KubernetesWorld
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
