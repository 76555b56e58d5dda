"""Flux over the wire: what it reports, signed with the key of the vault, and what it pulls."""

from __future__ import annotations

import ssl
from typing import Any

import httpx

from localcloud.runtime.options import Options
from tests.support.artifact_pushes import Pusher, archive
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start
from tests.support.operator_clusters import operated
from tests.support.reporting_flux import EVENTS, KEY, reporting_files
from tests.support.sources import CLIENT, WITH_IDENTITY, manifests

SETTINGS = Options(create_seconds=1, lock_seconds=5, extra={"POLL_SECONDS": "0.5"})
BROKEN = {"platform/broken.yaml": b"kind: [unfinished"}


def reported(operator: Operator) -> list[dict[str, Any]]:
    events = operator.api.get("clusters/one/events?limit=200")["events"]
    return [event for event in events if event["reason"] == "FluxReported"]


def test_a_cluster_reports_what_its_flux_does_while_a_job_waits_for_it(start: Start) -> None:
    operator = start(SETTINGS)
    trust = ssl.create_default_context(cafile=str(operator.cloud.state / "ca.pem"))
    vault = f"https://127.0.0.1:{operator.cloud.ports['vault']}/_local/secrets/flux-one"
    httpx.put(vault, json={"value": KEY}, verify=trust, trust_env=False).raise_for_status()
    operator.wait_for_status(operator.push(reporting_files(EVENTS)), "success")
    operator.push(reporting_files(f"{EVENTS}  tags: {{a: b}}\n") | BROKEN)
    operator.wait(
        lambda: any(document["type"] == "Warning" for document in reported(operator)),
        "Flux reports its failure",
    )
    assert any("BuildFailed" in document["message"] for document in reported(operator))
    refused = httpx.post(f"{operator.api.url}/api/flux/one", content=b"{}", trust_env=False)
    assert refused.status_code == 401


FLUX = "repository: 'oci://example.azurecr.io/fleet', provider: azure"


def test_a_cluster_is_hydrated_from_a_registry_by_the_flux_of_the_operator(start: Start) -> None:
    operator = start(Options(create_seconds=2, extra={"POLL_SECONDS": "0.5"}))
    cloud = operator.cloud
    url = f"https://127.0.0.1:{cloud.ports['registry']}"
    pusher = Pusher(url, (cloud.state / "ca.pem").read_bytes())
    layer, config = pusher.blob(archive(manifests("blue"))), pusher.blob(b"{}")
    pushed = pusher.manifest("latest", config=config, layer=layer)
    flux = f"{FLUX}, workloadIdentity: {{clientId: {CLIENT}}}"
    operator.push(operated(flux=flux, extra=WITH_IDENTITY))
    operator.wait(lambda: operator.phases() == {"one": "Ready"}, "one is Ready", seconds=90)
    events = [event["message"] for event in operator.api.get("clusters/one")["events"]]
    digest = pushed.headers["Docker-Content-Digest"]
    assert any(f"Flux applied latest@{digest}" in message for message in events)
