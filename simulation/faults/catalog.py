"""All faults, by name. A new fault needs a function and a line in the table of its topic."""

from __future__ import annotations

import random
from collections.abc import Mapping

from simulation.actors import (
    channels,
    checks,
    contributors,
    large_records,
    lost_webhooks,
    reviewers,
    second_app,
    sweeps,
)
from simulation.faults import calls, disasters, instances, services
from simulation.faults.calls import Fault

FAULTS: Mapping[str, Fault] = {**calls.FAULTS, **services.FAULTS}
"""Those of calls."""
KINDS = (*FAULTS, *instances.FAULTS, *disasters.FAULTS)
"""Those of calls, of instances and of whole tables."""
RARE: Mapping[str, float] = {
    contributors.KIND: 0.1,
    second_app.KIND: 0.06,
    large_records.KIND: 0.08,
    reviewers.KIND: 0.08,
    sweeps.KIND: 0.08,
    checks.KIND: 0.08,
    lost_webhooks.KIND: 0.08,
    channels.KIND: 0.08,
}
"""Who else acts, each in this part of all seeds."""


def rare_kinds(seed: int) -> frozenset[str]:
    """Return who else acts in a seed; drawn from a stream of its own."""
    chance = random.Random(f"{seed} rare kinds")  # noqa: S311
    return frozenset(kind for kind, part in RARE.items() if chance.random() < part)
