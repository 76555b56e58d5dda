"""What Azure has for clusters as files on somebody's machine ask for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from shared.app.api import schema
from shared.app.api.acts import Refusal, answers
from shared.app.offers import what_is_short
from shared.language.stored_cluster import StoredCluster
from shared.ports import Ports

NO_SPEC = "clusters must be objects with a name, and the valid spec of a cluster in Azure"


@answers(200)
def offers_view(asked: Sequence[Mapping[str, Any]], ports: Ports) -> schema.OffersView:
    """Return what is short for these clusters; ``asked`` has the name, the spec and ``adopt`` of each."""
    clusters = [StoredCluster(cluster) for cluster in asked]
    if any(not cluster.name or _is_wrong(cluster) or cluster.is_attached for cluster in clusters):
        raise Refusal(400, NO_SPEC)
    named = ports.state.clusters_named([cluster.name for cluster in clusters])
    records = {record.name: record for record in named}
    return {"short": list(what_is_short(clusters, records, ports))}


def _is_wrong(cluster: StoredCluster) -> bool:
    try:
        return cluster.spec.existing is not None
    except (ValidationError, TypeError):
        return True
