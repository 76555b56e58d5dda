"""The seeds of this code hold every rule, and each gives the same trace again."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from simulation.faults.catalog import FAULTS
from simulation.runner import COMMAND
from simulation.simulation import simulate
from tests.simulation.seeds_of_code import ROOT, first_seed, sources

SEEDS, PARTS = 240, 10
"""What one seed in twelve has happens in about twenty of them."""
FIRST = first_seed(sources())
FOUND = (1_100_000_648, 1_100_001_423, 1_100_001_690)
"""A status of a plan that was being carried out, and two that the rules took for broken."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_rule_holds_in_the_seeds_of_this_code(part: int) -> None:
    for seed in range(FIRST + part, FIRST + SEEDS, PARTS):
        result = simulate(seed)
        assert not result.rule, f"{result.message}\n{COMMAND.format(seed=seed)}"


@pytest.mark.parametrize("seed", FOUND)
def test_every_rule_holds_in_seeds_that_once_broke_one(seed: int) -> None:
    result = simulate(seed)
    assert not result.rule, f"{result.message}\n{COMMAND.format(seed=seed)}"


def test_a_change_of_any_file_of_the_code_brings_other_seeds() -> None:
    files = sources()
    assert first_seed(files) == FIRST
    assert first_seed(files[1:]) != FIRST
    assert {path.relative_to(ROOT).parts[0] for path in files} == {"shared", "simulation", "localcloud"}


def trace(seed: int, hash_seed: str) -> bytes:
    """Return the trace of a seed from a process of its own."""
    command = [sys.executable, *COMMAND.format(seed=seed).split()[1:]]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(command, env=environment, capture_output=True, check=True).stdout


def test_a_seed_gives_the_same_trace_in_every_process() -> None:
    first = trace(1, "1")
    assert first.count(b"\n") > 50
    assert trace(1, "2") == first


@pytest.mark.parametrize("fault", FAULTS)
def test_every_rule_holds_with_one_kind_of_fault(fault: str) -> None:
    for seed in range(3):
        result = simulate(seed, only=frozenset({fault}))
        assert not result.rule, result.message
