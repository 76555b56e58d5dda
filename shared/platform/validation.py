"""Whether what Flux applies can be built on every cluster, before it is merged.

Clusters that share an inventory share its problems: each is said once, with the clusters that have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shared.frozen import replace
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.problems import Problem, limited
from shared.language.resolve.repository_layout import cluster_path
from shared.platform.inventory import Inventory, Owner
from shared.sentences import some_of

_NAMED = 5
_PLACED = 50
"""Of how many clusters the line of a field is looked up, which resolves each of them again."""


def problems(fleet: DesiredFleet, inventories: Mapping[str, Inventory]) -> tuple[Problem, ...]:
    """Return what is wrong with the inventories of clusters, by their names."""
    having: dict[Problem, set[str]] = {}
    for inventory, clusters in alike(inventories):
        for owner in inventory.owners.values():
            for problem in owner.problems:
                for placed, concerned in _placed(fleet, owner, problem, clusters):
                    having.setdefault(placed, set()).update(concerned)
    return limited(
        replace(problem, message=f"{problem.message}{_on(clusters, len(inventories))}")
        for problem, clusters in having.items()
    )


def alike(inventories: Mapping[str, Inventory]) -> list[tuple[Inventory, Sequence[str]]]:
    """Return each inventory once, with the clusters that share it."""
    found: dict[int, tuple[Inventory, list[str]]] = {}
    for name, inventory in sorted(inventories.items()):
        found.setdefault(id(inventory), (inventory, []))[1].append(name)
    return [*found.values()]


def _placed(
    fleet: DesiredFleet, owner: Owner, problem: Problem, clusters: Sequence[str]
) -> Iterator[tuple[Problem, Sequence[str]]]:
    """Yield a problem with its place; that of the manifest of a cluster may be in a file of the layers."""
    if problem.file:
        yield problem, clusters
        return
    field = _field(owner, problem.field)
    for number, cluster in enumerate(clusters):
        source = fleet.source(cluster, field) if number < _PLACED else ""
        file, _, line = source.rpartition(":")
        if file:
            yield replace(problem, file=file, line=int(line), field=field), [cluster]
        else:
            yield replace(problem, file=cluster_path(cluster), field=field), [cluster]


def _field(owner: Owner, field: str) -> str:
    """Return the field of a cluster's manifest that is a field of a Kustomization's spec."""
    name = owner.id.name.removeprefix("flux-system-")
    rest = field.removeprefix("spec.")
    if name == "flux-system" and rest == "path":
        return "spec.flux.path"
    return f"spec.flux.kustomizations[{name}].{rest}"


def _on(clusters: set[str], number: int) -> str:
    return "" if len(clusters) == number else f" (on {some_of(sorted(clusters), _NAMED)})"
