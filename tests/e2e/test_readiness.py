"""An upgrade over the wire whose stage waits until its cluster is ready: blocked, shown, and gone on with."""

from __future__ import annotations

import pytest

from localcloud.runtime.options import Options
from shared.kubernetes.readiness.blockers import Remover
from tests.support import fleet_files
from tests.support.fleet_operator import Operator
from tests.support.inside_clusters import kubernetes
from tests.support.local_cloud_start import Start
from tests.support.roadstead_command import roadstead
from tests.support.workloads import pod

QUICK = Options(create_seconds=1, lock_seconds=5, extra={"POLL_SECONDS": "0.5"})
GATE = """\
  rollout:
    stages:
      - name: everything
        groups: [{maxConcurrency: "100%"}]
        gate: {owner: platform, reason: upgrades are prepared, upgradeReadiness: true}
"""
BARE = "Pod default/debug has no controller: nothing creates it again"


def fleet(version: str) -> dict[str, bytes]:
    files = fleet_files.fleet("one")
    text = files["fleet.yaml"].decode().replace(fleet_files.ALL_AT_ONCE.decode(), "") + GATE
    wanted = text.replace('kubernetesVersion: "1.36"', f'kubernetesVersion: "{version}"')
    return files | {"fleet.yaml": wanted.encode()}


def said(operator: Operator, *arguments: str) -> tuple[int, str]:
    """Return the exit code and the output of a command."""
    key = operator.cloud.settings["API_KEY_ADMIN"]
    done = roadstead(*arguments, ROADSTEAD_URL=operator.cloud.urls.functions, ROADSTEAD_KEY=key)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.long
def test_an_upgrade_waits_for_what_blocks_it_and_goes_on_once_that_is_gone(start: Start) -> None:
    operator = start(QUICK)
    operator.wait_for_status(operator.push(fleet("1.35")), "success", seconds=120)
    with kubernetes(operator, "one") as api:
        api.apply(pod("debug", api.list("v1", "Node")[0]["metadata"]["name"]))
        upgrade = operator.push(fleet("1.36"))

        def waits() -> bool:
            found = operator.api.get("clusters/one/why")
            return BARE in str((found["rollout"] or {}).get("waits"))

        operator.wait(waits, "the stage waits for its cluster", seconds=120)
        why = operator.api.get("clusters/one/why")
        assert (why["readiness"]["to"], why["readiness"]["state"]) == ("1.36", "blocked")
        assert why["readiness"]["blockers"][0]["who"] == Remover.WORKLOAD
        assert why["readiness"]["readAt"]
        code, shown = said(operator, "status", "--ready")
        assert BARE in shown, (code, shown)
        (found,) = [found for found in api.list("v1", "Pod") if found["metadata"]["name"] == "debug"]
        api.delete(found)
        operator.wait_for_status(upgrade, "success", seconds=240)
        code, shown = said(operator, "ready", "one", "--to", "1.37", "--wait")
        assert (code, "ready for Kubernetes 1.37" in shown) == (0, True), shown
