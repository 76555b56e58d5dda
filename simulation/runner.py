"""Runs seeds: many on all cores with progress, or one with its trace."""

from __future__ import annotations

import argparse
import gc
import logging
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from simulation.simulation import Result, simulate

COLLECTED = 50_000
"""Garbage is collected when so many more objects were created than freed: a seed makes few cycles."""
COMMAND = "python -m simulation --seed {seed} --verbose"
CHUNK = 20
EVERY_SECONDS = 5.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the seeds of the command line; return 1 when a rule did not hold."""
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds to run (1000)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (0)")
    parser.add_argument("--seed", type=int, help="run this one alone")
    parser.add_argument("--verbose", action="store_true", help="with --seed: print the trace, event by event")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="how many at once")
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    if options.seed is not None:
        return _one(options.seed, verbose=options.verbose)
    seeds = range(options.first, options.first + options.seeds)
    return 1 if run(seeds, processes=options.processes, report=print).failures else 0


def _one(seed: int, *, verbose: bool) -> int:
    result = simulate(seed, verbose=verbose)
    print(*result.trace, sep="\n")
    print(f"seed {seed}: {result.message or 'no rule was broken'}")
    return 1 if result.rule else 0


class Tally:
    """The results of many seeds, added up."""

    def __init__(self) -> None:
        self.seeds = self.events = 0
        self.seconds = 0.0
        self.faults: Counter[str] = Counter()
        self.actions: Counter[str] = Counter()
        self.failures: list[Result] = []

    def add(self, result: Result) -> None:
        """Add a result."""
        self.seeds += 1
        self.events += result.events
        self.seconds += result.seconds
        self.faults += result.faults
        self.actions += result.actions
        if result.rule:
            self.failures.append(result)

    def summary(self, took: float) -> Iterable[str]:
        """Yield the lines of the summary."""
        days = f"{self.seconds / 86400:,.1f} days of virtual time"
        yield f"{self.seeds:,} seeds in {took:.1f} s: {days}, {self.events:,} events"
        yield f"{self.faults.total():,} faults: {_counts(self.faults)}"
        yield f"{self.actions.total():,} actions: {_counts(self.actions)}"
        yield "no rule was broken" if not self.failures else f"{len(self.failures):,} seeds failed"


def _counts(found: Counter[str]) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in sorted(found.items()))


def run(seeds: range, *, processes: int, report: Callable[[str], object]) -> Tally:
    """Run seeds in several processes and report the progress."""
    began = reported = time.monotonic()
    tally = Tally()
    with multiprocessing.get_context("spawn").Pool(processes, initializer=_begin) as pool:
        for result in pool.imap_unordered(simulate, seeds, chunksize=CHUNK):
            tally.add(result)
            if result.rule:
                report(f"seed {result.seed} FAILED: {result.message}\n  {COMMAND.format(seed=result.seed)}")
            now = time.monotonic()
            if now - reported >= EVERY_SECONDS:
                reported, rate = now, tally.seeds / (now - began)
                left = (len(seeds) - tally.seeds) / rate
                report(f"{tally.seeds:,} of {len(seeds):,} seeds, {rate:.0f} a second, {left:.0f} s left")
                sys.stdout.flush()
    for line in tally.summary(time.monotonic() - began):
        report(line)
    return tally


def _begin() -> None:
    """Prepare a process: nothing is logged, and no import is looked at whenever garbage is collected."""
    logging.disable(logging.CRITICAL)
    gc.freeze()
    gc.set_threshold(COLLECTED)
