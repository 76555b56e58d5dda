"""Each operation of Azure fits the client libraries, and takes tokens of the buckets that it draws on."""

from __future__ import annotations

import inspect
from contextlib import suppress
from operator import attrgetter
from typing import Any

import pytest

from localcloud.azure.wire import arm_routes
from localcloud.azure.wire.api_versions import check_version
from localcloud.azure.world.azure_ports import WorldAzure
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.clock import ManualClock
from localcloud.common.control_plane import NullPlane
from shared.azure.rate_limits import AKS_OTHER, ARM_DELETE, ARM_READ, ARM_WRITE
from shared.cluster.failures.errors import ReconcileError
from shared.ports.azure import AzureCall, Conditional
from tests.support.azure_operations import OPERATIONS, example
from tests.support.azure_ports import SUBSCRIPTION, Azure, StaticCredential
from tests.support.deployed_rights import CLIENTS, request_of

BUCKETS = {"read": ARM_READ, "write": ARM_WRITE, "delete": ARM_DELETE, "AllOtherHandlers": AKS_OTHER}
"""What the local Azure calls the buckets that all clusters of a subscription share."""


@pytest.mark.parametrize("kind", [kind for kind in OPERATIONS if kind.request is None])
def test_each_operation_calls_an_existing_method_of_the_library(kind: type[AzureCall[Any]]) -> None:
    operation = example(kind)
    client: Any = CLIENTS[kind.service](StaticCredential(), SUBSCRIPTION)
    signature = inspect.signature(attrgetter(kind.sdk)(client))
    options = {"etag": "a", "match_condition": None} if isinstance(operation, Conditional) else {}
    assert signature.bind(*operation.place, *operation.arguments, **options)
    assert set(options) <= set(signature.parameters)


@pytest.mark.parametrize("kind", OPERATIONS)
def test_the_local_azure_has_a_method_and_a_route_for_each_operation(kind: type[AzureCall[Any]]) -> None:
    method, path = request_of(kind)
    assert callable(AzureWorld(ManualClock(), plane=NullPlane()).answering(kind.name))
    assert arm_routes.find(method, path), (
        f"localcloud/azure/wire/arm_routes.py: _TABLE has no {method} {path}"
    )
    if kind.request is not None:
        check_version(path, kind.request.version, "eastus")


@pytest.mark.parametrize("kind", OPERATIONS)
def test_each_operation_takes_tokens_of_the_buckets_that_it_draws_on(kind: type[AzureCall[Any]]) -> None:
    world = AzureWorld(clock := ManualClock(), plane=(plane := NullPlane()))
    azure = Azure(WorldAzure(world), world, plane, clock).with_cluster()
    before = world.limits.counts.copy()
    with suppress(ReconcileError):  # a refusal takes its tokens too
        azure.call(example(kind))
    taken = world.limits.counts - before
    assert {BUCKETS[name] for name in taken if name in BUCKETS} == set(kind.limits)
