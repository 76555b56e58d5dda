"""The local API server answers as a real one did, whose answers are recorded with its version."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import httpx
import pytest
import yaml

from localcloud.common.certificates import Authority
from localcloud.kubernetes.schema.definitions import published_version
from localcloud.kubernetes.wire.kubernetes_servers import KubernetesPlane
from tests.support.api_answers import answers, differences, recorded
from tests.support.kubernetes_ports import CLUSTER


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    """A client of a new cluster."""
    authority = Authority()
    trusted = ssl.create_default_context(cadata=authority.pem.decode())
    with KubernetesPlane(authority, accepts_token=lambda token: token == "a-token") as plane:
        config = yaml.safe_load(plane.start(CLUSTER, []))
        url = config["clusters"][0]["cluster"]["server"]
        headers = {"Authorization": "Bearer a-token"}
        with httpx.Client(base_url=url, verify=trusted, headers=headers, timeout=30) as client:
            yield client


def test_every_request_is_answered_as_a_real_api_server_answered_it(client: httpx.Client) -> None:
    assert differences(answers(client, "suite"), recorded()["answers"]) == []


def test_the_types_and_the_recorded_answers_are_of_one_version() -> None:
    assert recorded()["version"] == f"v{published_version()}"
