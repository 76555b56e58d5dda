"""The manifest of a cluster that exists in Azure.

It omits defaults and what only Azure writes; a property without a field goes to ``azure.properties``. Planned
against that cluster, the manifest writes nothing but our ownership tags.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from shared.azure.arm_to_spec import (
    DEFAULTS,
    POOL_DEFAULTS,
    Parts,
    empty,
    first_message,
    shortened,
    without_defaults,
)
from shared.azure.changes.upgrades import minor
from shared.azure.changes.writes import is_stopped, pool_is_stopped, running_version
from shared.azure.differences import differences_of
from shared.azure.node_pools.body import SIZES_OF_A_SCALE_SET
from shared.azure.ownership import OwnerTags
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.kubernetes_versions import needs_upgrade, numbers, runs_newer
from shared.language.desired import Desired, stored_form
from shared.language.model.arm_types import COMMANDS_OF_POOLS, OWNED_BY_AZURE
from shared.language.model.cluster.schedules import MaintenanceConfiguration
from shared.language.model.cluster.spec import ClusterProperties, ClusterSpec
from shared.language.model.kinds import ADOPT, API_VERSION, Cluster
from shared.language.model.node_pool import NodePool, PoolProperties
from shared.resource_ids import ClusterId

READ_ONLY = (
    *OWNED_BY_AZURE["cluster"],
    "agentPoolProfiles",
    "networkProfile.loadBalancerProfile.effectiveOutboundIPs",
    "networkProfile.natGatewayProfile.effectiveOutboundIPs",
    "oidcIssuerProfile.issuerURL",
    "addonProfiles.*.identity",
    "ingressProfile.webAppRouting.identity",
    "privateLinkResources",
)
POOL_READ_ONLY = ("name", *OWNED_BY_AZURE["pool"], *COMMANDS_OF_POOLS, "enableAutoScaling")

_FLUX = {"repository": "https://flux.invalid/unknown", "path": "./"}
"""A placeholder for the source that Azure does not know, so that the rest can be validated."""


class NotImportable(ValueError):
    """No manifest can describe this cluster; the message says why, and what to do."""


@dataclass(frozen=True)
class ImportedManifest:
    """A manifest: ``spec`` is complete, ``short`` has no defaults.

    ``left`` lists what a manifest cannot express, ``differences`` the fields that an adoption would write.
    """

    name: str
    spec: Mapping[str, Any]
    short: Mapping[str, Any]
    left: tuple[str, ...]
    differences: tuple[str, ...]


def document(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of a cluster that is adopted once it equals its spec."""
    metadata = {"name": name, "annotations": {ADOPT: "when-equal"}}
    return {"apiVersion": API_VERSION, "kind": "Cluster", "metadata": metadata, "spec": dict(spec)}


def imported(
    cluster: ClusterId, owner: OwnerTags, live: Json, maintenance: Mapping[str, Json]
) -> ImportedManifest:
    """Return the manifest of a managed cluster as ARM shows it; raise NotImportable.

    ``maintenance`` are its maintenance configurations by name. The manifest has no ``flux``, which Azure does
    not know.
    """
    properties = live["properties"]
    if is_stopped(live):
        raise NotImportable(f"{cluster.name} is stopped, so Azure does not show its nodes; start it first")
    parts = Parts(READ_ONLY)
    if owner.is_others(live):
        parts.left.append(f"tags: the cluster has an owner already: {owner.describe_tags(live)}")
    typed, rest = parts.take(_without_unused_vault(properties), ClusterProperties)
    _remove_azures_choices(typed, cluster, live)
    typed["kubernetesVersion"] = _version(properties)
    spec: dict[str, Any] = {
        "subscriptionId": cluster.subscription,
        "resourceGroup": cluster.resource_group,
        "location": str(live["location"]).replace(" ", "").lower(),
        **_around_properties(live, parts),
        **typed,
        "nodePools": [
            _pool(profile, owner, typed["kubernetesVersion"], parts.left)
            for profile in properties.get("agentPoolProfiles") or ()
        ],
        "maintenanceWindows": _windows(maintenance, parts),
    }
    rest = without_defaults(rest, None, DEFAULTS, ()) or {}
    if rest:
        spec["azure"] = {"properties": rest}
    return _checked(cluster, owner, live, {k: v for k, v in spec.items() if not empty(v)}, parts.left)


def _version(properties: Json) -> str:
    """Return the running version, or only its minor where that was requested or Azure upgrades patches."""
    requested = str(properties.get("kubernetesVersion"))
    running = running_version(properties, "kubernetesVersion")
    channel = str((properties.get("autoUpgradeProfile") or {}).get("upgradeChannel") or "none").lower()
    any_patch = len(numbers(requested)) == 2 or channel in ("patch", "stable", "rapid")
    return minor(running) if any_patch else running


def _without_unused_vault(properties: Json) -> Json:
    """Return the properties without the access to a vault that Azure shows although its key is not used."""
    security = properties.get("securityProfile") or {}
    if (security.get("azureKeyVaultKms") or {}).get("enabled") is not False:
        return properties
    return {**properties, "securityProfile": {**security, "azureKeyVaultKms": {"enabled": False}}}


