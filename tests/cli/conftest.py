"""What the tests of the command share: the API that it asks, and where it deploys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.deployment_place import Place
from tests.support.served_api import served


@pytest.fixture
def url(cloud: MemoryCloud) -> Iterator[str]:
    """Serve the API on the cloud that the test's module makes."""
    with served(cloud.ports) as address:
        yield address


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Return a place in which nothing is deployed."""
    return Place(tmp_path)
