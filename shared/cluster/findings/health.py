"""What checks inside a cluster say of it: two conditions, and when they end its being Ready. Pure."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from enum import StrEnum

from shared.azure.differences import Difference
from shared.azure.drift.policy import DriftDecision
from shared.cluster.divergence.drift import exhausted
from shared.cluster.failures.errors import FluxUnhealthy, PlatformUnhealthy, SecretsUnhealthy, Unhealthy
from shared.cluster.findings.conditions import MESSAGE_LIMIT, is_unfinished, with_condition
from shared.cluster.outcomes import Done, Fail, Outcome
from shared.cluster.record import READY, ClusterRecord, finding_of_sweep, of_health
from shared.cluster.record_parts import Condition
from shared.frozen import dataclass, replace
from shared.kubernetes.health import CHANGED, MISSING, SUSPENDED
from shared.language.model.cluster.drift import DriftAction
from shared.masking import cut

HEALTHY = "Healthy"
SLOT_SECONDS = 300
"""The length of a slot: less than what duplicate detection of the queue remembers."""


class HealthCondition(StrEnum):
    """The conditions; the commit status names the first one that is false."""

    FLUX = "FluxHealthy"
    PLATFORM = "PlatformHealthy"
    SECRETS = "SecretsHealthy"
    """Only a cluster with bootstrap secrets has it."""


_ERRORS: dict[HealthCondition, type[Unhealthy]] = {
    HealthCondition.FLUX: FluxUnhealthy,
    HealthCondition.PLATFORM: PlatformUnhealthy,
    HealthCondition.SECRETS: SecretsUnhealthy,
}


_ALWAYS = frozenset({HealthCondition.FLUX, HealthCondition.PLATFORM})
"""What a check finds of every cluster."""


@dataclass(frozen=True)
class HealthFinding:
    """What a check says of one condition; ``status`` is None where nothing could be read."""

    kind: HealthCondition
    status: bool | None
    reason: str
    message: str


def checked(record: ClusterRecord, findings: Iterable[HealthFinding], now: datetime) -> ClusterRecord:
    """Return the record with the conditions that a check found."""
    for found in findings:
        message, generation = cut(found.message, MESSAGE_LIMIT), record.observed_generation
        record = with_condition(
            record, Condition(found.kind, found.status, found.reason, message, now, generation, now)
        )
    ready = record.condition(READY)
    if ready is not None and record.finding in {error_of(fault).kind for fault in faults_of(record)}:
        record = with_condition(record, replace(ready, verified=now))
    return record


def outcome_of(record: ClusterRecord, now: datetime, patience: timedelta) -> Outcome | None:
    """Return how the conditions end, or renew, that a record is Ready; None when they do neither.

    A cluster is no longer Ready once a condition has been false for so long. It is Ready again when no
    condition is false or unknown. What a sweep found is left to the sweep; and a job that failed or is
    suspended is itself the reason why its cluster is not Ready.
    """
    if is_unfinished(record) or (record.finding and not of_health(record.finding)):
        return None
    conditions = [record.condition(kind) for kind in HealthCondition]
    for condition in conditions:
        if condition and condition.status is False and now - condition.since >= patience:
            error = error_of(condition)
            failure = record.job.step.failure
            same = record.finding == error.kind and failure is not None and failure.message == str(error)
            return None if same else Fail(error)
    known = {condition.type for condition in conditions if condition is not None}
    if (
        record.finding
        and known >= _ALWAYS
        and all(condition is None or condition.status for condition in conditions)
    ):
        return Done("Flux and the nodes are healthy again")
    return None


def error_of(condition: Condition) -> Unhealthy:
    """Return the error of a condition of health that is false."""
    return _ERRORS[HealthCondition(condition.type)](condition.message)


def problem_of(record: ClusterRecord) -> str:
    """Return why a cluster is Ready and not healthy as a sentence, "" where it is, or is not known."""
    fault = next(faults_of(record), None)
    return f"{error_of(fault).kind}: {fault.message}" if fault else ""


def unread_of(record: ClusterRecord) -> Condition | None:
    """Return a condition of health that is unknown because the cluster could not be read, None for none."""
    found = (record.condition(kind) for kind in HealthCondition)
    return next(
        (condition for condition in found if condition is not None and condition.status is None), None
    )


def needs_check(record: ClusterRecord) -> bool:
    """Return whether a cluster that was checked is not known to be healthy, and only a check can say more.

    What a sweep found, such as a stopped cluster, is over with a sweep. A spec that this version refuses is
    over with a commit or another version. The timer's checks see that, and how a cluster is whose job has
    failed or is suspended.
    """
    if record.deleting or record.desired.problem or is_unfinished(record):
        return False
    if record.finding and not of_health(record.finding):
        return False
    found = (record.condition(kind) for kind in HealthCondition)
    return any(condition is not None and not condition.status for condition in found) or bool(record.finding)


def next_check(record: ClusterRecord, now: datetime, patience: timedelta) -> datetime:
    """Return when a cluster is checked again: when a condition ends its being Ready, or its slot has passed.

    ``patience`` includes by how much clocks may differ. Within a slot it is the same moment for all who ask,
    so that one check follows the other. The slots of different clusters end at different moments.
    """
    offset = zlib.crc32(record.name.encode()) % SLOT_SECONDS
    slot = math.floor((now.timestamp() - offset) / SLOT_SECONDS) + 1
    ends = [now.fromtimestamp(slot * SLOT_SECONDS + offset, tz=now.tzinfo)]
    ends += [condition.since + patience for condition in faults_of(record)]
    return min(end for end in ends if end > now)


def faults_of(record: ClusterRecord) -> Iterator[Condition]:
    """Yield the conditions of health that are false."""
    for kind in HealthCondition:
        condition = record.condition(kind)
        if condition is not None and condition.status is False:
            yield condition


# Whether what Roadstead applied of Flux is applied again: by the policy, and by what a check found. Pure.
#
# A check only finds it. A sweep reads the cluster and starts the job, as for any other correction, because
# the job has to leave everything else that differs.

FLUX = "what Roadstead applied of Flux"
"""All of it differs as a whole, as it is counted among the corrections."""
CORRECTED = DriftDecision(Difference(FLUX, "as applied", "changed"), DriftAction.CORRECT)


_CORRECTED = (CHANGED, MISSING, SUSPENDED)


def corrects_flux(record: ClusterRecord) -> bool:
    """Return whether the policy has what Roadstead applied of Flux applied again, and not left suspended."""
    policy = None if record.desired.problem else record.desired.spec.drift
    return policy is not None and policy.flux_objects == "correct"


def applies_again(record: ClusterRecord, now: datetime) -> bool:
    """Return whether a check has found objects that the policy has applied again, or resumed.

    What a check found before the last job came to its end is nothing: that job has applied them. Nothing is
    applied to a cluster while a sweep finds it failed.
    """
    inside = record.observation.inside
    if inside is None or not record.idle or finding_of_sweep(record.finding) or not corrects_flux(record):
        return False
    found = {unhealthy.reason for part in inside.parts for unhealthy in part.unhealthy}
    is_newer = inside.at > record.job.step.since
    return (
        is_newer
        and not found.isdisjoint(_CORRECTED)
        and FLUX not in exhausted(record.divergence.corrections, now)
    )
