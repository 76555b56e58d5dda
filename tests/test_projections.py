"""What mypy says of a call that fills an object of the API by names."""

from __future__ import annotations

from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parent.parent
PROGRAM = """
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, TypedDict

from shared.app.api.projection import projected

class Kind(Enum):
    USER = "User"

class PoolView(TypedDict):
    name: str

class View(TypedDict):
    name: str
    createdAt: str | None
    kind: str
    pools: list[PoolView]
    labels: dict[str, str]
    note: str

@dataclass
class Pool:
    name: str

@dataclass
class Owner:
    note: str

@dataclass
class Cluster:
    created: datetime
    kind: Kind
    labels: Mapping[str, str]
    pools: tuple[Pool, ...]

    @property
    def name(self) -> str:
        return "one"

@dataclass
class Renamed:
    title: str

def use(cluster: Cluster, owner: Owner | None, stored: Mapping[str, Any], at: datetime) -> None:
    projected(View, cluster, owner)
    projected(View, cluster, stored)
    projected(View, cluster, note="", createdAt=None, pools=iter(cluster.pools))
    projected(View, cluster)  # View.note is computed by nobody, and no source has it
    projected(View, cluster, note=at, name=1)  # View.name has the type str, and gets Literal
    projected(View, cluster, note="", pools=[Renamed("one")])  # View.pools has the type
    projected(View, cluster, note="", nodes=3)  # View has no field nodes
    projected(View, cluster, note="", labels={"zone": 1})  # View.labels has the type
    projected(View, cluster, note=None)  # View.note has the type str, and gets None
"""


@pytest.mark.lives
def test_a_field_that_no_source_has_or_that_has_another_type_is_an_error_of_the_type_checker(
    tmp_path: Path,
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    settings = tmp_path / "mypy.ini"
    settings.write_text(f"[mypy]\nplugins = {ROOT / 'tools' / 'projections.py'}\n")
    found, errors, _ = api.run(
        ["--config-file", str(settings), "--cache-dir", str(tmp_path), "--no-error-summary", str(program)]
    )
    assert not errors
    said = {int(line.split(":")[1]): line.partition(" error: ")[2] for line in found.splitlines()}
    expected = {
        number: line.partition("  # ")[2]
        for number, line in enumerate(PROGRAM.splitlines(), 1)
        if "  # " in line
    }
    assert said.keys() == expected.keys(), found
    assert all(said[number].startswith(text) for number, text in expected.items()), found
