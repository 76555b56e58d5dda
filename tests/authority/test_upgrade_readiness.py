"""Readings before an upgrade on a real cluster: each blocker is planted and found, at a counted price.

No API that the server of this version serves by default is deprecated with a release that removes it, so the
metric is tested by the suite of the port, with a version of a custom resource.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from shared.app.api import schema
from shared.ports import KubernetesApi
from tests.authority.real_fleet import NAME, RealFleet
from tests.support.upgrade_blockers import deployment, webhook
from tests.support.workloads import budget, pod

pytestmark = pytest.mark.timeout(600)
MOST_READS = 12
"""Budgets, pods, two kinds of workloads and of webhooks, endpoints, nodes, what Flux applies, the metrics."""
OF_READINESS = ("poddisruptionbudgets", "pods", "webhookconfigurations", "endpointslices", "metrics")
"""How the paths end that a reading alone has."""


def read(fleet: RealFleet) -> schema.ClusterReadiness:
    """Have the cluster read, and return what is shown of it."""
    api = fleet.operator.api
    before = api.readiness("1.38", [NAME])["clusters"][0]["readAt"]
    api.post("readiness", {"clusters": [NAME]})
    fleet.operator.wait(
        lambda: api.readiness("1.38", [NAME])["clusters"][0]["readAt"] != before, "the cluster is read"
    )
    return api.readiness("1.38", [NAME])["clusters"][0]


def blocked(found: schema.ClusterReadiness) -> set[str]:
    return {blocker["object"] for blocker in found["blockers"]}


def plant(api: KubernetesApi) -> None:
    """Create one thing of each kind that stands in the way of an upgrade."""
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    api.apply(deployment())
    api.apply(budget("cart", namespace="shop", minAvailable=1))
    node = api.list("v1", "Node")[0]["metadata"]["name"]
    api.apply(pod("debug", node, namespace="shop", labels={"app": "debug"}))
    for name in ("first", "second"):
        api.apply(budget("debug", name=name, namespace="shop", minAvailable=0))
    api.apply(webhook(objectSelector={"matchLabels": {"guarded": "yes"}}))


def test_each_blocker_that_is_planted_is_found(fleet: RealFleet) -> None:
    fleet.ready(fleet.files())
    before = read(fleet)
    assert (before["state"], before["blockers"], before["unknown"]) == ("ready", [], [])
    with fleet.api() as api:
        plant(api)
        wanted = {
            "PodDisruptionBudget shop/cart",
            "Pod shop/debug",
            "webhook pods.guard.io of ValidatingWebhookConfiguration guard",
        }
        # Of several budgets of a pod the disruption controller counts one again (getPdbForPod): another one
        # may go on allowing no eviction, which is read as it stands.
        more = wanted | {f"PodDisruptionBudget shop/{name}" for name in ("first", "second")}
        fleet.operator.wait(lambda: wanted <= blocked(read(fleet)) <= more, "each blocker is found")
        found = read(fleet)
        whys = " ".join(blocker["why"] for blocker in found["blockers"])
        assert "of the one replica of Deployment cart" in whys
        assert "has no controller" in whys
        assert "has 2 budgets, so no eviction: first, second" in whys
        assert found["reads"] <= MOST_READS


def of_readiness(paths: Iterable[str]) -> set[str]:
    return {end for path in paths for end in OF_READINESS if path.endswith(end)}


def test_no_ordinary_check_reads_what_a_reading_does(fleet: RealFleet) -> None:
    fleet.ready(fleet.files())
    before = len(fleet.paths_read())
    assert not of_readiness(fleet.paths_read()), "no job reads it either"
    fleet.operator.api.refresh([NAME])
    fleet.operator.wait(
        lambda: any("/kustomizations" in path for path in fleet.paths_read()[before:]), "it is checked"
    )
    assert not of_readiness(fleet.paths_read()[before:])
    read(fleet)
    assert of_readiness(fleet.paths_read()) >= {*OF_READINESS} - {"endpointslices"}, "without a webhook, none"
