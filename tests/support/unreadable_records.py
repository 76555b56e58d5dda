"""A fleet in Azurite of which somebody damages records."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from shared.ports import State
from tests.support.damaged_records import DAMAGED, Tables, text

FORMS = [pytest.param(damage, problem, id=name) for name, (damage, problem) in DAMAGED.items()]
CUT_OFF = text(lambda whole: whole[:-5])


@dataclass(frozen=True)
class Stored:
    """A fleet in Azurite, and somebody who edits its records."""

    fleet: str
    state: State
    tables: Tables
