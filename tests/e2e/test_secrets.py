"""Planted secrets, under faults: no table, message, log or answer contains one."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator

import yaml

from localcloud.memory.memory_cloud import QUEUES
from localcloud.runtime.inspection import bus_messages, table_entities
from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start

TOKEN = "canary-github-token-51ab"
QUICK = {"POLL_SECONDS": "0.5", "RETRY_LIMITS": "Unavailable=15/1 Unauthenticated=6/1"}
PLANTED = {
    "GITHUB_TOKEN": TOKEN,
    "FLUX_GIT_PASSWORD": TOKEN,
    "GITHUB_WEBHOOK_SECRET": "canary-webhook-secret-72cd",
    "GITHUB_WEBHOOK_SECRET_PREVIOUS": "canary-old-webhook-secret-93ef",
    "IDENTITY_HEADER": "canary-identity-header-14ab",
}
JWT = re.compile(r"eyJ[\w-]{10,}\.[\w-]{10,}\.")


def inject_faults(operator: Operator) -> None:
    urls = operator.cloud.urls
    refuse = {"status": 401, "body": {"error": {"code": "InvalidAuthenticationToken", "message": "no"}}}
    operator.faults(
        urls.arm,
        [
            {"match": "^PUT .*/managedClusters/", "times": 1, **refuse},
            {"match": "listClusterUserCredential", "status": 500, "times": 1, "after": True},
            {"match": "^GET .*/managedClusters/", "status": 503, "times": 4},
        ],
    )
    operator.faults(urls.github, [{"match": "/git/", "status": 401, "times": 1, "body": {"message": "Bad"}}])


def secrets(operator: Operator) -> Iterator[str]:
    """Yield what must appear nowhere: the planted values, and the keys inside the kubeconfigs."""
    yield from PLANTED.values()
    for path in (operator.cloud.state / "kubeconfigs").iterdir():
        user = yaml.safe_load(path.read_text())["users"][0]["user"]
        key = base64.b64decode(user["client-key-data"]).decode()
        yield user["client-key-data"][:60]
        yield key.splitlines()[3]


def recorded(operator: Operator) -> Iterator[tuple[str, str]]:
    """Yield (place, text) of everything that is stored or shown."""
    cloud = operator.cloud
    yield "tables", repr(table_entities(cloud))
    for path in (cloud.state / "logs").iterdir():
        yield path.name, path.read_text()
    yield "api", json.dumps(operator.api.get("clusters"))
    for name in ("one", "two", "broken"):
        yield f"api {name}", json.dumps(operator.api.get(f"clusters/{name}"))


def test_no_secret_is_in_any_table_message_log_or_answer(start: Start) -> None:
    operator = start(Options(create_seconds=4, plan_schedule="*/3 * * * * *", extra={**PLANTED, **QUICK}))
    messages: list[str] = []
    inject_faults(operator)
    files = fleet_files.fleet("one", "two", "broken")
    files["clusters/broken/cluster.yaml"] += b"  kubernetesVersion: '1.99'\n"
    operator.push(files)

    def ready() -> bool:
        # The queues that this fleet uses: reading each takes time, in which messages come and go unseen.
        for queue in 3 * ("plans", "changes"):
            messages.extend(bus_messages(operator.cloud, queue))
        phases = operator.phases()
        return phases == {"one": "Ready", "two": "Ready", "broken": "Failed"}

    operator.wait(ready, "one and two are Ready, broken is Failed", seconds=90)
    assert len(set(messages)) > 3, "too few messages for a result"
    messages.extend(body for queue in QUEUES for body in bus_messages(operator.cloud, queue))
    planted = list(secrets(operator))
    assert len(planted) >= len(PLANTED) + 4
    for place, text in [*recorded(operator), ("messages", "\n".join(messages))]:
        assert [secret[:8] for secret in planted if secret in text] == [], place
        assert not JWT.search(text), place
