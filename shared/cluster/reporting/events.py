"""The history of a cluster: which differences between two records are events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from shared.cluster.divergence.drift import DriftedField, is_news
from shared.cluster.divergence.trial import Trial
from shared.cluster.findings.conditions import MESSAGE_LIMIT
from shared.cluster.history import Event, by_whom
from shared.cluster.job import Contest, ContestKind
from shared.cluster.outcomes import Done, Fail, GoToStep, Outcome, Restart, Retry, Wait
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.cluster.sleep import SleepOrder
from shared.frozen import replace
from shared.language.pin import Pin, short_commit
from shared.masking import cut

REBUILD = "Rebuild"
"""The reason of the event with which a rebuild begins."""
DELETED, RELEASED = "Deleted", "Released"
"""The reasons of the last event of a cluster."""
FLUX_REPORTED = "FluxReported"
"""The reason of the event of what Flux reported."""


def accepted_event(
    record: ClusterRecord, approved: str = "", *, restored: bool = False, rebuild: str = ""
) -> Event:
    """Return the event of a spec, or a removal, that was just accepted; ``approved``: by whom, and why.

    ``restored``: the spec takes a removal back. ``rebuild`` is the time of the rebuild that begins with this
    removal, "" for one that is for good.
    """
    if rebuild:
        approval = f", approved by {approved}" if approved else ""
        what = f"commit {record.commit[:8]} rebuilds the cluster ({rebuild}): it is deleted, then created"
        return event_of(record, REBUILD, f"{what} again{approval}")
    what = "the cluster's removal in" if record.deleting else f"generation {record.generation} of"
    approval = f", approved by {approved}" if approved else ""
    removal = "release" if record.desired.is_attached else "delete"
    taken_back = f", which has the cluster again: its {removal} had not started" if restored else ""
    return event_of(record, "Accepted", f"{what} commit {record.commit[:8]}{approval}{taken_back}")


def replayed_event(record: ClusterRecord, by: str, reason: str = "") -> Event:
    """Return the event of a job that an operator started again."""
    message = f"replayed by {by_whom(by, reason)}"
    return replace(event_of(record, "Replayed", message), step=record.job.step.name)


def sleep_event(record: ClusterRecord) -> Event:
    """Return the event of a job that has a cluster sleep."""
    what = "the User node pools" if record.sleeps_in_pools else "the cluster"
    return event_of(record, "Sleeping", f"it is time: a job stops {what}")


def order_event(record: ClusterRecord, order: SleepOrder) -> Event:
    """Return the event of what an operator ordered about the sleep of a cluster."""
    what = "awake" if order.awake else "asleep"
    by = by_whom(order.by, order.reason)
    return event_of(
        record, "SleepOrdered", f"{by} has the cluster {what} until {order.until:%Y-%m-%d %H:%M} UTC"
    )


def lifetime_event(record: ClusterRecord, reason: str, message: str, now: datetime) -> Event:
    """Return the event of what puts an end off, or of the end: no job follows, whose time it could have."""
    return replace(event_of(record, reason, message), at=now)


def tried_event(record: ClusterRecord, trial: Trial) -> Event:
    """Return the event of a cluster that gets the head of a pull request for a time."""
    return event_of(record, "Tried", f"{trial}" + (f" ({trial.reason})" if trial.reason else ""))


def trial_ended_event(record: ClusterRecord, trial: Trial) -> Event:
    """Return the event of a cluster that goes back from a try."""
    by = f" ({trial.ended_by})" if trial.ended_by else ""
    return event_of(record, "TrialEnded", f"{trial}{by}; until then: {trial.result}")


def pin_back_event(record: ClusterRecord, pins: Mapping[str, Pin], by: str, reason: str) -> Event:
    """Return the event of a cluster that goes back to earlier pins, because somebody aborted a rollout."""
    moved = (
        f"{f'the pin of {name}' if name else 'its pin'} goes back from {short_commit(pin.before)} to "
        f"{short_commit(pin.commit)}"
        for name, pin in sorted(pins.items())
    )
    what = "; ".join(moved) or "it has the earlier commits already"
    return event_of(record, "PinBack", f"{what}: the rollout was aborted by {by_whom(by, reason)}")


def recovery_event(record: ClusterRecord) -> Event:
    """Return the event of a record of restored tables, whose job compares the cluster with git."""
    return event_of(
        record, "Recovering", "the tables were restored: a job compares the cluster, and writes nothing"
    )


def restarted_event(record: ClusterRecord) -> Event:
    """Return the event of a job that had ended because Azure did not show its cluster, and starts again."""
    return event_of(record, "Restarted", "a sweep found the cluster, so the job that missed it starts again")


def taken_over_event(record: ClusterRecord, contest: Contest, by: str) -> Event:
    """Return the event of a cluster that an operator took over."""
    others = ", ".join(name or "an unknown one" for name in contest.installations)
    what = f"from the installation {others}" if others else f"in its life {contest.life}"
    if contest.kind is ContestKind.IDENTITY:
        what = "as the cluster to which its kubeconfig leads now"
    return replace(event_of(record, "TakenOver", f"taken over {what} by {by}"), step=record.job.step.name)


def rate_limited_event(
    before: ClusterRecord, after: ClusterRecord, reason: str, request_ids: Sequence[str]
) -> Iterator[Event]:
    """Yield the event of a step that became rate limited; none while it stays so."""
    if request_ids or not before.job.next_run.reservations:
        yield _of_step(event_of(after, "RateLimited", reason), before, request_ids)


def superseded_event(record: ClusterRecord, reason: str, request_ids: Sequence[str], now: datetime) -> Event:
    """Return the event of a step that was superseded after it had written something."""
    return _of_step(event_of(replace(record, updated=now), "Superseded", reason), record, request_ids)


def drift_event(before: ClusterRecord, after: ClusterRecord) -> Iterator[Event]:
    """Yield the event of drift that a comparison found, or no longer finds; none while it stays the same."""
    if not is_news(after.divergence.drift, before.divergence.drift):
        return
    approval = before.divergence.drift.approval if before.divergence.drift else None
    still = after.divergence.drift is not None and after.divergence.drift.approval is not None
    by = by_whom(approval.by, approval.reason) if approval else ""
    ended = f"; the approval of {by} no longer counts" if approval and not still else ""
    if after.divergence.drift is None:
        yield event_of(after, "InSync", f"a sweep found the cluster as git has it{ended}")
        return
    shown = map(_drifted_field, after.divergence.drift.fields)
    yield event_of(after, "Drifted", f"differs from git in {', '.join(shown)}{ended}", warning=True)


def _drifted_field(field: DriftedField) -> str:
    values = f"{field.git or 'nothing'} in {field.source or 'git'}, {field.live or 'nothing'} live"
    effect = f"the correction needs an approval: {field.effect}" if field.effect else ""
    return f"{field.path} ({'; '.join(filter(None, (values, field.change, effect)))})"


def correction_event(record: ClusterRecord, what: str) -> Event:
    """Return the event of a job that a sweep started, because the policy asks for it."""
    approval = record.divergence.drift.approval if record.divergence.drift else None
    approved = f", and {by_whom(approval.by, approval.reason)} approved it" if approval else ""
    return event_of(record, "Correcting", f"the policy asks for it{approved}: {what}")


def reported_event(record: ClusterRecord, what: str, at: datetime, number: int, *, warning: bool) -> Event:
    """Return the event of what Flux reported; its number makes it the same one whenever it is received."""
    event = event_of(record, FLUX_REPORTED, what, warning=warning)
    return replace(event, sequence=number, at=at)


def correction_approved_event(record: ClusterRecord, by: str) -> Event:
    """Return the event of corrections that somebody approved; the sweep compares once more."""
    fields = (
        ", ".join(field.path for field in record.divergence.drift.by_approval)
        if record.divergence.drift
        else ""
    )
    return event_of(record, "Approved", f"the correction of {fields} was approved by {by}")


def drift_accepted_event(record: ClusterRecord, paths: Iterable[str], by: str) -> Event:
    """Return the event of what somebody added to a cluster, and somebody accepted."""
    return event_of(record, "DriftAccepted", f"{', '.join(paths)} may stay as Azure has it, accepted by {by}")


def events_between(
    before: ClusterRecord, after: ClusterRecord, outcome: Outcome, *, request_ids: Sequence[str] = ()
) -> Iterator[Event]:
    """Yield an event for each step's end, each write and each change; none for a wait that continues."""
    for reason, message, warning in _descriptions(before, after, outcome, wrote=bool(request_ids)):
        event = event_of(after, reason, message, warning=warning)
        yield _of_step(event, before, (*request_ids, *_refused(outcome)))


