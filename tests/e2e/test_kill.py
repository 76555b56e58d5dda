"""The host is killed ten times; every cluster becomes Ready all the same, and is created once."""

from __future__ import annotations

import random
import time

import pytest

from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.local_cloud_start import Start

NAMES = [f"cluster-{number}" for number in range(10)]
QUICK = {
    "LEASE_SECONDS": "5",
    "POLL_SECONDS": "0.5",
    "RETRY_LIMITS": "Unavailable=60/1 Throttled=forever/1 Conflict=forever/1 Interrupted=60/1",
}


@pytest.mark.long
def test_ten_kills_while_ten_clusters_are_created_lose_none_and_create_none_twice(start: Start) -> None:
    seed = time.time_ns()
    print(f"seed {seed}")
    chance = random.Random(seed)
    options = Options(
        create_seconds=2,
        lock_seconds=1,
        plan_schedule="*/5 * * * * *",
        resend_schedule="*/2 * * * * *",
        extra=QUICK,
    )
    operator = start(options)
    commit = operator.push(fleet_files.fleet(*NAMES))
    for kill in range(10):
        if kill == 3:
            operator.wait(lambda: len(operator.phases()) == len(NAMES), "every cluster is planned")
        time.sleep(chance.uniform(0.1, 1.0))
        operator.cloud.kill_functions()
        operator.cloud.start_functions()
    status = operator.wait_for_status(commit, "success", seconds=120)
    assert status == "success: 10 of 10 clusters in sync (10 create)"
    assert operator.phases() == dict.fromkeys(NAMES, "Ready")
    accepted = operator.accepted()
    assert {name: accepted["create", name] for name in NAMES} == dict.fromkeys(NAMES, 1)
    assert {name: accepted["create-group", f"rg-{name}"] for name in NAMES} == dict.fromkeys(NAMES, 1)
