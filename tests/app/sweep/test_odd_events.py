"""Events of Azure of other things than clusters, of an odd form, or of what changes nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from localcloud.memory.memory_cloud import EVENTS, MemoryCloud
from localcloud.servicebus.world.broker import DEAD_LETTER_SUFFIX
from localcloud.servicebus.world.broker_values import Draft
from shared.app.sweep.events import handle
from shared.azure.drift.activity import MOST_BYTES
from tests.support.activity import ANN
from tests.support.azure_events import GROUP, SUBSCRIPTION, event, heard, hearing, tagged
from tests.support.one_cluster import ONE, record
from tests.support.sweeps import drifted

pytestmark = pytest.mark.lives


@pytest.fixture
def cloud() -> MemoryCloud:
    return hearing()


@pytest.mark.parametrize(
    ("subject", "compared"),
    [
        (ONE.resource.upper(), True),
        (f"{ONE.resource}/agentPools/apps", True),
        (f"{ONE.resource}/providers/Microsoft.Resources/tags/default", True),
        (f"{ONE.resource}/providers/Microsoft.Authorization/locks/keep", True),
        (GROUP, True),
        (f"{GROUP}/providers/Microsoft.Resources/tags/default", True),
        (f"{GROUP}/providers/Microsoft.Authorization/locks/keep", True),
        (f"{ONE.resource}x", False),
        (ONE.resource.replace("rg-one", "rg-other"), False),
        (f"{SUBSCRIPTION}/resourceGroups/rg-other", False),
        (f"{GROUP}/providers/Microsoft.Storage/storageAccounts/one", False),
        (SUBSCRIPTION, False),
        ("one", False),
        ("/", False),
    ],
)
def test_an_event_is_of_the_cluster_that_its_subject_names_or_is_around(
    cloud: MemoryCloud, subject: str, compared: bool
) -> None:
    handle(event(subject), cloud.ports)
    assert (cloud.state.changes_of("one").asked is not None) == compared


@pytest.mark.parametrize(
    "subject",
    [
        f"{ONE.resource}/providers/Microsoft.Authorization/roleAssignments/1",
        f"{ONE.resource}/providers/Microsoft.Authorization/policyAssignments/1",
        f"{ONE.resource}/maintenanceConfigurations/default",
    ],
)
def test_what_no_list_of_clusters_shows_has_the_cluster_checked_once(
    cloud: MemoryCloud, subject: str
) -> None:
    for _ in range(3):
        handle(event(subject), cloud.ports)
    assert cloud.state.changes_of("one").asked is None
    assert cloud.broker.counts("jobs").scheduled == 1


@pytest.mark.parametrize(
    "operation",
    [
        "Microsoft.ContainerService/managedClusters/listClusterUserCredential/action",
        "Microsoft.ContainerService/managedClusters/runCommand/action",
        "Microsoft.ContainerService/managedClusters/read",
    ],
)
def test_an_operation_that_changes_nothing_asks_for_nothing(cloud: MemoryCloud, operation: str) -> None:
    handle(event(operationName=operation), cloud.ports)
    assert cloud.state.changes_of("one").asked is None


HOSTILE: Sequence[bytes] = (
    *(b"", b"null", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 50_000, b"1", b'"x"'),
    b"x" * (MOST_BYTES - 100),
    json.dumps([json.loads(event())] * 101).encode(),
    event(claims="x"),
    event(claims=[1]),
    event(operationName=7),
    event(operationName="x" * 301),
    event("x" * 5000),
    event().replace(b"ResourceWriteSuccess", b"ResourceWriteFailure"),
    event().replace(b"2026-01-01T01:00:00.1234567Z", b"yesterday"),
    event().replace(b"2026-01-01T01:00:00.1234567Z", b"2026-01-01T01:00:00"),
)


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
def test_an_event_that_is_not_understood_is_dropped_and_blocks_no_other(
    cloud: MemoryCloud, body: bytes
) -> None:
    cloud.broker.send(EVENTS, Draft(body))
    cloud.broker.send(EVENTS, Draft(event()))
    heard(cloud, 1)
    assert cloud.state.changes_of("one").asked is not None
    assert cloud.broker.counts(EVENTS).active == cloud.broker.counts(EVENTS + DEAD_LETTER_SUFFIX).active == 0


def test_of_odd_claims_the_first_that_names_somebody_is_stored_and_nothing_else(cloud: MemoryCloud) -> None:
    claims = {"name": " \n", "appid": "an\napp" + "x" * 500, "aio": "s3cr3t", "groups": ["a"], "n": 7}
    handle(event(claims=claims, httpRequest={"url": "https://x?sig=s3cr3t"}), cloud.ports)
    (change,) = cloud.state.changes_of("one").changes
    assert change.caller.startswith("an app")
    assert len(change.caller) <= 100
    assert "s3cr3t" not in str(cloud.state.changes_of("one"))


def test_an_event_without_claims_still_has_its_cluster_compared(cloud: MemoryCloud) -> None:
    with cloud.azure.called_by(ANN):
        tagged(cloud, owner="x")
    cloud.broker.receive(EVENTS)
    handle(event(claims=None), cloud.ports)
    heard(cloud)
    assert [*drifted(record(cloud))] == ["tags.owner"]
