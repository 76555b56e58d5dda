"""Tries: a cluster gets the head of a pull request for a time, and goes back by itself.

A try may do nothing that a merge would need an approval for, and reaches no cluster whose stage needs one.
"""

from __future__ import annotations

from datetime import timedelta

from shared.app.api import schema
from shared.app.api.acts import Refusal, answers, change_cluster, known_cluster, receipt
from shared.app.own_repository import require_own
from shared.app.planner.pins import ensure_branch
from shared.app.platform.platform_plan import platform_plan
from shared.app.records import Transition
from shared.app.repository import ResolvedCommit, read_some, read_tree
from shared.app.tries import end_trial
from shared.cluster.divergence.trial import Trial, TrialEnd
from shared.cluster.failures.errors import ReconcileError, Unauthorized
from shared.cluster.findings.conditions import is_at_rest
from shared.cluster.queues.envelopes import Envelope, continuation
from shared.cluster.queues.messages import ReportRequest, TryRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.events import tried_event
from shared.cluster.transitions.acceptance import accept_trial
from shared.frozen import replace
from shared.language.desired import Desired
from shared.language.pin import Pin
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.reuse import KnownCluster
from shared.platform.pins import roots_of
from shared.platform.source.reach import pulled_with
from shared.ports import Capability, Ports, Pull
from shared.rollouts.calendar import Start
from shared.rollouts.shut import held_start, place_in
from shared.rollouts.strategy import stages_of

LONGEST = timedelta(days=1)
USUAL = timedelta(hours=4)


@answers(202)
def begin_try(
    name: str, number: int, lasts: timedelta, by: str, ports: Ports, reason: str = ""
) -> schema.TryReceipt:
    """Give a cluster the head of a pull request for a time; the same one again gives it another end."""
    record = known_cluster(name, ports.state.cluster(name), ports)
    pin = _pin_of(record, number, ports)
    try:
        pull = _pull(number, ports)
        pulls = _judged(record, pin, pull, ports)
        now = ports.clock()
        trial = Trial(number, pull.head, pulls, by, now, now + lasts, reason)
        ensure_branch(trial.pin(), ports)  # before the first job that has the cluster pull it
    except Unauthorized as error:
        raise Refusal(409, f"{WITHOUT_BRANCHES}: {error}") from error
    except ReconcileError as error:
        raise Refusal(502, f"{error.kind}: {error}") from error

    def decide(found: ClusterRecord) -> Transition:
        if _pin_of(found, number, ports) != pin or found.uid != record.uid:
            raise Refusal(409, f"a rollout has changed {name} meanwhile; try it again")
        begun = trial
        if found.trial and found.trial.commit == trial.commit:  # only its end is another one
            begun = replace(trial, at=found.trial.at)
            after = replace(found, divergence=replace(found.divergence, trial=begun))
        else:
            after = accept_trial(found, begun, now=now)
        ends = Envelope(TryRequest(pull=number), at=begun.until)
        then = [*continuation(after, now), Envelope(ReportRequest()), Envelope(TryRequest(pull=number)), ends]
        return Transition(after, [tried_event(after, begun)], then=then)

    change_cluster(name, decide, ports)
    return {"cluster": name, "pull": number, "commit": pull.head, "until": trial.until.isoformat(), "by": by}


@answers(202)
def end_try(name: str, number: int, by: str, ports: Ports) -> schema.Receipt:
    """Let a cluster go back from the head of a pull request now."""
    known_cluster(name, ports.state.cluster(name), ports)
    if not end_trial(name, number, TrialEnd.ASKED, ports, by=by):
        raise Refusal(409, f"{name} does not try pull request {number}")
    return receipt(f"{name}/{number}", by)


WITHOUT_BRANCHES = "a try needs a branch of our own, and the app may write none"


