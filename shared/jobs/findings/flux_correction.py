"""Whether what Roadstead applied of Flux is applied again: by the policy, and by what a check found. Pure.

A check only finds it. A sweep reads the cluster and starts the job, as for any other correction, because the
job has to leave everything else that differs.
"""

from __future__ import annotations

from datetime import datetime

from shared.fleet.drift.differences import Difference
from shared.fleet.drift.policy import Decided
from shared.fleet.kubernetes.health.health import CHANGED, MISSING, SUSPENDED
from shared.fleet.manifests.cluster.drift import DriftAction
from shared.jobs.drift import exhausted
from shared.jobs.record import ClusterRecord, finding_of_sweep

FLUX = "what Roadstead applied of Flux"
"""All of it differs as a whole, as it is counted among the corrections."""
CORRECTED = Decided(Difference(FLUX, "as applied", "changed"), DriftAction.CORRECT)


_CORRECTED = (CHANGED, MISSING, SUSPENDED)


def corrects_flux(record: ClusterRecord) -> bool:
    """Return whether the policy has what Roadstead applied of Flux applied again, and not left suspended."""
    policy = None if record.desired.problem else record.desired.spec.drift
    return policy is not None and policy.flux_objects == "correct"


def applies_again(record: ClusterRecord, now: datetime) -> bool:
    """Return whether a check has found objects that the policy has applied again, or resumed.

    What a check found before the last job came to its end is nothing: that job has applied them. An end after
    the present moment is that of a wrong clock: it decides nothing, or it would for as long as it is ahead.
    Nothing is applied to a cluster while a sweep finds it failed.
    """
    inside = record.inside
    if inside is None or not record.idle or finding_of_sweep(record.finding) or not corrects_flux(record):
        return False
    found = {each.reason for part in inside.parts for each in part.unhealthy}
    end = record.job.step.since
    is_newer = inside.at > end or end > now
    return is_newer and not found.isdisjoint(_CORRECTED) and FLUX not in exhausted(record.corrections, now)
