"""What is known of a cluster that is missing or stopped, and the exemption that has it so. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from shared.azure.drift.activity import Change
from shared.cluster.drift import moment
from shared.cluster.failures.errors import ClusterMissing, ClusterStopped, NoLongerReady
from shared.cluster.findings.conditions import found_of, is_exempt
from shared.cluster.record import ClusterRecord, Loss
from shared.frozen import replace
from shared.language.model.cluster.drift import DriftRule

_EXEMPTED_AS: Mapping[str, str] = {
    ClusterMissing.__name__: "missingCluster",
    ClusterStopped.__name__: "stoppedCluster",
}
"""What the fields of an exemption call what was found."""

_DONE: Mapping[str, str] = {ClusterMissing.__name__: "deleted", ClusterStopped.__name__: "stopped"}


def exemption_of(record: ClusterRecord, found: type[NoLongerReady], now: datetime) -> DriftRule | None:
    """Return the rule by which it is ignored now that a cluster is missing or stopped, None for none."""
    policy = None if record.desired.problem else record.desired.spec.drift
    return policy.exemption(_EXEMPTED_AS[found.__name__], now) if policy else None


def loss_of(record: ClusterRecord, error: NoLongerReady | None, now: datetime) -> Loss | None:
    """Return what is known after a finding; one that stays keeps its time, and who caused it."""
    if not isinstance(error, ClusterMissing | ClusterStopped):
        return None
    before = record.loss
    loss = before if before is not None and before.kind == error.kind else Loss(error.kind, now)
    rule = exemption_of(record, type(error), now)
    exemption, expires = (rule.name, rule.expires or "") if rule else ("", "")
    return replace(loss, act=error.act or loss.act, exemption=exemption, expires=expires)


def reassessed(record: ClusterRecord, now: datetime) -> ClusterRecord:
    """Return the record with the exemption that counts now for a missing or stopped cluster."""
    loss = record.loss
    found = next(
        (each for each in (ClusterMissing, ClusterStopped) if loss and each.__name__ == loss.kind), None
    )
    return replace(record, loss=loss_of(record, found(""), now)) if found else record


def with_act(error: NoLongerReady, act: Change | None) -> NoLongerReady:
    """Return what was found of a cluster with who deleted or stopped it; None: that is not known."""
    if act is None or error.kind not in _DONE:
        return error
    return type(error)(f"{error}; {_DONE[error.kind]} {moment(act.at)} by {act.by}", act=act)


def act_known(record: ClusterRecord, error: NoLongerReady) -> Change | None:
    """Return who did what was found, as an earlier sweep has named them; None where none has."""
    same = record.loss is not None and record.loss.kind == error.kind
    return record.loss.act if same and record.loss else None


def unnamed_since(record: ClusterRecord) -> datetime | None:
    """Return since when nobody is known who deleted or stopped a cluster, None where that is not asked."""
    loss = record.loss
    return loss.since if loss is not None and loss.act is None and found_of(record) else None


def exempt_text(record: ClusterRecord) -> str:
    """Return by which exemption what was found is ignored, as a sentence; "" where it is not."""
    policy = record.desired.spec.drift if is_exempt(record) else None
    rule = next((each for each in policy.rules if each.name == record.exemption), None) if policy else None
    return described(rule) if rule else ""


def described(rule: DriftRule) -> str:
    """Return an exemption as a sentence."""
    return f"the exemption {rule.name} of {rule.owner} ignores that until {rule.expires}: {rule.reason}"
