"""The functions do not log during thousands of simulations, and garbage is collected rarely."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator

import pytest

from shared.fleet.garbage_collection import collect_rarely


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    thresholds = gc.get_threshold()
    collect_rarely()
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
    gc.set_threshold(*thresholds)
