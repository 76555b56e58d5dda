"""``roadstead plan --live``: the files against Azure as it is now, which the app reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from cli.errors import CommandError, ExitCode
from cli.fleet_api.client import Api
from cli.fleet_api.recorded import AcceptedSpec, recorded
from cli.terminal.cluster_table import indented
from cli.terminal.drift_view import diff_lines, left_alone
from cli.terminal.output import Output, show
from cli.terminal.plan_view import chosen_items
from cli.text import line
from cli.worktree import Worktree
from shared.app.api import schema
from shared.azure.changes.writes import is_stopped
from shared.azure.differences import Difference, drift_of
from shared.azure.drift.yaml_diff import Sides
from shared.azure.node_pools.body import keys_to_remove
from shared.azure.ownership import OwnerTags
from shared.azure.running_versions import lowered_versions
from shared.cluster.divergence.drift import value_text
from shared.json_tree import Json
from shared.language.desired import Desired
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.plan.make_plan import make_plan
from shared.sentences import many

MOST_LIVE = 100
"""So many clusters are read from Azure by one command."""
_PROVISIONING, _SLEEPING = "Provisioning", "Sleeping"


@dataclass(frozen=True)
class LiveComparison:
    """A cluster: in which fields Azure differs from the files, or why that is not known.

    ``exists`` is whether Azure has it. A cluster without ``differences`` is as the files have it, unless
    ``problem`` says why it could not be read, or ``waits`` why there is nothing to compare yet.
    """

    name: str
    phase: str
    exists: bool
    differences: Sequence[Difference] = ()
    problem: str = ""
    waits: str = ""


def compare_live(
    clusters: Sequence[Desired], documents: Mapping[str, Mapping[str, Any]], api: Api
) -> Iterator[LiveComparison]:
    """Yield how each cluster is in Azure now; ``documents`` are the clusters as recorded."""
    desired = {cluster.name: cluster for cluster in clusters}
    names = list(desired)
    for first in range(0, len(names), schema.LIVE_CLUSTERS):
        part = ",".join(names[first : first + schema.LIVE_CLUSTERS])
        view = api.read(schema.Live, "live", clusters=part)
        for found in view["clusters"]:
            yield _compared(desired[found["name"]], documents[found["name"]], found, view)


def _compared(
    desired: Desired, document: Mapping[str, Any], found: schema.LiveCluster, view: schema.Live
) -> LiveComparison:
    name, live = found["name"], found["live"]
    if found["problem"]:
        return LiveComparison(name, found["phase"], exists=True, problem=found["problem"])
    if live is None:
        waits = "it is not created yet" if found["phase"] == _PROVISIONING else ""
        return LiveComparison(name, found["phase"], exists=False, waits=waits)
    owner = OwnerTags(view["fleet"], view["repository"], name, view["previousRepository"])
    if not owner.owns(live):
        problem = f"its tags are not this fleet's: {owner.describe_tags(live)}"
        return LiveComparison(name, found["phase"], exists=True, problem=problem)
    if waits := _waits(live, found["phase"]):
        return LiveComparison(name, found["phase"], exists=True, waits=waits)
    wanted = desired.document()
    compared = replace(
        desired,
        removed_keys=keys_to_remove(
            document, wanted, {pool: tuple(keys) for pool, keys in found["removed"].items()}
        ),
        lowered=lowered_versions(document["spec"], wanted["spec"], found["lowered"]),
    )
    drift = drift_of(compared, owner, live, found["unmanaged"])
    return LiveComparison(name, found["phase"], exists=True, differences=drift)


def _waits(live: Json, phase: str) -> str:
    """Return why a cluster is not to be compared yet, "" for one that is."""
    if phase == _SLEEPING:
        return "it sleeps"
    if live["properties"].get("provisioningState") == "Creating":
        return "Azure is creating it"
    return "it is stopped in Azure" if is_stopped(live) else ""


MISSING = "Azure has no such cluster"
_READY = "Ready"


def table(
    found: Sequence[LiveComparison], others: Mapping[str, str], problems: Sequence[str]
) -> RenderableType:
    """Return the differences for people; ``others`` are clusters that are not compared, and why."""
    differ = sum(differs(comparison) for comparison in found)
    verb = "differs" if differ == 1 else "differ"
    compared = sum(not comparison.problem for comparison in found)
    missed = len(found) - compared + len(others)
    head = f"Compared with Azure now: {differ} of {many(compared, 'cluster')} {verb}"
    head += f", {missed} not compared" if missed else ""
    parts: list[RenderableType] = [Text(head, style="bold")]
    if problems:
        parts += [Text("\nInvalid manifests:", style="bold red")]
        parts += [indented(Text(line(problem)), 2) for problem in problems]
    for comparison in found:
        parts += _cluster(comparison)
    if others:
        parts.append(Text("\nNot compared:", style="yellow"))
        parts += [indented(Text(f"{name}: {reason}"), 2) for name, reason in others.items()]
    return Group(*parts)


def differs(comparison: LiveComparison) -> bool:
    """Return whether Azure certainly has the cluster in another way, or not at all."""
    return not comparison.problem and (not comparison.exists or bool(comparison.differences))


def _cluster(comparison: LiveComparison) -> list[RenderableType]:
    if comparison.problem:
        return [
            Text(""),
            Text(f"{comparison.name} could not be read: {line(comparison.problem)}", style="red"),
        ]
    if not comparison.exists:
        return [Text(""), Text(f"{comparison.name}: {MISSING}", style="red")]
    if not comparison.differences:
        return []
    parts: list[RenderableType] = [Text(""), *diff_lines(comparison.name, _sides(comparison))]
    parts += [
        indented(Text(f"{line(other.path)}: {left_alone(other.path)}", style="dim"), 2)
        for other in comparison.differences
        if other.left_alone
    ]
    if comparison.phase != _READY:
        more = f"the cluster is {comparison.phase}: roadstead why {comparison.name} says more"
        parts.append(indented(Text(more, style="yellow"), 2))
    return parts


def _sides(comparison: LiveComparison) -> list[Sides]:
    return [
        Sides(difference.path, value_text(difference.git), value_text(difference.live))
        for difference in comparison.differences
    ]


def as_json(
    fleet: str, found: Sequence[LiveComparison], others: Mapping[str, str], problems: Sequence[str]
) -> dict[str, Any]:
    """Return the differences for scripts, each value as JSON, as ``GET /api/drift`` has them."""
    return {
        "fleet": fleet,
        "against": "Azure",
        "problems": list(problems),
        "clusters": [
            {
                "name": comparison.name,
                "phase": comparison.phase,
                "exists": comparison.exists,
                "problem": comparison.problem,
                "fields": [
                    {
                        "path": difference.path,
                        "git": value_text(difference.git),
                        "live": value_text(difference.live),
                        "leftAlone": difference.left_alone,
                    }
                    for difference in comparison.differences
                ],
            }
            for comparison in found
        ],
        "notCompared": [{"name": name, "reason": reason} for name, reason in others.items()],
    }


def show_live(
    tree: Worktree, names: list[str], api: Api, output: Output, *, report_changes: bool
) -> ExitCode:
    """Show how the clusters of the files are in Azure now; return the exit code."""
    against = recorded(tree, api)
    desired = against.pins(tree.resolve(), tree)
    known = against.clusters or {}
    planned = make_plan("", desired, known, now=datetime.now(UTC), unreadable=against.unreadable)
    chosen = [item.cluster for item in chosen_items(planned, names)]
    others = {name: reason for name in chosen if (reason := _not_compared(name, desired, known))}
    compared = [desired.clusters[name] for name in chosen if name not in others]
    if len(compared) > MOST_LIVE:
        raise CommandError(
            f"--live reads at most {MOST_LIVE} clusters, one by one, and these are {len(compared)}; "
            "name some with --cluster, or see roadstead drift"
        )
    read = list(compare_live(compared, {name: cluster.document for name, cluster in known.items()}, api))
    others |= {comparison.name: comparison.waits for comparison in read if comparison.waits}
    found = [comparison for comparison in read if not comparison.waits]
    show(
        as_json(tree.fleet, found, others, planned.problems),
        output,
        table=lambda wide: table(found, others, planned.problems),  # noqa: ARG005
        names=lambda: (f"cluster/{comparison.name}" for comparison in found if differs(comparison)),
    )
    if planned.problems or any(comparison.problem for comparison in found):
        return ExitCode.FAILED
    return ExitCode.CHANGES if report_changes and any(map(differs, found)) else ExitCode.OK


def _not_compared(name: str, desired: DesiredFleet, known: Mapping[str, AcceptedSpec]) -> str:
    """Return why a cluster is not compared with Azure, "" where it is."""
    if name not in desired.clusters:
        return "its manifest is invalid" if name in desired.invalid else "the files do not have it"
    if name not in known:
        return "it is not recorded yet: a push creates or adopts it"
    return "it is being deleted" if known[name].deleting else ""
