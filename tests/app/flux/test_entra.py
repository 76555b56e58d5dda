"""A cluster with Entra ID costs one kubeconfig, however many workers enter it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.access.context import ClusterAccess
from shared.cluster.failures.errors import Conflict, ReconcileError, Unauthenticated, Unavailable
from shared.cluster.outcomes import Done, Fail, Outcome, Retry, Wait
from shared.cluster.record import from_json, to_json
from shared.cluster.record_parts import Phase
from shared.kubernetes.kubeconfig import ApiServer
from tests.support import one_cluster
from tests.support.cluster_records import record
from tests.support.one_cluster import fetched
from tests.support.pipeline_runs import another_worker_for_each_message, phases, push

pytestmark = pytest.mark.lives

API_SERVER = ApiServer("https://one.example:443", "an authority")


def fleet(extra: str) -> MemoryCloud:
    """Return a cloud whose cluster is Ready; another worker took each message."""
    cloud = MemoryCloud()
    another_worker_for_each_message(cloud)
    push(cloud, one_cluster.files(extra))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    return cloud


def test_a_creation_fetches_one_kubeconfig_and_an_update_none() -> None:
    cloud = fleet(one_cluster.ENTRA)
    assert fetched(cloud) == 1
    push(cloud, one_cluster.files(f"  tags: {{team: a}}\n{one_cluster.ENTRA}"))
    cloud.run()
    assert one_cluster.record(cloud).observed_generation == 2
    assert fetched(cloud) == 1


def test_the_record_has_the_address_and_the_authority_of_an_entra_cluster_alone() -> None:
    server = one_cluster.record(fleet(one_cluster.ENTRA)).observation.api_server
    assert server is not None
    assert server.url.startswith("https://one-")
    plain = fleet("")
    assert one_cluster.record(plain).observation.api_server is None


def test_a_cluster_that_somebody_created_again_is_entered_with_its_new_address() -> None:
    cloud = fleet(one_cluster.ENTRA)
    before = one_cluster.record(cloud).observation.api_server
    cloud.kubernetes.stop(one_cluster.ONE)
    existing = cloud.azure.engine.clusters[one_cluster.ONE]
    existing.kubeconfig = cloud.kubernetes.start(one_cluster.ONE, [])
    cloud.kubernetes.set_entra(one_cluster.ONE, on=True)
    cloud.azure.engine.report_nodes(existing)
    push(cloud, one_cluster.files(f"  tags: {{team: a}}\n{one_cluster.ENTRA}"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    after = one_cluster.record(cloud).observation.api_server
    assert after is not None
    assert after != before
    assert fetched(cloud) == 2


class Api:
    """A connection that a token opened."""

    def server(self) -> object:
        return API_SERVER


class Opens:
    """A port that opens a connection with a token."""

    def connect(self, *_: object, **__: object) -> Any:
        return Api()

    def open(self, *_: object) -> Any:
        return Api()


@pytest.mark.parametrize(
    ("outcome", "known"),
    [
        (Done(), True),
        (Wait(5, "Flux is at work"), True),
        (Retry(Conflict("somebody wrote it")), True),
        (Retry(Unavailable("the API server of one does not answer: SSLError")), False),
        (Retry(Unauthenticated("the API server of one", code="Unauthorized")), False),
        (Fail(Unauthenticated("the API server of one", code="Unauthorized")), False),
        (Retry(ReconcileError("no longer accepted", code="Unauthorized")), False),
    ],
)
def test_an_error_that_may_mean_another_server_ends_what_is_known(outcome: Outcome, known: bool) -> None:
    access = ClusterAccess(record(), replace(MemoryCloud().ports, kubernetes=Opens()))
    access.connect(one_cluster.ONE)
    assert access.server_after(outcome) == (API_SERVER if known else None)


def test_a_step_that_does_not_enter_the_cluster_changes_nothing() -> None:
    known = replace(record(), observation=replace(record().observation, api_server=API_SERVER))
    access = ClusterAccess(known, MemoryCloud().ports)
    assert access.server_after(Retry(Unavailable("Azure is away"))) == API_SERVER


def test_what_is_known_survives_being_stored() -> None:
    known = replace(record(), observation=replace(record().observation, api_server=API_SERVER))
    assert from_json(to_json(known), "").observation.api_server == API_SERVER
