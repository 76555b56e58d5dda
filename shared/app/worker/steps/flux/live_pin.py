"""The commit that Flux pulls on a cluster, next to the one that the job is to pin.

A pin goes forward, because Flux deletes what an older commit does not have. A job moves it from the commit
that the plan knew, or from an ancestor of the new one. One that is ahead, and one that the record never knew,
stays: somebody moved it while the app was down, or the tables were lost, or are older than the cluster. The
record then takes it over, and another plan decides what becomes of it. A revert is a newer commit. From
the commit of a try a pin goes back, also where no table knows of it any more: its branch has such a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shared.app.access.context import StepContext
from shared.app.followed import has_before
from shared.cluster.outcomes import Wait
from shared.frozen import replace
from shared.json_tree import Json
from shared.language.desired import Desired
from shared.language.pin import TRIED, Pin, name_of_pin


def commit_in(ref: Json | None) -> str:
    """Return the pin in a ``ref`` of Flux, or of Azure, as the commit or the name of its branch has it.

    That is its commit, after ``TRIED`` that of a try; "" for a ref that follows a branch, and for none.
    """
    given = ref or {}
    named = str(given.get("commit") or given.get("digest") or "")
    return named or name_of_pin(str(given.get("branch") or ""))


def as_live(context: StepContext, live: str) -> Desired:
    """Return the cluster that a job brings about where Flux pulls the commit ``live``."""
    pin = context.desired.pin
    return context.desired.with_pin(live_pin(context, pin, live)) if pin else context.desired


def live_pin(context: StepContext, pin: Pin, live: str) -> Pin:
    """Return the pin, of the cluster or of a system, that a job brings about where Flux pulls ``live``.

    That is the pin of the plan, or the one that Flux has, where the branch contains that and the plan did not
    know it.
    """
    if pin.tried or live.startswith(TRIED) or live in ("", pin.commit):
        return pin
    known = bool(pin.before) and not context.record.recovering
    if known and (live == pin.before or has_before(pin, pin.commit, live, context.ports)):
        return pin
    return replace(pin, commit=live, pulls="") if _is_on_branch(context, pin, live) else pin


def taken_over(context: StepContext, desired: Desired) -> Mapping[str, Pin]:
    """Return the pin that the record takes over from Flux, as "", none where it has the one of the plan."""
    return {"": desired.pin} if desired.pin and desired.pin != context.desired.pin else {}


def held_back(context: StepContext, live: str, of: str = "Flux", pin: Pin | None = None) -> Wait | None:
    """Return the wait of a job whose pin would go back from the commit ``live``, None for any other.

    ``pin`` is that of a system, which ``of`` names; without it, that of the cluster.
    """
    pin = live_pin(context, pin, live) if pin else as_live(context, live).pin
    if pin is None or live.startswith(TRIED) or live in ("", pin.commit, pin.before):
        return None
    if has_before(pin, pin.commit, live, context.ports):
        return None
    reason = (
        f"{of}: it is pinned to {live[:8]}, which {pin.commit[:8]} does not contain; Flux would delete what "
        "only that commit has"
    )
    required = (
        f"Push a commit that contains {live[:8]}, or move the pin yourself (docs/how-to/move-a-pin.md)."
    )
    return Wait.for_person(reason, required)


def unless_forward(context: StepContext, differences: Iterable[str], live: str) -> list[str]:
    """Return the differences of a source, without its ref where the pin goes forward from ``live``."""
    forward = bool(live) and context.desired.pin is not None and held_back(context, live) is None
    return [path for path in differences if not (forward and path.endswith((".ref", ".repositoryRef")))]


def _is_on_branch(context: StepContext, pin: Pin, live: str) -> bool:
    fleet = context.ports.state.fleet()
    newest = fleet.planning or fleet.commit
    if pin.source:
        newest = next(
            (known.commit for known in fleet.origin.followed if known.key == pin.source), pin.commit
        )
    return has_before(pin, newest, live, context.ports)
