"""A cluster near a refusal of AKS: what `validate` says of its spec, and what the local Azure answers."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from localcloud.azure.world.arm_errors import AksError
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.clock import ManualClock
from localcloud.common.control_plane import NullPlane
from shared.resource_ids import ClusterId
from tests.support.resolved_fleets import HEAD, resolved

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
NETWORK = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/net/providers/Microsoft.Network"
NAMES = {
    **{"V1": f"{NETWORK}/virtualNetworks/v1/subnets/a", "V1B": f"{NETWORK}/virtualNetworks/v1/subnets/b"},
    "V2": f"{NETWORK}/virtualNetworks/v2/subnets/a",
    "LONG": f"{NETWORK}/virtualNetworks/{'n' * 64}/subnets/a",
    "USER": f"{NETWORK.replace('Network', 'ManagedIdentity')}/userAssignedIdentities/one",
    **{
        name: f"{NETWORK.replace('Network', 'Compute')}/{kind}/one"
        for name, kind in (
            ("PPG", "proximityPlacementGroups"),
            ("CRG", "capacityReservationGroups"),
            ("HOSTS", "hostGroups"),
        )
    },
}
ZONES = {
    "ZONE": f"{NETWORK}/privateDnsZones",
    "DNS": f"{NETWORK}/dnszones",
    "OTHERDNS": f"{NETWORK.replace('/net/', '/other/')}/dnszones",
}
SPEC: dict[str, Any] = {
    **{"subscriptionId": SUBSCRIPTION, "resourceGroup": "rg", "location": "westeurope"},
    "kubernetesVersion": "1.36",
    "nodePools": [
        {"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 3},
        {"name": "apps", "vmSize": "Standard_D4s_v5", "count": 3},
    ],
    "flux": {"repository": "https://github.com/example/fleet", "path": "./platform"},
}
NOT_OF_ARM = {"subscriptionId", "resourceGroup", "location", "nodePools", "flux", "identity", "sku"}
FLEET = {
    "fleet.yaml": HEAD.format("Fleet", "example") + "spec:\n  environments: [dev]\n",
    "environments/dev.yaml": HEAD.format("Environment", "dev") + "spec: {}\n",
    "classes/plain.yaml": HEAD.format("ClusterClass", "plain") + "spec: {}\n",
    "flux/gotk-components.yaml": "",
}

_RANGES = [f"20.{number // 250}.{number % 250}.0/24" for number in range(2001)]
API_SERVERS: tuple[tuple[dict[str, Any], bool], ...] = (
    ({"authorizedIPRanges": _RANGES[:200]}, False),
    ({"authorizedIPRanges": _RANGES[:201]}, True),
    ({"authorizedIPRanges": _RANGES[:2000], "enableVnetIntegration": True}, False),
    ({"authorizedIPRanges": _RANGES, "enableVnetIntegration": True}, True),
)
"""Access to an API server, and whether it has too many ranges: api-server-authorized-ip-ranges."""
LAUNCHES: tuple[tuple[dict[str, Any], bool], ...] = (
    ({"osSKU": "AzureLinux", "enableFIPS": True, "securityProfile": {"enableVTPM": True}}, True),
    ({"osSKU": "Ubuntu2204", "enableFIPS": True, "securityProfile": {"enableVTPM": True}}, False),
    ({"vmSize": "Standard_NC24ads_A100_v4", "securityProfile": {"enableSecureBoot": True}}, True),
    (
        {
            "vmSize": "Standard_NC24ads_A100_v4",
            "securityProfile": {"enableSecureBoot": True},
            "gpuProfile": {"driver": "None"},
        },
        False,
    ),
    ({"vmSize": "Standard_NC24ads_A100_v4", "securityProfile": {"enableVTPM": True}}, False),
)
"""Node pools with Trusted Launch, and whether AKS refuses them: use-trusted-launch; Azure/AKS#4181.

A pool has it from a write of its own, so the local Azure refuses it in a new cluster."""


def named(value: Any) -> Any:
    """Return a value with the resource ids in the place of their names."""
    if isinstance(value, dict):
        return {key: named(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [named(inner) for inner in value]
    if isinstance(value, str) and value.partition("/")[0] in ZONES:
        kind, _, name = value.partition("/")
        return f"{ZONES[kind]}/{name}"
    return NAMES.get(value, value) if isinstance(value, str) else value


def spec_of(change: dict[str, Any]) -> dict[str, Any]:
    """Return a whole spec; node pools are merged by name, and null removes a field."""
    change, spec = named(change), copy.deepcopy(SPEC)
    pools = {pool["name"]: pool for pool in spec["nodePools"]}
    for pool in change.get("nodePools", ()):
        merged = pools.get(pool["name"], {}) | pool
        pools[pool["name"]] = {key: value for key, value in merged.items() if value is not None}
    spec |= {key: value for key, value in change.items() if key != "nodePools"}
    return spec | {"nodePools": [pool for pool in pools.values() if "$patch" not in pool]}


def problems_of(spec: dict[str, Any]) -> dict[str, str]:
    """Return what `validate` and a plan say of a cluster: the message of each field."""
    text = HEAD.format("Cluster", "one") + yaml.safe_dump(
        {"spec": spec | {"class": "plain", "environment": "dev"}}
    )
    files = {**FLEET, "clusters/one/cluster.yaml": text}
    problems = resolved({path: content.encode() for path, content in files.items()}).problems
    return {problem.field.removeprefix("spec."): problem.message for problem in problems}


def refusal_of(spec: dict[str, Any]) -> tuple[str, str]:
    """Return the rule and the code with which the local Azure refuses a new cluster, "" for none."""
    world, cluster = (
        AzureWorld(ManualClock(), plane=NullPlane(), throttle=False),
        ClusterId(SUBSCRIPTION, "rg", "one"),
    )
    world.put_group(SUBSCRIPTION, "rg", {"location": spec["location"]})
    identity = spec.get("identity") or {"type": "SystemAssigned"}
    users = [identity[key] for key in ("userAssignedIdentity",) if key in identity]
    pools = [
        pool | ({"enableAutoScaling": True, "count": pool["minCount"]} if "maxCount" in pool else {})
        for pool in spec["nodePools"]
    ]
    properties = {key: value for key, value in spec.items() if key not in NOT_OF_ARM}
    body: dict[str, Any] = {
        "location": spec["location"],
        "identity": {
            "type": identity["type"],
            **({"userAssignedIdentities": {users[0]: {}}} if users else {}),
        },
        "properties": {"dnsPrefix": "one", "agentPoolProfiles": pools, **properties},
        **({"sku": {"name": "Base", **spec["sku"]}} if "sku" in spec else {}),
    }
    try:
        world.put_cluster(cluster, body)
    except AksError as error:
        return error.rule, error.code
    return "", ""


@dataclass(frozen=True)
class Answer:
    """A request, and what AKS answers to it; without a rule, AKS takes it."""

    source: str
    spec: dict[str, Any]
    code: str = ""
    rule: str = ""
    field: str = ""


_RECORDED = Path(__file__).parents[1] / "language" / "refusals.yaml"
ANSWERS = [Answer(**entry) for entry in yaml.safe_load(_RECORDED.read_text())]
