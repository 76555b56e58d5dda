"""Secrets are planted, trouble is made, and then every place that keeps or shows something is searched."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator

import yaml

from localcloud.runtime.inspection import bus_messages, table_entities
from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start

TOKEN = "canary-github-token-51ab"
PLANTED = {
    "GITHUB_TOKEN": TOKEN,
    "FLUX_GIT_PASSWORD": TOKEN,
    "GITHUB_WEBHOOK_SECRET": "canary-webhook-secret-72cd",
    "GITHUB_WEBHOOK_SECRET_PREVIOUS": "canary-old-webhook-secret-93ef",
    "IDENTITY_HEADER": "canary-identity-header-14ab",
}
JWT = re.compile(r"eyJ[\w-]{10,}\.[\w-]{10,}\.")


def make_trouble(operator: Operator) -> None:
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
    """Yield what must not be found: the planted values, and the keys inside the kubeconfigs."""
    yield from PLANTED.values()
    for path in (operator.cloud.state / "kubeconfigs").iterdir():
        user = yaml.safe_load(path.read_text())["users"][0]["user"]
        key = base64.b64decode(user["client-key-data"]).decode()
        yield user["client-key-data"][:60]
        yield key.splitlines()[3]


def kept(operator: Operator) -> Iterator[tuple[str, str]]:
    """Yield (place, text) of everything that is kept or shown."""
    cloud = operator.cloud
    yield "tables", repr(table_entities(cloud))
    for path in (cloud.state / "logs").iterdir():
        yield path.name, path.read_text()
    yield "api", json.dumps(operator.api.get("clusters"))
    for name in ("one", "two", "broken"):
        yield f"api {name}", json.dumps(operator.api.get(f"clusters/{name}"))


def test_no_secret_is_in_any_table_message_log_or_answer(start: Start) -> None:
    operator = start(
        Options(create_seconds=1, plan_schedule="*/3 * * * * *", extra={**PLANTED, "POLL_SECONDS": "0.5"})
    )
    messages: list[str] = []
    make_trouble(operator)
    files = fleet_files.fleet("one", "two", "broken")
    bad = b"  kubernetesVersion: '1.99'\n"
    files["clusters/broken/cluster.yaml"] += bad
    operator.push(files)

    def ready() -> bool:
        messages.extend(body for queue in ("plans", "jobs") for body in bus_messages(operator.cloud, queue))
        phases = operator.phases()
        return phases == {"one": "Ready", "two": "Ready", "broken": "Failed"}

    operator.wait(ready, "the good ones are Ready, the broken one Failed", seconds=90)
    assert len(set(messages)) > 3, "too few messages were seen to say anything"
    planted = list(secrets(operator))
    assert len(planted) >= len(PLANTED) + 4
    for place, text in [*kept(operator), ("messages", "\n".join(messages))]:
        found = [secret[:8] for secret in planted if secret in text]
        assert found == [], place
        assert not JWT.search(text), place
