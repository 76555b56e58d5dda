"""A notification, and which ones follow from a change of a cluster's record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from shared.azure.drift.yaml_diff import Sides, yaml_diff
from shared.cluster.divergence.drift import Drift, DriftedField, is_news
from shared.cluster.failures.retry import DEFAULTS, Policies
from shared.cluster.findings.conditions import exempt_text, found_of, is_exempt, kind_found
from shared.cluster.history import by_whom
from shared.cluster.lifetime import Lifetime
from shared.cluster.queues.message_parts import Approval
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.diagnosis import diagnose
from shared.cluster.reporting.summary import reason_of
from shared.frozen import dataclass, field, replace
from shared.kubernetes.kubeconfig import Certificate, ending
from shared.masking import cut
from shared.notifications.kinds import KINDS, NotificationKind, Severity

DETAIL_LIMIT = 300
"""Characters of a reason; `roadstead why` has the whole one."""
ACTION_LIMIT = 1000
"""Characters of what comes next: more than it ever has, because a command in it is to be whole."""
DIFF_LIMIT = 800
"""Characters of a diff; `roadstead drift` has the whole one."""
NAMED = 20
"""How many clusters a notification of the fleet names."""
EXEMPT = "exempt"
"""What a problem became that an exemption ignores from now on."""
_CLUSTER, _DRIFT, _CERTIFICATE, _OUTPUTS = "cluster:", "drift:", "certificate:", "outputs:"
_LIFETIME = "lifetime:"
EXTEND = "`roadstead extend {} --for 24h --reason TEXT` keeps the cluster, and so does another end in git."
SEE_DRIFT = (
    "`roadstead drift` shows each field; `roadstead replay NAME` writes git's values, a commit keeps Azure's."
)
APPROVE = (
    "`roadstead drift` shows each field; `roadstead approve --cluster NAME` has git's values written, "
    "a commit keeps Azure's."
)

LEFT_ALONE = "`roadstead drift` shows each field; no job changes it, and a commit keeps Azure's value."


@dataclass(frozen=True)
class Notification:
    """A problem that begins or is over, or something that happened once.

    ``id`` identifies the notification however often it is saved; ``key`` what it is about: a later
    notification with the same key replaces a problem or ends it. ``subject`` names that for a person.
    ``reason`` is the class of the error, ``detail`` a sentence, ``action`` what comes next, ``diff`` a
    unified diff, each "" for none. ``sequence`` orders the notifications of a cluster that have the same
    time. ``names`` are the clusters that a notification of the fleet is about. ``since`` is when a problem
    that is ``over`` began, ``became`` the kind of the problem that took its place, or ``EXEMPT``, "" for
    none. ``outputs`` are those of the cluster, where they have changed.
    """

    id: str
    kind: NotificationKind
    key: str
    subject: str
    at: datetime
    sequence: int = 0
    reason: str = ""
    detail: str = ""
    action: str = ""
    diff: str = ""
    commit: str = ""
    environment: str = ""
    location: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    since: datetime | None = None
    over: bool = False
    became: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def severity(self) -> Severity:
        """How urgent it is."""
        return KINDS[self.kind].severity

    @property
    def lasting(self) -> bool:
        """Whether it is a problem, which lasts until another notification ends it."""
        return bool(KINDS[self.kind].over) and not self.over

    @property
    def of_cluster(self) -> bool:
        """Whether it is about one cluster; its environment and labels are known only then."""
        return self.key.startswith((_CLUSTER, _DRIFT, _CERTIFICATE, _OUTPUTS, _LIFETIME))

    @property
    def group(self) -> tuple[str, str, str]:
        """What notifications of one message have in common: the kind, the class of the error, the region."""
        return self.kind.value, self.reason, self.location


def brief(text: str, limit: int = DETAIL_LIMIT) -> str:
    """Return a text as a notification has it: the beginning of a long one, with dots at the end."""
    return cut(text, limit, "...")


def end_of(problem: Notification, at: datetime, detail: str = "") -> Notification:
    """Return the notification that a problem is over; without a detail, it has that of the problem."""
    return replace(
        problem,
        id=f"{problem.id}:over",
        at=at,
        since=problem.at,
        over=True,
        detail=detail or problem.detail,
        action="",
        diff="",
    )


def trouble_between(
    before: ClusterRecord, after: ClusterRecord, *, retries: Policies = DEFAULTS
) -> Notification | None:
    """Return the notification that the change of a cluster's record is, None for none.

    A job that starts again ends no problem: its cluster being Ready does, or its being deleted.
    """
    if is_exempt(after) and is_exempt(before):
        return None
    if is_exempt(after):
        ignored = brief(exempt_text(after))
        return replace(_notification(NotificationKind.LOST, after), over=True, became=EXEMPT, detail=ignored)
    trouble = _trouble(after)
    if trouble is not None:
        same = trouble == _trouble(before)
        return None if same else _problem(trouble, after, retries)
    if not after.job.active and after.phase is Phase.READY:
        was_ready = not before.job.active and before.phase is Phase.READY
        return None if was_ready else _notification(NotificationKind.READY, after)
    was = _trouble(before)
    return replace(_notification(was[0], after), over=True) if was and before.job.active else None


def drift_between(before: ClusterRecord, after: ClusterRecord) -> Notification | None:
    """Return that a cluster differs from git in other fields, or in none; None for no change."""
    if not is_news(after.divergence.drift, before.divergence.drift):
        return None
    notification = replace(_notification(NotificationKind.DRIFT, after), key=f"{_DRIFT}{after.name}")
    if after.divergence.drift is None:
        return replace(notification, over=True)
    fields = after.divergence.drift.fields
    notes = dict.fromkeys(drifted_field.note for drifted_field in fields if drifted_field.note)
    more = filter(None, (after.divergence.drift.waits, *notes))
    places = "\n".join(
        f"# {drifted_field.path}: {place}" for drifted_field in fields if (place := _place(drifted_field))
    )
    below = _shortened(places, DIFF_LIMIT // 2)
    diff = yaml_diff(
        after.name,
        [Sides(drifted_field.path, drifted_field.git, drifted_field.live) for drifted_field in fields],
    )
    return replace(
        notification,
        detail=brief("; ".join((f"differs from git in {after.divergence.drift}", *more))),
        action=_of_drift(after.divergence.drift),
        diff="\n".join(filter(None, (_shortened(diff, DIFF_LIMIT - len(below)), below))),
    )


def _of_drift(drift: Drift) -> str:
    if drift.to_approve:
        return APPROVE
    return LEFT_ALONE if all(drifted_field.left_alone for drifted_field in drift.fields) else SEE_DRIFT


def certificate_between(before: ClusterRecord, after: ClusterRecord) -> Notification | None:
    """Return that a certificate of a cluster ends soon, or no longer does; None for no change.

    A check sees the certificates, and nothing is known of those of a cluster that is missing.
    """
    soon, was = ending_of(after), ending_of(before)
    first, earlier = next(iter(soon), None), next(iter(was), None)
    if first is None:
        return _end_of_certificate(earlier[0], after) if earlier else None
    if earlier and earlier[0] == first[0]:
        return None
    return replace(_of_certificate(first[0], after), detail=brief(first[1]))


def outputs_between(before: ClusterRecord, after: ClusterRecord) -> Notification | None:
    """Return the notification that the outputs of a cluster are known, or are others; None for no change."""
    known, now = before.observation.facts, after.observation.facts
    if now is None or now == known:
        return None
    notification = replace(
        _notification(NotificationKind.OUTPUTS, after), key=f"{_OUTPUTS}{after.name}", outputs=dict(now)
    )
    if known is None:
        return replace(notification, detail="its outputs are known")
    changed = sorted({name for name, _ in known.items() ^ now.items()})
    return replace(notification, detail=brief(f"changed: {', '.join(changed)}"))


def ending_of(record: ClusterRecord) -> Sequence[tuple[Certificate, str]]:
    """Return the certificates that ended soon when the last check saw them, the soonest first."""
    if record.observation.inside is None:
        return ()
    seen, at = record.observation.inside.certificates, record.observation.inside.at
    return tuple(ending(seen, at, in_azure=not record.desired.is_attached))


def _of_certificate(certificate: Certificate, record: ClusterRecord) -> Notification:
    moment = f"{record.uid}:{certificate.of}:{int(certificate.ends.timestamp())}"
    at = record.observation.inside.at if record.observation.inside else record.updated
    return replace(
        _notification(NotificationKind.EXPIRING, record),
        id=f"{NotificationKind.EXPIRING}:{record.name}:{moment}",
        key=f"{_CERTIFICATE}{record.name}",
        at=at,
    )


def _end_of_certificate(certificate: Certificate, record: ClusterRecord) -> Notification:
    over = _of_certificate(certificate, record)
    return replace(over, id=f"{over.id}:{int(over.at.timestamp())}", over=True)


def _place(field: DriftedField) -> str:
    """Return where git sets a value, and who may have changed it in Azure, and when."""
    return "; ".join(filter(None, (field.source, field.change)))


def _shortened(text: str, limit: int) -> str:
    """Return the first lines of a text; a longer one ends with dots."""
    safe = cut(text, limit + 1)
    if len(safe) <= limit:
        return safe
    whole, _, _ = safe.rpartition("\n")
    return f"{whole}\n..."


def lifetime_notification(record: ClusterRecord, life: Lifetime, now: datetime) -> Notification:
    """Return that a cluster ends soon, or that a pull request removes it."""
    pull = record.azure.lifetime.pull
    what, action = f"its lifetime ends at {life.ends:%Y-%m-%d %H:%M} UTC", EXTEND
    if pull is not None and pull.end == life.over:
        what, action = f"its lifetime is over: {pull.url} removes it", f"Merge or close it. {EXTEND}"
    warned = record.azure.lifetime.warned
    about = f"pull:{pull.number}" if pull else f"{int(warned[1].timestamp())}" if warned else ""
    return replace(
        _notification(NotificationKind.ENDING, record),
        id=f"{NotificationKind.ENDING}:{record.name}:{record.uid}:{int(life.over.timestamp())}:{about}",
        key=f"{_LIFETIME}{record.name}",
        at=now,
        detail=brief(what),
        action=action.format(record.name),
    )


def deleted(record: ClusterRecord, at: datetime) -> Notification:
    """Return the notification that a cluster no longer exists, or no longer is this fleet's, as git asked."""
    kind = NotificationKind.RELEASED if record.desired.is_attached else NotificationKind.DELETED
    return replace(_notification(kind, record), at=at)


