"""A test of the test: the simulation fails soon when a safety rule is removed."""

from __future__ import annotations

import pytest

from simulation.simulation import simulate
from tests.simulation.all_mutations import ALL, MOST_SEEDS
from tests.support.mutations import Mutation


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutation", ALL, ids=lambda mutation: mutation.remove.__name__)
def test_the_simulation_fails_when(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation.remove(monkeypatch)
    faults = frozenset(mutation.faults.split()) or None
    for seed in range(MOST_SEEDS):
        violated = simulate(seed, only=faults).rule
        if violated:
            assert violated in mutation.rules
            monkeypatch.undo()
            assert not simulate(seed, only=faults).rule
            return
    pytest.fail(f"{MOST_SEEDS} seeds passed without the rule")
