"""``roadstead wait``: ends when clusters have reached a state, or when time is up."""

from __future__ import annotations

import sys
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import CommandError, NotFound
from cli.fleet_api.commits import PlannedCommit
from cli.fleet_api.polling import polled
from cli.options import Address, cluster_name, commit_id, seconds
from shared.app.api import schema

if TYPE_CHECKING:
    from cli.fleet_api.client import Api

_GOING = ("Deleting", "Releasing", schema.DELETED, schema.RELEASED)
"""The phases of a cluster that is taken away, whatever a plan says."""
SHORTEST = 8
"""Characters of a commit id that distinguish it from all others of a repository."""


class AwaitedState(StrEnum):
    """What to wait for."""

    READY = "ready"
    DELETED = "deleted"


def wait(
    address: Address,
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Clusters.")],
    *,
    state: Annotated[
        AwaitedState,
        typer.Option("--for", metavar="STATE", help="ready or deleted, which a released cluster is too."),
    ] = AwaitedState.READY,
    commit: Annotated[
        str,
        typer.Option(
            "--commit",
            metavar="COMMIT",
            help="First wait until this commit is planned; 8 characters or more.",
        ),
    ] = "",
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="DURATION", help="When to give up, such as 90s, 30m or 2h.")
    ] = "30m",
) -> None:
    """Wait until clusters are ready or deleted.

    Ready means that the newest accepted generation was verified; with --commit, the generation that the plan
    of that commit, or of a later one, gives the cluster. The command fails when the time is up, and at once
    for a cluster whose job has failed, or for which the plan does not do what the commit requests. An app
    that has answered once, and then does not for a while, is waited for too.
    """
    left = {cluster_name(name): "" for name in names}
    wanted = commit_id("--commit", commit, shortest=SHORTEST) if commit else ""
    until = time.monotonic() + seconds(timeout)
    with address.connect() as api:
        planned, unanswered = PlannedCommit(api, wanted) if wanted else None, ""
        for failed in polled(lambda: _look(api, left, state, planned), until):
            if failed and str(failed) != unanswered:
                _report(str(failed))
            unanswered = str(failed or "")
            if not left:
                return
        waiting = "; ".join(f"{name}: {now}" for name, now in left.items())
        now = "; ".join(filter(None, (waiting, unanswered)))
        raise CommandError(f"not {state.value} after {_with_unit(timeout)}: {now}")


def _look(api: Api, left: dict[str, str], state: AwaitedState, planned: PlannedCommit | None) -> None:
    """Report how far the clusters are that are ``left``, and remove those that have the state."""
    plan = planned.plan() if planned else None
    for name in list(left):
        if planned and plan is None:
            reached, now = False, planned.waiting
        else:
            reached, now = _progress(api, name, state, plan)
        if reached:
            _report(now)
            del left[name]
        elif now != left[name]:
            _report(f"{name}: {now}")
            left[name] = now


def _with_unit(duration: str) -> str:
    return f"{duration} s" if duration[-1].isdigit() else duration


def _report(text: str) -> None:
    from rich.text import Text

    from cli.terminal.output import echo
    from cli.text import line

    echo(Text(line(text)))
    sys.stdout.flush()


def _progress(api: Api, name: str, state: AwaitedState, plan: schema.PlanView | None) -> tuple[bool, str]:
    """Return whether a cluster has the state, and what to report; raise CommandError if it never will.

    ``plan`` is to be carried out before; without one, what the cluster has accepted counts.
    """
    item = _item(plan, name) if state is AwaitedState.READY else _found(plan, name)
    try:
        view = api.cluster(name)
    except NotFound as error:
        return state is AwaitedState.DELETED, str(error)
    if state is AwaitedState.DELETED and view["phase"] == schema.RELEASED:
        return True, f"{name} is released: what runs there stays"
    if state is AwaitedState.DELETED and view["phase"] in (schema.DELETED, schema.NOT_CREATED):
        return True, f"{name} is deleted"
    partial = (
        item is not None and state is AwaitedState.READY and item["action"] == "update" and item["cause"]
    )
    if item and (item["notCarriedOut"] or partial) and view["phase"] not in _GOING:
        raise CommandError(f"{name}: {item['action']}: {item['reason']}; see roadstead why {name}")
    if view["phase"] == schema.NOT_CREATED:
        raise CommandError(f"{name} is {view['phase']}; see roadstead why {name}")
    if "generation" not in view:
        return False, view["phase"]
    if item is None or view["generation"] >= item["generation"]:
        if view["phase"] in ("Failed", "Exempt"):
            raise CommandError(f"{name} is {view['phase']}; see roadstead why {name}")
        later = item is not None and item["lags"]  # its stage gets an earlier commit first
        verified = view["generation"] == view["observedGeneration"] and not (view["trial"] or later)
        if state is AwaitedState.READY and view["phase"] == "Ready" and verified:
            commit = (plan or view)["commit"][:8]
            return True, f"{name} is Ready at generation {view['generation']} (commit {commit})"
    return False, _waiting(api, view)


def _waiting(api: Api, view: schema.ClusterView) -> str:
    """Return how far a cluster is, and who must act where it does not go on by itself."""
    told = [": ".join(filter(None, (view["phase"], view["reason"])))]
    plan = view["plan"]
    held = plan is not None and (plan["notCarriedOut"] or plan["action"] == "update")
    if view["nextCheckAt"] is not None or not held:
        return "; ".join(filter(None, (*told, view["actionRequired"])))
    why = api.why(view["name"])
    if plan and plan["notCarriedOut"]:
        told.append(f"{'needs approval' if plan['needsApproval'] else plan['action']}: {plan['cause']}")
    told.append(why["rollout"]["waits"] if why["rollout"] else "")
    return "; ".join(filter(None, (*told, why["suggestedAction"])))


def _item(plan: schema.PlanView | None, name: str) -> schema.PlanItem | None:
    """Return what a plan does to a cluster, None without a plan; raise CommandError if it has no cluster."""
    if plan is None:
        return None
    item = _found(plan, name)
    if item is None or item["action"] in ("delete", "release"):
        raise CommandError(f"commit {plan['commit'][:8]} has no cluster {name}")
    return item


def _found(plan: schema.PlanView | None, name: str) -> schema.PlanItem | None:
    """Return what a plan does to a cluster, None without a plan, and for one that it does not have."""
    return next((item for item in plan["items"] if item["cluster"] == name), None) if plan else None
