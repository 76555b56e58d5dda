"""What is simulated without mutations anyway: the first seeds, and some with each kind of fault alone."""

from __future__ import annotations

from simulation.faults.catalog import FAULTS
from tests.simulation.mutations import Mutation

SEEDS = 200
"""What one seed in ten has happens in about twenty of them."""
SEEDS_OF_A_FAULT = 3


def is_simulated(mutation: Mutation) -> bool:
    """Return whether the likely run of a mutation, without it, is one of these."""
    seed, faults, often = mutation.likely_run
    alone = len(faults) == 1 and faults <= FAULTS.keys()
    return not often and seed < (SEEDS_OF_A_FAULT if alone else 0 if faults else SEEDS)
