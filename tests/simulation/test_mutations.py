"""A test of the test: the simulation fails soon when a safety rule is removed, and only then.

Each commit tries a sample of the mutations; ``make deep`` tries all.
"""

from __future__ import annotations

import pytest

from tests.simulation.all_mutations import ALL, MOST_SEEDS
from tests.simulation.mutations import Mutation
from tests.support.sample import sample

MUTATIONS = 1


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "mutation", sample("mutations", ALL, MUTATIONS), ids=lambda mutation: mutation.remove.__name__
)
def test_the_simulation_fails_when(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation.remove(monkeypatch)
    others = set[str]()
    for seed in mutation.seeds(MOST_SEEDS):
        rule = mutation.violated(seed)
        if rule in mutation.rules:
            monkeypatch.undo()
            assert not mutation.violated(seed), f"seed {seed}"
            return
        others.add(rule)
    broken = ", ".join(sorted(others - {""})) or "nothing"
    pytest.fail(f"{MOST_SEEDS} seeds do not break {' or '.join(sorted(mutation.rules))}, but {broken}")


def test_every_mutation_removes_something_that_is_there() -> None:
    for mutation in ALL:
        with pytest.MonkeyPatch.context() as patch:
            mutation.remove(patch)
