"""A test of the test: a rule of safety that is taken away is missed by the simulation, and soon."""

from __future__ import annotations

import pytest

from simulation.seed import live_through
from tests.simulation.mutations import MUTATIONS, Mutation

MOST_SEEDS = 400


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.take_away.__name__)
def test_the_simulation_fails_when(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation.take_away(monkeypatch)
    faults = frozenset(mutation.faults.split())
    for seed in range(MOST_SEEDS):
        tripped = live_through(seed, only=faults).rule
        if tripped:
            assert tripped in mutation.rules
            monkeypatch.undo()
            assert not live_through(seed, only=faults).rule
            return
    pytest.fail(f"{MOST_SEEDS} seeds held without it")