def _descriptions(
    before: ClusterRecord, after: ClusterRecord, outcome: Outcome, *, wrote: bool
) -> Iterator[tuple[str, str, bool]]:
    """Yield the reason and the message of each event, and whether it is a warning."""
    waited = (after.updated - before.job.step.since).total_seconds()
    match outcome:
        case Done(note=note) if not after.job.active:
            recovered = "the record was recovered, and nothing was written" if before.recovering else ""
            yield "Ready", "; ".join(filter(None, (recovered, note))) or "verified", False
        case Done(note=note):
            yield "StepDone", note or f"in sync, after {waited:.0f} s", False
        case Wait(reason=reason):
            if reason != before.job.reason or after.phase != before.phase or wrote:
                stalled = after.phase is Phase.STALLED
                yield (
                    after.phase.value if stalled or outcome.suspended or outcome.sleeping else "Waiting",
                    reason,
                    stalled,
                )
        case GoToStep(reason=reason):
            yield "StepDone", reason, False
        case Restart(reason=reason):
            yield "Restarted", reason, True
        case _ if not after.job.active:
            yield "Failed", after.job.reason, True
        case _:
            if _is_new_failure(before, after) or wrote:
                wait = (after.job.next_run.at - after.updated).total_seconds()
                if isinstance(outcome, Retry) and outcome.error.waits:
                    yield "Waiting", f"{after.job.reason} (again in {wait:.0f} s)", False
                    return
                attempt = f"attempt {after.job.attempts}, again in {wait:.0f} s"
                yield "Retrying", f"{after.job.reason} ({attempt})", True


