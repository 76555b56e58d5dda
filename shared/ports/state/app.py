"""What the app stores of itself: acts, deliveries, dead letters, timers, buckets, and what it notifies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime

from shared.azure.rate_limits import Bucket
from shared.cluster.failures.errors import Stale, Unavailable
from shared.cluster.forms import RecordList, WrongText
from shared.cluster.history import LIVE, Act
from shared.frozen import dataclass, replace
from shared.notifications.notification import Notification
from shared.notifications.record import NotifierRecord
from shared.ports.state.clusters import FLEETS
from shared.ports.state.reading import RecordKind, TableRepository, TextKind
from shared.ports.state.texts import document, moment_in, newest_first, safe_key, write_document
from shared.ports.tables import Entity

ACTS = "roadsteadacts"
DELIVERIES = "roadsteaddeliveries"
DEAD_LETTERS = "roadsteaddeadletters"
BUCKETS = "roadsteadbuckets"
RECENT = 100
"""Among how many of the newest acts one is looked for."""
MOST_PAGES = 20
"""So many pages of acts are read for that: callers who only read can fill some of them."""
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
_READS = 3
"""How often what the notifier remembers is read where somebody replaces it meanwhile."""


class Acts(TableRepository):
    """What callers asked for, and the settings that were seen last."""

    def save_act(self, act: Act) -> None:
        """Save an act, over one with the same time and id."""
        self._put(ACT, f"{newest_first(act.at)}-{act.id}", act, at=act.at)

    def acts(self, limit: int, before: datetime | None = None) -> RecordList[Act]:
        """Return the newest acts (before a millisecond), newest first."""
        after = f"{newest_first(before)}~" if before else ""
        return self._listed(ACT, ("RowKey", "gt", after), limit=limit)

    def settings_seen(self) -> Mapping[str, str]:
        """Return what ``save_settings_seen`` wrote last, nothing before the first time."""
        entity = self._entity(_SETTINGS, self._fleet)
        return self._reader.or_else({}, _SETTINGS, entity) if entity is not None else {}

    def save_settings_seen(self, settings: Mapping[str, str]) -> None:
        """Write the settings over those that were seen before."""
        self._put(_SETTINGS, self._fleet, dict(settings))


def newest_changes(acts: Acts) -> Sequence[Act]:
    """Return the newest acts that are more than a read, newest first."""
    found = list[Act]()
    before: datetime | None = None
    for _ in range(MOST_PAGES):
        page = acts.acts(RECENT, before)
        found += [act for act in page if act.action != LIVE]
        if len(page) < RECENT or len(found) >= RECENT:
            break
        before = page[-1].at
    return found[:RECENT]


class Deliveries(TableRepository):
    """The webhook deliveries that were accepted, by the digest of their bodies."""

    def delivery_seen(self, digest: str) -> bool:
        """Return whether a webhook delivery was queued before."""
        return self._entity(DELIVERY, safe_key(digest)) is not None

    def remember_delivery(self, digest: str, at: datetime) -> None:
        """Remember a webhook delivery; twice is once."""
        self._tables[DELIVERIES].put(self._fleet, {safe_key(digest): {"at": at}})


@dataclass(frozen=True)
class DeadLetter:
    """A message that a queue gave up and that could not be handled; ``body`` is its beginning as text.

    ``size`` is the size of the whole body in bytes, ``at`` is when the message reached its queue.
    """

    queue: str
    id: str
    at: datetime
    reason: str
    description: str
    body: str
    size: int


class DeadLetters(TableRepository):
    """The messages that the queues gave up."""

    def save_dead_letter(self, letter: DeadLetter) -> None:
        """Save a dead letter, over an equal one."""
        self._put(DEAD_LETTER, _letter_key(letter), letter, at=letter.at)

    def dead_letters(self, limit: int) -> RecordList[DeadLetter]:
        """Return the newest dead letters, newest first."""
        return self._listed(DEAD_LETTER, limit=limit)

    def count_dead_letters(self) -> int:
        """Return how many dead letters are saved."""
        return sum(1 for _ in self._keys(DEAD_LETTER))

    def delete_dead_letter(self, letter: DeadLetter) -> None:
        """Remove a dead letter; one that does not exist is success."""
        self._tables[DEAD_LETTERS].remove([(self._fleet, _letter_key(letter))])


@dataclass(frozen=True)
class TimerRun:
    """The last run of a timer that came to its end; without one (``ran``), since when one is expected."""

    at: datetime
    ran: bool = True


class Timers(TableRepository):
    """The runs of the timers, by the names of their functions, and Azure's token buckets."""

    def timer_runs(self) -> Mapping[str, TimerRun]:
        """Return what is stored of each timer."""
        return dict(self._listed(TIMER))

    def save_timer_run(self, timer: str, at: datetime) -> None:
        """Write that a timer has run, over what is stored of it."""
        self._tables[FLEETS].put(self._partition(TIMER), {timer: {"at": at, "ran": True}})

    def expect_timers(self, timers: Collection[str], at: datetime) -> None:
        """Write since when timers are expected to run; what is stored of one already is left alone."""
        for timer in timers:
            try:
                self._tables[FLEETS].write(self._partition(TIMER), timer, {"at": at, "ran": False}, "")
            except Stale:
                continue  # it has run, or is expected already

    def bucket(self, key: str) -> Bucket | None:
        """Return one of Azure's token buckets, None for one that no call has used yet.

        One that cannot be read is full.
        """
        entity = self._entity(_BUCKET, key)
        if entity is None:
            return None
        return Bucket(self._reader.or_else(LONG_AGO, _BUCKET, entity), entity.etag)

    def save_bucket(self, key: str, bucket: Bucket) -> None:
        """Write a bucket over the version in its etag ("": only if there is none); raise Stale."""
        properties = {"fullAt": bucket.full_at.isoformat()}
        self._tables[BUCKETS].write(self._fleet, key, properties, bucket.etag)