def approved(approval: Approval) -> Notification:
    """Return the notification that somebody approved the deletes of a commit."""
    return Notification(
        id=f"{NotificationKind.APPROVED}:{approval.commit}:{int(approval.at.timestamp())}",
        kind=NotificationKind.APPROVED,
        key="approved",
        subject=approval.commit[:8],
        at=approval.at,
        detail=brief(": ".join(filter(None, (f"approved by {approval.by}", approval.reason)))),
        commit=approval.commit,
        names=tuple(sorted(approval.clusters)[:NAMED]),
    )


def correction_approved(record: ClusterRecord) -> Notification:
    """Return the notification that somebody approved corrections of a cluster."""
    approval = record.divergence.drift.approval if record.divergence.drift else None
    fields = (
        ", ".join(drifted_field.path for drifted_field in record.divergence.drift.by_approval)
        if record.divergence.drift
        else ""
    )
    by = by_whom(approval.by, approval.reason) if approval else ""
    notification = _notification(NotificationKind.APPROVED, record)
    detail = brief(f"the correction of {fields} was approved by {by}")
    return replace(notification, key=f"approved:{record.name}", detail=detail, names=(record.name,))


def _trouble(record: ClusterRecord) -> tuple[NotificationKind, str] | None:
    """Return the kind and the class of error of what is wrong with a cluster, None for nothing."""
    failure = record.job.step.failure
    reason = failure.kind if failure else ""
    if is_exempt(record):
        return None
    if record.finding:
        return NotificationKind.LOST, reason
    if kind_found(record):  # in a suspension, which has no finding
        return NotificationKind.LOST, kind_found(record)
    if record.failed or record.refused:
        return NotificationKind.FAILED, reason
    if record.needs_action:
        return NotificationKind.HELD, reason
    if record.phase is Phase.STALLED:
        return NotificationKind.STALLED, str(record.job.step.name)
    return None


def _problem(trouble: tuple[NotificationKind, str], record: ClusterRecord, retries: Policies) -> Notification:
    kind, reason = trouble
    action = diagnose(record, now=record.updated, retries=retries).suggested_action
    found = found_of(record) if record.phase is Phase.SUSPENDED else ""
    return replace(
        _notification(kind, record),
        reason=reason,
        detail=brief(f"{found}; it is suspended" if found else reason_of(record)),
        action=brief(action, ACTION_LIMIT),
    )


def _notification(kind: NotificationKind, record: ClusterRecord) -> Notification:
    moment = f"{record.uid}:{record.generation}:{record.job.sequence}"
    return Notification(
        id=f"{kind}:{record.name}:{moment}",
        kind=kind,
        key=f"{_CLUSTER}{record.name}",
        subject=record.name,
        at=record.updated,
        sequence=record.job.sequence,
        commit=record.commit,
        environment=record.desired.environment,
        location=record.document["spec"]["location"],
        labels=dict(record.desired.labels),
    )
