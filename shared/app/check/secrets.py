"""The bootstrap secrets of a cluster, as its vaults and the cluster have them; a new version is applied.

Only version ids and the owners of fields are compared, so that nothing of a value is stored. Whatever
the vault no longer gives stays in the cluster.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from shared.app.access.context import StepContext
from shared.app.sweep.conclusions import is_beside
from shared.app.worker.steps.bootstrap_secrets import VaultReads
from shared.app.worker.steps.flux.applied import apply_over, is_as_applied
from shared.cluster.failures.errors import ReconcileError, SecretMissing
from shared.cluster.findings.conditions import is_unfinished
from shared.cluster.findings.health import HEALTHY, HealthCondition, HealthFinding
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.frozen import replace
from shared.json_tree import Json
from shared.kubernetes import health
from shared.kubernetes.bootstrap_secrets import fields_of_others, secret_ref, versions_in
from shared.kubernetes.field_ownership import is_applied_by_us
from shared.kubernetes.health import CHANGED, MISSING, Fault
from shared.language.model.cluster.grants import BootstrapSecret
from shared.ports import KubernetesApi, Ports

log = logging.getLogger(__name__)

RENEWED = "SecretsRenewed"
"""The reason of the event."""


@dataclass
class SecretsReading:
    """What was found so far: faults, why something is not known, and the Secrets with a new version."""

    count: int = 0
    faults: list[Fault] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    renewed: list[str] = field(default_factory=list)

    @property
    def events(self) -> dict[str, str]:
        """What a check has applied, by the reason of its event."""
        return {RENEWED: f"applied the new version of {', '.join(self.renewed)}"} if self.renewed else {}

    @property
    def finding(self) -> HealthFinding:
        """What the condition says: a fault counts for more than what is not known."""
        kind = HealthCondition.SECRETS
        if self.faults:
            first, *others = health.in_order(self.faults)
            more = f"; and {len(others)} more" if others else ""
            return HealthFinding(kind, False, first.reason, f"{first}{more}")
        if self.unknown:
            return HealthFinding(kind, None, "NotRead", self.unknown[0])
        healthy = f"{self.count} of {self.count} bootstrap secrets are as their vaults have them"
        return HealthFinding(kind, True, HEALTHY, healthy)


def has_secrets(record: ClusterRecord) -> bool:
    """Return whether a check finds something of bootstrap secrets: of those that are, or that were."""
    return bool(record.document["spec"].get("bootstrapSecrets")) or bool(
        record.condition(HealthCondition.SECRETS)
    )


def check_secrets(context: StepContext, reads: VaultReads) -> SecretsReading | None:
    """Return what is so of the bootstrap secrets, None for a cluster without; apply their new versions."""
    if not has_secrets(context.record):
        return None
    secrets = context.desired.spec.bootstrap_secrets
    found, api = SecretsReading(len(secrets)), context.kubernetes()
    for secret in secrets:
        _check(secret, api.get(secret_ref(secret)), context, reads, found)
    found.faults = as_far_as_known(found.faults, context.record)
    if found.renewed:
        log.info("%s: %s", context.record.name, found.events[RENEWED])
    return found


def _check(
    secret: BootstrapSecret, live: Json | None, context: StepContext, reads: VaultReads, found: SecretsReading
) -> None:
    ref = secret_ref(secret)
    if live is None:
        found.faults.append(health.missing(ref))
        return
    versions, others = versions_in(secret, live), fields_of_others(secret, live)
    if not is_applied_by_us(live) or versions is None or others:
        found.faults.append(health.changed(ref, ", ".join(others)))
        return
    try:
        manifest = reads.object(secret)
    except SecretMissing as error:
        found.faults.append(Fault(ref, error.code or "SecretNotFound", f"it stays as it is, because {error}"))
        return
    except ReconcileError as error:
        found.unknown.append(f"{error.kind}: {error}")
        return
    api = context.kubernetes()
    if versions_in(secret, manifest) == versions:
        if not is_as_applied(live, manifest, api):
            found.faults.append(health.changed(ref))
    elif may_apply(context.record, context.ports):
        _renew(manifest, live, secret, api, found)
    elif is_unfinished(context.record):
        found.faults.append(health.changed(ref))


def _renew(
    manifest: Json, live: Json, secret: BootstrapSecret, api: KubernetesApi, found: SecretsReading
) -> None:
    apply_over(live, manifest, api)
    found.renewed.append(f"the Secret {secret.place}")


def may_apply(record: ClusterRecord, ports: Ports) -> bool:
    """Return whether a check may apply something: the last job has ended, and no other has started since.

    The job of a new commit, or one that goes on after a failure or a suspension, applies everything.
    """
    if is_unfinished(record):
        return False
    current = ports.state.cluster(record.name)
    return current is not None and is_beside(current, record)


# What a check says of a cluster whose last job failed or is suspended: not everything may be applied.

_APPLIED = frozenset({CHANGED, MISSING})


def as_far_as_known(faults: Iterable[Fault], record: ClusterRecord) -> list[Fault]:
    """Return the faults; what the last job may not have applied is not called a change by somebody."""
    if not is_unfinished(record):
        return list(faults)
    job = "is suspended" if record.phase is Phase.SUSPENDED else "has failed"
    return [_by_job(fault, job) if fault.reason in _APPLIED else fault for fault in faults]


def _by_job(fault: Fault, job: str) -> Fault:
    what = "it does not exist" if fault.reason == MISSING else "it is not as git has it"
    return replace(fault, message=f"{what}, and the job that applies it {job}")
