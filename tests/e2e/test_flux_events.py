"""What the Flux of a cluster reports over the wire: signed with the key of the vault, and stored."""

from __future__ import annotations

import ssl
from typing import Any

import httpx

from localcloud.runtime.options import Options
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start
from tests.support.reporting_flux import EVENTS, KEY, reporting_files

SETTINGS = Options(create_seconds=1, lock_seconds=5, extra={"POLL_SECONDS": "0.5"})
BROKEN = {"platform/broken.yaml": b"kind: [unfinished"}


def reported(operator: Operator) -> list[dict[str, Any]]:
    events = operator.api.get("clusters/one/events?limit=200")["events"]
    return [each for each in events if each["reason"] == "FluxReported"]


def test_a_cluster_reports_what_its_flux_does_while_a_job_waits_for_it(start: Start) -> None:
    operator = start(SETTINGS)
    trust = ssl.create_default_context(cafile=str(operator.cloud.state / "ca.pem"))
    vault = f"https://127.0.0.1:{operator.cloud.ports['vault']}/_local/secrets/flux-one"
    httpx.put(vault, json={"value": KEY}, verify=trust, trust_env=False).raise_for_status()
    operator.wait_for_status(operator.push(reporting_files(EVENTS)), "success")
    operator.push(reporting_files(f"{EVENTS}  tags: {{a: b}}\n") | BROKEN)
    operator.wait(
        lambda: any(each["type"] == "Warning" for each in reported(operator)), "Flux reports its failure"
    )
    assert any("BuildFailed" in each["message"] for each in reported(operator))
    refused = httpx.post(f"{operator.api.url}/api/flux/one", content=b"{}", trust_env=False)
    assert refused.status_code == 401
