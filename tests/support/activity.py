"""What people change by hand, and whom the activity log has for that."""

from __future__ import annotations

from typing import Any

from localcloud.memory.memory_cloud import MemoryCloud
from shared.ports.azure.clusters import ListActivity
from tests.support.one_cluster import ONE, record
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import change_pool_by_hand

ANN, BOB = "ann@example.com", "bob@example.com"


def asked(cloud: MemoryCloud, *, refuse: Exception | None = None) -> list[ListActivity]:
    """Return the list to which each read of the activity log is added; ``refuse`` is the answer to all."""
    azure, reads = cloud.ports.azure, list[ListActivity]()

    def read(operation: Any) -> Any:
        reads.append(operation)
        if refuse:
            raise refuse
        return azure.call(operation)

    on_azure(cloud, ListActivity, read)
    return reads


def scaled(cloud: MemoryCloud, count: int, who: str = ANN) -> None:
    with cloud.azure.called_by(who):
        change_pool_by_hand(cloud, ONE, "apps", count=count)


def changes(cloud: MemoryCloud) -> dict[str, str]:
    """Return who changed each field that differs."""
    drift = record(cloud).divergence.drift
    return {field.path: field.by for field in drift.fields} if drift else {}
