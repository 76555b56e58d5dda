"""What a route gets: notifications in groups, and groups in few messages of bounded size. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from shared.frozen import dataclass, replace
from shared.json_tree import digest_of
from shared.language.model.notification_kinds import KINDS, Severity
from shared.notifications.notification import Notification
from shared.sentences import many, some_of

MOST_MESSAGES = 5
"""So many messages a digest has at most; the notifications of further ones wait for the next digest."""
_REASONS, _ACTIONS, _COMMITS, _DIFFS, _PAGES = 3, 3, 3, 3, 3
"""How many different reasons, actions, commits, diffs and pages of a group a message shows."""
_NAMED = 3
"""How many clusters a message names for each of several actions."""
_MARGIN = 600
"""Bytes for the title and for what is said of notifications that were dropped."""


@dataclass(frozen=True)
class Links:
    """Where links lead: to commits of ``repository`` and to pages of the app; "" for none."""

    repository: str = ""
    app: str = ""

    def of(self, commit: str) -> Mapping[str, str]:
        """Return the links to a commit, and to its plan."""
        links = {
            "commit": f"{self.repository}/commit/{commit}" if self.repository else "",
            "plan": f"{self.app}/plans/{commit}" if self.app else "",
        }
        return {name: link for name, link in links.items() if link and commit}

    def page(self, notification: Notification) -> str:
        """Return the page of the cluster that a notification is about, or of the fleet; "" without pages."""
        part = f"/clusters/{quote(notification.subject, safe='')}" if notification.of_cluster else "/"
        return f"{self.app}{part}" if self.app else ""


@dataclass(frozen=True)
class DigestGroup:
    """Notifications of one kind, with one class of error, in one region; ``began`` in the same digest."""

    notifications: tuple[Notification, ...]
    began: bool = False

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of its notifications, and of what they have ended in the same digest."""
        ended = (notification.id.removesuffix(":over") for notification in self.notifications if self.began)
        return (*ended, *(notification.id for notification in self.notifications))

    @property
    def title(self) -> str:
        """What happened, to how many, and where."""
        first, about = self.notifications[0], KINDS[self.notifications[0].kind]
        count = len({notification.key for notification in self.notifications})
        what = f"1 {about.noun}" if count == 1 else f"{count} {about.plural}"
        place = f" in {first.location}" if first.location else ""
        if first.became:
            if first.became == first.kind:
                return f"{what} {about.begins} for another reason{place}"
            return f"{what}: {first.kind} became {first.became}{place}"
        if first.over and not self.began:
            return f"{what} {about.over}{place}"
        why = f": {first.reason}" if first.reason else ""
        now = f"; now {about.over}" if first.over else ""
        return f"{what} {about.begins}{place}{why}{now}"

    @property
    def severity(self) -> Severity:
        """The severity of its kind; the end of a problem is no reason to hurry."""
        return Severity.INFO if self.notifications[0].over else self.notifications[0].severity

    @property
    def since(self) -> datetime:
        """When the first of it began."""
        return min(notification.since or notification.at for notification in self.notifications)

    @property
    def until(self) -> datetime:
        """When the last of it happened."""
        return max(notification.at for notification in self.notifications)

    @property
    def diffs(self) -> Sequence[Notification]:
        """The notifications with a diff."""
        return [notification for notification in self.notifications if notification.diff]

    def pages(self, links: Links) -> Mapping[str, str]:
        """Return the pages of its first clusters, or of the fleet, with what to call each."""
        found = {
            links.page(notification): notification.subject if notification.of_cluster else "fleet"
            for notification in self.notifications
        }
        return {page: name for page, name in list(found.items())[:_PAGES] if page}

    def distinct(self, field: str) -> list[str]:
        """Return the different values of a field, the most frequent first."""
        counts: defaultdict[str, int] = defaultdict(int)
        for notification in self.notifications:
            counts[getattr(notification, field)] += 1
        return [value for value in sorted(counts, key=lambda value: (-counts[value], value)) if value]


