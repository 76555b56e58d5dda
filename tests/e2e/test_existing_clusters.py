"""A cluster outside Azure over the wire: attached by a commit, read by a check, released by the next one."""

from __future__ import annotations

import base64
import json

import yaml

from localcloud.runtime.inspection import table_entities
from localcloud.runtime.options import Options
from localcloud.runtime.parts.part import kubeconfigs
from shared.kubernetes.flux_objects import FACTS, SOURCE
from shared.kubernetes.kubeconfig import OWNER_MAP
from tests.support import fleet_files
from tests.support.attached_clusters import manifest
from tests.support.fleet_operator import Operator
from tests.support.inside_clusters import kubernetes
from tests.support.local_cloud_start import Start

AT_ONCE = Options(
    create_seconds=1,
    lock_seconds=5,
    existing=("harbour",),
    extra={"POLL_SECONDS": "0.5", "UNHEALTHY_MINUTES": "0"},
)
FILES = fleet_files.fleet() | {"clusters/harbour/cluster.yaml": manifest(secret="harbour-kubeconfig")}


def condition(operator: Operator, kind: str) -> str:
    conditions = operator.api.get("clusters/harbour")["conditions"]
    return next((document["status"] for document in conditions if document["type"] == kind), "")


def everything(operator: Operator) -> str:
    """Return all that is stored, logged and shown."""
    cloud, api = operator.cloud, operator.api
    texts = [repr(table_entities(cloud)), *(path.read_text() for path in (cloud.state / "logs").iterdir())]
    return "\n".join([*texts, *(json.dumps(api.get(f"clusters{path}")) for path in ("", "/harbour"))])


EPOCH = "/resourceGroups/rg-roadstead/providers/Microsoft.Resources/tags/default"
"""The tag of the app's own group: no write to a cluster."""


def test_a_cluster_outside_azure_is_attached_checked_and_released(start: Start) -> None:
    operator = start(AT_ONCE)
    operator.wait_for_status(operator.push(FILES), "success")
    with kubernetes(operator, "harbour") as api:
        facts, owner = api.get(FACTS), api.get(OWNER_MAP)
        assert facts is not None
        assert owner is not None
        assert (facts["data"]["cluster_name"], owner["data"]["roadstead-cluster"]) == ("harbour", "harbour")
        operator.api.refresh(["harbour"])
        operator.wait(lambda: condition(operator, "PlatformHealthy") == "True", "a check has read it")
        text = everything(operator)
        operator.wait_for_status(operator.push(fleet_files.fleet(budget=9)), "success")
        operator.wait(lambda: api.get(OWNER_MAP) is None, "it is released")
        assert api.get(SOURCE) is not None
    asked = [f"{request['method']} {request['path']}" for request in operator.cloud.requests("arm")]
    azure = [line for line in asked if not line.endswith(EPOCH)]
    assert [line for line in azure if "harbour" in line or not line.startswith("GET")] == []
    user = yaml.safe_load((kubeconfigs(operator.cloud.state) / "harbour.yaml").read_text())["users"][0][
        "user"
    ]
    key = base64.b64decode(user["client-key-data"]).decode()
    assert "harbour-kubeconfig" in text
    assert [part for part in (user["client-key-data"], *key.split("\n")[1:-2]) if part in text] == []
