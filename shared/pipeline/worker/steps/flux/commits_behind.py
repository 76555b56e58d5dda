"""Which commits may be why Flux cannot apply a path of the fleet: those after what it applied last."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from shared.fleet.kubernetes.flux.flux_readiness import Attempt, commit_of
from shared.jobs.failures.errors import ReconcileError
from shared.jobs.record import ClusterRecord
from shared.pipeline.worker.steps.flux.wanted_commit import pulls_the_fleet
from shared.ports import Ports
from shared.ports.github import Change

log = logging.getLogger(__name__)

MOST = 30
"""How many commits of a path are read; their order is that of their dates, and not of their being merged."""
NAMED = 3
"""How many commits a message names."""


def commits_behind(attempt: Attempt, record: ClusterRecord, ports: Ports) -> str:
    """Return, in parentheses, the commits that may be why Flux fails, and who wrote them.

    Commits elsewhere are not named, nor those that Flux has applied. That takes two calls to GitHub; where it
    gives no answer, and for another repository, the text names the commit alone that Flux tried. "" where
    Flux did not try a commit.
    """
    tried, applied = commit_of(attempt.revision), commit_of(attempt.applied)
    if not tried:
        return ""
    text = f"Flux tried commit {tried[:8]}"
    if pulls_the_fleet(record, ports.config):
        path = attempt.path.removeprefix("./").strip("/")
        try:
            changes = ports.repository.changes(tried, path, MOST)
            before = ports.repository.changes(applied, path, MOST) if applied and changes else ()
        except ReconcileError as error:
            log.info("who changed %s is not known: %s: %s", attempt.path, error.kind, error)
        else:
            text += described(changes, before, applied, f"./{path}")
    return f" ({text})"


def described(changes: Sequence[Change], before: Sequence[Change], applied: str, place: str) -> str:
    """Return what ``changes`` of a place, newest first, add to what the commit ``applied`` had ``before``.

    Without one that was applied, any change may be the cause, and only the newest is known to be tried.
    """
    if not applied:
        return f"; {place} was changed last by {_named(changes[0])}" if changes else ""
    known = {change.commit for change in before}
    since = [change for change in changes if change.commit not in known]
    text = f" and applied {applied[:8]} last"
    if not since:
        return f"{text}; nothing in {place} has changed since"
    if len(since) == 1:
        return f"{text}; since then {_named(since[0])} has changed {place}"
    named = ", ".join(map(_named, since[:NAMED]))
    count = f"{len(since)}" if len(since) < MOST else f"at least {MOST}"
    more = ", ..." if len(since) > NAMED else ""
    text += f"; since then {count} commits have changed {place}, and any may be the cause"
    return f"{text}; newest first: {named}{more}"


def _named(change: Change) -> str:
    return f"{change.commit[:8]} by {change.author}" if change.author else change.commit[:8]
