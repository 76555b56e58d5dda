"""Private clusters: refused in the plan where the app cannot enter them, and named for what they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.access.context import private_api
from shared.app.api.views.why import why_view
from shared.cluster.failures.errors import PrivateUnreachable, Unavailable
from shared.cluster.record_parts import Phase
from shared.ports import KubernetesApi
from shared.resource_ids import ClusterId, ObjectRef
from tests.support.one_cluster import advice, files, ready, record
from tests.support.pipeline_runs import phases, push
from tests.support.replaced_ports import Around

pytestmark = pytest.mark.lives

PRIVATE = "  apiServerAccessProfile: {enablePrivateCluster: true}\n"


def with_network(reaches_private: bool | None) -> MemoryCloud:
    cloud = MemoryCloud(throttle=False)
    config = replace(cloud.ports.config, reaches_private=reaches_private)
    cloud.with_ports(lambda ports: replace(ports, config=config))
    return cloud


def problems(cloud: MemoryCloud) -> list[str]:
    plan = cloud.state.plan(cloud.repository.head("main"))
    assert plan is not None
    return list(plan.plan.problems)


def test_a_private_cluster_that_the_app_cannot_enter_is_refused_with_its_place_and_the_two_ways_out() -> None:
    cloud = with_network(reaches_private=False)
    push(cloud, files(PRIVATE))
    cloud.run(seconds=600)
    assert phases(cloud) == {}
    (problem,) = problems(cloud)
    assert problem.startswith("clusters/one/cluster.yaml:")
    assert "spec.apiServerAccessProfile.enablePrivateCluster: the app installs Flux through" in problem
    assert "VNet integration" in problem
    assert "REACHES_PRIVATE_CLUSTERS" in problem
    assert "flux.install: extension" in problem


@pytest.mark.parametrize("reaches_private", [True, None])
def test_an_app_in_a_network_that_reaches_it_brings_a_private_cluster_about(
    reaches_private: bool | None,
) -> None:
    cloud = with_network(reaches_private)
    push(cloud, files(PRIVATE))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert problems(cloud) == []


def test_a_recorded_private_cluster_keeps_its_spec_when_the_app_loses_its_network() -> None:
    cloud = with_network(reaches_private=True)
    push(cloud, files(PRIVATE))
    cloud.run()
    config = replace(cloud.ports.config, reaches_private=False)
    cloud.with_ports(lambda ports: replace(ports, config=config))
    push(cloud, files(PRIVATE + "  tags: {a: b}\n"))
    cloud.run(seconds=600, until=lambda: False)
    assert phases(cloud) == {"one": Phase.READY}
    assert record(cloud).generation == 1
    assert "REACHES_PRIVATE_CLUSTERS" in problems(cloud)[0]


def unanswered(cloud: MemoryCloud) -> None:
    """Let no API server answer from now on."""
    kubernetes = cloud.ports.kubernetes

    def connect(cluster: ClusterId, **options: Any) -> Any:
        def away(*_: Any, **__: Any) -> Any:
            raise Unavailable("the API server did not answer: ConnectTimeout")

        api = kubernetes.connect(cluster, **options)
        return Around(api, get=away, list=away, apply=away)

    cloud.with_ports(lambda ports: replace(ports, kubernetes=Around(ports.kubernetes, connect=connect)))


def failure(cloud: MemoryCloud, extra: str) -> tuple[str, str]:
    push(cloud, files(extra + "  tags: {a: b}\n"))
    cloud.run(seconds=120, until=lambda: False)
    view = why_view("one", cloud.ports)
    assert view is not None
    assert view["lastError"] is not None
    return view["lastError"]["class"], view["lastError"]["message"]


def test_a_private_cluster_that_does_not_answer_is_not_called_unavailable() -> None:
    cloud = ready(PRIVATE)
    unanswered(cloud)
    kind, message = failure(cloud, PRIVATE)
    assert kind == "PrivateUnreachable"
    assert message.startswith("the cluster is private, and the app may have no way to it: the API server")
    assert "VNet integration" in advice(cloud)


def test_any_other_cluster_is() -> None:
    cloud = ready()
    unanswered(cloud)
    assert failure(cloud, "")[0] == "Unavailable"


@pytest.mark.parametrize(("code", "kind"), [("", PrivateUnreachable), ("HTTP 503", Unavailable)])
def test_an_answer_with_an_error_shows_that_there_is_a_way(code: str, kind: type[Unavailable]) -> None:
    def refuses(*_: Any) -> Any:
        raise Unavailable("Deployment web in shop: service unavailable", code=code)

    with pytest.raises(Unavailable) as refused:
        private_api(cast(KubernetesApi, Around(None, get=refuses))).get(
            ObjectRef("v1", "ConfigMap", "a", "b")
        )
    assert type(refused.value) is kind
