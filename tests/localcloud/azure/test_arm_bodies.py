"""Generated bodies through the models of Azure's library and the local Azure: no unlisted disagreement.

``make deep`` sends thousands; each commit sends some hundred. A disagreement is a rule of the tables of
refusals or a code of AKS, and docs/local-azure-refusals.md or docs/local-cloud.md lists it.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from azure.mgmt.containerservice import models
from hypothesis import given, settings

from localcloud.azure import refusals_page
from localcloud.azure.world.arm_errors import AksError, ArmError
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.clock import ManualClock
from localcloud.common.control_plane import NullPlane
from shared.json_tree import Json
from shared.resource_ids import ClusterId
from tests.support.arm_bodies import OWNER, cluster_body, desired, pool_body
from tests.support.cluster_specs import SPECS
from tests.support.sample import DEEP
from tests.support.sdk_bodies import generated, mutated, objection

pytestmark = pytest.mark.lives

DOCS = Path(__file__).parents[3] / "docs"
CLUSTER = ClusterId("00000000-0000-0000-0000-000000000001", "rg", "one")
WALKED, FROM_MANIFESTS, INVALID = (2400, 400, 1200) if DEEP else (240, 20, 120)
SYSTEM = {"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5"}
MODELS = {
    "cluster": models.ManagedCluster,
    "update": models.ManagedCluster,
    "pool": models.AgentPool,
    "maintenance": models.MaintenanceConfiguration,
}


def walked(kind: str, chance: random.Random) -> dict[str, Any]:
    """Return a body that the models take, of a cluster, an update of one, a pool or a maintenance window."""
    if kind == "maintenance":
        return {"properties": generated(models.MaintenanceConfigurationProperties, chance)}
    if kind == "pool":
        profile = generated(models.ManagedClusterAgentPoolProfileProperties, chance)
        return {"properties": {"count": 1, **profile}}
    properties = generated(models.ManagedClusterProperties, chance)
    properties.pop("agentPoolProfiles", None)
    if kind == "update":
        return {"location": "westeurope", "properties": properties}
    whole = {"dnsPrefix": "one", "agentPoolProfiles": [SYSTEM], **properties}
    return {"location": "westeurope", "identity": {"type": "SystemAssigned"}, "properties": whole}


class Target:
    """A world with a cluster that takes pools, updates and maintenance windows."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.world = AzureWorld(self.clock, plane=NullPlane(), throttle=False)
        self.world.put_group(CLUSTER.subscription, CLUSTER.resource_group, {"location": "westeurope"})

    def send(self, kind: str, body: Json) -> Json:
        """Send a body; return what Azure shows then, or raise its refusal."""
        if kind != "cluster":
            self.world.put_cluster(CLUSTER, _BASE)
            self.clock.advance(10)
        if kind == "pool":
            self.world.put_pool(CLUSTER, "web", body)
            return self.world.get_pool(CLUSTER, "web")
        if kind == "maintenance":
            name = "aksManagedAutoUpgradeSchedule" if "maintenanceWindow" in str(body) else "default"
            self.world.put_maintenance(CLUSTER, name, body)
            return self.world.get_maintenance(CLUSTER, name)
        self.world.put_cluster(CLUSTER, body)
        self.clock.advance(10)
        return self.world.get_cluster(CLUSTER)


_BASE = {
    "location": "westeurope",
    "identity": {"type": "SystemAssigned"},
    "properties": {"dnsPrefix": "one", "agentPoolProfiles": [SYSTEM]},
}


def local(kind: str, body: Json) -> tuple[str, Json | None]:
    """Return the objection of the local Azure (a kind, a rule or a code), or what it shows."""
    try:
        return "", Target().send(kind, body)
    except ArmError as error:
        if error.code == "UnmarshalError":
            return ("unknown" if "unknown field" in error.message else "type"), None
        if " is none of " in error.message and error.code == "InvalidParameter":
            return "enum", None
        return (isinstance(error, AksError) and error.rule) or f"{error.code} {error.target}".strip(), None


def compared(kind: str, body: Json, found: Counter[str]) -> None:
    """Count how the models and the local Azure differ about a body."""
    found["bodies"] += 1
    problem = objection(MODELS[kind], body)
    refused, shown = local(kind, body)
    if problem is not None:
        found["invalid"] += 1
        print(kind, problem)
    if (problem[0] if problem else "") != refused:
        found[refused or f"accepted: {problem}"] += 1
    if shown is not None:
        found["accepted"] += 1
        strange = objection(MODELS[kind], shown)
        if strange is not None:
            found[f"shown {strange[1].removeprefix('.properties.')}"] += 1


def unlisted(found: Counter[str]) -> dict[str, int]:
    pages = "\n".join((DOCS / page).read_text() for page in ("local-azure-refusals.md", "local-cloud.md"))
    listed = set(re.findall(r"`([^`\n]+)`", pages)) | {"bodies", "invalid", "accepted"}
    return {key: count for key, count in found.items() if key not in listed}


def test_walked_bodies_are_taken_by_both_or_the_refusal_is_listed() -> None:
    chance, found = random.Random(1), Counter[str]()
    for number in range(WALKED):
        kind = ("cluster", "pool", "update", "cluster", "pool", "maintenance")[number % 6]
        compared(kind, walked(kind, chance), found)
    print(dict(found))
    assert found["bodies"] == WALKED
    assert found["invalid"] == 0
    assert found["accepted"] > WALKED / 3
    assert unlisted(found) == {}


def test_mutated_bodies_are_refused_by_both_for_the_same_reason() -> None:
    chance, found = random.Random(2), Counter[str]()
    while found["invalid"] < INVALID:
        kind = chance.choice(["cluster", "pool", "update", "maintenance"])
        compared(kind, mutated(walked(kind, chance), chance), found)
    print(dict(found))
    assert unlisted(found) == {}


def test_the_bodies_of_generated_manifests_are_taken_by_both_or_the_refusal_is_listed() -> None:
    found = Counter[str]()

    @settings(max_examples=FROM_MANIFESTS, database=None, derandomize=True, deadline=None)
    @given(SPECS)
    def send(spec: Mapping[str, Any]) -> None:
        cluster = desired(**spec)
        body = cluster_body(cluster, OWNER, None)
        assert body is not None
        compared("cluster", body, found)
        for pool in cluster.spec.node_pools[1:]:
            made = pool_body(pool, cluster, OWNER, None)
            assert made is not None
            compared("pool", made, found)

    sent: Callable[[], None] = send
    sent()
    print(dict(found))
    assert found["invalid"] == 0
    assert unlisted(found) == {}


def test_the_page_of_refusals_is_that_of_the_tables() -> None:
    assert (DOCS / "local-azure-refusals.md").read_text() == refusals_page.page()
