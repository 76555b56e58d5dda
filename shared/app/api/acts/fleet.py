"""What operators ask of the whole fleet: another source, a sync, a test of a route, no more dead letters."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import datetime

from shared.app.api import schema
from shared.app.api.acts import Refusal, answers, receipt
from shared.app.api.projection import exact, projected
from shared.app.examination import APPS
from shared.app.http_result import HttpResult, meant
from shared.app.outbox import send, send_all
from shared.app.pause import announce, wake
from shared.app.pull_requests.markdown import fence
from shared.app.records import again
from shared.app.recovery.dead_letters import replayed
from shared.app.recovery.missed_work import request_missing_plan
from shared.cluster.failures.errors import ReconcileError, Retryable, Stale, Unavailable
from shared.cluster.history import FoundBy
from shared.cluster.queues.envelopes import Envelope
from shared.cluster.queues.messages import ExamineRequest, PlanRequest, PreviewRequest
from shared.frozen import replace
from shared.language.model.notification_kinds import RouteType, Severity
from shared.masking import cut
from shared.notifications.digest import OutgoingMessage
from shared.ports import Capability, DeadLetter, FleetRecord, Ports
from shared.ports.state.fleet import Pause
from shared.sentences import some_of

log = logging.getLogger(__name__)


@answers(202)
@again
def accept_source(by: str, ports: Ports) -> schema.SourceReceipt:
    """Plan the fleet from now on from the repository or branch that the planner refused at last.

    In another repository, a number is that of another issue or pull request: those of the former are dropped.
    """
    fleet = ports.state.fleet()
    source = fleet.origin.other_source
    if source is None:
        raise Refusal(409, "the fleet is planned from the repository and branch of its settings")
    if fleet.origin.source is not None and fleet.origin.source.repository != source.repository:
        _drop_numbers(ports)
    after = replace(fleet, origin=replace(fleet.origin, source=source, other_source=None))
    try:
        ports.state.save_fleet(after)
    except (Stale, Unavailable):
        if ports.state.fleet() != after:  # else it was saved, and the answer was lost
            raise
    request = PlanRequest(again=True, reason="another repository was accepted")
    try:
        send(request, ports, message_id=f"source:{fleet.etag}")
    except ReconcileError as error:
        log.warning("the timer plans from the accepted source: %s: %s", error.kind, error)
    return {"repositoryId": source.repository, "branch": source.branch, "by": by}


def _drop_numbers(ports: Ports) -> None:
    """Drop the numbers of issues and pull requests; what people decided of values stays. Raise Stale."""
    state = ports.state
    for proposal in state.proposals():
        state.save_proposal(replace(proposal, number=0, url="", values=(), digest=""))
    for promotion in state.promotions():
        state.save_promotion(replace(promotion, number=0, url="", values=(), digest=""))
    known = state.notifier_record()
    routes = {name: replace(route, issues={}) for name, route in known.routes.items()}
    state.save_notifier_record(replace(known, routes=routes))


# A pause of everything that the app starts by itself.

MAX_REASON = 200
"""What a commit status and a notification have room for."""


@answers(200)
@again
def pause(reason: str, until: datetime | None, by: str, ports: Ports) -> schema.PauseReceipt:
    """Stop what the app starts by itself; a second pause takes the place of the first."""
    now, fleet = ports.clock(), ports.state.fleet()
    if until is not None and until <= now:
        raise Refusal(400, "until: give a time to come, with its zone")
    begun = Pause(by, now, cut(reason, MAX_REASON), until)
    saved = ports.state.save_fleet(replace(fleet, pause=begun))
    _announce(saved, ports)
    return {"paused": True, "until": until.isoformat() if until else None, "by": begun.by}


@answers(200)
@again
def resume(by: str, ports: Ports) -> schema.PauseReceipt:
    """End the pause, and start what waited for that; what needs an approval still does."""
    fleet = ports.state.fleet()
    if fleet.pause is None:
        raise Refusal(409, "the fleet is not paused")
    saved = ports.state.save_fleet(replace(fleet, pause=None))
    try:
        wake(saved, ports)
    except ReconcileError as error:
        log.warning("the timers find what waited for the end of the pause: %s: %s", error.kind, error)
    _announce(saved, ports)
    return {"paused": False, "until": None, "by": by}


def _announce(fleet: FleetRecord, ports: Ports) -> None:
    try:
        announce(fleet, ports)
    except ReconcileError as error:
        log.warning("the timers have the pause shown: %s: %s", error.kind, error)


# An examination, by each app of itself.


@answers(202)
def ask_apps(by: str, ports: Ports) -> schema.ExaminationReceipt:
    """Ask each app, on a queue of its own, to examine itself."""
    asked = ports.clock()
    for queue in APPS.values():
        name = f"examine:{queue}:{ports.unique()}"
        send_all([Envelope(ExamineRequest(), name, queue=queue)], ports)
    return {"apps": [*APPS], "at": exact(asked), "by": by}


# Syncs: an operator has the branch read now, instead of with the timer, and its head planned.


def sync(by: str, ports: Ports) -> HttpResult:
    """Read the head of the branch, and queue its plan unless it was planned or is being planned.

    Pull requests are read too: a webhook of one may be lost, and no timer looks where the host sends them.
    """
    read = ports.git_host.read_head(ports.config.branch)
    if Capability.PULLS in ports.git_host.capabilities:
        send(PreviewRequest(), ports)
    queued = request_missing_plan(read, FoundBy.SYNC, ports)
    receipt: schema.SyncReceipt = {"commit": read.commit, "queued": queued, "by": by}
    return HttpResult(202 if queued else 200, receipt)


# A test message to a route of notifications.


@answers(200)
def try_route(name: str, by: str, ports: Ports) -> schema.Receipt:
    """Send a test message to a route at once, whatever waits for it; the answer has its error."""
    fleet = ports.state.fleet()
    route = next((route for route in fleet.rules.routes if route.name == name), None)
    if route is None:
        known = ", ".join(route.name for route in fleet.rules.routes) or "none"
        near = meant(name, (route.name for route in fleet.rules.routes))
        raise Refusal(404, f"the newest plan has no route {cut(name, 63)}; it has: {known}{near}")
    title = f"{ports.config.fleet}: a test of the route {name}"
    text = f"{by} asked for this test. The route works."
    message = OutgoingMessage(
        f"test-{ports.unique()}", ports.config.fleet, title, Severity.INFO, text, (), ()
    )
    try:
        if route.type is RouteType.ISSUES:
            ports.git_host.close_issue(ports.git_host.open_issue(title, fence(text)))
        else:
            ports.services.routes.send(route, message)
    except ReconcileError as error:
        raise Refusal(409, f"{name} does not deliver: {error.kind}: {error}") from error
    return receipt(name, by)


# Dead letters, listed, replayed and dismissed by an operator.

LETTERS_SHOWN = 100
LOST_SHOWN = 3


def dead_letters_view(ports: Ports) -> schema.DeadLettersView:
    """Return the newest messages that a queue gave up and that could not be handled."""
    return {
        "deadLetters": [
            projected(schema.DeadLetterView, letter, replayable=replayed(letter, "") is not None)
            for letter in ports.state.dead_letters(LETTERS_SHOWN)
        ]
    }


@answers(202)
def replay_letters(named: Collection[tuple[str, str]], by: str, ports: Ports) -> schema.LettersReceipt:
    """Send those of the newest dead letters that are named to their queues again, and remove them.

    A message says what somebody asked for, and whoever handles it decides then: one that came too late does
    nothing. It is sent before its letter is removed, so that no crash loses it.
    """
    letters = _named(named, ports)
    if not letters:
        raise Refusal(404, "none of these is among the newest dead letters")
    envelopes = [replayed(letter, ports.unique()) for letter in letters]
    lost = [letter.id for letter, envelope in zip(letters, envelopes, strict=True) if envelope is None]
    if lost:
        why = "it is no message that this app knows, or not stored whole"
        raise Refusal(409, f"{some_of(lost, LOST_SHOWN)} cannot be replayed: {why}. Dismiss what was handled")
    for letter, envelope in zip(letters, filter(None, envelopes), strict=True):
        log.warning("%s replays the dead letter %s of the queue %s", by, letter.id, letter.queue)
        send_all([envelope], ports)
        ports.state.delete_dead_letter(letter)
    return {"replayed": len(letters), "by": by}


def dismiss(named: Collection[tuple[str, str]], by: str, ports: Ports) -> schema.DismissReceipt:
    """Remove those of the newest dead letters that are named by queue and id; say how many were removed."""
    letters, left = _named(named, ports), 0
    try:
        for letter in letters:
            log.warning("%s dismisses the dead letter %s of the queue %s", by, letter.id, letter.queue)
            ports.state.delete_dead_letter(letter)
    except Retryable:
        left = len(_named(named, ports))
        if left == len(letters):
            raise
    return {"dismissed": len(letters) - left}


def _named(named: Collection[tuple[str, str]], ports: Ports) -> list[DeadLetter]:
    newest = ports.state.dead_letters(LETTERS_SHOWN)
    return [letter for letter in newest if (letter.queue, letter.id) in named]