def _pin_of(record: ClusterRecord, number: int, ports: Ports) -> Pin:
    """Return the pin that a cluster goes back to.

    Refuse a try on one that is not Ready, that a freeze or a window keeps, or that tries something else.
    """
    name, pin, trial = record.name, Pin.of(record.document), record.trial
    if pin is None:
        raise Refusal(409, f"Flux on {name} follows its source by itself, so it has no pin that could move")
    if pin.source:
        raise Refusal(409, f"Flux on {name} pulls {pin.source}, which no pull request of the fleet changes")
    if pin.direct or Capability.PROPOSALS not in ports.git_host.capabilities:
        raise Refusal(409, WITHOUT_BRANCHES)
    if trial and trial.pull != number:
        raise Refusal(409, f"{name} {trial}")
    if trial and trial.ended:
        raise Refusal(409, f"{name} {trial}; try it again once it is back")
    if trial is None and not (record.ready and is_at_rest(record) and pin.is_known):
        why = f"roadstead why {name} says what it does"
        raise Refusal(409, f"{name} is {record.phase.value}, and only a Ready cluster tries something; {why}")
    hold = held_start(record, Start.CHANGE, ports.state.fleet().rules.calendar, ports.clock())
    if hold is not None:
        raise Refusal(409, f"{name} tries nothing now: {hold}")
    return pin


def _pull(number: int, ports: Ports) -> Pull:
    """Return a pull request whose head may be tried."""
    pull, branch = ports.git_host.pull(number), ports.config.branch
    if pull is None:
        raise Refusal(404, f"there is no pull request {number} in {ports.config.repository}")
    if pull.fork:
        other = "somebody without rights on this repository may have written it"
        raise Refusal(403, f"pull request {number} comes from a fork, and is not tried: {other}")
    if not pull.open or pull.base != branch:
        raise Refusal(409, f"pull request {number} is not open into {branch}")
    return pull


def _judged(record: ClusterRecord, pin: Pin, pull: Pull, ports: Ports) -> str:
    """Return the digest of what Flux would pull; refuse what a merge would need an approval for.

    A branch is refused that lacks what the cluster has: Flux would take that from it. The stages are those of
    the tracked branch: a pull request does not lift its own gates.
    """
    name = record.name
    head = ports.git_host.read_head(ports.config.branch)
    require_own(head, ports.state.fleet(), ports)
    known = {name: KnownCluster(record.document, record.digest)}
    fleet = read_some(head.commit, known, ports)
    if fleet.guards is None:
        raise Refusal(409, "fleet.yaml is invalid, so nobody knows whose approval its stages need")
    gated = _gated_stage(record, fleet)
    if gated:
        waits = f"{name} is in stage {gated}, which needs an approval, so nothing is tried there"
        raise Refusal(409, f"{waits}; try it on a cluster of a stage without one")
    if not ports.git_host.is_descendant(pull.head, pin.commit):
        lacks = f"pull request {pull.number} lacks {pin.commit[:8]}, which {name} has"
        raise Refusal(409, f"{lacks}; merge {ports.config.branch} into its branch, and try again")
    roots = roots_of(record.document["spec"]["flux"])
    tree = read_tree(pull.head, [roots], ports)
    digest = pulled_with(tree.files, dict(tree.contents), lambda _: {}, roots).digest  # all of it is read
    if digest == pin.pulls:
        raise Refusal(409, f"pull request {pull.number} changes nothing that Flux pulls on {name}")
    tried: Desired = record.desired.with_pin(Pin(pull.head, digest, pin.commit, tried=True))
    resolved = ResolvedCommit(replace(fleet, clusters={name: tried}), tree)
    plan = platform_plan(pull.head, resolved, {name: record}, ports)
    hold = plan.holds().get(name)
    if hold is not None:
        raise Refusal(409, f"pull request {pull.number} is not tried on {name}: {hold.cause}")
    return digest


def _gated_stage(record: ClusterRecord, fleet: DesiredFleet) -> str:
    """Return the stage of a cluster that needs an approval, in any strategy; "" for none."""
    written = fleet.rollout
    if written is None:
        return ""
    place, environments = place_in(record.name, record.document), tuple(fleet.environments)
    for strategy in [strategy.name for strategy in written.strategies] or [""]:
        stages = stages_of(written, strategy, environments)
        own = next((stage for stage in stages if stage.groups and stage.selects(*place)), None)
        if own is not None and own.gate.approvers:
            return own.name
    return ""
