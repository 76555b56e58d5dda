"""What Azure lists of one cluster keeps no other one from its comparison, as far as its door lets it in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from azure.mgmt.containerservice.models import ManagedCluster

from shared.adapters.arm.arm_requests import check_document
from shared.cluster.failures.errors import Unavailable
from shared.cluster.queues.messages import SweepRequest
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.ports.azure import DocumentPage, ListClusters
from shared.resource_ids import SubscriptionId
from tests.support.odd_bodies import odd_bodies
from tests.support.pipeline_runs import phases, ready
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import LATER, handle


def is_let_in(document: Any) -> bool:
    try:
        check_document(document, ListClusters.needs, ManagedCluster)
    except Unavailable:
        return False
    return True


@pytest.mark.lives
def test_no_document_of_a_cluster_ends_a_sweep() -> None:
    cloud = ready("one", "two")
    cloud.clock.advance(LATER)
    cloud.azure.complete_due()
    subscription = cloud.state.clusters()[0].desired.id.subscription
    shown: list[Json] = []
    page = cloud.ports.azure.call(ListClusters(SubscriptionId(subscription)))
    one, two = sorted(page.documents, key=lambda document: str(document["name"]))
    on_azure(cloud, ListClusters, lambda _: DocumentPage([*shown, two], ""))
    seen = 0
    for odd in odd_bodies(json.loads(json.dumps(one)), 400):
        try:
            document = json.loads(odd)
        except (ValueError, RecursionError):
            continue
        if is_let_in(document):
            shown[:] = [document]
            handle(cloud, SweepRequest(sweep="1"))
            seen += 1
    assert seen > 100, "the test would show nothing"
    assert phases(cloud)["two"] is Phase.READY
