"""A bootstrap secret over the wire: from the vault to the cluster, rotated, lost, and nowhere else."""

from __future__ import annotations

import base64
import json
import ssl
from typing import Any

import httpx
import pytest

from localcloud.memory.memory_cloud import QUEUES
from localcloud.runtime.inspection import bus_messages, table_entities
from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.bootstrap_secrets import AGE, NEXT, SOPS, VALUE
from tests.support.fleet_operator import Operator
from tests.support.inside_clusters import kubernetes
from tests.support.local_cloud_start import Start

AT_ONCE = Options(create_seconds=1, lock_seconds=5, extra={"POLL_SECONDS": "0.5", "UNHEALTHY_MINUTES": "0"})
FILES = fleet_files.fleet() | {"clusters/one/cluster.yaml": fleet_files.cluster("one", extra=AGE)}


def in_vault(operator: Operator, method: str, content: dict[str, Any]) -> None:
    """Change the secret in the vault as its owner does."""
    trust = ssl.create_default_context(cafile=str(operator.cloud.state / "ca.pem"))
    url = f"https://127.0.0.1:{operator.cloud.ports['vault']}/_local/secrets/fleet-age"
    httpx.request(method, url, json=content, verify=trust, trust_env=False).raise_for_status()


def secrets_healthy(operator: Operator) -> str:
    conditions = operator.api.get("clusters/one")["conditions"]
    return next(
        (condition["status"] for condition in conditions if condition["type"] == "SecretsHealthy"), ""
    )


def check(operator: Operator, status: str) -> None:
    operator.api.refresh(["one"])
    operator.wait(lambda: secrets_healthy(operator) == status, f"SecretsHealthy is {status}")


def everything(operator: Operator) -> str:
    """Return all that is stored, logged, queued and shown."""
    cloud, api = operator.cloud, operator.api
    texts = [repr(table_entities(cloud)), *(path.read_text() for path in (cloud.state / "logs").iterdir())]
    paths = ("", "/one", "/one/why", "/one/events", "/one/tree")
    texts += [json.dumps(api.get(f"clusters{path}")) for path in paths]
    texts += [body for queue in QUEUES for body in bus_messages(cloud, queue)]
    return "\n".join(texts)


@pytest.mark.long
def test_a_secret_comes_from_the_vault_is_rotated_and_lost_and_its_value_is_nowhere(start: Start) -> None:
    operator = start(AT_ONCE)
    in_vault(operator, "PUT", {"value": VALUE})
    commit = operator.push(FILES)
    operator.wait_for_status(commit, "success")
    with kubernetes(operator, "one") as api:

        def value() -> str:
            found = api.get(SOPS)
            return base64.b64decode(found["data"]["age.agekey"]).decode() if found else ""

        assert value() == VALUE
        check(operator, "True")
        in_vault(operator, "PUT", {"value": NEXT})
        operator.api.refresh(["one"])
        operator.wait(lambda: value() == NEXT, "the new version is in the cluster")
        in_vault(operator, "PATCH", {"enabled": False})
        check(operator, "False")
        assert "SecretsUnhealthy" in operator.wait_for_status(commit, "failure")
        assert value() == NEXT
        in_vault(operator, "PATCH", {"enabled": True})
        check(operator, "True")
        operator.wait_for_status(commit, "success")
    text = everything(operator)
    assert "fleet-age" in text
    forms = [
        form for secret in (VALUE, NEXT) for form in (secret, base64.b64encode(secret.encode()).decode())
    ]
    assert [form for form in forms if form in text] == []