@dataclass(frozen=True)
class OutgoingMessage:
    """A message: its title and text for people, its groups for programs; ``notifications`` are their ids.

    ``id`` is the same when the same notifications are sent again. ``dropped`` notifications are in no
    message.
    """

    id: str
    fleet: str
    title: str
    severity: Severity
    text: str
    groups: tuple[DigestGroup, ...]
    notifications: tuple[str, ...]
    links: Links = Links()
    dropped: int = 0

    @property
    def labelled_links(self) -> Mapping[str, str]:
        """Each link of its clusters and commits, with what to call it."""
        commits = dict.fromkeys(
            notification.commit
            for group in self.groups
            for notification in group.notifications
            if notification.commit
        )
        links = ((commit, name, link) for commit in commits for name, link in self.links.of(commit).items())
        pages = {page: name for group in self.groups for page, name in group.pages(self.links).items()}
        return pages | {link: f"{name} {commit[:8]}" for commit, name, link in links}


def messages(
    notifications: Sequence[Notification],
    *,
    fleet: str,
    limit: int,
    links: Links,
    dropped: int = 0,
    together: bool = True,
) -> Sequence[OutgoingMessage]:
    """Return the messages of a digest, each with a text of at most ``limit`` bytes.

    Every message names all of its notifications: what begins and is over in the same digest is one part,
    which says both. Without ``together``, each group is a message.
    """
    groups = _groups(notifications)
    several = [groups] if together else [[group] for group in groups]
    parts = (part for some in several for part in _parts(some, limit - _MARGIN, links))
    some = [_message(part, fleet, links) for part in parts]
    some = some[:MOST_MESSAGES]
    if some and dropped:
        were = f"{many(dropped, 'older notification')} {'was' if dropped == 1 else 'were'}"
        missed = f"{were} dropped while this route did not deliver: `roadstead events NAME`."
        some[0] = replace(some[0], text=f"{some[0].text}\n\n{missed}", dropped=dropped)
    return some


def _groups(notifications: Sequence[Notification]) -> Sequence[DigestGroup]:
    ends, by_id = (
        {notification.id for notification in notifications if notification.over},
        {notification.id: notification for notification in notifications},
    )
    groups: defaultdict[tuple[bool, bool, str, tuple[str, str, str]], list[Notification]] = defaultdict(list)
    for notification in notifications:
        began = by_id.get(notification.id.removesuffix(":over")) if notification.over else None
        if began is not None:
            whole = replace(notification, detail=began.detail, diff=began.diff)
            groups[(True, True, notification.became, notification.group)].append(whole)
        elif f"{notification.id}:over" not in ends:
            groups[(notification.over, False, notification.became, notification.group)].append(notification)
    found = [DigestGroup(tuple(group), began) for (_, began, _, _), group in groups.items()]
    return sorted(found, key=lambda group: (-group.severity.rank, group.since))


def _parts(groups: Sequence[DigestGroup], limit: int, links: Links) -> Iterator[Sequence[DigestGroup]]:
    """Yield the groups of each message; a group that is too long for one goes on in the next."""
    part: list[DigestGroup] = []
    size = 0
    for group in groups:
        for piece in _pieces(group, limit, links):
            length = _bytes(piece, links)
            if part and size + length > limit:
                yield part
                part, size = [], 0
            part, size = [*part, piece], size + length
    if part:
        yield part


def _pieces(group: DigestGroup, limit: int, links: Links) -> Iterator[DigestGroup]:
    """Yield a group in pieces, halved until the text of each is within the limit."""
    if len(group.notifications) == 1 or _bytes(group, links) <= limit:
        yield group
        return
    half = len(group.notifications) // 2
    for some in (group.notifications[:half], group.notifications[half:]):
        yield from _pieces(DigestGroup(some, group.began), limit, links)


def _bytes(group: DigestGroup, links: Links) -> int:
    return len(text_of(group, links).encode()) + 2


def _message(groups: Sequence[DigestGroup], fleet: str, links: Links) -> OutgoingMessage:
    notifications = tuple(identifier for group in groups for identifier in group.ids)
    severity = max((group.severity for group in groups), key=lambda level: level.rank)
    more = f", and {len(groups) - 1} more" if len(groups) > 1 else ""
    identifier = digest_of(sorted(notifications))[:32]
    return OutgoingMessage(
        id=identifier,
        fleet=fleet,
        title=f"{fleet}: {groups[0].title}{more}",
        severity=severity,
        text="\n\n".join(text_of(group, links) for group in groups),
        groups=tuple(groups),
        notifications=notifications,
        links=links,
    )


