"""Opens and closes the pull requests that remove clusters whose lifetime has ended: one for each end.

A timer warns the owners before, and asks for this. A merge is a commit as any other: each guard of a delete
holds it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from shared.app.outbox import send
from shared.app.own_repository import require_name
from shared.app.proposals.head import Head
from shared.app.proposals.own_pull import merged_by_host, open_asked, pull_text
from shared.app.pull_requests.markdown import code, prose
from shared.app.records import Transition, change
from shared.cluster.failures.errors import Conflict, OtherRepository, Terminal, Withheld
from shared.cluster.lifetime import ENDS, Lifetime, lifetime_of, spared, with_lifetime
from shared.cluster.queues.messages import ProposeRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import EndPull, LifetimeState
from shared.cluster.reporting.events import lifetime_event
from shared.frozen import replace
from shared.language.desired import Desired
from shared.logs import about
from shared.notifications.of_clusters import lifetime_notification
from shared.ports import Ports, PullText
from shared.ports.state.clusters import readable
from shared.rollouts.calendar import Start
from shared.rollouts.shut import held_start

log = logging.getLogger(__name__)

AT_ONCE = 50
"""So many clusters are looked at by one run of the timer, and by one message."""
OVER = "<!-- roadstead:end over -->"
"""The first characters of the comment with which a proposal ends."""
UNSURE = (
    "**Ask its owner first.** The tables of Roadstead were lost or restored since the cluster was created. "
    "Whether somebody had extended it by command is not known any more."
)


def watch_lifetimes(ports: Ports) -> None:
    """Warn the owners of clusters that end soon, and ask for the pull requests of those that are over."""
    now = ports.clock()
    asked = False
    for name in _some_due(now, ports):
        known = readable(name, ports.state)
        record = change(name, lambda record: _warned(record, now), ports, known=(known,))
        asked = asked or (record is not None and _asks(record, now))
    if asked:
        send(ProposeRequest(), ports)


def _some_due(now: datetime, ports: Ports) -> Sequence[str]:
    """Return clusters that are due: all, or of more than ``AT_ONCE`` those that follow by chance.

    One that a guard keeps stays due. So it must not always be among the first.
    """
    names = ports.state.due_to_end(now)
    first = int(ports.random() * len(names)) if len(names) > AT_ONCE else 0
    return [*names[first:], *names[:first]][:AT_ONCE]


def _warned(record: ClusterRecord | None, now: datetime) -> Transition | ClusterRecord | None:
    life = lifetime_of(record) if record is not None else None
    moment = life.due_warning(now) if life else None
    if record is None or life is None or moment is None:
        return record
    after = with_lifetime(record, warned=(life.ends, moment))
    return Transition(after, notifications=[lifetime_notification(after, life, now)])


def _asks(record: ClusterRecord, now: datetime) -> bool:
    life, pull = lifetime_of(record), record.azure.lifetime.pull
    return (pull is not None and _is_stale(life)) or (life is not None and now >= life.over)


def _is_stale(life: Lifetime | None) -> bool:
    """Return whether the pull request of a cluster is of another end than it has now."""
    return life is None or not life.is_proposed


def settle_ends(number: int, ports: Ports) -> None:
    """Open what is due and close what is over; ``number`` is a pull request that somebody closed or reopened.

    Raise what concerns more than one cluster.
    """
    now = ports.clock()
    summaries = ports.state.summaries() if number else ()
    decided = [summary.name for summary in summaries if summary.schedule.lifetime_pull == number]
    names = dict.fromkeys([*decided, *_some_due(now, ports)])
    if not names:
        return
    fleet = ports.state.fleet()
    require_name(fleet, ports)
    head = Head(fleet, ports)
    for name in names:
        try:
            _settle(name, number, head, ports)
        except (OtherRepository, Withheld):
            raise
        except (Terminal, Conflict) as error:
            with about(cluster=name):
                log.warning("%s: its end is not proposed: %s: %s", name, error.kind, error)
            _changed(name, lambda _: True, ports, problem=f"{error.kind}: {error}")


def _settle(name: str, number: int, head: Head, ports: Ports) -> None:
    record, now = readable(name, ports.state), ports.clock()
    if record is None or record.deleting:
        return
    pull = record.azure.lifetime.pull
    if pull is not None and pull.number == number:
        record = _with_fate(record, pull, ports)
    life, pull = lifetime_of(record), record.azure.lifetime.pull
    if pull is not None and _is_stale(life):
        _take_back(record, pull, ports)
    if life is None or life.is_proposed or now < life.over or spared(record, now):
        return
    if held_start(record, Start.DELETE, head.fleet.rules.calendar, now) is not None:
        return
    paths, by_itself = _removed(record, head, now)
    if paths:
        _propose(record, life, paths, head, ports, by_itself=by_itself)


def _removed(record: ClusterRecord, head: Head, now: datetime) -> tuple[tuple[str, ...], bool]:
    """Return the files of a cluster's folder, and whether the host is to merge what removes them.

    There are none where the newest commit does not end the cluster now.

    Raise Conflict for a folder that a person has to remove.
    """
    manifest = head.manifest(record.name)
    if manifest is None:
        return (), False
    desired = head.resolve(record.name, manifest)
    if not isinstance(desired, Desired):
        raise Conflict(f"its manifest is invalid ({desired}): correct it, or remove its folder")
    spec = desired.document()["spec"]
    life = lifetime_of(record, spec)
    newest = replace(record, document={**record.document, "spec": spec})
    if life is None or now < life.over or spared(newest, now):
        return (), False
    by_itself = spec.get("lifetimeEnd") == "delete" and not record.azure.lifetime.unsure
    return head.folder(record.name), by_itself


def _propose(
    record: ClusterRecord,
    life: Lifetime,
    paths: tuple[str, ...],
    head: Head,
    ports: Ports,
    *,
    by_itself: bool,
) -> None:
    """Open the pull request of an end, and then save it: whatever fails before that is done again."""
    branch, text = _branch(record.name, life.over, ports), _text(record, life)
    opened = open_asked(branch, dict.fromkeys(paths), text, head, ports)
    if by_itself:
        says = f"Who merges it, as lifetimeEnd: delete asks: {merged_by_host(opened, ports)}."
        ports.git_host.edit_pull(opened.number, replace(text, body=f"{text.body}\n\n{says}"))
    pull = EndPull(opened.number, opened.url, opened.head, life.over)

    def decide(record: ClusterRecord | None) -> Transition | None:
        if record is None or record.azure.lifetime.pull == pull:
            return None
        after = with_lifetime(record, pull=pull, problem="")
        now = ports.clock()
        event = lifetime_event(after, "Ends", f"its lifetime is over: {pull.url}", now)
        return Transition(after, [event], [lifetime_notification(after, life, now)])

    change(record.name, decide, ports)


def _branch(name: str, end: datetime, ports: Ports) -> str:
    """Return the branch that removes a cluster at an end; two fleets may have one repository."""
    return f"{ENDS}{ports.config.fleet}/{name}-{int(end.timestamp())}"


def _with_fate(record: ClusterRecord, pull: EndPull, ports: Ports) -> ClusterRecord:
    """Return a record with what became of its pull request, which a close without a merge declines."""
    found = ports.git_host.pull(pull.number)
    declined = found is None or not (found.open or found.merged)
    if declined == pull.declined:
        return record
    after = replace(pull, declined=declined)
    return _changed(record.name, lambda state: state.pull == pull, ports, pull=after) or record


def _changed(
    name: str, is_due: Callable[[LifetimeState], bool], ports: Ports, **values: Any
) -> ClusterRecord | None:
    """Change what is recorded of a cluster's lifetime, as long as that is due; return the record."""

    def decide(record: ClusterRecord | None) -> Transition | ClusterRecord | None:
        if record is None or not is_due(record.azure.lifetime):
            return record
        after = with_lifetime(record, **values)
        return record if after == record else Transition(after)

    return change(name, decide, ports)


