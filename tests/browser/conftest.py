"""One browser for the walks of a worker, and a fleet that they look at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.browsers import started
from tests.support.chromium import NoChromium, chromium, is_required
from tests.support.console_fleet import busy_fleet


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Chromium. For a machine that npm has none for, the walks are skipped, but not in CI."""
    try:
        chromium()
    except NoChromium as error:
        if is_required():
            raise
        pytest.skip(f"no Chromium: {error}")
    with started() as running:
        yield running


@pytest.fixture(scope="session")
def fleet() -> MemoryCloud:
    """Return a fleet that no walk changes."""
    return busy_fleet(1)
