"""One browser for the walks of a worker, and a fleet that they look at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.browsers import started
from tests.support.chromium import is_required, lacking
from tests.support.console_fleet import busy_fleet


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the walks out where there can be no Chromium, but not in CI; the last lines of a run say so."""
    if not lacking() or is_required():
        return
    walks = [item for item in items if Path(__file__).parent in item.path.parents]
    items[:] = [item for item in items if item not in walks]
    config.hook.pytest_deselected(items=walks)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Chromium."""
    with started() as running:
        yield running


@pytest.fixture(scope="session")
def fleet() -> MemoryCloud:
    """Return a fleet that no walk changes."""
    return busy_fleet(1)
