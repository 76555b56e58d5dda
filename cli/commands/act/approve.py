"""``roadstead approve`` and ``accept``: show what would happen, ask, and have exactly that done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from cli.errors import ApiError, UsageError
from cli.fleet_api.commits import whole_commit
from cli.options import Address, Reason, Yes, cluster_name, commit_id
from cli.terminal.cluster_table import indented
from cli.terminal.output import confirm, echo
from cli.text import line
from shared.app.api import schema
from shared.sentences import many

if TYPE_CHECKING:
    from cli.fleet_api.client import Api


def approve(
    address: Address,
    commit: Annotated[
        str, typer.Argument(metavar="COMMIT", help="The commit of the plan, or its first characters.")
    ] = "",
    *,
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="NAME", help="Approve the correction of this cluster's drift.")
    ] = "",
    reason: Reason = "",
    yes: Yes = False,
) -> None:
    """Approve the deletes and releases of a plan, or a correction of drift: exactly what is shown.

    A later commit, or other values in Azure, need a new approval.
    """
    if bool(commit) == bool(cluster):
        raise UsageError("give the COMMIT of a plan, or the cluster of a correction with --cluster NAME")
    prefix, name = commit_id("COMMIT", commit) if commit else "", cluster_name(cluster) if cluster else ""
    with address.connect() as api:
        if name:
            _approve_correction(api, name, reason, yes=yes)
            return
        plan = _find(api, prefix)
        names = _needs_approval(plan)
        echo(_described(plan))
        confirm(_question(plan), "nothing was approved", yes=yes)
        body = {"clusters": names, "reason": reason}
        api.act(schema.Receipt, f"plans/{plan['commit']}/approve", body)
    echo("Approved. Watch it with roadstead status --watch")


def _approve_correction(api: Api, name: str, reason: str, *, yes: bool) -> None:
    from cli.terminal.drift_view import drift

    view = api.drift(name)
    found = next((cluster for cluster in view["clusters"] if cluster["needsApproval"]), None)
    if found is None:
        raise ApiError(f"no correction of {name} needs approval; roadstead drift {name} shows what differs")
    echo(drift(view, name, datetime.now(UTC)))
    confirm("Write git's values?", "nothing was approved", yes=yes)
    body = {"correction": found["needsApproval"], "reason": reason}
    api.act(schema.Receipt, f"clusters/{name}/approve", body)
    echo(f"Approved. Watch it with roadstead status {name} --watch")


def _find(api: Api, commit: str) -> schema.PlanView:
    """Return the plan whose commit begins with these characters; raise ApiError for none or several."""
    return api.plan(whole_commit(api, commit))


def _needs_approval(plan: schema.PlanView) -> Sequence[str]:
    """Return the deletes that can be approved; raise ApiError when there are none, or no longer."""
    names, commit = plan["needsApproval"], plan["commit"][:8]
    if not names:
        raise ApiError(f"nothing in the plan of {commit} needs approval")
    if not plan["howToApprove"]:
        raise ApiError(f"a newer commit than {commit} is planned; see roadstead plans for what to approve")
    return names


def _question(plan: schema.PlanView) -> str:
    """Return the question that is true of what an approval does."""
    kept = [item["releases"] for item in plan["items"] if item["needsApproval"]]
    if all(kept):
        return "Release all of this?"
    return "Delete and release all of this?" if any(kept) else "Delete all of this?"


def _described(plan: schema.PlanView) -> RenderableType:
    """Return what an approval deletes or releases, and why it needs one."""
    items = sorted((item for item in plan["items"] if item["needsApproval"]), key=lambda item: item["reason"])
    lost = [item for item in items if item["removal"] == "loss"]
    of_systems = [item for item in items if item.get("retainedSystems") and item not in lost]
    released = [item for item in items if item["releases"]]
    deleted = [item for item in items if item not in (*of_systems, *released, *lost)]
    named, parts = f"plan of {plan['commit'][:8]}", list[RenderableType]()
    for found, style, does in (
        (deleted, "bold red", f"The {named} deletes {{}}, and everything that runs there:"),
        (released, "bold", f"The {named} releases {{}} outside Azure; what runs there stays:"),
        (of_systems, "bold red", f"The {named} deletes namespaces on {{}}, and everything in them:"),
        (lost, "bold red", f"With the {named} Flux deletes what no commit brings back, on {{}}:"),
    ):
        if found:
            parts.append(Text(does.format(many(len(found), "cluster"))))
            parts += _grouped(found, style)
    return Group(*parts)


def _grouped(items: Sequence[schema.PlanItem], style: str) -> Iterator[RenderableType]:
    """Yield the clusters with one reason, and the reason once."""
    for reason, same in groupby(items, key=lambda item: item["reason"]):
        yield from (Text(f"  {item['cluster']}", style=style) for item in same)
        yield indented(Text(line(reason), style="dim"), 4)


def accept(
    address: Address,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A cluster to which somebody added something.")],
    fields: Annotated[
        list[str] | None,
        typer.Argument(metavar="FIELD", help="A field as roadstead drift names it; else all of them."),
    ] = None,
    *,
    reason: Reason = "",
    yes: Yes = False,
) -> None:
    """Accept what somebody added to a cluster in Azure: exactly what is shown.

    It is reported again once Azure has another value.
    """
    from cli.terminal.drift_view import drift

    name = cluster_name(name)
    with address.connect() as api:
        view = api.drift(name)
        shown = {field["path"]: field for cluster in view["clusters"] for field in cluster["fields"]}
        chosen = fields or [path for path, field in shown.items() if field["acceptable"]]
        if not chosen:
            raise ApiError(f"nothing that somebody added to {name} is reported; see roadstead drift {name}")
        missing = next((path for path in chosen if path not in shown), None)
        if missing is not None:
            raise ApiError(f"{missing} of {name} does not differ; roadstead drift {name} shows what does")
        echo(drift(view, name, datetime.now(UTC)))
        confirm(f"Accept {', '.join(chosen)}?", "nothing was accepted", yes=yes)
        values = {path: shown[path]["live"] for path in chosen}
        api.act(schema.Receipt, f"clusters/{name}/accept", {"fields": values, "reason": reason})
    echo(f"{many(len(chosen), 'field')} accepted. See roadstead drift {name}")
