"""Whether what Roadstead applied of Flux is applied again: by the policy, and by what a check found. Pure.

A check only finds it. A sweep reads the cluster and starts the job, as for any other correction, because the
job has to leave everything else that differs.
"""

from __future__ import annotations

from datetime import datetime

from shared.fleet.drift.differences import Difference
from shared.fleet.drift.policy import Decided
from shared.fleet.kubernetes.health import CHANGED, MISSING
from shared.fleet.manifests.cluster.drift import DriftAction
from shared.jobs.drift import exhausted
from shared.jobs.record import ClusterRecord

FLUX = "what Roadstead applied of Flux"
"""All of it differs as a whole, as it is counted among the corrections."""
CORRECTED = Decided(Difference(FLUX, "as applied", "changed"), DriftAction.CORRECT)


def applies_again(record: ClusterRecord, now: datetime) -> bool:
    """Return whether a check has found changed or missing objects that the policy has applied again.

    What a check found before the last job came to its end is nothing: that job has applied them.
    """
    policy = None if record.desired.problem else record.desired.spec.drift
    inside = record.inside
    if policy is None or policy.flux_objects != "correct" or inside is None or not record.idle:
        return False
    found = {each.reason for part in inside.parts for each in part.unhealthy}
    since = inside.at > record.job.step.since
    return (
        since and not found.isdisjoint((CHANGED, MISSING)) and FLUX not in exhausted(record.corrections, now)
    )
