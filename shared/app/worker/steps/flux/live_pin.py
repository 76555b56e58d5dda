"""The commit that Flux pulls on a cluster, next to the one that the job is to pin.

A pin goes forward, because Flux deletes what an older commit does not have. A job moves it from the commit
that the plan knew, or from an ancestor of the new one. One that is ahead, and one that the record never knew,
stays: somebody moved it while the app was down, or the tables were lost, or are older than the cluster. The
record then takes it over, and another plan decides what becomes of it. A revert is a newer commit. From
the commit of a try a pin goes back, also where no table knows of it any more: its branch has such a name.
"""

from __future__ import annotations

from collections.abc import Iterable

from shared.app.access.azure_state import OBSERVE_SECONDS
from shared.app.access.context import StepContext
from shared.app.followed import host_of
from shared.cluster.outcomes import Wait
from shared.frozen import replace
from shared.json_tree import Json
from shared.language.desired import Desired
from shared.language.pin import PIN_BRANCHES, TRIED, Pin


def commit_in(ref: Json | None) -> str:
    """Return the pin in a ``ref`` of Flux, or of Azure, as the commit or the name of its branch has it.

    That is its commit, after ``TRIED`` that of a try; "" for a ref that follows a branch, and for none.
    """
    given = ref or {}
    branch = str(given.get("branch") or "")
    return str(given.get("commit") or "") or (
        branch.removeprefix(PIN_BRANCHES) if branch.startswith(PIN_BRANCHES) else ""
    )


def as_live(context: StepContext, live: str) -> Desired:
    """Return the cluster that a job brings about where Flux pulls the commit ``live``.

    That is with the pin of the plan, or with the one that Flux has, where the branch contains that and the
    plan did not know it.
    """
    desired, pin = context.desired, context.desired.pin
    if pin is None or pin.tried or live.startswith(TRIED) or live in ("", pin.commit):
        return desired
    known = bool(pin.before) and not context.record.recovering
    if known and (live == pin.before or _contains(context, pin.commit, live)):
        return desired
    return desired.with_pin(replace(pin, commit=live, pulls="")) if _is_on_branch(context, live) else desired


def taken_over(context: StepContext, desired: Desired) -> Pin | None:
    """Return the pin that the record takes over from Flux, None where it has the one of the plan."""
    return desired.pin if desired.pin != context.desired.pin else None


def held_back(context: StepContext, live: str, of: str = "Flux", pin: Pin | None = None) -> Wait | None:
    """Return the wait of a job whose pin would go back from the commit ``live``, None for any other.

    ``pin`` is that of a system, which ``of`` names; without it, that of the cluster.
    """
    pin = pin or as_live(context, live).pin
    if pin is None or live.startswith(TRIED) or live in ("", pin.commit, pin.before):
        return None
    if host_of(pin, context.ports).is_descendant(pin.commit, live):
        return None
    reason = (
        f"{of}: it is pinned to {live[:8]}, which {pin.commit[:8]} does not contain; Flux would delete what "
        "only that commit has"
    )
    required = (
        f"Push a commit that contains {live[:8]}, or move the pin yourself (docs/how-to/move-a-pin.md)."
    )
    return Wait(OBSERVE_SECONDS, reason, action_required=required, open_ended=True)


def unless_forward(context: StepContext, differences: Iterable[str], live: str) -> list[str]:
    """Return the differences of a source, without its ref where the pin goes forward from ``live``."""
    forward = bool(live) and context.desired.pin is not None and held_back(context, live) is None
    return [path for path in differences if not (forward and path.endswith((".ref", ".repositoryRef")))]


def _contains(context: StepContext, commit: str, live: str) -> bool:
    return host_of(context.desired.pin, context.ports).is_descendant(commit, live)


def _is_on_branch(context: StepContext, live: str) -> bool:
    fleet, pin = context.ports.state.fleet(), context.desired.pin
    newest = fleet.planning or fleet.commit
    if pin is not None and pin.source:
        newest = next((known.commit for known in fleet.followed if known.key == pin.source), pin.commit)
    return _contains(context, newest, live)
