"""What operators do to a cluster: a replay, a takeover, what becomes of drift, a comparison now.

A takeover overrules just who the step read may manage the cluster: when the tags name yet another
installation by then, it waits again. An approval is stored with the drift: the sweep compares the cluster
once more, and starts the job only if the same fields and values still need one, at the same generation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shared.app.api import schema
from shared.app.api.acts import Refusal, answers, change_cluster, known_cluster, receipt
from shared.app.api.parts import exact
from shared.app.outbox import request_whole_check, request_whole_sweep, send_all
from shared.app.records import Transition
from shared.cluster.divergence.drift import CorrectionApproval, DriftedField
from shared.cluster.divergence.verification import Verification
from shared.cluster.findings.conditions import is_at_rest
from shared.cluster.findings.health import problem_of
from shared.cluster.history import by_whom
from shared.cluster.queues.envelopes import Envelope, checks_of, continuation, readings_of
from shared.cluster.queues.messages import ReadinessMessage, ReportRequest, SweepRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.diagnosis import diagnose
from shared.cluster.reporting.events import (
    correction_approved_event,
    drift_accepted_event,
    replayed_event,
    taken_over_event,
)
from shared.cluster.transitions.acceptance import (
    accept_replay,
    accept_takeover,
)
from shared.cluster.transitions.apply_comparison import accept_correction, accept_drift
from shared.kubernetes_versions import is_version
from shared.notifications.notification import correction_approved
from shared.plan.holds import Closure
from shared.ports import Ports
from shared.rollouts.calendar import Start
from shared.rollouts.of_plan import start_of
from shared.rollouts.shut import held_start


@answers(202)
def replay(name: str, by: str, ports: Ports, reason: str = "", *, override: bool = False) -> schema.Receipt:
    """Start the job of a cluster again that has failed, is refused, is unhealthy inside, or differs from git.

    What waits for an approval stays as it is. In a freeze, and outside its change windows, a job starts only
    with an ``override``.
    """

    def decide(record: ClusterRecord) -> Transition:
        same = record.observed_generation == record.generation
        left = (
            tuple(field.path for field in record.divergence.drift.to_approve)
            if record.divergence.drift and same
            else ()
        )
        problem = _why_no_replay(record, left, ports, override=override)
        if problem:
            raise Refusal(409, problem)
        now = ports.clock()
        after = accept_replay(record, now=now, left=left)
        then = [*continuation(after, now), Envelope(ReportRequest())]
        return Transition(after, [replayed_event(after, by, reason)], then=then)

    change_cluster(name, decide, ports)
    return receipt(name, by)


def _why_no_replay(record: ClusterRecord, left: Sequence[str], ports: Ports, *, override: bool) -> str:
    """Return why a cluster is not replayed, whose fields of ``left`` wait for an approval; "" when it is."""
    name = record.name
    idle_problem = not record.job.active and (problem_of(record) or record.divergence.drift is not None)
    if not (record.failed or record.refused or idle_problem):
        activity = _activity(record, ports)
        return f"{name} has not failed: it {activity}"
    if any(map(is_version, left)):
        approve = f"`roadstead approve --cluster {name}` has it written"
        return f"{name} is not replayed: {', '.join(left)} needs an approval; {approve}"
    hold = None if override else _hold(record, ports)
    if hold is None:
        return ""
    command = f"`roadstead replay {name} --override --reason TEXT`"
    return f"{name} is not replayed: {hold}; in an emergency, an Approver starts it with {command}"


def _activity(record: ClusterRecord, ports: Ports) -> str:
    return diagnose(record, now=ports.clock(), retries=ports.config.timing.retries).activity


def _hold(record: ClusterRecord, ports: Ports) -> Closure | None:
    """Return the freeze or the change window that keeps the job from starting, None for neither."""
    start = start_of(record)
    if start is Start.CHANGE and not record.failed:
        start = Start.CORRECTION
    return held_start(record, start, ports.state.fleet().rules.calendar, ports.clock())


@answers(202)
def take_over(name: str, by: str, ports: Ports, reason: str = "") -> schema.Receipt:
    """Let the job of a cluster continue over the tags that it waits for; any other job is left alone."""

    def decide(record: ClusterRecord) -> Transition:
        contest = record.job.next_run.contest
        if contest is None:
            why = f"roadstead why {name} says what it does"
            raise Refusal(409, f"{name} does not wait for a takeover; {why}")
        now = ports.clock()
        after = accept_takeover(record, contest, now=now)
        event = taken_over_event(after, contest, by_whom(by, reason))
        return Transition(after, [event], then=[*continuation(after, now), Envelope(ReportRequest())])

    change_cluster(name, decide, ports)
    return receipt(name, by)


@answers(202)
def approve_correction(
    name: str, correction: str, by: str, ports: Ports, *, reason: str = ""
) -> schema.Receipt:
    """Approve the corrections of a cluster that ``correction`` identifies, as ``GET drift`` shows them."""

    def decide(record: ClusterRecord) -> Transition | ClusterRecord:
        problem = _why_no_approval(record, correction, ports)
        if problem:
            raise Refusal(409, problem)
        if record.divergence.drift is None or record.divergence.drift.approval is not None:
            send_all([_sweep_of((name,), ports)], ports)
            return record
        approval = CorrectionApproval(by, ports.clock(), reason)
        after = accept_correction(record, record.divergence.drift, approval, now=approval.at)
        event = correction_approved_event(after, by_whom(by, reason))
        return Transition(after, [event], [correction_approved(after)], then=[_sweep_of((name,), ports)])

    change_cluster(name, decide, ports)
    return receipt(name, by)


def _sweep_of(names: tuple[str, ...], ports: Ports) -> Envelope:
    return Envelope(SweepRequest(sweep=ports.unique(), clusters=names))


def _why_no_approval(record: ClusterRecord, correction: str, ports: Ports) -> str:
    """Return why the corrections cannot be approved now, "" when they can."""
    name, drift = record.name, record.divergence.drift
    if not record.idle:
        activity = _activity(record, ports)
        return f"no correction of {name} can be approved while its job has not ended: it {activity}"
    if record.finding:
        return f"{name} is not Ready, so nothing of it is corrected: {record.job.reason}"
    if drift is None or not drift.correction:
        return f"no correction of {name} needs an approval; `roadstead drift {name}` shows what differs"
    if correction != drift.correction:
        return (
            f"what differs at {name} is not what was shown: `roadstead drift {name}` has what needs approval"
        )
    return ""


@answers(202)
def accept_differences(
    name: str, fields: Mapping[str, str], by: str, ports: Ports, *, reason: str = ""
) -> schema.Receipt:
    """Accept what somebody added to a cluster: fields with the values of Azure that ``GET drift`` shows."""

    def decide(record: ClusterRecord) -> Transition | ClusterRecord:
        verified = record.observation.verified or Verification()
        accepted = {field.path: field.live for field in verified.accepted}
        if fields.items() <= accepted.items():
            send_all([_sweep_of((name,), ports)], ports)
            return record
        drift = record.divergence.drift
        drifted = {field.path: field for field in drift.fields} if drift else {}
        problem = _why_not_accepted(record, fields, drifted, verified, ports)
        if problem:
            raise Refusal(409, problem)
        found = [drifted[path] for path in fields if path not in accepted]
        after = accept_drift(record, verified, found, by, now=ports.clock(), reason=reason)
        event = drift_accepted_event(after, [field.path for field in found], by_whom(by, reason))
        return Transition(after, [event], then=[_sweep_of((name,), ports)])

    change_cluster(name, decide, ports)
    return receipt(name, by)


def _why_not_accepted(
    record: ClusterRecord,
    fields: Mapping[str, str],
    drifted: Mapping[str, DriftedField],
    verified: Verification,
    ports: Ports,
) -> str:
    """Return why some differences cannot be accepted now, "" when they can."""
    name = record.name
    if not is_at_rest(record):
        activity = _activity(record, ports)
        return f"nothing of {name} can be accepted while its job has not ended: it {activity}"
    for path, live in fields.items():
        field = drifted.get(path)
        if field is None or field.live != live:
            return f"what differs at {name} is not what was shown: `roadstead drift {name}` has what differs"
        if not verified.names_of(field):
            return (
                f"{path} of {name} is not what somebody added, so it is not accepted: put Azure's value into "
                "the manifest, or name the field in a rule of its drift policy"
            )
    return ""


MAX_CLUSTERS = 100


@answers(202)
def refresh(names: Sequence[str], by: str, ports: Ports) -> schema.RefreshReceipt:
    """Ask for a sweep, or that these clusters are read; one that only its job reads is refused."""
    asked = ports.clock()
    for name in names:
        record = known_cluster(name, ports.state.cluster(name), ports)
        if not is_at_rest(record):
            activity = _activity(record, ports)
            if record.job.active:
                raise Refusal(
                    409, f"{name} is not refreshed, because its job reads Azure itself: it {activity}"
                )
            again = f"`roadstead replay {name}` starts its job again"
            raise Refusal(409, f"{name} is not refreshed: it {activity}; {again}")
    if names:
        send_all([_sweep_of(tuple(names), ports), *checks_of(names, ports.unique())], ports)
    else:
        request_whole_sweep(ports)
        request_whole_check(ports)
    return {"clusters": list(names), "all": not names, "by": by, "at": exact(asked)}


# What an operator asks of clusters before an upgrade: that they are read.


@answers(202)
def read_readiness(names: Sequence[str], by: str, ports: Ports) -> schema.RefreshReceipt:
    """Have clusters read, all without names; one that is being deleted is refused."""
    asked, reading = ports.clock(), ports.unique()
    for name in names:
        if known_cluster(name, ports.state.cluster(name), ports).deleting:
            raise Refusal(409, f"{name} is not read: it is being deleted")
    send_all(readings_of(names, reading) or [Envelope(ReadinessMessage(reading=reading))], ports)
    return {"clusters": list(names), "all": not names, "by": by, "at": exact(asked)}
