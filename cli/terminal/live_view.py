"""The files against Azure as it is now: a diff of YAML for each cluster, and an object for scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from cli.fleet_api.live import LiveComparison
from cli.terminal.cluster_table import indented
from cli.terminal.drift_view import diff_lines, left_alone
from cli.text import line
from shared.azure.drift.yaml_diff import Sides
from shared.cluster.divergence.drift import value_text
from shared.sentences import many

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
