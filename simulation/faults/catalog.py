"""All faults, by name. A new fault needs a function and a line in the table of its topic."""

from __future__ import annotations

from collections.abc import Mapping

from simulation.faults import calls, disasters, instances, services
from simulation.faults.calls import Fault

FAULTS: Mapping[str, Fault] = {**calls.FAULTS, **services.FAULTS}
"""Those of calls."""
KINDS = (*FAULTS, *instances.FAULTS, *disasters.FAULTS)
"""Those of calls, of instances and of whole tables."""
