"""The local API server answers as a real one did, whose answers are recorded with its version."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterator

import httpx
import pytest
import yaml

from localcloud.common.certificates import Authority
from localcloud.kubernetes.schema.definitions import published_version
from localcloud.kubernetes.wire.kubernetes_servers import KubernetesPlane
from localcloud.kubernetes.world.controllers import Delays
from tests.support.api_server import api_answers, sequence_answers
from tests.support.kubernetes_ports import CLUSTER
from tests.support.recorded_answers import recorded

pytestmark = pytest.mark.lives


@pytest.fixture
def plane() -> Iterator[KubernetesPlane]:
    """One started cluster, on whose nodes no kubelet ends a deleted pod."""
    never = Delays(termination=3600)
    with KubernetesPlane(Authority(), accepts_token=lambda token: token == "a-token", delays=never) as plane:
        yield plane


@pytest.fixture
def client(plane: KubernetesPlane) -> Iterator[httpx.Client]:
    """A client of the cluster."""
    config = yaml.safe_load(plane.start(CLUSTER, []))
    plane.set_entra(CLUSTER, on=True)
    cluster = config["clusters"][0]["cluster"]
    pem = base64.b64decode(cluster["certificate-authority-data"]).decode()
    trusted, headers = ssl.create_default_context(cadata=pem), {"Authorization": "Bearer a-token"}
    with httpx.Client(base_url=cluster["server"], verify=trusted, headers=headers, timeout=30) as client:
        yield client


def test_every_request_is_answered_as_a_real_api_server_answered_it(client: httpx.Client) -> None:
    assert (
        api_answers.differences(
            api_answers.answers(client, "suite"), recorded(api_answers.RECORDED)["answers"]
        )
        == []
    )


def test_every_sequence_ends_as_it_did_on_a_real_cluster(
    plane: KubernetesPlane, client: httpx.Client
) -> None:
    world = plane.clusters.world(CLUSTER)
    assert world is not None
    found = sequence_answers.sequence_answers(client, "sequences", world.forget_history, patience=2)
    assert sequence_answers.sequence_differences(found, recorded(sequence_answers.RECORDED)["answers"]) == []


def test_the_types_and_the_recorded_answers_are_of_one_version() -> None:
    assert (
        recorded(api_answers.RECORDED)["version"]
        == recorded(sequence_answers.RECORDED)["version"]
        == f"v{published_version()}"
    )
