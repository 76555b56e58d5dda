"""The tries of a pull request: each ends by itself, and the pull request says what became of it.

A try is a part of its cluster's record, and the worker brings it about. Here it is only ended: once its time
is over, or the pull request is. Every part is an "ensure", and a message that comes twice changes nothing.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from shared.app.outbox import seconds_until_again, send, send_unlike
from shared.app.planner.pins import ensure_branch
from shared.app.planner.reporter import reopen
from shared.app.pull_requests.markdown import code, prose
from shared.app.records import Transition, change
from shared.cluster.divergence.trial import Trial, TrialEnd
from shared.cluster.failures.errors import ReconcileError, Retryable
from shared.cluster.queues.envelopes import Envelope, continuation
from shared.cluster.queues.messages import ReportRequest, TryRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.events import trial_ended_event
from shared.cluster.transitions.acceptance import accept_trial
from shared.frozen import replace
from shared.ports import Ports, Pull

log = logging.getLogger(__name__)

_OF_CLUSTER = re.compile(r"- `([^`]+)`: ")
"""How a line of the comment begins that is about a cluster."""


def handle(request: TryRequest, ports: Ports) -> None:
    """End what is over of a pull request, and write what became of its tries; raise what never succeeds."""
    try:
        _settle(request.pull, ports)
    except Retryable as error:
        wait = seconds_until_again(error, request, ports)
        if wait is None:
            raise
        log.warning("the tries of pull request %d wait: %s: %s", request.pull, error.kind, error)
        send_unlike(request.next_attempt(), ports, after=wait)
    except ReconcileError as error:  # such as a missing permission; the next message tries it again
        log.warning(
            "of the tries of pull request %d not all is done: %s: %s", request.pull, error.kind, error
        )


def end_trial(name: str, pull: int, end: TrialEnd, ports: Ports, *, by: str = "") -> bool:
    """End the try of a pull request on a cluster, which then goes back; return whether there was one."""

    def decide(record: ClusterRecord | None) -> Transition | None:
        trial = _trial_of(record, pull)
        if record is None or trial is None or trial.ended is not None:
            return None
        now = ports.clock()
        ended = replace(
            trial, ended=now, end=end, ended_by=by, result=result_of(record), back=record.deleting
        )
        if record.deleting:
            return Transition(replace(record, divergence=replace(record.divergence, trial=ended)))
        after = accept_trial(record, ended, now=now)
        then = [*continuation(after, now), Envelope(ReportRequest()), Envelope(TryRequest(pull=pull))]
        return Transition(after, [trial_ended_event(after, ended)], then=then)

    return change(name, decide, ports) is not None


def result_of(record: ClusterRecord) -> str:
    """Return what has become of a try, whose job the record has."""
    reason = f": {record.job.reason}" if record.job.reason else ""
    if not record.job.active:
        return f"failed{reason}" if record.failed else "Flux applied it"
    stands_still = record.needs_action or record.phase in (Phase.STALLED, Phase.SUSPENDED)
    return f"{'fails' if stands_still else 'pending'}{reason}"


def _settle(number: int, ports: Ports) -> None:
    names = [found.name for found in ports.state.summaries() if found.trial and found.trial.pull == number]
    if not names:
        return
    now = ports.clock()
    for name, (_, trial) in _tries(names, number, ports).items():
        if trial.until <= now:
            end_trial(name, number, TrialEnd.TIME, ports)
    pull = ports.git_host.pull(number)
    if pull is None or not pull.open:
        end = TrialEnd.MERGED if pull and pull.merged else TrialEnd.CLOSED
        for name in names:
            end_trial(name, number, end, ports)
    tries = _tries(names, number, ports)
    lasting = [trial for _, trial in tries.values() if trial.ended is None]
    for trial in lasting:
        ensure_branch(trial.pin(), ports)
    if lasting:
        reopen(ports.state.fleet().commit, ports)
        send(TryRequest(pull=number), ports, at=min(trial.until for trial in lasting))
    if pull is not None:
        _write(pull, tries, ports)
    for name, (_, trial) in tries.items():
        if trial.back:
            _forget(name, trial, ports)


_Tries = Mapping[str, tuple[ClusterRecord, Trial]]


def _tries(names: Sequence[str], pull: int, ports: Ports) -> _Tries:
    """Return the records of clusters that try a pull request, or did, by their names."""
    records = ports.state.clusters_named(names)
    return {record.name: (record, trial) for record in records if (trial := _trial_of(record, pull))}


def _trial_of(record: ClusterRecord | None, pull: int) -> Trial | None:
    trial = record.divergence.trial if record else None
    return trial if trial and trial.pull == pull else None


def _forget(name: str, over: Trial, ports: Ports) -> None:
    """Take a try out of its record that is over, now that the pull request says so."""

    def decide(record: ClusterRecord | None) -> Transition | None:
        if record is None or record.divergence.trial != over:
            return None
        return Transition(replace(record, divergence=replace(record.divergence, trial=None)))

    change(name, decide, ports)


# The comment on the pull request: a line for each cluster.


def _marker(fleet: str) -> str:
    return f"<!-- roadstead:try {fleet} -->"


def _write(pull: Pull, tries: _Tries, ports: Ports) -> None:
    """Write the lines of these clusters, and leave those of clusters that are back for long."""
    marker = _marker(ports.config.fleet)
    existing = ports.git_host.comment(pull.number, marker)
    written = existing.body.splitlines() if existing else []
    lines = {found[1]: line for line in written if (found := _OF_CLUSTER.match(line))}
    lines |= {name: _line(record, trial, pull) for name, (record, trial) in tries.items()}
    text = [lines[name] for name in sorted(lines)]
    body = "\n".join((marker, "### Roadstead: tried on clusters", "", *text))
    if existing is None or existing.body.strip() != body:
        ports.git_host.write_comment(pull.number, f"{body}\n", over=existing)


def _line(record: ClusterRecord, trial: Trial, pull: Pull) -> str:
    why = f" ({prose(trial.reason)})" if trial.reason else ""
    asked = f"- `{record.name}`: {code(trial.commit[:8])}, asked by {prose(trial.by)}{why}"
    if trial.end is None or trial.ended is None:
        line = f"{asked}, until {_time(trial.until)}: **{prose(result_of(record))}**"
        if pull.head == trial.commit:
            return line
        again = code(f"roadstead try {pull.number} --on {record.name}")
        return f"{line}. The newer head {code(pull.head[:8])} is not tried; {again} does that"
    by = f" by {prose(trial.ended_by)}" if trial.ended_by else ""
    ended = f"It ended {_time(trial.ended)}{by}, because {trial.end.value}"
    where = "it is back" if trial.back else f"it goes back: {prose(result_of(record))}"
    return f"{asked}: **{prose(trial.result)}**. {ended}; {where}"


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
