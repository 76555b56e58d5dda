"""A fault happens only where the service that it stands for may behave so."""

from __future__ import annotations

import random
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.ports.azure import AzureCall, GetCluster, GetGroup, ListResources
from shared.resource_ids import ClusterId
from simulation.event_loop import EventLoop
from simulation.faults.calls import Call, Scene
from simulation.faults.catalog import FAULTS
from simulation.history import LIST_LAG, AzureHistory
from simulation.operators import cluster_id

OLD, NEW, ABSENT = map(cluster_id, "abd")
NEIGHBOUR = cluster_id("c")
"""It shares the resource group of ABSENT."""


@pytest.fixture
def scene() -> Scene:
    """Return a scene in which OLD was created long ago, NEW and NEIGHBOUR just now."""
    cloud = MemoryCloud()
    history = AzureHistory(cloud.clock)

    def create(*clusters: ClusterId) -> None:
        for cluster in clusters:
            history.created(cluster, "example")
            history.group_created_at[cluster.subscription, cluster.resource_group] = cloud.clock()

    create(OLD)
    cloud.clock.advance(LIST_LAG + 1)
    create(NEW, NEIGHBOUR)
    return Scene(EventLoop(random.Random(1), [cloud], verbose=False), history, {})


def happens(scene: Scene, fault: str, operation: AzureCall[Any]) -> bool:
    cloud = scene.loop.clouds[0]
    call = Call(scene, cloud, operation.service, operation.name, cloud.ports.azure.call, (operation,), {})
    return FAULTS[fault].where(call)


def test_azure_shows_late_only_the_cluster_that_is_new(scene: Scene) -> None:
    assert happens(scene, "cluster-lags", GetCluster(NEW))
    assert not happens(scene, "cluster-lags", GetCluster(OLD))
    assert not happens(scene, "cluster-lags", GetCluster(ABSENT))


def test_azure_shows_late_only_the_group_that_is_new(scene: Scene) -> None:
    assert happens(scene, "group-lags", GetGroup(NEW.group))
    assert not happens(scene, "group-lags", GetGroup(OLD.group))


def test_the_list_of_a_group_may_lack_only_what_is_new_in_it(scene: Scene) -> None:
    assert happens(scene, "nothing-inside", ListResources(ABSENT.group))
    assert not happens(scene, "nothing-inside", ListResources(OLD.group))
