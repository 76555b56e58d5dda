"""Settings of every test."""

from __future__ import annotations

import gc
import io
import logging
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from localcloud.common.certificates import Authority

# Examples have no deadline: a busy machine is not a defect.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# A shell that starts the tests in the background has them, and every process below, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run what mostly waits first: it is then one worker's, while the others use the processor.

    Workers that run out of tests take some of its.
    """
    items.sort(key=lambda item: "e2e" not in item.path.parts)


def pytest_collection_finish() -> None:
    """Spare the garbage collector what lives as long as the tests do: modules, and thousands of items."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Authority, Path]:
    """Return a certificate authority for the servers of tests, and the file that makes clients trust it."""
    made, path = Authority(), tmp_path_factory.mktemp("tls") / "ca.pem"
    made.write(path)
    return made, path


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
