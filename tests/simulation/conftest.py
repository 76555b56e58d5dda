"""The functions do not log during thousands of simulations, and garbage is collected rarely."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator

import pytest

from simulation.runner import COLLECTED


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    thresholds = gc.get_threshold()
    gc.set_threshold(COLLECTED)
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
    gc.set_threshold(*thresholds)
