"""A new cluster without a git secret: the Flux of the operator pulls an artifact of a registry."""

from __future__ import annotations

from localcloud.runtime.options import Options
from tests.support.artifact_pushes import Pusher, archive
from tests.support.local_cloud_start import Start
from tests.support.operator_clusters import operated
from tests.support.sources import CLIENT, WITH_IDENTITY, manifests

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
    events = [one["message"] for one in operator.api.get("clusters/one")["events"]]
    digest = pushed.headers["Docker-Content-Digest"]
    assert any(f"Flux applied latest@{digest}" in message for message in events)