def _take_back(record: ClusterRecord, pull: EndPull, ports: Ports) -> None:
    """Close the pull request of an end that the cluster no longer has, and delete the branch if it is ours.

    Until that is saved it is of another end, whatever else is noted of it meanwhile.
    """
    host = ports.git_host
    found = host.pull(pull.number)
    if found is not None and found.open:
        if host.comment(pull.number, OVER) is None:
            host.write_comment(pull.number, f"{OVER}\nClosed: the cluster has another end now.", over=None)
        host.close_pull(pull.number)
    branch = _branch(record.name, pull.end, ports)
    if host.tip(branch) == pull.commit:
        host.delete_branch(branch)
    number = pull.number
    _changed(record.name, lambda state: bool(state.pull and state.pull.number == number), ports, pull=None)


def _text(record: ClusterRecord, life: Lifetime) -> PullText:
    state, name = record.azure.lifetime, record.name
    put_off = [
        f"{prose(asked.by)} {what} it until {asked.until:%Y-%m-%d %H:%M} UTC: {prose(asked.reason)}"
        for what, asked in (("extended", state.extension), ("kept", state.hold))
        if asked is not None
    ]
    parts = [
        f"The lifetime of {code(name)} is over. It ended at {life.over:%Y-%m-%d %H:%M} UTC.",
        *put_off,
        *([UNSURE] if state.unsure else ()),
        f"- **Merge** this to delete the cluster, with the guards of any delete.\n"
        f"- **Extend** it with {code(f'roadstead extend {name} --for 24h --reason TEXT')}, or with another "
        "end in its manifest: then this is closed.\n"
        "- **Close** this to keep the cluster. Nothing proposes its end again until it has another one.",
    ]
    return pull_text(f"Remove {name}: its lifetime is over", parts)
