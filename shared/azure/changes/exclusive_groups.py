"""Properties that AKS refuses together: a PUT sends what the manifest chose, and not what that replaces.

The body of a PUT is the existing cluster with the manifest merged over it. Where the manifest chooses another
alternative, the body would have both. Paths are those of ARM's body. Sources, below learn.microsoft.com:
- azure/aks/configure-load-balancer-standard: "exactly one of ManagedOutboundIPs, OutboundIPPrefixes and
  OutboundIPs" (InvalidLoadBalancerProfile)
- azure/aks/nat-gateway: addresses that Azure manages and your own cannot be combined
- azure/aks/network-isolated: ``containerRegistryId`` goes with the artifact source Cache
- azure/aks/enable-authentication-microsoft-entra-id, github.com/Azure/azure-cli: AKS manages the applications
  of the integration with Entra ID itself; it finds the ids of a kubelet identity by its resource id
- azure/aks/egress-outboundtype (InvalidUserDefinedRoutingWithLoadBalancerProfile). ``az aks update`` leaves
  the whole profile out too. What a manifest has of it with another outbound type is about inbound traffic.
- rest/api/aks/managed-clusters/create-or-update: "leave the field empty" (key management, Defender),
  ``userAssignedIdentities``, and ``podCidrs`` as the general form of ``podCidr``
- azure/aks/api-server-authorized-ip-ranges: not on a private cluster
- the models of azure-mgmt-containerservice, Schedule: "one and only one of the schedule types"
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shared.frozen import dataclass
from shared.json_tree import Json


@dataclass(frozen=True)
class Alternatives:
    """AKS accepts one of the alternatives below ``parent``; the keys of one alternative go together."""

    parent: str
    alternatives: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class SwitchedKeys:
    """AKS accepts the ``keys`` below ``parent`` only while the property ``switch`` has this ``value``."""

    switch: str
    value: str | bool
    parent: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class DerivedKeys:
    """AKS derives the ``keys`` below ``parent`` from ``key``: they are not those of another value of it."""

    parent: str
    key: str
    keys: tuple[str, ...]


_NETWORK = "properties.networkProfile"
_KMS = "properties.securityProfile.azureKeyVaultKms"
_DEFENDER = "properties.securityProfile.defender"
_ACCESS = "properties.apiServerAccessProfile"
_BOOTSTRAP = "properties.bootstrapProfile"
_ENTRA = "properties.aadProfile"

ALTERNATIVES = (
    Alternatives(
        f"{_NETWORK}.loadBalancerProfile",
        (("managedOutboundIPs",), ("outboundIPs",), ("outboundIPPrefixes",)),
    ),
    Alternatives(
        f"{_NETWORK}.natGatewayProfile",
        (("managedOutboundIPProfile",), ("outboundIPs", "outboundIPPrefixes")),
    ),
)

SCHEDULE = Alternatives(
    "properties.maintenanceWindow.schedule",
    (("daily",), ("weekly",), ("absoluteMonthly",), ("relativeMonthly",)),
)
"""Of a maintenance configuration, which is a resource of its own."""

ONLY_WITH = (
    SwitchedKeys(
        f"{_NETWORK}.outboundType",
        "loadBalancer",
        f"{_NETWORK}.loadBalancerProfile",
        (
            *("managedOutboundIPs", "outboundIPs", "outboundIPPrefixes"),
            *("allocatedOutboundPorts", "idleTimeoutInMinutes"),
        ),
    ),
    SwitchedKeys(f"{_NETWORK}.outboundType", "loadBalancer", _NETWORK, ("loadBalancerProfile",)),
    SwitchedKeys(f"{_NETWORK}.outboundType", "managedNATGateway", _NETWORK, ("natGatewayProfile",)),
    SwitchedKeys("identity.type", "UserAssigned", "identity", ("userAssignedIdentities",)),
    SwitchedKeys(f"{_KMS}.enabled", True, _KMS, ("keyId", "keyVaultNetworkAccess", "keyVaultResourceId")),
    SwitchedKeys(f"{_KMS}.keyVaultNetworkAccess", "Private", _KMS, ("keyVaultResourceId",)),
    SwitchedKeys(
        f"{_DEFENDER}.securityMonitoring.enabled", True, _DEFENDER, ("logAnalyticsWorkspaceResourceId",)
    ),
    SwitchedKeys(f"{_ACCESS}.enablePrivateCluster", False, _ACCESS, ("authorizedIPRanges",)),
    SwitchedKeys(f"{_BOOTSTRAP}.artifactSource", "Cache", _BOOTSTRAP, ("containerRegistryId",)),
    SwitchedKeys(f"{_ENTRA}.managed", False, _ENTRA, ("clientAppID", "serverAppID", "serverAppSecret")),
)

DERIVED = (DerivedKeys("properties.identityProfile.kubeletidentity", "resourceId", ("clientId", "objectId")),)

_FIRST_OF = (("podCidr", "podCidrs"), ("serviceCidr", "serviceCidrs"))
"""Properties of the network that repeat the first item of a list."""


def without_rivals(body: Json, wanted: Json) -> dict[str, Any]:
    """Return the body without what AKS refuses with the choices of ``wanted``, the desired state alone."""
    result = dict(body)
    for group in ALTERNATIVES:
        result = _with_one(result, wanted, group)
    for rule in ONLY_WITH:
        value = _at(wanted, rule.switch)
        if value is not None and not _same(value, rule.value):
            named = _at(wanted, rule.parent) or {}
            result = _without(result, rule.parent, [key for key in rule.keys if not _has(named, (key,))])
    for derived in DERIVED:
        named = _at(wanted, derived.parent) or {}
        if _has(named, (derived.key,)):
            result = _without(result, derived.parent, [k for k in derived.keys if not _has(named, (k,))])
    return _with_first_items(result, wanted)


def one_schedule(body: Json, wanted: Json) -> dict[str, Any]:
    """Return a maintenance configuration without the kinds of schedule that the chosen one replaces."""
    return _with_one(dict(body), wanted, SCHEDULE)


def _with_one(body: dict[str, Any], wanted: Json, group: Alternatives) -> dict[str, Any]:
    chosen = _at(wanted, group.parent) or {}
    rivals = [keys for keys in group.alternatives if not _has(chosen, keys)]
    if len(rivals) == len(group.alternatives):
        return body
    return _without(body, group.parent, [key for keys in rivals for key in keys])


def _with_first_items(body: dict[str, Any], wanted: Json) -> dict[str, Any]:
    """Return the body with each repeated first item as the one of the two spellings that the manifest has."""
    named, network = _at(wanted, _NETWORK) or {}, dict(_at(body, _NETWORK) or {})
    for single, many in _FIRST_OF:
        if named.get(many):
            network[single] = named[many][0]
        elif named.get(single) and network.get(many):
            network[many] = [named[single], *network[many][1:]]
    return _replaced(body, _NETWORK.split("."), network) if network else body


def _at(document: Any, path: str) -> Any:
    for key in path.split("."):
        document = document.get(key) if isinstance(document, Mapping) else None
    return document


def _has(document: Json, keys: Iterable[str]) -> bool:
    return any(document.get(key) is not None for key in keys)


def _same(value: Any, other: Any) -> bool:
    return str(value).lower() == str(other).lower()


def _without(body: dict[str, Any], parent: str, keys: Iterable[str]) -> dict[str, Any]:
    """Return the body without these keys of an object in it, and without the object once it is empty."""
    found, gone = _at(body, parent), set(keys)
    if not isinstance(found, Mapping) or not gone & found.keys():
        return body
    left = {key: value for key, value in found.items() if key not in gone}
    return _replaced(body, parent.split("."), left or None)


def _replaced(body: Json, path: list[str], value: Any) -> dict[str, Any]:
    """Return the body with another value at a path that it has, None to remove it; the rest is shared."""
    first, *rest = path
    new = _replaced(body[first], rest, value) if rest else value
    return {
        **{key: old for key, old in body.items() if key != first},
        **({} if new is None else {first: new}),
    }
