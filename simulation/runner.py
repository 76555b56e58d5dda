"""Runs seeds: many on all cores with progress, or one with its trace."""

from __future__ import annotations

import argparse
import gc
import logging
import multiprocessing
import os
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

from shared.process_memory import collect_rarely
from simulation.simulation import Result, simulate

COMMAND = "python -m simulation --seed {seed} --verbose"
CHUNK = 20
EVERY_SECONDS = 5.0
COLUMNS = 80


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
    return 1 if run(seeds, processes=options.processes, out=sys.stdout).failures else 0


def _one(seed: int, *, verbose: bool) -> int:
    result = simulate(seed, verbose=verbose)
    print(*result.trace, sep="\n")
    print(f"seed {seed}: {result.message or 'no rule was broken'}")
    return 1 if result.rule else 0


class SeedTally:
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
        if not self.failures:
            yield "no rule was broken"
            return
        yield f"{len(self.failures):,} of {self.seeds:,} seeds failed. Each is repeated by its command:"
        for failure in sorted(self.failures, key=lambda result: result.seed):
            yield f"  {COMMAND.format(seed=failure.seed)}"


def _counts(found: Counter[str]) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in sorted(found.items()))


class ProgressLine:
    """What a run says: a terminal has one line that changes, every other output a line now and then."""

    def __init__(self, out: TextIO, seeds: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._out, self._seeds, self._clock = out, seeds, clock
        self._began = self._shown = clock()

    @property
    def took(self) -> float:
        """The seconds since the run began."""
        return self._clock() - self._began

    def update(self, tally: SeedTally) -> None:
        """Show how far the run is, if it has not been shown for some seconds."""
        if self._clock() - self._shown < EVERY_SECONDS:
            return
        self._shown = self._clock()
        rate = tally.seeds / self.took
        left = (self._seeds - tally.seeds) / rate
        text = f"{tally.seeds:,} of {self._seeds:,} seeds, {rate:.1f} a second, {left:,.0f} s left"
        if tally.failures:
            text += f", {len(tally.failures):,} failed"
        self._out.write(f"\r{text:<{COLUMNS - 1}}" if self._out.isatty() else f"{text}\n")
        self._out.flush()

    def line(self, text: str) -> None:
        """Write a line of its own, wrapped."""
        if self._out.isatty():
            self._out.write("\r" + " " * (COLUMNS - 1) + "\r")
        for whole in text.splitlines():
            wrapped = textwrap.wrap(whole, COLUMNS, subsequent_indent="  ", break_long_words=False)
            self._out.writelines(f"{part}\n" for part in wrapped)
        self._out.flush()


def run(seeds: range, *, processes: int, out: TextIO) -> SeedTally:
    """Run seeds in several processes; show the progress, each failure, and a summary."""
    progress, tally = ProgressLine(out, len(seeds)), SeedTally()
    with multiprocessing.get_context("spawn").Pool(processes, initializer=_begin) as pool:
        for result in pool.imap_unordered(simulate, seeds, chunksize=CHUNK):
            tally.add(result)
            if result.rule:
                progress.line(f"seed {result.seed} FAILED: {result.message}")
            progress.update(tally)
    for line in tally.summary(progress.took):
        progress.line(line)
    return tally


def _begin() -> None:
    """Prepare a process: nothing is logged, and no import is looked at whenever garbage is collected."""
    logging.disable(logging.CRITICAL)
    gc.freeze()
    collect_rarely()
