"""Clusters as Azure shows them now, to compare files with them that nobody has pushed. It writes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from shared.jobs.failures.errors import ReconcileError
from shared.jobs.findings.at_rest import shown_phase
from shared.jobs.record import ClusterRecord
from shared.pipeline.api import schema
from shared.pipeline.api.views.parts import iso
from shared.pipeline.http_result import HttpResult, rejected, unknown_cluster
from shared.pipeline.worker.rate_limiter import RateLimited, RateLimiter
from shared.ports import Ports
from shared.ports.azure import GetCluster

WRONG_NAMES = f"clusters must be 1 to {schema.LIVE_CLUSTERS} names, separated by commas"


def read_live(names: Sequence[str], ports: Ports) -> HttpResult:
    """Return these clusters as Azure shows them, each read once, with a token of the read limit.

    Only clusters with a record are read, where their records say. One that cannot be read has the reason.
    """
    found = [(name, ports.state.cluster(name)) for name in names]
    for name, record in found:
        if record is None:
            return rejected(404, unknown_cluster(name, ports))
    reading = RateLimiter(None, ports).over(ports)
    view: schema.Live = {
        "fleet": ports.config.fleet,
        "repository": ports.config.repository,
        "previousRepository": ports.config.previous_repository,
        "readAt": iso(ports.clock()),
        "clusters": [_read(record, reading) for _, record in found if record is not None],
    }
    return HttpResult(200, view)


def _read(record: ClusterRecord, ports: Ports) -> schema.LiveCluster:
    existing, problem = None, ""
    try:
        if record.desired.is_existing:
            problem = "it is not in Azure: checks read it from inside"
        else:
            existing = ports.azure.call(GetCluster(record.desired.id))
    except RateLimited as limited:
        problem = str(limited)
    except ReconcileError as error:
        problem = f"{error.kind}: {error}"
    return {
        "name": record.name,
        "resource": "" if record.desired.is_existing else record.desired.id.resource,
        "phase": shown_phase(record).value,
        "existing": dict(existing) if existing is not None else None,
        "unmanaged": list(record.verified.unmanaged) if record.verified else None,
        "problem": problem,
    }