def _remove_azures_choices(typed: dict[str, Any], cluster: ClusterId, live: Json) -> None:
    """Remove names and identities that Azure chose itself."""
    group = str(typed.get("nodeResourceGroup") or "")
    location = str(live["location"])
    if group.lower() == f"mc_{cluster.resource_group}_{cluster.name}_{location}".lower():
        del typed["nodeResourceGroup"]
    kubelet = (typed.get("identityProfile") or {}).get("kubeletidentity") or {}
    from_azure = group and f"/resourcegroups/{group}/".lower() in str(kubelet.get("resourceId")).lower()
    if from_azure or str((live.get("identity") or {}).get("type")) != "UserAssigned":
        typed.pop("identityProfile", None)
    network = typed.get("networkProfile") or {}
    for single in ("podCidr", "serviceCidr"):
        if network.get(single) and network.get(f"{single}s") == [network[single]]:
            del network[f"{single}s"]


def _around_properties(live: Json, parts: Parts) -> dict[str, Any]:
    """Return the fields for what ARM has outside ``properties``."""
    sku, identity = live.get("sku") or {}, live.get("identity") or {}
    name = sku.get("name") if str(sku.get("name") or "Base").lower() != "base" else None
    outer = {"sku": {"name": name, "tier": sku.get("tier")}, "tags": _tags(live)}
    outer |= {key: live[key] for key in ("extendedLocation", "kind") if live.get(key)}
    typed, _ = parts.take(outer, ClusterSpec)
    users = list(identity.get("userAssignedIdentities") or ())
    if identity.get("type") == "UserAssigned" and len(users) == 1:
        return typed | {"identity": {"type": "UserAssigned", "userAssignedIdentity": users[0]}}
    if identity.get("type") == "SystemAssigned":
        return typed | {"identity": {"type": "SystemAssigned"}}
    if identity.get("type") not in (None, "None"):
        parts.left.append(
            f"identity: {identity['type']} with {len(users)} identities: a manifest has no field for it"
        )
    return typed


def _tags(resource: Json) -> dict[str, Any]:
    tags = resource.get("tags") or {}
    return {key: value for key, value in tags.items() if not key.lower().startswith("roadstead-")}


def _pool(profile: Json, owner: OwnerTags, cluster_version: str, left: list[str]) -> dict[str, Any]:
    name = owner.pool_of(profile)
    parts = Parts(POOL_READ_ONLY, left)
    typed, rest = parts.take({**profile, "tags": _tags(profile)}, PoolProperties, where=f"nodePools[{name}].")
    sizes: tuple[str, ...] = ("count",) if profile.get("enableAutoScaling") else ("minCount", "maxCount")
    if str(profile.get("type")).lower() == "virtualmachines":
        sizes = SIZES_OF_A_SCALE_SET
    typed = {key: value for key, value in typed.items() if key not in (*sizes, "orchestratorVersion")}
    runs = running_version(profile, "orchestratorVersion")
    if needs_upgrade(cluster_version, runs) or runs_newer(cluster_version, runs):
        typed["orchestratorVersion"] = runs
    if pool_is_stopped(profile) and "count" in typed:
        left.append(
            f"nodePools[{name}].count: the pool is stopped, and Azure shows 0; write how many nodes it has "
            "when it runs"
        )
    rest = without_defaults(rest, None, POOL_DEFAULTS, ()) or {}
    pool = {"name": name, **typed, **({"azure": {"properties": rest}} if rest else {})}
    try:
        NodePool.model_validate(pool)
    except ValidationError as error:
        raise NotImportable(f"node pool {profile['name']}: {first_message(error)}") from error
    return pool


def _windows(maintenance: Mapping[str, Json], parts: Parts) -> list[dict[str, Any]]:
    windows = []
    for name, body in sorted(maintenance.items()):
        at = f"maintenanceWindows[{name}]"
        properties = body.get("properties") or {}
        typed, _ = parts.take({"name": name, **properties}, MaintenanceConfiguration, where=f"{at}.")
        try:
            MaintenanceConfiguration.model_validate(typed)
        except ValidationError as error:
            parts.left.append(f"{at}: {first_message(error)}")
        else:
            windows.append(typed)
    return windows


def _checked(
    cluster: ClusterId, owner: OwnerTags, live: Json, spec: dict[str, Any], left: list[str]
) -> ImportedManifest:
    name = cluster.name.lower()
    while True:
        try:
            _desired(name, spec)
            break
        except ValidationError as error:
            spec = _without(spec, error, left)
    brief = shortened(spec)
    try:
        _desired(name, brief)
    except ValidationError:
        brief = spec
    differing = differences_of(_desired(name, brief), owner, live)
    return ImportedManifest(name, spec, brief, tuple(left), tuple(map(str, differing)))


def _desired(name: str, spec: Mapping[str, Any]) -> Desired:
    manifest = Cluster.model_validate(document(name, {**spec, "flux": _FLUX}))
    return Desired.of(stored_form(name, manifest.spec, "", adopt="when-equal"), manifest.spec)


def _without(spec: Mapping[str, Any], error: ValidationError, left: list[str]) -> dict[str, Any]:
    """Remove a field that a manifest cannot express, and list it; raise NotImportable if it is required."""
    where = error.errors()[0]["loc"]
    if len(where) < 2 or where[0] != "spec" or where[1] not in spec or where[1] in _NEEDED:
        raise NotImportable(first_message(error)) from error
    left.append(first_message(error).removeprefix("spec."))
    return {key: value for key, value in spec.items() if key != where[1]}


_NEEDED = ("subscriptionId", "resourceGroup", "location", "kubernetesVersion", "nodePools")
