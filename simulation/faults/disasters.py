"""What happens to the tables as a whole, between two events: an older backup is restored, or all are lost.

Nobody restores tables while a function writes to them: docs/how-to/recover-from-a-disaster.md. What the
tables knew of a later moment is lost, and Azure, the queues and git stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from localcloud.tables.memory_state import records_in
from simulation.faults.calls import Scene
from simulation.observed_ports import ObservedState
from simulation.operators import Operators

LOST = "tables-lost"
YOUNGEST = timedelta(seconds=150)
"""How old a backup is at least: a nearer one cannot be distinguished from clocks that differ."""


def _restore(state: ObservedState, scene: Scene) -> bool:
    older = [tables for at, tables in state.backups if scene.loop.clock() - at > YOUNGEST]
    if not older:
        return False
    with_tombstone = [tables for tables in older if any(record.deleting for record in records_in(tables))]
    state.restore(scene.loop.chance.choice(with_tombstone or older))
    return True


def _lose(state: ObservedState, _: Scene) -> bool:
    state.lose()
    return True


FAULTS: Mapping[str, Callable[[ObservedState, Scene], bool]] = {
    "tables-restored": _restore,
    LOST: _lose,
}
"""By name: what it does to the tables, and whether there was something to do."""


def strike(kind: str, operators: Operators, scene: Scene) -> bool:
    """Let a disaster happen to a fleet; return whether it did: not while a function runs."""
    loop, state = scene.loop, operators.cloud.state
    if loop.peaceful or loop.is_running:
        return False
    if not isinstance(state, ObservedState) or not FAULTS[kind](state, scene):
        return False
    loop.log("%s: %s", operators.fleet, kind)
    return True
