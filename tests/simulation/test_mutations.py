"""A test of the test: the simulation fails soon when a safety rule is removed."""

from __future__ import annotations

import pytest

from tests.simulation.all_mutations import ALL, MOST_SEEDS
from tests.simulation.mutations import Mutation
from tests.simulation.without_mutations import is_simulated

LIKELY_RUNS = {mutation.likely_run: mutation for mutation in ALL if not is_simulated(mutation)}
"""The others hold every rule in ``test_seeds``."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutation", ALL, ids=lambda mutation: mutation.remove.__name__)
def test_the_simulation_fails_when(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation.remove(monkeypatch)
    for seed in mutation.seeds(MOST_SEEDS):
        violated = mutation.violated(seed)
        if violated:
            assert violated in mutation.rules
            if seed != mutation.likely:
                monkeypatch.undo()
                assert not mutation.violated(seed)
            return
    pytest.fail(f"{MOST_SEEDS} seeds passed without the rule")


@pytest.mark.parametrize("mutation", LIKELY_RUNS.values(), ids=lambda mutation: mutation.remove.__name__)
def test_the_seed_that_finds_a_mutation_holds_every_rule_without_it(mutation: Mutation) -> None:
    assert not mutation.violated(mutation.likely)
