"""Desired clusters, fleets and records for the planner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from shared.azure.running_versions import RunningVersions
from shared.json_tree import digest_of
from shared.language.desired import Desired, normalised, stored_form
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.fleet_rules import Guards
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.problems import Problem
from shared.plan.plan import Postponement

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Row:
    """A recorded cluster."""

    document: Mapping[str, Any]
    generation: int = 1
    deleting: bool = False
    retryable_failure: bool = False
    restorable: bool = False
    running: RunningVersions = field(default_factory=RunningVersions)
    uid: str = "0badcafe"
    recovering: bool = False
    rebuilt_for: str = ""
    ready: bool = True
    lifetime_hold: Postponement | None = None

    @property
    def digest(self) -> str:
        return digest_of(self.document)


def desired(name: str, *, count: int = 1, protect: bool = False, location: str = "eastus") -> Desired:
    spec = {
        "subscriptionId": "00000000-0000-0000-0000-000000000001",
        "resourceGroup": f"rg-{name}",
        "location": location,
        "kubernetesVersion": "1.36",
        "nodePools": [{"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": count}],
        "flux": {"repository": "https://github.com/example/fleet", "path": "./platform"},
        "deletionProtection": protect,
    }
    return Desired(stored_form(name, ClusterSpec.model_validate(spec), "blob"))


def changed(cluster: Desired, **parts: Any) -> Desired:
    """Return a cluster with other parts of its stored form, with every default of its spec."""
    return Desired(normalised({**cluster.stored, **parts}), rebuild=cluster.rebuild)


def fleet(*clusters: Desired, budget: int = 1, invalid: tuple[str, ...] = ()) -> DesiredFleet:
    problem = Problem("f", 1, 1, "", "wrong")
    return DesiredFleet(
        {cluster.name: cluster for cluster in clusters},
        dict.fromkeys(invalid, (problem,)),
        (problem,) if invalid else (),
        Guards.model_validate({"deleteBudget": {"count": budget}}),
    )


def record(*clusters: Desired) -> dict[str, Row]:
    return {cluster.name: Row(cluster.document()) for cluster in clusters}


def with_field(cluster: Desired, field: str, value: Any) -> Desired:
    return changed(cluster, spec=cluster.stored["spec"] | {field: value})
