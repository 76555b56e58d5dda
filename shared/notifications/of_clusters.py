"""Which notifications follow from the records of clusters; ``NEWS`` is their table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

from shared.azure.drift.yaml_diff import Sides, yaml_diff
from shared.cluster.divergence.drift import Drift, DriftedField, is_news
from shared.cluster.failures.retry import DEFAULTS, Policies
from shared.cluster.findings.conditions import exempt_text, found_of, is_exempt, kind_found
from shared.cluster.history import by_whom
from shared.cluster.lifetime import Lifetime
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.diagnosis import diagnose
from shared.cluster.reporting.summary import reason_of
from shared.frozen import dataclass, replace
from shared.kubernetes.kubeconfig import Certificate, ending
from shared.language.model.notification_kinds import NotificationKind
from shared.masking import cut
from shared.notifications.notification import ACTION_LIMIT, EXEMPT, Notification, Topic, brief

DIFF_LIMIT = 800
"""Characters of a diff; `roadstead drift` has the whole one."""
EXTEND = "`roadstead extend {} --for 24h --reason TEXT` keeps the cluster, and so does another end in git."
SEE_DRIFT = (
    "`roadstead drift` shows each field; `roadstead replay NAME` writes git's values, a commit keeps Azure's."
)
APPROVE = (
    "`roadstead drift` shows each field; `roadstead approve --cluster NAME` has git's values written, "
    "a commit keeps Azure's."
)
LEFT_ALONE = "`roadstead drift` shows each field; no job changes it, and a commit keeps Azure's value."


def news_between(before: ClusterRecord, after: ClusterRecord, retries: Policies) -> list[Notification]:
    """Return what the change of a record is to whoever is notified; most changes are nothing."""
    notifications = (news.between(before, after, retries) for news in NEWS.values())
    return [notification for notification in notifications if notification is not None]


def still_so(problem: Notification, record: ClusterRecord) -> bool:
    """Return whether the record of its cluster shows a problem."""
    news = NEWS.get(problem.topic) if problem.topic else None
    return news is not None and news.lasts(record)


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
    notification = _notification(NotificationKind.DRIFT, after, Topic.DRIFT)
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
    notification = replace(_notification(NotificationKind.OUTPUTS, after, Topic.OUTPUTS), outputs=dict(now))
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
        _notification(NotificationKind.EXPIRING, record, Topic.CERTIFICATE),
        id=f"{NotificationKind.EXPIRING}:{record.name}:{moment}",
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
        _notification(NotificationKind.ENDING, record, Topic.LIFETIME),
        id=f"{NotificationKind.ENDING}:{record.name}:{record.uid}:{int(life.over.timestamp())}:{about}",
        at=now,
        detail=brief(what),
        action=action.format(record.name),
    )


def deleted(record: ClusterRecord, at: datetime) -> Iterator[Notification]:
    """Yield the ends of a cluster's problems, and that it is deleted, or released, as git asked."""
    for topic, news in NEWS.items():
        if news.problem is not None and news.lasts(record):
            yield replace(_notification(news.problem, record, topic), at=at, over=True)
    kind = NotificationKind.RELEASED if record.desired.is_attached else NotificationKind.DELETED
    yield replace(_notification(kind, record), at=at)


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


def _notification(
    kind: NotificationKind, record: ClusterRecord, topic: Topic = Topic.CLUSTER
) -> Notification:
    moment = f"{record.uid}:{record.generation}:{record.job.sequence}"
    return Notification(
        id=f"{kind}:{record.name}:{moment}",
        kind=kind,
        key=f"{topic}:{record.name}",
        subject=record.name,
        at=record.updated,
        sequence=record.job.sequence,
        commit=record.commit,
        environment=record.desired.environment,
        location=record.document["spec"]["location"],
        labels=dict(record.desired.labels),
    )


@dataclass(frozen=True)
class News:
    """How notifications of a topic follow from two versions of a record, and whether it shows a problem.

    ``problem`` is the kind that a delete ends; None where nothing lasts, or where "deleted" takes its place.
    """

    between: Callable[[ClusterRecord, ClusterRecord, Policies], Notification | None]
    lasts: Callable[[ClusterRecord], bool] = lambda _: False
    problem: NotificationKind | None = None


NEWS: Mapping[Topic, News] = {
    Topic.CLUSTER: News(
        lambda before, after, retries: trouble_between(before, after, retries=retries),
        lambda record: record.phase is not Phase.READY and not is_exempt(record),
    ),
    Topic.DRIFT: News(
        lambda before, after, _: drift_between(before, after),
        lambda record: record.divergence.drift is not None,
        NotificationKind.DRIFT,
    ),
    Topic.CERTIFICATE: News(
        lambda before, after, _: certificate_between(before, after),
        lambda record: bool(ending_of(record)),
        NotificationKind.EXPIRING,
    ),
    Topic.OUTPUTS: News(lambda before, after, _: outputs_between(before, after)),
}
"""What follows from records; who watches the ends of lifetimes says those of ``Topic.LIFETIME``."""
