"""Whether clusters are ready for an upgrade, by what was read of them last; nothing is read of them here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from shared.app.api import schema
from shared.app.api.acts import Refusal, answers
from shared.app.api.parts import ClusterPage, exact, projected
from shared.app.api.views.cluster_list import ClusterSelection, names_of_page
from shared.app.offers import what_is_short
from shared.cluster.findings.readiness import METRIC_NOTE, readiness_of, wanted_version
from shared.cluster.record import ClusterRecord
from shared.language.stored_cluster import StoredCluster
from shared.ports import Ports
from shared.ports.state import ReadinessRecord


def readiness_view(
    ports: Ports, page: ClusterPage, selection: ClusterSelection, to: str
) -> schema.ReadinessView:
    """Return a page of clusters; without ``to``, each for the version that git has for it."""
    summaries = selection.of(ports.state.summaries(details=True))
    names, following = names_of_page(summaries, selection, page)
    records = [record for record in ports.state.clusters_named(names) if not record.deleting]
    known = ports.state.readiness([record.name for record in records])
    return {
        "clusters": [cluster_readiness(record, known[record.name], to, ports) for record in records],
        "count": len(summaries),
        "note": METRIC_NOTE,
        "next": following,
    }


def cluster_readiness(
    record: ClusterRecord, known: ReadinessRecord, to: str, ports: Ports
) -> schema.ClusterReadiness:
    """Return whether a cluster is ready; a reading of an earlier life of it does not count."""
    known = known.of(record.uid)
    found = readiness_of(record, known.seen, known.room, to or wanted_version(record), ports.clock())
    return projected(
        schema.ClusterReadiness,
        found,
        name=record.name,
        readAt=exact(found.at) if found.at else None,
        reads=known.seen.reads if known.seen else 0,
    )


def unknown_names(names: Iterable[str], ports: Ports) -> list[str]:
    """Return the names that no cluster of the fleet has."""
    known = {summary.name for summary in ports.state.summaries()}
    return [name for name in names if name not in known]


# What Azure has for clusters as files on somebody's machine ask for them.


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
