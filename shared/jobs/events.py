"""The history of a cluster: what a difference of rows is worth telling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from shared.jobs.outcomes import Done, Fail, GoToStep, Outcome, Restart, Retry, Wait
from shared.jobs.record import ClusterRecord, Phase


@dataclass(frozen=True)
class Event:
    """Something that happened to a cluster; (uid, sequence) makes it one event however often it is saved.

    ``started`` is when its step began, ``at`` when this happened; ``request_ids`` are the cloud's own.
    """

    cluster: str
    uid: str
    generation: int
    sequence: int
    at: datetime
    warning: bool
    reason: str
    message: str
    step: str = ""
    started: datetime | None = None
    request_ids: tuple[str, ...] = ()


def accepted_event(record: ClusterRecord) -> Event:
    """Return the event of a spec, or a removal, that was just accepted."""
    what = "removal" if record.deleting else f"generation {record.generation}"
    return _event(record, "Accepted", f"{what} of commit {record.commit[:8]}", warning=False)


def postponed_event(
    before: ClusterRecord, after: ClusterRecord, request_ids: Sequence[str]
) -> Iterator[Event]:
    """Yield the event of a step that waits for its turn; not again while it waits."""
    if request_ids or not before.job.reserved:
        job = before.job
        step, started = job.step.value, job.step_since
        yield _event(after, "Queued", after.job.reason, step=step, started=started, request_ids=request_ids)


def superseded_event(record: ClusterRecord, why: str, request_ids: Sequence[str], now: datetime) -> Event:
    """Return the event of a step that was overtaken after it had written something."""
    job, then = record.job, replace(record, updated=now)
    return _event(
        then, "Overtaken", why, step=job.step.value, started=job.step_since, request_ids=request_ids
    )


def replayed_event(record: ClusterRecord, by: str) -> Event:
    """Return the event of a job that somebody let begin anew."""
    return _event(record, "Replayed", f"replayed by {by}", step=record.job.step.value)


def events_between(
    before: ClusterRecord, after: ClusterRecord, outcome: Outcome, *, request_ids: Sequence[str] = ()
) -> Iterator[Event]:
    """Yield what is worth telling: each step's end, each write, each change; not the same wait again.

    ``request_ids`` are the cloud's of the writes that were made.
    """
    for reason, message, warning in _told(before, after, outcome, wrote=bool(request_ids)):
        yield _event(
            after,
            reason,
            message,
            warning=warning,
            step=before.job.step,
            started=before.job.step_since,
            request_ids=(*request_ids, *_refused(outcome)),
        )


def _told(
    before: ClusterRecord, after: ClusterRecord, outcome: Outcome, *, wrote: bool
) -> Iterator[tuple[str, str, bool]]:
    """Yield reason, message and whether it is a warning."""
    waited = (after.updated - before.job.step_since).total_seconds()
    match outcome:
        case Done(note=note) if not after.job.active:
            yield "Ready", note or "verified", False
        case Done(note=note):
            yield "StepDone", note or f"as asked, after {waited:.0f} s", False
        case Wait(reason=words):
            if words != before.job.reason or after.phase != before.phase or wrote:
                stalled = after.phase is Phase.STALLED
                yield after.phase.value if stalled or outcome.suspended else "Waiting", words, stalled
        case GoToStep(reason=words):
            yield "StepDone", words, False
        case Restart(reason=words):
            yield "Restarted", words, True
        case _ if not after.job.active:
            yield "Failed", after.job.reason, True
        case _:
            wait = (after.job.next_at - after.updated).total_seconds()
            if _is_news(before, after) or wrote:
                attempt = f"attempt {after.job.attempts}, again in {wait:.0f} s"
                yield "Retrying", f"{after.job.reason} ({attempt})", True


def _is_news(before: ClusterRecord, after: ClusterRecord) -> bool:
    """Tell whether a retry is another one than before; the same is told whenever its attempts double."""
    attempts, then, now = after.job.attempts, before.job.failure, after.job.failure
    same = then is not None and now is not None and (then.kind, then.message) == (now.kind, now.message)
    return not same or before.phase != after.phase or attempts & (attempts - 1) == 0


def _refused(outcome: Outcome) -> Sequence[str]:
    """Return the cloud's id of the request that it refused."""
    if isinstance(outcome, Retry | Fail) and outcome.error.request_id:
        return (outcome.error.request_id,)
    return ()


def _event(
    record: ClusterRecord,
    reason: str,
    message: str,
    *,
    warning: bool = False,
    step: str = "",
    started: datetime | None = None,
    request_ids: Sequence[str] = (),
) -> Event:
    return Event(
        cluster=record.name,
        uid=record.uid,
        generation=record.generation,
        sequence=record.job.sequence,
        at=record.updated,
        warning=warning,
        reason=reason,
        message=message[:1000],
        step=step,
        started=started,
        request_ids=tuple(request_ids),
    )
