"""The fleet to which pull requests propose something."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.proposals import Repo, fleet_of


@pytest.fixture
def repo() -> Repo:
    """Return a planned fleet of the clusters one and two."""
    return fleet_of(MemoryCloud())
