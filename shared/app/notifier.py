"""The notifier sends each route what is due to it, and keeps one issue for each group of problems.

What it has taken, and what each route has not received, is one record, written over the version that was
read. So a notification is taken once. The record names the notifications of a message before it is delivered,
and drops them afterwards: after a crash in between, or without an answer, the same message, with the same id,
is delivered again. A route that fails is tried again at growing intervals, and gets what it missed as a
digest. No job waits for any of this.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from operator import attrgetter

from shared.app.notifications import OF_PLANS, OTHERS, of_plan, present
from shared.app.outbox import seconds_until_again, send
from shared.app.own_repository import require_name
from shared.app.pull_requests.markdown import fence, line
from shared.cluster.failures.errors import Dependency, ReconcileError, Retryable
from shared.cluster.forms import UnreadableRecord
from shared.cluster.queues.messages import NotifyRequest
from shared.cluster.record import ClusterRecord
from shared.frozen import replace
from shared.json_tree import digest_of
from shared.language.model.notification_kinds import KINDS, NotificationKind, RouteType
from shared.logs import about
from shared.masking import cut
from shared.notifications import record
from shared.notifications.digest import DigestGroup, Links, OutgoingMessage, messages
from shared.notifications.notification import DETAIL_LIMIT, Notification
from shared.notifications.of_clusters import still_so
from shared.notifications.record import NotifierRecord, SentMessage
from shared.notifications.routes import LIMITS, Route
from shared.ports import FleetRecord, Ports

# Issues of the fleet repository: one for each group of problems, closed when the group is over.

_TITLE = 200


def tell_issues(
    route: Route, message: OutgoingMessage, known: NotifierRecord, ports: Ports
) -> NotifierRecord:
    """Write what a message says to the issue of its group; return which issues are open then.

    The first problem of a group opens the issue, what follows is a comment, and the end of the last one
    closes it. The text of an issue begins with a marker, so that one whose number was not saved is found.
    """
    group = message.groups[0]
    key = digest_of(group.notifications[0].group)
    marker = f"<!-- roadstead {key} -->"
    issues = known.routes[route.name].issues
    number = issues.get(key) or ports.git_host.find_issue(marker)
    body = _body(message)
    if number is not None:
        try:
            ports.git_host.comment_issue(number, body)
        except Dependency:  # somebody deleted it
            number = None
    if number is None:
        number = ports.git_host.open_issue(cut(line(message.title), _TITLE), f"{marker}\n{body}")
    left = {other: issue for other, issue in issues.items() if other != key}
    if _is_over(group, known):
        ports.git_host.close_issue(number)
    else:
        left[key] = number
    return known.with_route(route.name, replace(known.routes[route.name], issues=left))


def _is_over(group: DigestGroup, known: NotifierRecord) -> bool:
    """Return whether nothing of a group is open; what has no end never is."""
    open_groups = {known.notifications[identifier].group for identifier in known.open.values()}
    return not KINDS[group.notifications[0].kind].over or group.notifications[0].group not in open_groups


def _body(message: OutgoingMessage) -> str:
    """Return the text, which is shown as it is, and the links of the message."""
    links = [f"[{name}]({link})" for link, name in message.labelled_links.items()]
    return "\n\n".join([fence(message.text), *links[:6]])


log = logging.getLogger(__name__)

AT_ONCE = 1000
"""So many stored notifications are taken with one message."""
SECONDS = 120.0
"""After so long another message continues: less than half of ``functionTimeout``."""
LETTERS = 100


def handle(request: NotifyRequest, ports: Ports) -> None:
    """Send the routes what is due; postpone it while the state or a queue does not answer."""
    try:
        _handle(ports)
    except Retryable as error:
        seconds = seconds_until_again(error, request, ports)
        if seconds is None:
            raise
        log.warning("notifications are postponed by %d s: %s: %s", seconds, error.kind, error)
        send(request.next_attempt(), ports, after=seconds)


def _handle(ports: Ports) -> None:
    end = ports.elapsed() + SECONDS
    before = (
        ports.state.notifier_record()
    )  # first: its version is checked, so that no older plan is compared with it
    fleet = ports.state.fleet()
    if not fleet.rules.routes:
        return
    known, more = _take(before, fleet, ports)
    for route in fleet.rules.routes:
        if ports.elapsed() > end:
            break
        known = _tell(route, known, end, fleet, ports)
    now = ports.clock()
    moment = now if more else record.next_moment(known, now)
    if moment is not None:
        send(NotifyRequest(), ports, after=max(0.0, (moment - now).total_seconds()))


def _take(before: NotifierRecord, fleet: FleetRecord, ports: Ports) -> tuple[NotifierRecord, bool]:
    """Take what happened and what is wrong now; return it as saved, and whether more is stored."""
    now = ports.clock()
    stored = ports.state.notifications(AT_ONCE)
    known = record.take(before, stored, fleet.rules.routes, now)
    if fleet.at is not None and fleet.at != before.plan_at:
        newest = ports.state.plan(fleet.commit)
        notifications = list(of_plan(newest)) if newest else []
        known = replace(
            record.compare(known, notifications, OF_PLANS, fleet.rules.routes, now), plan_at=fleet.at
        )
    letters = ports.state.dead_letters(LETTERS)
    others = list(present(fleet, ports.state.sweep(), letters, known, now, ports.git_host))
    ending = (
        OTHERS if len(letters) < LETTERS else OTHERS - {NotificationKind.DEAD_LETTER}
    )  # older ones were not read
    known = record.compare(known, others, ending, fleet.rules.routes, now)
    unsure = record.unconfirmed(known, now)
    if unsure:
        known = record.confirm(known, _still_so(unsure, ports), fleet.rules.routes, now)
    if known != replace(before, accepted=known.accepted):  # notifications that nobody wants are only removed
        known = ports.state.save_notifier_record(known)
    if stored:
        ports.state.remove_notifications(stored)
    return known, len(stored) >= AT_ONCE


def _still_so(notifications: Sequence[Notification], ports: Ports) -> Mapping[str, bool]:
    """Return, by the id of a problem, whether its cluster's record has it."""
    named = sorted({notification.subject for notification in notifications})
    records = ports.state.clusters_named(named).keyed(attrgetter("name"))
    return {
        notification.id: _shows(records.get(notification.subject), notification)
        for notification in notifications
    }


