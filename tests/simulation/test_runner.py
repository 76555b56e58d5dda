"""What ``python -m simulation`` shows: progress, and the commands that repeat failures, within 80 columns."""

from __future__ import annotations

import io
from collections import Counter

import pytest

from localcloud.common.clock import ManualClock
from simulation.runner import COLUMNS, ProgressLine, SeedTally
from simulation.simulation import Result


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def tally(*rules: str) -> SeedTally:
    """Return the results of one seed for each rule that it broke, "" for none."""
    found = SeedTally()
    kinds = Counter({f"a kind of fault {number}": number for number in range(1, 9)})
    for seed, rule in enumerate(rules):
        found.add(Result(seed, rule, "", seconds=86400.0, events=10, faults=kinds, actions=kinds))
    return found


def test_the_summary_has_the_command_of_each_failure() -> None:
    *_, header, first, second = tally("", "drift", "secret").summary(1.0)
    assert header == "2 of 3 seeds failed. Each is repeated by its command:"
    assert [first.split()[4], second.split()[4]] == ["1", "2"]
    assert list(tally("").summary(1.0))[-1] == "no rule was broken"


@pytest.mark.parametrize("out", [io.StringIO(), Terminal()], ids=["pipe", "terminal"])
def test_every_line_fits_into_80_columns(out: io.StringIO) -> None:
    clock = ManualClock()
    progress = ProgressLine(out, 1_000_000, lambda: clock().timestamp())
    found = tally("drift", "")
    progress.line("seed 1 FAILED: " + "a long message " * 20)
    clock.advance(10)
    progress.update(found)
    for text in found.summary(progress.took):
        progress.line(text)
    shown = out.getvalue().replace("\r", "\n").splitlines()
    assert "2 of 1,000,000 seeds, 0.2 a second, 4,999,990 s left, 1 failed" in map(str.rstrip, shown)
    assert max(map(len, shown)) <= COLUMNS
