"""A route that gets everything, which does not answer, refuses, or takes a message without an answer.

Now and then many clusters fail at once, as in an outage. When the faults have ended, every notification was
sent, in few messages and under one id of a message, and so was the end of every problem.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.recovery.missed_work import wake_notifier
from shared.cluster.failures.errors import Dependency, ReconcileError, Throttled, Unauthenticated, Unavailable
from shared.cluster.record_parts import Phase
from shared.language.model.notification_kinds import NotificationKind
from shared.notifications.digest import OutgoingMessage
from shared.notifications.notification import Notification
from simulation.actors.kinds import ROUTES
from simulation.event_loop import EventLoop
from simulation.history import FleetHistory
from simulation.rule import RuleViolated

ROUTE = "all"
ACTS = (2, 6)
OUTAGES = (5.0, 60.0, 600.0, 3600.0)
ERRORS: tuple[Callable[[], ReconcileError], ...] = (
    lambda: Unavailable("the route does not answer"),
    lambda: Unavailable("the route answers with the status 500"),
    lambda: Throttled("the route answers with the status 429", retry_after=40.0),
    lambda: Unauthenticated("the route answers with the status 403"),
    lambda: Dependency("the route answers with the status 404"),
)
LOST_ANSWERS = 0.4
"""In this part of all outages the route takes the messages, and the answers are lost."""
LAST = timedelta(hours=3)
"""Longer than a route waits to be tried again, and a problem to be compared with the record."""
STORM, EVERY = 40, 5.0
"""So many clusters fail in a storm, one every so many seconds."""
MOST, PERIOD = 7, timedelta(minutes=5)
"""No more messages come in such a period: the pauses double from ten seconds to five minutes, by clocks that
differ by seconds."""


class NotificationLog(Protocol):
    """The notifications that were stored, and the ids of those that were removed for their age."""

    stored: list[Notification]
    pruned: set[str]


class _SentMessages(list[OutgoingMessage]):
    """The messages that a route got, and when each came first."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        super().__init__()
        self._clock = clock
        self.first: dict[str, datetime] = {}

    def append(self, message: OutgoingMessage) -> None:
        super().append(message)
        self.first.setdefault(message.id, self._clock())


class RouteFaults:
    """They let the route of each fleet fail; ``acts`` counts how often."""

    def __init__(
        self,
        seed: int,
        states: Mapping[MemoryCloud, NotificationLog],
        histories: Mapping[MemoryCloud, FleetHistory],
        loop: EventLoop,
    ) -> None:
        self._chance = random.Random(f"{seed} {ROUTES}")  # noqa: S311
        self._states, self._histories, self._loop = states, histories, loop
        self._sent = {cloud: _SentMessages(loop.clock) for cloud in states}
        for cloud, sent in self._sent.items():
            cloud.routes.delivered[ROUTE] = sent
        self.acts = 0

    def schedule(self, seconds: float) -> None:
        """Let a route fail at some moments of so many seconds."""
        for _ in range(self._chance.randint(*ACTS)):
            self._loop.schedule(self._chance.uniform(0, seconds), self._fail)
        if self._chance.random() < 0.5:
            self._loop.schedule(self._chance.uniform(0, seconds), self._storm)

    def _storm(self) -> None:
        """Let many clusters fail, of which no record says so: they are soon found to be none."""
        cloud = self._chance.choice([*self._states])
        for number in range(STORM):
            self._loop.schedule(number * EVERY, partial(self._one_fails, cloud, f"storm-{number:02d}"))

    def _one_fails(self, cloud: MemoryCloud, name: str) -> None:
        key, at = f"cluster:{name}", self._loop.clock()
        identifier = f"{NotificationKind.FAILED}:{name}:{int(at.timestamp())}"
        cloud.state.add_notification(
            Notification(identifier, NotificationKind.FAILED, key, name, at, location="westeurope")
        )
        self._loop.run_function(cloud, wake_notifier)

    def _fail(self) -> None:
        cloud, error = self._chance.choice([*self._states]), self._chance.choice(ERRORS)()
        lost = self._chance.random() < LOST_ANSWERS
        failing = cloud.routes.unanswered if lost else cloud.routes.failing
        seconds = self._chance.choice(OUTAGES)
        self.acts += 1
        self._loop.log("%s: its route fails for %.0f s: %s", cloud.ports.config.fleet, seconds, error)
        failing[ROUTE] = error
        self._loop.schedule(seconds, failing.clear)

    def calm(self) -> None:
        """Let the routes answer from now on."""
        for cloud in self._states:
            cloud.routes.failing.clear()
            cloud.routes.unanswered.clear()

    def check(self) -> None:
        """Let the notifiers end, and compare what each route got with what happened."""
        self._loop.run_until(self._loop.clock() + LAST)
        for cloud, stored in self._states.items():
            _check(cloud, stored, self._sent[cloud], Counter(self._histories[cloud].head_line))


