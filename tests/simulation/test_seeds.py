"""A thousand fleets live through everything that can go wrong, and each does so in the same way again."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from simulation.faults import FAULTS
from simulation.runner import COMMAND
from simulation.seed import live_through

SEEDS, PARTS = 1000, 10


@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_rule_holds_in_a_thousand_seeds(part: int) -> None:
    for seed in range(part, SEEDS, PARTS):
        result = live_through(seed)
        assert not result.rule, f"{result.words}\n{COMMAND.format(seed=seed)}"


def story(seed: int, hash_seed: str) -> bytes:
    """Return what a process of its own tells of a seed."""
    command = [sys.executable, *COMMAND.format(seed=seed).split()[1:]]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(command, env=environment, capture_output=True, check=True).stdout


def test_a_seed_tells_the_same_story_in_every_process() -> None:
    first = story(1, "1")
    assert first.count(b"\n") > 50
    assert story(1, "2") == first


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_alone_is_lived_through(fault: str) -> None:
    for seed in range(3):
        result = live_through(seed, only=frozenset({fault}))
        assert not result.rule, result.words
