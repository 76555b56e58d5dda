"""One browser for the walks of a worker, and a fleet that they look at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.runtime.tools import ToolError
from tests.support.browsers import started
from tests.support.chromium import chromium, is_required
from tests.support.console_fleet import busy_fleet


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Chromium; where none can be installed, the walks are skipped, but not in CI."""
    try:
        chromium()
    except ToolError as error:
        if is_required():
            raise
        pytest.skip(f"no Chromium: {error}")
    with started() as running:
        yield running


@pytest.fixture(scope="session")
def fleet() -> MemoryCloud:
    """Return a fleet that no walk changes."""
    return busy_fleet(1)
