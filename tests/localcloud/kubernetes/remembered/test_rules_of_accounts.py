"""An account may do what its roles say now, also while a controller goes on under its name."""

from __future__ import annotations

from typing import Any

from localcloud.kubernetes.world.kinds import BUILT_IN
from localcloud.kubernetes.world.object_store import At
from localcloud.kubernetes.world.rbac import ServiceAccount, ServiceAccountWorld
from tests.support.kubernetes_worlds import ALICE, MAP, a_world, refusal

BINDING = next(kind for kind in BUILT_IN if kind.kind == "RoleBinding")


def test_a_binding_that_comes_or_goes_counts_at_once() -> None:
    world = a_world()[0]
    world.apply(MAP, {"data": {"colour": "blue"}}, ALICE)
    account = ServiceAccountWorld(world, ServiceAccount(MAP.namespace, "shop"))
    with refusal(403, "Forbidden"):
        account.find(MAP)
    binding: dict[str, Any] = {
        "metadata": {"name": "shop"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "shop", "namespace": MAP.namespace}],
    }
    world.create(BINDING, MAP.namespace, binding)
    assert account.find(MAP) is not None
    world.delete(At(BINDING, "shop", MAP.namespace))
    with refusal(403, "Forbidden"):
        account.find(MAP)
