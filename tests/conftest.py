"""Settings of every test."""

from __future__ import annotations

import gc
import io
import logging
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import settings, strategies

from localcloud.azure.wire.identity_server import IdentityServer
from localcloud.common.certificates import Authority
from shared import masking
from shared.masking import Masker
from shared.process_memory import collect_rarely
from tests.support import warm_processes
from tests.support.chromium import lacking
from tests.support.sample import DEEP, SEED, examples, sample

LONG = 3
"""How many of the tests with the marker ``long`` a run has that is not deep."""
WALKS = {"e2e": 4, "browser": 2}
"""And how many of the others of a folder, each of which starts a local cloud or walks through many pages.

Those with the marker ``always`` come on top: together, a browser does in each run what the console is for.
"""
LONGEST = {"simulation", "browser"}
"""The folders whose tests take longest, and so do those with the marker ``long``."""
LIVES = 12
"""And one of so many of the tests of a folder with the marker ``lives``, one at least."""

# As the app and the simulation do; thousands of tests are collected, and nearly all of that stays.
collect_rarely()

# Examples have no deadline: a busy machine is not a defect.
settings.register_profile("untimed", deadline=None, max_examples=examples(100))
settings.load_profile("untimed")

# What the tests import lives as long as they do: there is nothing to collect before they run.
gc.disable()

# A shell that starts the tests in the background has them, and every process below, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let one seed decide the order of the tests, the examples of Hypothesis and the samples.

    Start one process that forks the workers, and warm processes for them, before these are started.
    """
    if config.option.randomly_seed == "default":
        config.option.randomly_seed = SEED
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(SEED)
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        warm_processes.share()
        worker = f"popen//python={sys.executable} {Path(warm_processes.__file__).with_name('warm_worker.py')}"
        config.option.tx = [worker] * len(config.option.tx)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what repeats the order, the examples and the samples of this run."""
    what = "every case" if DEEP else "a sample of what takes long; `make deep` runs every case"
    terminalreporter.write_line(f"SEED={SEED}: {what}")
    if lacking():
        terminalreporter.write_line(f"The console was not tested in a browser: {lacking()}")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Draw the tests of this run; begin half of the workers with those that mostly wait.

    The others use the processor meanwhile, and begin with what takes longest: at the end it would run alone.
    Each worker begins with a part of the list, and takes some of another one's end when it has run out.
    """
    left_out = _left_out(items) - _named(config, items)
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=[*left_out])
    waits, longest, others = list[pytest.Item](), list[pytest.Item](), list[pytest.Item]()
    for item in items:
        folders, is_long = {*item.path.parts}, item.get_closest_marker("long") is not None
        kind = waits if "e2e" in folders else longest if is_long or folders & LONGEST else others
        kind.append(item)
    workers = getattr(config, "workerinput", {"workercount": 1})["workercount"]
    waiting, size, rest = (workers + 1) // 2, len(items) // workers, iter(others)
    computing = max(workers - waiting, 1)
    firsts = [waits[number::waiting] for number in range(waiting)]
    firsts += [longest[number::computing] for number in range(computing)]
    items[:] = [item for first in firsts for item in (*first, *islice(rest, max(size - len(first), 0)))]
    items += rest


def _named(config: pytest.Config, items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Return the lives of the files that the command names: somebody has changed what they test."""
    files = {Path(argument.partition("::")[0]).resolve() for argument in config.args}
    return {item for item in items if item.path in files and item.get_closest_marker("lives")}


def _left_out(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Return the tests that are not drawn: of all long ones, of walks, and of the lives of each folder.

    None is drawn of those that alone would take most of a run: ``make deep`` has them.
    """
    groups = defaultdict[str, list[pytest.Item]](list)
    for item in sorted(items, key=lambda item: item.nodeid):
        if item.get_closest_marker("always"):
            continue
        if item.get_closest_marker("deep"):
            groups["deep tests"].append(item)
        elif item.get_closest_marker("long"):
            groups["long tests"].append(item)
        elif (folder := item.path.parent.name) in WALKS:
            groups[folder].append(item)
        elif item.get_closest_marker("lives"):
            groups[item.nodeid.partition("::")[0].rpartition("/")[0]].append(item)
    fixed = {"deep tests": 0, "long tests": LONG, **WALKS}
    drawn = (
        test
        for name, tests in groups.items()
        for test in sample(name, tests, fixed.get(name, -(-len(tests) // LIVES)))
    )
    return {test for tests in groups.values() for test in tests} - {*drawn}


def pytest_collection_finish() -> None:
    """Spare the garbage collector what lives as long as the tests do: modules, and thousands of items.

    Hypothesis stores what it reads of Unicode: ``make collect`` has it do that once for all workers.
    """
    strategies.text().validate()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call() -> None:
    """Finalize what the tests before left, so that no finalizer runs where this one fills the stack."""
    gc.collect(0)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Authority, Path]:
    """Return a certificate authority for the servers of tests, and the file that makes clients trust it."""
    made, path = Authority(), tmp_path_factory.mktemp("tls") / "ca.pem"
    made.write(path)
    return made, path


@pytest.fixture(autouse=True)
def _no_secrets() -> Iterator[None]:
    """Leave no secret to the next test: what cuts a text masks those that the last ports had."""
    yield
    masking.use(Masker(()))


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    factory = logging.getLogRecordFactory()
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    logger = logging.getLogger("some_client")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    yield out
    logger.removeHandler(handler)
    logging.setLogRecordFactory(factory)


@pytest.fixture(scope="module")
def identity() -> Iterator[IdentityServer]:
    """The managed identity endpoint of Azure, and the issuer of its tokens."""
    with IdentityServer(header="open-sesame") as server:
        yield server
