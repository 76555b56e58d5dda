"""A test of the test: the simulation fails soon when a safety rule is removed."""

from __future__ import annotations

import pytest

from simulation.simulation import simulate
from tests.simulation.contest_mutations import CONTEST_MUTATIONS
from tests.simulation.disaster_mutations import DISASTER_MUTATIONS
from tests.simulation.fault_mutations import FAULT_MUTATIONS
from tests.simulation.pull_request_mutations import PULL_REQUEST_MUTATIONS
from tests.simulation.upkeep_mutations import UPKEEP_MUTATIONS
from tests.simulation.view_mutations import VIEW_MUTATIONS
from tests.support.mutations import MUTATIONS, Mutation

MOST_SEEDS = 400
ALL = (
    *MUTATIONS,
    *VIEW_MUTATIONS,
    *FAULT_MUTATIONS,
    *DISASTER_MUTATIONS,
    *UPKEEP_MUTATIONS,
    *PULL_REQUEST_MUTATIONS,
    *CONTEST_MUTATIONS,
)


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
