"""The strategy of a rollout as values, and as the YAML of fleet.yaml. Numbers are numbers of clusters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StagedGroup:
    """A group: ``size`` clusters, 0 for all others, of which ``most`` change at a time."""

    size: int
    most: int
    budget: int
    soak: int = 0


@dataclass(frozen=True)
class StagedStage:
    """A stage with the clusters of these names; ``approval``: somebody must let it begin."""

    name: str
    clusters: tuple[str, ...]
    groups: tuple[StagedGroup, ...]
    approval: bool = False


OTHERS = StagedStage("others", (), (StagedGroup(1, 1, 1), StagedGroup(0, 1, 1)))
"""The clusters of a fleet that no stage selects; it has so few that a fifth of them is one."""
Staging = tuple[StagedStage, ...]


def stage_of(staging: Staging, name: str) -> StagedStage:
    """Return the stage that a cluster is in."""
    return next((stage for stage in staging if name in stage.clusters), OTHERS)


def as_yaml(staging: Staging) -> str:
    """Return the field of fleet.yaml, "" for no rollout."""
    if not staging:
        return ""
    text = "  rollout:\n    stages:\n"
    for stage in staging:
        groups = ", ".join(map(_group, stage.groups))
        select = f"select: {{clusters: [{', '.join(stage.clusters)}]}}"
        approval = ", approval: true" if stage.approval else ""
        text += f"      - {{name: {stage.name}, {select}{approval}, groups: [{groups}]}}\n"
    return text


def _group(group: StagedGroup) -> str:
    size = f'clusters: "{group.size}", ' if group.size else ""
    limits = f'maxConcurrency: "{group.most}", failureBudget: "{group.budget}", soak: {group.soak}s'
    return f"{{{size}{limits}}}"
