"""The clusters that differ from git, as the last sweep found them."""

from __future__ import annotations

from shared.jobs.drift import Drift, DriftedField
from shared.jobs.record import ClusterRecord
from shared.pipeline.api import schema
from shared.pipeline.api.views.parts import Page, iso
from shared.ports import Ports


def drift_view(ports: Ports, page: Page) -> schema.Drift:
    """Return a page of the clusters that differ; no other record is read as a whole."""
    names = [summary.name for summary in ports.state.summaries() if summary.drifted]
    shown = [name for name in names if name > page.after][: page.limit]
    records = ports.state.clusters_named(shown)
    clusters = [_cluster(record, record.drift) for record in records if record.drift]
    return {"clusters": clusters, "count": len(names), "next": page.next(shown)}


def drift_of_cluster(name: str, ports: Ports) -> schema.Drift | None:
    """Return the drift of one cluster; None when the fleet has no such cluster."""
    record = ports.state.cluster(name)
    if record is None:
        return None
    clusters = [_cluster(record, record.drift)] if record.drift else []
    return {"clusters": clusters, "count": len(clusters), "next": None}


def _cluster(record: ClusterRecord, drift: Drift) -> schema.DriftedCluster:
    return {
        "name": record.name,
        "generation": record.generation,
        "commit": record.commit,
        "fields": [_field(each) for each in drift.fields],
        "more": drift.more,
    }


def _field(field: DriftedField) -> schema.DriftedField:
    return {
        "path": field.path,
        "git": field.git,
        "live": field.live,
        "since": iso(field.since),
        "leftAlone": field.left_alone,
        "action": field.action.value,
        "note": field.note,
        "source": field.source,
    }