def _is_new_failure(before: ClusterRecord, after: ClusterRecord) -> bool:
    """Return whether a retry is worth an event: a repeated failure is when its attempts have doubled."""
    attempts, then, now = after.job.attempts, before.job.step.failure, after.job.step.failure
    same = then is not None and now is not None and (then.kind, then.message) == (now.kind, now.message)
    return not same or before.phase != after.phase or attempts & (attempts - 1) == 0


def _refused(outcome: Outcome) -> Sequence[str]:
    """Return the service's id of the request that it refused."""
    if isinstance(outcome, Retry | Fail) and outcome.error.request_id:
        return (outcome.error.request_id,)
    return ()


def _of_step(event: Event, before: ClusterRecord, request_ids: Sequence[str]) -> Event:
    """Return the event with the step that ``before`` was at, and the service's ids of its requests."""
    step = before.job.step
    return replace(event, step=step.name, started=step.since, request_ids=tuple(request_ids))


def event_of(record: ClusterRecord, reason: str, message: str, *, warning: bool = False) -> Event:
    """Return an event of a cluster as its record is."""
    return Event(
        cluster=record.name,
        uid=record.uid,
        generation=record.generation,
        sequence=record.job.sequence,
        at=record.updated,
        warning=warning,
        reason=reason,
        message=cut(message, MESSAGE_LIMIT),
    )