def _shows(record: ClusterRecord | UnreadableRecord | None, notification: Notification) -> bool:
    """Return whether the record of a cluster has a problem; one that cannot be read ends none."""
    if record is None or isinstance(record, UnreadableRecord):
        return record is not None
    return still_so(notification, record)


def _tell(
    route: Route, known: NotifierRecord, end: float, fleet: FleetRecord, ports: Ports
) -> NotifierRecord:
    """Deliver what is due to a route; the record is saved before and after each message."""
    notifications = record.due(known, route.name, ports.clock())
    config = ports.config
    links = Links(f"https://{config.git_server}/{config.repository}", config.public_url)
    dropped = known.routes[route.name].dropped
    some = messages(
        notifications,
        fleet=config.fleet,
        limit=LIMITS[route.type],
        links=links,
        dropped=dropped,
        together=route.type is not RouteType.ISSUES,
    )
    for n, message in enumerate(some):
        if ports.elapsed() > end:
            break
        started = record.begin(known, route.name, message.notifications)
        known = ports.state.save_notifier_record(started) if started is not known else known
        try:
            known = _deliver(route, message, known, fleet, ports)
        except ReconcileError as error:
            with about(**_subject(message)):
                log.warning("the route %s does not deliver: %s: %s", route.name, error.kind, error)
            failed = _failed(route, error, known, ports)
            return ports.state.save_notifier_record(
                _sent(failed, route, message, f"{error.kind}: {cut(str(error), DETAIL_LIMIT)}", ports)
            )
        known = record.delivered(known, route.name, message.notifications, ports.clock(), first=n == 0)
        known = ports.state.save_notifier_record(_sent(known, route, message, "", ports))
    return known


def _deliver(
    route: Route, message: OutgoingMessage, known: NotifierRecord, fleet: FleetRecord, ports: Ports
) -> NotifierRecord:
    if route.type is RouteType.ISSUES:
        require_name(fleet, ports)
        return tell_issues(route, message, known, ports)
    ports.services.routes.send(route, message)
    return known


def _subject(message: OutgoingMessage) -> Mapping[str, str]:
    """Return the one cluster, and the one commit, that a message is about, as far as there is only one."""
    notifications = [notification for group in message.groups for notification in group.notifications]
    clusters = {notification.subject if notification.of_cluster else "" for notification in notifications}
    found = {"cluster": clusters, "commit": {notification.commit for notification in notifications}}
    return {name: value for name, some in found.items() if len(some) == 1 for value in some}


def _failed(route: Route, error: ReconcileError, known: NotifierRecord, ports: Ports) -> NotifierRecord:
    wait = error.retry_after if isinstance(error, Retryable) else None
    described = (error.kind, cut(str(error), DETAIL_LIMIT))
    return record.failed(known, route.name, described, ports.clock(), wait=wait, jitter=ports.random())


def _sent(
    known: NotifierRecord, route: Route, message: OutgoingMessage, problem: str, ports: Ports
) -> NotifierRecord:
    """Return with what became of a message."""
    sent = SentMessage(message.id, cut(line(message.title), _TITLE), ports.clock(), problem)
    return record.with_message(known, route.name, sent)
