"""The host dies by SIGKILL again and again; the fleet comes up all the same, each cluster once."""

from __future__ import annotations

import random
import time

from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.local_cloud_start import Start

NAMES = [f"cluster-{number}" for number in range(10)]
QUICK = {"LEASE_SECONDS": "5", "POLL_SECONDS": "0.5"}


def test_ten_kills_while_ten_clusters_are_created_lose_none_and_create_none_twice(start: Start) -> None:
    seed = time.time_ns()
    print(f"seed {seed}")
    chance = random.Random(seed)
    options = Options(
        create_seconds=4,
        lock_seconds=3,
        plan_schedule="*/5 * * * * *",
        resend_schedule="*/2 * * * * *",
        extra=QUICK,
    )
    operator = start(options)
    commit = operator.push(fleet_files.fleet(*NAMES))
    for _ in range(10):
        time.sleep(chance.uniform(0.1, 1.5))
        operator.cloud.kill_functions()
        operator.cloud.start_functions()
    words = operator.wait_for_status(commit, "success", seconds=120)
    assert words == "success: 10 of 10 clusters in sync (10 create)"
    assert operator.phases() == dict.fromkeys(NAMES, "Ready")
    accepted = operator.accepted()
    assert {name: accepted["create", name] for name in NAMES} == dict.fromkeys(NAMES, 1)
    assert {name: accepted["create-group", f"rg-{name}"] for name in NAMES} == dict.fromkeys(NAMES, 1)
