"""The API that the command asks, served as the development host serves it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.served_api import served

if TYPE_CHECKING:
    pass


@pytest.fixture
def url(cloud: MemoryCloud) -> Iterator[str]:
    """Serve the API on the cloud that the test's module makes."""
    with served(cloud.ports) as address:
        yield address