def _check(cloud: MemoryCloud, log: NotificationLog, sent: _SentMessages, heads: Mapping[str, int]) -> None:
    """Compare what a route got with what happened; ``heads`` says how often each commit became the head:
    its problem begins each time.
    """
    fleet = cloud.ports.config.fleet
    messages: dict[str, set[str]] = {}
    for message in sent:
        for identifier in message.notifications:
            messages.setdefault(identifier, set()).add(message.id)
    times_stored = Counter(notification.id for notification in log.stored)  # again after a crash
    for identifier, ids in messages.items():
        kind, _, what = identifier.removesuffix(":over").partition(":")
        problems = (
            heads.get(what.partition(":")[0], 1)
            if kind in (NotificationKind.INVALID, NotificationKind.REFUSED)
            else 1
        )
        if len(ids) > max(problems, times_stored[identifier.removesuffix(":over")]):
            raise RuleViolated(
                "repeated notification", f"{fleet}: {identifier} is in messages with different ids"
            )
    for notification in log.stored:
        known = notification.id in messages or notification.id in log.pruned
        if not known and not notification.over and notification.kind is not NotificationKind.READY:
            raise RuleViolated("lost notification", f"{fleet}: {notification.id} was never delivered")
    times = sorted(sent.first.values())
    for begins, ends in zip(times, times[MOST:], strict=False):
        if ends - begins < PERIOD:
            raise RuleViolated("many messages", f"{fleet}: {MOST + 1} from {begins} to {ends}")
    remembered = cloud.state.notifier_record()
    is_open = {remembered.notifications[identifier].key for identifier in remembered.open.values()}
    for notification in _shown(sent):
        if notification.key not in is_open:
            raise RuleViolated("missing end", f"{fleet}: {notification.id} is over, and no message says so")
    _holds(cloud, is_open, pruned=bool(log.pruned))


def _shown(sent: Iterable[OutgoingMessage]) -> Iterable[Notification]:
    """Return the problems that a reader of the route takes for open.

    The end of a problem ends what was shown since it began. A problem begins again where a message
    names it again, as it does when a writer that was frozen stores it again; that may be the message with its
    end. A message that comes again, from a sender that was frozen, is no news: it has the same id and
    times.
    """
    shown: dict[tuple[str, tuple[str, str, str]], Notification] = {}
    began: dict[str, int] = {}
    first: dict[object, OutgoingMessage] = {}
    for message in sent:
        times = [notification.at for group in message.groups for notification in group.notifications]
        first.setdefault((message.id, *times), message)
    for number, message in enumerate(first.values()):
        began |= dict.fromkeys(message.notifications, number)
        notifications = (notification for group in message.groups for notification in group.notifications)
        for notification in sorted(notifications, key=lambda notification: notification.at):
            place = (notification.key, notification.group)
            if notification.lasting:
                shown[place] = notification
            elif (
                notification.over and place in shown and _began(notification, began) >= began[shown[place].id]
            ):
                del shown[place]
    return shown.values()


def _began(end: Notification, began: Mapping[str, int]) -> int:
    """Return the number of the last message that named the beginning of what is over, -1 for none."""
    return began.get(end.id.removesuffix(":over"), -1)


def _of_plan_holds(cloud: MemoryCloud, is_open: set[str]) -> None:
    """Check that the open problems of the plan are those of the newest one."""
    fleet = cloud.state.fleet()
    newest = cloud.state.plan(fleet.commit)
    if newest is None or fleet.planning:
        return
    plan, commit = newest.plan, fleet.commit[:8]
    held = any(item.needs_action for item in plan.items)
    for key, wrong in (("approval", bool(plan.deletes_needing_approval)), ("manifests", bool(plan.problems))):
        if wrong and key not in is_open:
            raise RuleViolated(
                "lost notification", f"{commit} has a problem with its {key}, and no message says so"
            )
        if key in is_open and not wrong and not (held and key == "manifests"):
            raise RuleViolated("missing end", f"{commit} has no problem with its {key}, and one is open")


def _holds(cloud: MemoryCloud, is_open: set[str], *, pruned: bool) -> None:
    """Check that the open problems of clusters are those of the records."""
    _of_plan_holds(cloud, is_open)
    fleet, records = cloud.ports.config.fleet, {cluster.name: cluster for cluster in cloud.state.clusters()}
    for key in is_open:
        about, _, name = key.partition(":")
        record = records.get(name)
        if about == "cluster" and (record is None or record.phase is Phase.READY):
            raise RuleViolated("missing end", f"{fleet}: {name} has no problem, and one is open")
        if about == "drift" and (record is None or record.divergence.drift is None):
            raise RuleViolated("missing end", f"{fleet}: {name} has no drift, and its drift is open")
    for name, record in records.items():
        if record.divergence.drift is not None and f"drift:{name}" not in is_open and not pruned:
            raise RuleViolated(
                "lost notification", f"{fleet}: {name} differs from git, and no message says so"
            )
