"""Azure's events over the wire: an edit by hand is shown without a refresh, at the price of one read."""

from __future__ import annotations

import json

from localcloud.azure.world.access.directory import ACCOUNTS
from localcloud.runtime.options import Options
from localcloud.runtime.parts.part import request_log
from tests.support import fleet_files
from tests.support.arm_client import arm, path
from tests.support.drift_on_the_wire import drifted
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start

QUICK = Options(create_seconds=1, lock_seconds=5, extra={"POLL_SECONDS": "0.5"})
(OPERATOR,) = (account.id for account in ACCOUNTS if account.name == "operator")
WHO = "operator@example.com"


def reads(operator: Operator) -> int:
    """Return how often a single cluster was read with GET."""
    lines = request_log(operator.cloud.state, "arm").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return sum(
        line["method"] == "GET" and line["path"].lower().endswith("/managedclusters/one") for line in found
    )


def test_a_tag_that_somebody_sets_is_shown_with_who_within_a_minute_and_at_the_price_of_one_read(
    start: Start,
) -> None:
    operator = start(QUICK)
    commit = operator.push(fleet_files.fleet("one"))
    operator.wait_for_status(commit, "success")
    before = reads(operator)
    tags = path("one", "/providers/Microsoft.Resources/tags/default").replace("2025-08-01", "2021-04-01")
    with arm(operator, OPERATOR) as azure:
        body = {"operation": "Merge", "properties": {"tags": {"owner": "x"}}}
        azure.patch(tags, json=body).raise_for_status()
        operator.wait(
            lambda: drifted(operator, "one") == {"tags.owner": ("", '"x"')}, "it is shown", seconds=60
        )
        assert azure.get(tags).json()["properties"]["tags"]["owner"] == "x"
    (found,) = operator.api.drift("one")["clusters"]
    assert [field["changedBy"] for field in found["fields"]] == [WHO]
    assert reads(operator) == before + 1
    operator.wait(lambda: "1 with drift" in operator.status(commit), "the commit shows it")
    operator.api.post(
        "clusters/one/accept", {"fields": {"tags.owner": '"x"'}, "reason": "for the cost report"}
    )
    operator.wait(lambda: not operator.api.drift("one")["count"], "it is accepted")
    assert [field["reason"] for field in operator.api.drift("one")["accepted"]] == ["for the cost report"]
