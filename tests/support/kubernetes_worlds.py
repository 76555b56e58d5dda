"""A Kubernetes world, the objects that tests put into it, and how it refuses them."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.common.clock import ManualClock
from localcloud.kubernetes.world.api_errors import StatusError
from localcloud.kubernetes.world.controllers import Delays
from localcloud.kubernetes.world.kinds import BUILT_IN, CRD, DEPLOYMENT
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At, WriteMode

KINDS = {kind.kind: kind for kind in BUILT_IN}
MAP = At(KINDS["ConfigMap"], "settings", "default")
WEB = At(DEPLOYMENT, "web", "default")
ALICE, BOB = WriteMode(manager="alice"), WriteMode(manager="bob")


def a_world(**delays: float) -> tuple[KubernetesWorld, ManualClock]:
    clock = ManualClock()
    return KubernetesWorld(clock, delays=Delays(**delays)), clock


def deployment(*images: tuple[str, str], replicas: int = 1) -> dict[str, Any]:
    containers = [{"name": name, "image": image} for name, image in images]
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    return {"spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}}


def images(world: KubernetesWorld) -> dict[str, str]:
    containers = world.get(WEB)["spec"]["template"]["spec"]["containers"]
    return {container["name"]: container["image"] for container in containers}


def refusal(code: int, reason: str) -> Any:
    def is_it(error: StatusError) -> bool:
        return (error.code, error.reason, error.status()["code"]) == (code, reason, code)

    return pytest.raises(StatusError, check=is_it)


ANY = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
CONTAINERS = [{"name": "web", "image": "web:1"}]


def widgets(**version: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": ANY, **version}],
        },
    }


def with_widgets(world: KubernetesWorld, clock: ManualClock, **version: Any) -> At:
    world.create(CRD, "", widgets(**version))
    clock.advance(1)
    kind = world.kind("example.org/v1", "Widget")
    assert kind is not None
    return At(kind, "one", "default")
