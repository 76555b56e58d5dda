"""A test of the test: the simulation fails soon when a safety rule is removed."""

from __future__ import annotations

import pytest

from tests.simulation.all_mutations import ALL, MOST_SEEDS
from tests.simulation.mutations import Mutation


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutation", ALL, ids=lambda mutation: mutation.remove.__name__)
def test_the_simulation_fails_when(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation.remove(monkeypatch)
    for seed in mutation.seeds(MOST_SEEDS):
        violated = mutation.violated(seed)
        if violated:
            assert violated in mutation.rules
            monkeypatch.undo()
            assert not mutation.violated(seed)
            return
    pytest.fail(f"{MOST_SEEDS} seeds passed without the rule")
