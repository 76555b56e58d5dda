"""A stage over the wire that waits for what Azure Monitor answers to the identity of the control app."""

from __future__ import annotations

import pytest
import requests

from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start

QUICK = Options(create_seconds=1, lock_seconds=5, extra={"POLL_SECONDS": "0.5"})
QUERY = "sum(rate(errors_total[5m]))"
GATE = f"""\
  rollout:
    stages:
      - name: everything
        groups: [{{maxConcurrency: "100%"}}]
        gate:
          owner: shop
          reason: the shop sells
          azureMonitorChecks:
            - name: errors
              workspace: shop
              query: {QUERY}
              pass: "< 0.01"
              over: 5m
              interval: 30s
              failureLimit: 20
            - {{name: logged, workspace: logs, query: AppRequests, pass: "== 0", over: 5m, interval: 30s}}
          alertChecks: [{{name: quiet, scope: /subscriptions/00000000-0000-0000-0000-000000000001}}]
"""


def answer(operator: Operator, query: str, value: float) -> None:
    url = f"https://127.0.0.1:{operator.cloud.ports['monitor']}/_local/queries"
    authority = str(operator.cloud.state / "ca.pem")
    requests.put(url, json={"query": query, "value": value}, verify=authority, timeout=5).raise_for_status()


@pytest.mark.long
def test_a_stage_waits_for_a_query_says_what_was_read_and_begins_once_it_passes(start: Start) -> None:
    operator = start(QUICK)
    files = fleet_files.fleet("one")
    operator.wait_for_status(operator.push(files), "success", seconds=120)
    answer(operator, QUERY, 0.5)
    answer(operator, "AppRequests", 0)
    text = files["fleet.yaml"].decode() + GATE
    commit = operator.push(
        files
        | {"fleet.yaml": text.encode(), "clusters/one/cluster.yaml": fleet_files.cluster("one", count=2)}
    )

    def waits() -> bool:
        found = operator.api.get("clusters/one/why")
        return "errors failed (0.5 at " in str((found["rollout"] or {}).get("waits"))

    operator.wait(waits, "the stage waits for the query", seconds=120)
    answer(operator, QUERY, 0.001)
    operator.wait_for_status(commit, "success", seconds=180)
    (rollout,) = [found for found in operator.api.get("rollouts")["rollouts"] if found["commit"] == commit]
    gate = operator.api.get(f"rollouts/{rollout['commit']}")["stages"][0]["gate"]
    assert {check["name"]: check["state"] for check in gate["checks"]} == {
        "errors": "passed",
        "logged": "passed",
        "quiet": "passed",
    }
