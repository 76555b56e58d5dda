"""Small requests of operators: refresh, sync, a test of a route, dead letters."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from shared.app.api import schema
from shared.app.api.acts.approval import operator
from shared.app.api.parts import projected
from shared.app.http_result import HttpResult, meant, rejected, unknown_cluster
from shared.app.outbox import request_checks, request_whole_check, request_whole_sweep, send
from shared.app.pull_requests.markdown import fence
from shared.app.recovery.missed_work import request_missing_plan
from shared.cluster.conditions import is_at_rest
from shared.cluster.failures.errors import ReconcileError, Retryable
from shared.cluster.history import FoundBy
from shared.cluster.messages import SweepRequest
from shared.cluster.reporting.diagnosis import diagnose
from shared.masking import cut
from shared.notices.digest import Outgoing
from shared.notices.kinds import Severity
from shared.notices.routes import RouteType
from shared.ports import DeadLetter, Ports

MAX_CLUSTERS = 100
WRONG_BODY = (
    f'the body must be {{"all": true}}, or {{"clusters": ["name", ...]}} with 1 to {MAX_CLUSTERS} names'
)


def refresh(names: Sequence[str], actor: str, ports: Ports) -> HttpResult:
    """Ask for a sweep, or that these clusters are read; one that only its job reads is refused."""
    for name in names:
        record = ports.state.cluster(name)
        if record is None:
            return rejected(404, unknown_cluster(name, ports))
        if not is_at_rest(record):
            activity = diagnose(record, now=ports.clock(), retries=ports.config.retries).activity
            if record.job.active:
                return rejected(
                    409, f"{name} is not refreshed, because its job reads Azure itself: it {activity}"
                )
            again = f"`roadstead replay {name}` starts its job again"
            return rejected(409, f"{name} is not refreshed: it {activity}; {again}")
    if names:
        send(SweepRequest(sweep=ports.unique(), clusters=tuple(names)), ports)
        request_checks(names, ports.unique(), ports)
    else:
        request_whole_sweep(ports)
        request_whole_check(ports)
    receipt: schema.RefreshReceipt = {"clusters": list(names), "all": not names, "by": operator(actor)}
    return HttpResult(202, receipt)


# Syncs: an operator has the branch read now, instead of with the timer, and its head planned.


def sync(actor: str, ports: Ports) -> HttpResult:
    """Read the head of the branch, and queue its plan unless it was planned or is being planned."""
    read = ports.repository.read_head(ports.config.branch)
    queued = request_missing_plan(read, FoundBy.SYNC, ports)
    receipt: schema.SyncReceipt = {"commit": read.commit, "queued": queued, "by": operator(actor)}
    return HttpResult(202 if queued else 200, receipt)


# A test message to a route of notifications.

WRONG_TEST = 'the body must be {"route": "name"}'


def try_route(name: str, actor: str, ports: Ports) -> HttpResult:
    """Send a test message to a route at once, whatever waits for it; the answer has its error."""
    fleet = ports.state.fleet()
    route = next((each for each in fleet.routes if each.name == name), None)
    if route is None:
        known = ", ".join(each.name for each in fleet.routes) or "none"
        near = meant(name, (each.name for each in fleet.routes))
        return rejected(404, f"the newest plan has no route {cut(name, 63)}; it has: {known}{near}")
    by = operator(actor)
    title = f"{ports.config.fleet}: a test of the route {name}"
    text = f"{by} asked for this test. The route works."
    message = Outgoing(f"test-{ports.unique()}", ports.config.fleet, title, Severity.INFO, text, (), ())
    try:
        if route.type is RouteType.GITHUB:
            ports.issues.close_issue(ports.issues.open_issue(title, fence(text)))
        else:
            ports.channels.send(route, message)
    except ReconcileError as error:
        return rejected(409, f"{name} does not deliver: {error.kind}: {error}")
    receipt: schema.RouteReceipt = {"route": name, "delivered": True, "by": by}
    return HttpResult(200, receipt)


# Dead letters, listed and dismissed by an operator.

log = logging.getLogger(__name__)

LETTERS_SHOWN = 100


def dead_letters_view(ports: Ports) -> schema.DeadLetters:
    """Return the newest messages that a queue gave up and that could not be handled."""
    return {
        "deadLetters": [
            projected(schema.DeadLetter, letter) for letter in ports.state.dead_letters(LETTERS_SHOWN)
        ]
    }


def dismiss(named: Collection[tuple[str, str]], actor: str, ports: Ports) -> schema.DismissReceipt:
    """Remove those of the newest dead letters that are named by queue and id; say how many were removed."""
    letters, left = _named(named, ports), 0
    try:
        for letter in letters:
            log.warning("%s dismisses the dead letter %s of the queue %s", actor, letter.id, letter.queue)
            ports.state.delete_dead_letter(letter)
    except Retryable:
        left = len(_named(named, ports))
        if left == len(letters):
            raise
    return {"dismissed": len(letters) - left}


def _named(named: Collection[tuple[str, str]], ports: Ports) -> list[DeadLetter]:
    newest = ports.state.dead_letters(LETTERS_SHOWN)
    return [letter for letter in newest if (letter.queue, letter.id) in named]
