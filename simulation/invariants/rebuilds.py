"""The rules of lost tables, for an app that knows its clusters by the id of its settings.

"written after a loss": an app wrote to a cluster whose record it had lost, before that cluster was Ready
again, or as git has it but for what Flux cannot apply, or somebody had taken it over.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from localcloud.azure.world.arm_keys import key_of
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.recipes import Step
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.resource_ids import ClusterId
from simulation.invariants.context import FROZEN, Context
from simulation.rule import RuleViolated


@dataclass
class Loss:
    """The clusters that an app owned when its tables were lost ``at``, with their lives."""

    at: datetime
    lives: dict[ClusterId, int]


class RebuildInvariant:
    """Checks what an app does after it has lost its tables."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._losses: dict[str, Loss] = {}

    def at_stake(self, cloud: MemoryCloud) -> Loss:
        """Return what an app loses with its tables, which it still has."""
        azure, fleet = self._context.azure, cloud.ports.config.fleet
        owned = {key: azure.lives[key] for key, owner in azure.owners.items() if owner == fleet}
        return Loss(self._context.loop.clock(), owned)

    def lost(self, cloud: MemoryCloud, loss: Loss) -> None:
        """Note that an app has lost its tables."""
        if cloud.ports.config.installation:
            self._losses[cloud.ports.config.fleet] = loss

    def restored(self, cloud: MemoryCloud) -> None:
        """Note that an app has older tables again: their records know the clusters of their time."""
        self._losses.pop(cloud.ports.config.fleet, None)

    def saved(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Note that a cluster is Ready, or as git has it."""
        fleet = cloud.ports.config.fleet
        loss = self._losses.get(fleet)
        if loss is None:
            return
        key = key_of(record.desired.id)
        wanted = self._context.history(cloud).desired(record.commit).clusters.get(record.name)
        compared = wanted if record.job.step.name is Step.VERIFY else None
        if record.phase is Phase.READY or (
            compared is not None and not self._context.oracle.in_azure(fleet, compared, key)
        ):
            loss.lives.pop(key, None)

    def taken_over(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Note that an operator decided about a cluster."""
        loss = self._losses.get(cloud.ports.config.fleet)
        if loss is not None:
            loss.lives.pop(key_of(record.desired.id), None)

    def accepted(self, kind: str, key: ClusterId, cloud: MemoryCloud) -> None:
        """Check a write that Azure has accepted; what was under way at the loss may have come after it."""
        fleet = cloud.ports.config.fleet
        loss = self._losses.get(fleet)
        if loss is None or kind == "create" or self._context.loop.clock() - loss.at <= FROZEN:
            return
        azure = self._context.azure
        same = azure.owners.get(key) == fleet and loss.lives.get(key) == azure.lives[key]
        if same and not kind.endswith("-group"):
            raise RuleViolated("written after a loss", f"{fleet} does {kind} to {key.name}")