def text_of(group: DigestGroup, links: Links) -> str:
    """Return what a person reads of a group: what, since when, why, what next, which, and the links."""
    first, lasted = group.notifications[0], group.until != group.since
    until = f" until {clock(group.until)}" if first.over else f", the last at {clock(group.until)}"
    reasons, commits = group.distinct("detail"), group.distinct("commit")
    lines = [f"{group.title}", f"Since {clock(group.since)}{until if lasted else ''}"]
    lines += [f"Why: {reason}" for reason in reasons[:_REASONS]]
    lines += [f"{many(len(reasons) - _REASONS, 'more reason')}."] if len(reasons) > _REASONS else []
    lines += _next(group)
    lines += [f"Diff:\n{notification.diff}" for notification in group.diffs[:_DIFFS]]
    more = len(group.diffs) - _DIFFS
    lines += [f"{many(more, 'more diff')}: `roadstead drift` shows them."] if more > 0 else []
    which = "Which" if len(group.notifications) > 1 else "What"
    lines.append(f"{which}: {', '.join(map(_named, group.notifications))}")
    lines += [f"Page: {page}" for page in group.pages(links)]
    for commit in commits[:_COMMITS]:
        shown = ", ".join(f"{name} {link}" for name, link in links.of(commit).items())
        lines.append(f"Commit {commit[:8]}: {shown}" if shown else f"Commit {commit[:8]}")
    return "\n".join(lines)


def _next(group: DigestGroup) -> Iterator[str]:
    """Yield what comes next, and for which notifications where that differs, the most frequent first."""
    alike: defaultdict[str, list[Notification]] = defaultdict(list)
    for notification in group.notifications:
        if notification.action:
            alike[_of_any(notification)].append(notification)
    frequent = sorted(alike.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    for action, notifications in frequent[:_ACTIONS]:
        subjects = list(dict.fromkeys(notification.subject for notification in notifications))
        which = f" for {some_of(subjects, _NAMED)}" if len(alike) > 1 else ""
        yield f"Next{which}: {action if len(subjects) > 1 else notifications[0].action}"
    if len(frequent) > _ACTIONS:
        yield f"{many(len(frequent) - _ACTIONS, 'more action')}: `roadstead why NAME`."


def _of_any(notification: Notification) -> str:
    """Return what comes next, with NAME in place of the cluster in its commands: what others may have too."""
    parts = notification.action.split("`")
    parts[1::2] = [_with_any_name(command, notification.subject) for command in parts[1::2]]
    return "`".join(parts)


def _with_any_name(command: str, name: str) -> str:
    words = command.split(" ")
    return " ".join([*words[:2], *("NAME" if word == name else word for word in words[2:])])


def _named(notification: Notification) -> str:
    clusters = f" ({', '.join(notification.names)})" if notification.names else ""
    return f"{notification.subject}{clusters} {notification.at:%H:%M:%S}"


def clock(moment: datetime) -> str:
    """Return a time as a message shows it."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def body_of(message: OutgoingMessage) -> Mapping[str, Any]:
    """Return a message as a program reads it."""
    return {
        "version": 1,
        "id": message.id,
        "fleet": message.fleet,
        "severity": message.severity.value,
        "title": message.title,
        "text": message.text,
        "dropped": message.dropped,
        "groups": [_json(group, message.links) for group in message.groups],
    }


def _json(group: DigestGroup, links: Links) -> Mapping[str, Any]:
    first, shown = group.notifications[0], group.diffs[:_DIFFS]
    return {
        "kind": first.kind.value,
        "severity": group.severity.value,
        "over": first.over,
        "became": first.became,
        "reason": first.reason,
        "location": first.location,
        "title": group.title,
        "since": group.since.isoformat(),
        "until": group.until.isoformat(),
        "notifications": [
            _notification_json(notification, links, shown) for notification in group.notifications
        ],
    }


def _notification_json(
    notification: Notification, links: Links, with_diff: Sequence[Notification]
) -> Mapping[str, Any]:
    return {
        "id": notification.id,
        "subject": notification.subject,
        "clusters": list(notification.names) or ([notification.subject] if notification.of_cluster else []),
        "environment": notification.environment,
        "at": notification.at.isoformat(),
        "since": (notification.since or notification.at).isoformat(),
        "why": notification.detail,
        "next": notification.action,
        "diff": notification.diff if notification in with_diff else "",
        "outputs": dict(notification.outputs),
        "commit": notification.commit,
        "links": {
            **links.of(notification.commit),
            **({"page": page} if (page := links.page(notification)) else {}),
        },
    }
