"""The desired properties merged over the existing ones: only desired leaves are compared and written.

ARM spells many values differently from what it received. The tables here state where that is no difference. A
path is the tuple of keys below ``properties``; in a pattern ``*`` stands for one key.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache, reduce
from typing import Any

from shared.frozen import dataclass
from shared.json_tree import Children, Json, Path, differing


@dataclass(frozen=True)
class Leaf:
    """One value that differs: its path, what Azure has (None: nothing), and what is desired."""

    path: Path
    old: Any
    new: Any

    def __str__(self) -> str:
        return ".".join(self.path)

    @property
    def shown_old(self) -> Any:
        """What Azure has, as a message shows it."""
        return "nothing" if self.old in (None, "", [], {}) else self.old


_LIKE_A_NETWORK = re.compile(r"[0-9A-Fa-f.:]+(/[0-9.]+)?")

EXACT = (
    *("tags.*", "nodeTaints", "nodeInitializationTaints", "messageOfTheDay"),
    *("httpProxyConfig.trustedCa", "securityProfile.customCATrustCertificates"),
    "linuxProfile.ssh.publicKeys.keyData",
    *(
        f"azureMonitorProfile.metrics.kubeStateMetrics.{name}"
        for name in ("metricLabelsAllowlist", "metricAnnotationsAllowList")
    ),
)
"""Strings whose letter case counts; elsewhere (enums, resource ids, regions) ARM ignores it."""

WHOLE = ("nodeLabels", "identity.userAssignedIdentities")
"""Objects that are replaced, not merged: what is not desired is removed."""

ORDERED = ("networkProfile.ipFamilies", "networkProfile.podCidrs", "networkProfile.serviceCidrs")
"""Lists whose order counts: the first IP family is the primary one. All others are sets."""

ADDED_TO = ("httpProxyConfig.noProxy",)
"""Lists that Azure adds to: it is enough that they contain what is desired."""

ABSENT: Mapping[str, Any] = {
    "autoUpgradeProfile.upgradeChannel": "none",
    "networkProfile.networkPolicy": "none",
    "enableRBAC": True,
    "storageProfile.diskCSIDriver.enabled": True,
    "storageProfile.fileCSIDriver.enabled": True,
    "storageProfile.snapshotController.enabled": True,
    "scaleSetPriority": "Regular",
    "scaleDownMode": "Delete",
    "workloadRuntime": "OCIContainer",
    "podIPAllocationMode": "DynamicIndividual",
    "gpuProfile.driver": "Install",
}
"""What an absent value means in ARM; for any other field it equals false, "" and an empty list."""


def overlay(
    live: Json, wanted: Json, left: Callable[[Path], bool] = lambda _: False
) -> tuple[dict[str, Any], list[Leaf]]:
    """Return ``live`` with ``wanted`` merged over it, and the leaves that this changes.

    ``left`` says which leaves stay as they exist, by their paths.
    """
    body, changes = dict(live), []
    for path, old, new in _differing(live, wanted, ()):
        leaf = Leaf(_below_properties(path), old, new)
        if not left(leaf.path):
            _put(body, path, new)
            changes.append(leaf)
    return body, changes


def without_left(wanted: Json, left: Callable[[Path], bool], path: Path = ()) -> dict[str, Any]:
    """Return what is wanted without the leaves that stay as they exist, and objects of these alone."""
    kept: dict[str, Any] = {}
    for key, value in wanted.items():
        at = (*path, key)
        if isinstance(value, Mapping) and value and not matches(_below_properties(at), WHOLE):
            below = without_left(value, left, at)
            if below:
                kept[key] = below
        elif not left(_below_properties(at)):
            kept[key] = value
    return kept


def manifest_path(path: Path, untyped: Mapping[str, Any]) -> str:
    """Return the path of a leaf in the manifest, which has untyped ones below ``azure.properties``."""
    below: Any = untyped
    for key in path:
        if not isinstance(below, Mapping) or key not in below:
            return ".".join(path)
        below = below[key]
    return ".".join(("azure", "properties", *path))


def _differing(live: Any, wanted: Json, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    return differing(live, wanted, below=_wanted_entries, equal=_means_the_same, path=path)


def _wanted_entries(path: Path, live: Any, wanted: Any) -> Children | None:
    """Pair the wanted entries of an object, None for a value that is compared as a whole."""
    if not isinstance(wanted, Mapping) or not wanted or matches(_below_properties(path), WHOLE):
        return None
    known = live if isinstance(live, Mapping) else {}
    return [(key, known.get(_spelling(known, key)), value) for key, value in wanted.items()]


def _spelling(known: Json, key: str) -> str:
    """Return the key as ARM shows it: property names, tag names and add-on names do not differ by case."""
    return key if key in known else next((other for other in known if other.lower() == key.lower()), key)


def _below_properties(path: Path) -> Path:
    return path[1:] if path[:1] == ("properties",) else path


def _means_the_same(path: Path, live: Any, wanted: Any) -> bool:
    return same(wanted, live, _below_properties(path))


def _put(body: dict[str, Any], path: Path, value: Any) -> None:
    """Set the value at a path; the objects on the way are copied."""
    name = _spelling(body, path[0])
    if len(path) > 1:
        below = body.get(name)
        copy = dict(below) if isinstance(below, Mapping) else {}
        _put(copy, path[1:], value)
        value = copy
    body[name] = value


@lru_cache(4096)
def matches(path: Path, patterns: tuple[str, ...]) -> bool:
    """Return whether one of the patterns names a path."""
    return any(_match(path, pattern.split(".")) for pattern in patterns)


def _match(path: Path, pattern: list[str]) -> bool:
    return len(path) == len(pattern) and all(p in ("*", key) for key, p in zip(path, pattern, strict=True))


def alike(value: Any, other: Any, path: Path = ()) -> bool:
    """Return whether two JSON values are equal except for the order of lists whose order means nothing.

    ``path`` may begin with more keys than ARM's, such as a manifest's ``spec``.
    """
    return _in_order(value, path) == _in_order(other, path)


def _in_order(value: Any, path: Path) -> str:
    """Return canonical JSON; there 1 and true differ, which are equal in Python."""
    if isinstance(value, Mapping):
        inner = {str(key): _in_order(below, (*path, str(key))) for key, below in value.items()}
        return json.dumps(inner, sort_keys=True)
    if isinstance(value, list | tuple):
        items = [_in_order(item, path) for item in value]
        return json.dumps(items if ".".join(path[-2:]) in ORDERED else sorted(items))
    return json.dumps(value)


def same(wanted: Any, old: Any, path: Path = ()) -> bool:
    """Return whether two values of one field mean the same to ARM."""
    if old is None:
        return _absent(wanted, path)
    if isinstance(wanted, Mapping):
        return isinstance(old, Mapping) and _same_map(wanted, old, path)
    if isinstance(wanted, list | tuple):
        return isinstance(old, list | tuple) and _same_list(list(wanted), list(old), path)
    return bool(_plain(wanted, path) == _plain(old, path))


def _absent(wanted: Any, path: Path) -> bool:
    meant = ABSENT.get(".".join(path))
    if meant is not None:
        return bool(wanted == meant)
    return wanted is None or wanted is False or wanted in ("", [], (), {})


def _same_map(wanted: Json, old: Json, path: Path) -> bool:
    if path == ("nodeLabels",):
        return dict(wanted) == dict(old)
    if matches(path, WHOLE):
        return {key.lower() for key in wanted} == {key.lower() for key in old}
    return not wanted or next(_differing(old, wanted, path), None) is None


def _same_list(wanted: list[Any], old: list[Any], path: Path) -> bool:
    if any(isinstance(item, Mapping) for item in (*wanted, *old)):
        left = list(old)
        for item in wanted:
            match = next((other for other in left if same(item, other, path)), None)
            if match is None:
                return False
            left.remove(match)
        return not left
    new, now = [_plain(item, path) for item in wanted], [_plain(item, path) for item in old]
    if matches(path, ORDERED):
        return new == now
    return set(new) <= set(now) if matches(path, ADDED_TO) else set(new) == set(now)


def _plain(value: Any, path: Path) -> Any:
    return _shown(value) if isinstance(value, str) and not matches(path, EXACT) else value


@lru_cache(4096)
def _shown(value: str) -> str:
    if _LIKE_A_NETWORK.fullmatch(value):
        with suppress(ValueError):
            return str(ipaddress.ip_network(value))  # ARM shows 1.2.3.4 as 1.2.3.4/32
    return value.lower()


# What only Azure writes in a cluster and in a node pool: a PUT of what was read leaves it out.
#
# Source: what the AKS specification 2026-08-01 marks as read-only; a test compares the two tables with the
# models of the management library. ``*`` stands for any key of an object, ``[]`` for any item of a list.

CLUSTER = (
    *("id", "name", "type", "systemData", "eTag"),
    *("identity.principalId", "identity.tenantId"),
    *("identity.userAssignedIdentities.*.principalId", "identity.userAssignedIdentities.*.clientId"),
    *("properties.provisioningState", "properties.powerState", "properties.status.provisioningError"),
    *("properties.currentKubernetesVersion", "properties.maxAgentPools", "properties.resourceUID"),
    *("properties.fqdn", "properties.privateFQDN", "properties.azurePortalFQDN"),
    "properties.addonProfiles.*.identity",
    "properties.podIdentityProfile.userAssignedIdentities.[].provisioningState",
    "properties.podIdentityProfile.userAssignedIdentities.[].provisioningInfo",
    "properties.oidcIssuerProfile.issuerURL",
    "properties.networkProfile.loadBalancerProfile.effectiveOutboundIPs",
    "properties.networkProfile.natGatewayProfile.effectiveOutboundIPs",
    "properties.privateLinkResources.[].privateLinkServiceID",
    "properties.ingressProfile.webAppRouting.identity",
)
POOL = (
    *("id", "name", "type", "systemData", "eTag"),
    *("provisioningState", "currentOrchestratorVersion", "status.provisioningError", "localDNSProfile.state"),
)
"""Of a pool's profile, which has its properties on one level."""

_ALSO_LEFT_OUT = ("properties.status", "properties.agentPoolProfiles")
_ALSO_LEFT_OUT_OF_POOLS = ("status", "powerState", "nodeImageVersion", "virtualMachineNodesStatus")
"""What a PUT of what was read does not repeat: another node image would be a rollback, and of the
power state only Stopped is repeated."""


def writable_cluster(document: Json) -> dict[str, Any]:
    """Return a cluster without what only Azure writes, and without its node pools."""
    return dict(reduce(_without, (*CLUSTER, *_ALSO_LEFT_OUT), document))


def writable_pool(profile: Json) -> dict[str, Any]:
    """Return a pool's profile without what only Azure writes."""
    return dict(reduce(_without, (*POOL, *_ALSO_LEFT_OUT_OF_POOLS), profile))


def _without(value: Any, path: str) -> Any:
    """Return the value without what a path names; everything on the way is copied."""
    first, _, rest = path.partition(".")
    if first == "[]":
        return [_without(item, rest) for item in value] if isinstance(value, list) else value
    if not isinstance(value, Mapping):
        return value
    if not rest:
        return {key: below for key, below in value.items() if key != first}
    return {key: _without(below, rest) if first in ("*", key) else below for key, below in value.items()}
