"""Exemptions of drift policies that end: a warning 30 days ahead, with place, owner and reason."""

from __future__ import annotations

from datetime import date

import pytest

from shared.azure.drift.policy import exemption_warnings
from tests.support import fleet_files
from tests.support.resolved_fleets import resolved

LAST = date(2027, 6, 30)
RULE = '{name: load, fields: [tags], action: ignore, owner: shop, reason: a test, expires: "2027-06-30"}'
OTHER = "{name: cost, fields: [tags.cost], action: report}"
OWN = f"  drift: {{rules: [{OTHER}, {RULE}]}}\n"


def warned(files: dict[str, bytes], today: date) -> list[str]:
    desired = resolved(files)
    assert desired.problems == ()
    return [
        str(exemption_warning) for exemption_warning in exemption_warnings(desired, desired.clusters, today)
    ]


def of_one(extra: str) -> dict[str, bytes]:
    return fleet_files.fleet() | {"clusters/one/cluster.yaml": fleet_files.cluster("one", extra=extra)}


@pytest.mark.parametrize(
    ("today", "said"),
    [
        (date(2027, 5, 31), "ends in 30 days, on 2027-06-30; from then on its fields are reported"),
        (date(2027, 6, 29), "ends in 1 day, on 2027-06-30"),
        (LAST, "ends today, on 2027-06-30"),
        (date(2027, 7, 1), "ended on 2027-06-30, and its fields are reported again: remove it"),
    ],
)
def test_an_exemption_is_warned_of_from_30_days_before_its_last_day_on(today: date, said: str) -> None:
    (warning,) = warned(of_one(OWN), today)
    assert "spec.drift.rules[load].expires: the exemption load of shop (a test) " in warning
    assert warning.startswith("clusters/one/cluster.yaml:11:")
    assert said in warning


def test_one_that_lasts_longer_is_not_warned_of_and_a_rule_without_end_never() -> None:
    assert warned(of_one(OWN), date(2027, 5, 30)) == []
    assert warned(of_one(f"  drift: {{rules: [{OTHER}]}}\n"), date(2100, 1, 1)) == []


def test_one_of_a_shared_file_is_one_warning_at_its_place() -> None:
    files = fleet_files.fleet("one", "two")
    shared = files["fleet.yaml"].replace(
        b"  defaults:\n", f"  defaults:\n    drift: {{rules: [{RULE}]}}\n".encode()
    )
    (warning,) = warned(files | {"fleet.yaml": shared}, LAST)
    assert warning.startswith("fleet.yaml:")