class Notifications(TableRepository):
    """The notifications that the notifier has not taken yet, and what it remembers."""

    def add_notification(self, notification: Notification) -> None:
        """Save a notification; one that was saved before is not duplicated."""
        self._put(NOTIFICATION, _notification_key(notification), notification, at=notification.at)

    def notifications(self, limit: int) -> RecordList[Notification]:
        """Return the oldest saved notifications."""
        return self._listed(NOTIFICATION, limit=limit)

    def remove_notifications(self, notifications: Sequence[Notification]) -> None:
        """Remove notifications; one that does not exist is success."""
        partition = self._partition(NOTIFICATION)
        self._tables[FLEETS].remove(
            [(partition, _notification_key(notification)) for notification in notifications]
        )

    def notifier_record(self) -> NotifierRecord:
        """Return what the notifier remembers; a new one when none was saved, or it cannot be read."""
        for _ in range(_READS):
            entity = self._entity(_NOTIFIER, self._fleet)
            if entity is None:
                return NotifierRecord()
            found = self._reader.or_else(NotifierRecord(etag=entity.etag), _NOTIFIER, entity)
            if found is not None:
                return found
        raise Unavailable("what the notifier remembers was replaced while it was read")

    def save_notifier_record(self, known: NotifierRecord) -> NotifierRecord:
        """Write it over the version that was read, and return it as saved; raise Stale or TooLarge."""
        place, text = (_NOTIFIER.partition, self._fleet), _NOTIFIER.text(known)
        return replace(known, etag=write_document(self._tables[FLEETS], place, {}, text, known.etag))


def _letter_key(letter: DeadLetter) -> str:
    return f"{newest_first(letter.at)}-{letter.queue}-{safe_key(letter.id)}"


def _notification_key(notification: Notification) -> str:
    return f"{int(notification.at.timestamp() * 1000):013d}-{safe_key(notification.id)}"


def _timer(entity: Entity) -> tuple[str, TimerRun]:
    if not isinstance(entity.get("ran"), bool):
        raise WrongText("ran is missing, or has a wrong type")
    return entity["RowKey"], TimerRun(moment_in(entity), entity["ran"])


def _full_at(entity: Entity) -> datetime:
    moment = datetime.fromisoformat(entity["fullAt"])
    if moment.tzinfo is None:
        raise WrongText("fullAt is a time without a zone")
    return moment


ACT = TextKind[Act]("act", ACTS, Act)
DEAD_LETTER = TextKind[DeadLetter]("dead letter", DEAD_LETTERS, DeadLetter)
NOTIFICATION = TextKind[Notification]("notification", FLEETS, Notification, "notifications|{}")
TIMER = RecordKind("timer", FLEETS, "timers|{}", _timer)
_SETTINGS = TextKind[Mapping[str, str]]("settings", ACTS, dict[str, str], "settings")
_NOTIFIER = TextKind[NotifierRecord | None]("notifier", FLEETS, NotifierRecord, "notifier", text=document)
_BUCKET = RecordKind("bucket", BUCKETS, "{}", _full_at)
DELIVERY = RecordKind("delivery", DELIVERIES, "{}", moment_in)
