"""What a record that somebody takes over knows of the commit that Flux pulls."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.cluster.job import Contest, ContestKind
from shared.cluster.transitions.acceptance import accept_takeover
from shared.language.pin import Pin
from tests.support.cluster_records import NOW, record

PIN = Pin("2" * 40, "files", before="1" * 40)
SYSTEM = Pin("4" * 40, "more files", before="3" * 40, source="https://github.com/contoso/shop main")


@pytest.mark.parametrize("recovering", [False, True])
def test_a_record_of_older_tables_forgets_from_where_its_pins_move_when_somebody_takes_it_over(
    *, recovering: bool
) -> None:
    """The job then takes over the pins that the cluster has, from which the next plan judges removals."""
    known = record()
    system = {"name": "shop", "namespaces": ["shop"], "pin": SYSTEM.stored()}
    known = replace(
        known,
        document={**known.document, "pin": PIN.stored(), "systems": [system]},
        ownership=replace(known.ownership, recovering=recovering),
    )
    taken = accept_takeover(known, Contest(ContestKind.RECOVERY), now=NOW)
    assert not taken.ownership.recovering
    expected = {"": PIN, "shop": SYSTEM}
    assert taken.desired.pins == {
        name: replace(pin, before="") if recovering else pin for name, pin in expected.items()
    }
