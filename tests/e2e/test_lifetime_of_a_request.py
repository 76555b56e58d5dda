"""A cluster by request that ends by its lifetime, over the wire, with a clock that is put forward."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import httpx
import pytest

from cli.errors import NoAnswer
from localcloud.runtime.local_cloud import LocalCloud
from localcloud.runtime.options import Options
from tests.support.fast_clock import FastClock
from tests.support.fleet_operator import Operator
from tests.support.one_cluster import files
from tests.support.roadstead_command import roadstead

RULE = "{classes: [small], environments: [development], locations: [eastus], merge: auto}"
QUICK = Options(create_seconds=1, plan_schedule="*/10 * * * * *", extra={"POLL_SECONDS": "0.5"})


@pytest.mark.timeout(560)
@pytest.mark.long
def test_a_cluster_by_request_comes_and_goes_with_its_lifetime_and_nobody_merges_anything(
    tmp_path: Path,
) -> None:
    clock, fleet = FastClock(tmp_path / "clock"), files()
    fleet["fleet.yaml"] = fleet["fleet.yaml"].replace(
        b"spec:\n", f"spec:\n  selfService: [{RULE}]\n".encode(), 1
    )
    fleet["classes/small.yaml"] = fleet["classes/small.yaml"].replace(
        b"spec:\n", b"spec:\n  lifetimeEnd: delete\n", 1
    )
    with LocalCloud(tmp_path / "cloud", QUICK, spawn=clock.spawn) as cloud:
        with closing(Operator(cloud, tmp_path / "clone")) as operator:
            rules = {"autoMerge": True, "requiredChecks": ["roadstead/plan"]}
            httpx.put(
                f"{cloud.urls.github}/_local/rules", json=rules, timeout=60, trust_env=False
            ).raise_for_status()
            operator.wait_for_status(operator.push(fleet), "success")
            asked = ["--class", "small", "--location", "eastus", "--lifetime", "8h", "--reason", "a test"]
            done = roadstead("request", "first-aks", *asked, "--url", cloud.urls.functions)
            assert done.returncode == 0, done.stderr
            operator.wait(lambda: operator.phases().get("first-aks") == "Ready", "it is Ready", seconds=240)
            clock.forward(8 * 3600)
            operator.wait(lambda: "first-aks" not in _phases(operator), "it has ended", seconds=240)
            assert operator.accepted()["delete", "first-aks"] == 1
            operator.wait(lambda: _phases(operator) == {"one": "Ready"}, "the other one stays")
        cloud.kill_functions()


def _phases(operator: Operator) -> dict[str, str]:
    """Return each cluster's phase; a step of the clock ends connections that were open."""
    try:
        return operator.phases()
    except NoAnswer:
        return {"first-aks": ""}
