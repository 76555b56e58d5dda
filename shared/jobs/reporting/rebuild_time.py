"""How long a rebuild took, and what of that Azure took: its lower bound.

That is the delete and the creation, or the creation alone of a cluster that is created next to the old one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from shared.jobs.event import Event
from shared.jobs.recipes import Step
from shared.jobs.reporting.events import REBUILD


def rebuild_time(events: Sequence[Event], uid: str, now: datetime) -> str:
    """Return the duration of the rebuild that led to a life, "" where no event says when it began.

    ``events`` are those of all lives of the cluster. Azure's part is from the write that it accepted to the
    end of the step that waited for it; a part that no event says counts as nothing.
    """
    ordered = sorted(events, key=lambda event: event.at)
    began = next((event for event in reversed(ordered) if event.reason == REBUILD), None)
    if began is None or began.uid == uid:
        return ""
    deleted = _in_azure(ordered, began.uid, Step.DELETE_CLUSTER, began.at)
    created = _in_azure(ordered, uid, Step.CLUSTER, began.at)
    parts = f"delete {_minutes(deleted)}, creation {_minutes(created)}"
    bound = _minutes(deleted + created)
    return f"rebuilt in {_minutes(now - began.at)}; Azure took {bound} of that ({parts})"


def replacement_time(events: Sequence[Event], uid: str, old: str, now: datetime) -> str:
    """Return how long it took until a cluster was Ready that replaces an ``old`` one, "" without events."""
    ordered = sorted((event for event in events if event.uid == uid), key=lambda event: event.at)
    if not ordered:
        return ""
    created = _in_azure(ordered, uid, Step.CLUSTER, ordered[0].at)
    bound = f"Azure took {_minutes(created)} of that (creation)"
    return f"ready in the place of {old} in {_minutes(now - ordered[0].at)}; {bound}"


def _in_azure(events: Sequence[Event], uid: str, step: Step, since: datetime) -> timedelta:
    mine = [each for each in events if (each.uid, each.step) == (uid, step) and each.at >= since]
    written = next((each.at for each in mine if each.request_ids), None)
    done = next((each.at for each in reversed(mine) if each.reason == "StepDone"), None)
    return done - written if written and done and done > written else timedelta()


def _minutes(duration: timedelta) -> str:
    minutes, seconds = divmod(max(0, int(duration.total_seconds())), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
