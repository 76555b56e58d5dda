"""What the app and clusters may do with what manifests name, and what a subscription has registered. Pure.

It annotates a plan and decides nothing. Sources, in learn.microsoft.com/azure: aks/concepts-identity ("AKS
service permissions": what whoever writes a cluster needs on what it names, in ``_NEEDS``);
role-based-access-control/role-definitions (an assignment counts for its scope and all below it, wildcards,
``notActions``); the pages of AKS in ``_PROVIDERS`` and ``_FEATURES``. What a cluster's own identity needs is
in aks/private-clusters (`Private DNS Zone Contributor` on its zone) and aks/use-managed-identity (`Managed
Identity Operator` on the identity of its nodes). Who may use a key, a vault decides by data actions or access
policies, which no list of roles' ``actions`` has.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache

from shared.frozen import dataclass
from shared.json_tree import Json
from shared.language.desired import Desired
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.node_pool import AUTO
from shared.sentences import some_of

NAMED = 5
"""How many clusters a sentence names."""
_RESOURCE = re.compile(
    r"/subscriptions/(?P<subscription>[^/]+)/.+/providers/(?P<rest>[^/]+(?:/[^/]+/[^/]+)+)"
)
_NEEDS = {
    name.lower(): action
    for name, action in {
        "Microsoft.Network/virtualNetworks/subnets": "join/action",
        "Microsoft.Network/publicIPAddresses": "join/action",
        "Microsoft.Network/publicIPPrefixes": "join/action",
        "Microsoft.Network/applicationGateways": "write",
        "Microsoft.ManagedIdentity/userAssignedIdentities": "assign/action",
        "Microsoft.Compute/diskEncryptionSets": "read",
        "Microsoft.Compute/proximityPlacementGroups": "write",
        "Microsoft.OperationalInsights/workspaces": "sharedKeys/action",
    }.items()
}
"""What whoever writes a cluster needs to do with a resource, by its type."""
RIGHTS: Mapping[str, tuple[str, ...]] = {
    "control": (
        "Microsoft.ContainerService/managedClusters/read",
        "Microsoft.ContainerService/managedClusters/maintenanceConfigurations/read",
        "Microsoft.ContainerService/managedClusters/agentPools/upgradeProfiles/read",
    ),
    "worker": (
        "Microsoft.Resources/subscriptions/resourceGroups/write",
        "Microsoft.ContainerService/managedClusters/write",
        "Microsoft.ContainerService/managedClusters/start/action",
        "Microsoft.ContainerService/managedClusters/agentPools/write",
        "Microsoft.ContainerService/managedClusters/agentPools/delete",
        "Microsoft.ContainerService/managedClusters/agentPools/upgradeNodeImageVersion/action",
        "Microsoft.ContainerService/managedClusters/maintenanceConfigurations/write",
        "Microsoft.ContainerService/managedClusters/listClusterUserCredential/action",
    ),
    "deleter": (
        "Microsoft.Resources/subscriptions/resourceGroups/delete",
        "Microsoft.ContainerService/managedClusters/delete",
    ),
}
"""What each app needs in every target subscription: a part of its role in infra/access.bicep."""
_CREDENTIALS = "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials"
_WRITTEN = {
    "identities": "Microsoft.ManagedIdentity/userAssignedIdentities/write",
    "federatedCredentials": f"{_CREDENTIALS}/write",
    "roleAssignments": "Microsoft.Authorization/roleAssignments/write",
}
"""What the app itself writes at the resources that a section names."""
_PLACES = {"identities": "identity", "federatedCredentials": "identity", "roleAssignments": "scope"}
_OF_IDENTITY = (
    ("apiServerAccessProfile", "privateDNSZone", "Microsoft.Network/privateDnsZones/A/write"),
    (
        *("identityProfile", "kubeletidentity"),
        "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action",
    ),
)
"""What a cluster's own identity needs: the section and the field that names a resource, and the action."""


@dataclass(frozen=True)
class Grant:
    """What an assignment of a role allows at its scope and below."""

    scope: str
    actions: tuple[str, ...]
    excepted: tuple[str, ...] = ()

    def allows(self, action: str, resource: str) -> bool:
        """Return whether it allows an action on a resource; a scope above subscriptions is above them all."""
        scope = self.scope.lower().rstrip("/")
        within = not scope.startswith("/subscriptions/") or f"{resource.lower()}/".startswith(f"{scope}/")
        return within and _matches(self.actions, action) and not _matches(self.excepted, action)


@dataclass(frozen=True)
class Need:
    """An action on a resource that a cluster names: of the app, or of the ``identity`` of the cluster."""

    cluster: str
    action: str
    resource: str
    identity: str = ""

    @property
    def subscription(self) -> str:
        """The subscription of the resource."""
        return self.resource.split("/")[2].lower()


# What Azure's documents say.


def roles_of(documents: Sequence[Json]) -> Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the actions of roles, and what these leave out, by their GUIDs in lower case."""
    return {
        str(document["name"]).lower(): (
            _joined(document["properties"], "actions"),
            _joined(document["properties"], "notActions"),
        )
        for document in documents
    }


def _joined(properties: Json, which: str) -> tuple[str, ...]:
    permissions = properties.get("permissions") or ()
    return tuple(action for permission in permissions for action in permission.get(which) or ())


def assigned(documents: Sequence[Json]) -> tuple[tuple[str, str], ...]:
    """Return the scopes of role assignments, each with the GUID of its role in lower case."""
    found = (document["properties"] for document in documents)
    return tuple(
        (str(grant["scope"]), str(grant["roleDefinitionId"]).rpartition("/")[2].lower()) for grant in found
    )


def grants_of(
    assignments: Iterable[tuple[str, str]], roles: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
) -> tuple[Grant, ...]:
    """Return what assignments allow; one of a role that is not listed allows everything that is asked for."""
    everything: tuple[tuple[str, ...], tuple[str, ...]] = (("*",), ())
    return tuple(Grant(scope, *roles.get(role, everything)) for scope, role in assignments)


def principals_of(documents: Sequence[Json]) -> Mapping[str, str]:
    """Return the object ids of identities, by their resource ids in lower case."""
    return {str(document["id"]).lower(): str(document["properties"]["principalId"]) for document in documents}


def registered_providers(documents: Sequence[Json]) -> frozenset[str]:
    """Return the resource providers that a subscription has registered, or is about to."""
    return frozenset(
        str(document["namespace"]).lower()
        for document in documents
        if document.get("registrationState") in ("Registered", "Registering")
    )


def registered_features(documents: Sequence[Json]) -> frozenset[str]:
    """Return the features that a subscription has registered, or is about to."""
    return frozenset(
        str(document["name"]).lower()
        for document in documents
        if document["properties"].get("state") in ("Registered", "Registering")
    )


def _matches(patterns: Iterable[str], action: str) -> bool:
    return any(_pattern(pattern).fullmatch(action) for pattern in patterns)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """Return a pattern; "/*/" stands for "/" as well, as in `Managed Identity Operator` (built-in-roles)."""
    found = re.escape(text).replace(r"/\*/", "/(?:.*/)?").replace(r"\*", ".*")
    return re.compile(found, re.IGNORECASE)


# What a cluster asks for.


def needs_of(wanted: Desired) -> frozenset[Need]:
    """Return what the app and the cluster's identity need to do with what a cluster in Azure names."""
    spec = wanted.document()["spec"]
    return frozenset((*_needs(wanted.name, spec, ""), *_needs_of_identity(wanted.name, spec)))


def _needs_of_identity(cluster: str, spec: Json) -> Iterator[Need]:
    """Yield what a cluster's own identity needs; that of one which Azure gives it does not exist yet."""
    identity = str((spec.get("identity") or {}).get("userAssignedIdentity") or "")
    for section, field, action in _OF_IDENTITY:
        named = (spec.get(section) or {}).get(field) or ""
        resource = str(named.get("resourceId") or "" if isinstance(named, Mapping) else named)
        if identity and resource.startswith("/"):
            yield Need(cluster, action, resource, identity)


def _needs(cluster: str, value: object, section: str) -> Iterator[Need]:
    if isinstance(value, Mapping):
        place = str(value.get(_PLACES.get(section, "")) or "")
        if place.lower().startswith("/subscriptions/"):
            yield Need(cluster, _WRITTEN[section], place)
            return
        for key, item in value.items():
            yield from _needs(cluster, item, str(key))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _needs(cluster, item, section)
    elif isinstance(value, str) and section not in _WRITTEN and (named := _RESOURCE.fullmatch(value)):
        parts = named["rest"].split("/")
        kind = "/".join((parts[0], *parts[1::2]))
        if kind.lower() in _NEEDS:
            yield Need(cluster, f"{kind}/{_NEEDS[kind.lower()]}", value)


_AKS = "Microsoft.ContainerService"
_PROVIDERS: tuple[tuple[str, Callable[[ClusterSpec], bool]], ...] = (
    (_AKS, lambda _: True),  # create-aks-infrastructure
    ("Microsoft.KubernetesConfiguration", lambda spec: spec.flux.is_extension),  # deploy-extensions-az-cli
    (
        "Microsoft.PolicyInsights",  # automatic/quick-automatic-managed-network
        lambda spec: spec.sku.automatic or _has(spec, "azurepolicy"),
    ),
    ("Microsoft.OperationalInsights", lambda spec: _has(spec, "omsagent")),  # devops-pipeline
    ("Microsoft.OperationsManagement", lambda spec: _has(spec, "omsagent")),
)
_FEATURES: tuple[tuple[str, Callable[[ClusterSpec], bool]], ...] = (
    (
        "Microsoft.Compute/EncryptionAtHost",  # enable-host-encryption
        lambda spec: any(pool.enable_encryption_at_host for pool in spec.node_pools),
    ),
    (
        "Microsoft.Compute/VmssAutomaticZonePlacement",  # configure-automatic-zone-placement
        lambda spec: any(AUTO in pool.availability_zones for pool in spec.node_pools),
    ),
    (f"{_AKS}/ManagedNATGatewayV2Preview", lambda spec: _nat_sku(spec) == "StandardV2"),  # nat-gateway
    (
        f"{_AKS}/NodeDisruptionProfile",  # use-node-disruption-policy
        lambda spec: bool(spec.azure and "nodeDisruptionProfile" in (spec.azure.properties or {})),
    ),
)


def _nat_sku(spec: ClusterSpec) -> str | None:
    gateway = spec.network_profile.nat_gateway_profile
    return gateway.sku if gateway else None


def _has(spec: ClusterSpec, addon: str) -> bool:
    found = getattr(spec.addon_profiles, addon, None) if spec.addon_profiles else None
    return bool(found and found.enabled)


def features_of(spec: ClusterSpec) -> tuple[str, ...]:
    """Return the features that a subscription needs for a cluster, as Microsoft.Compute/EncryptionAtHost."""
    return tuple(name for name, needed in _FEATURES if needed(spec))


# What is short.


def lacking(needs: Iterable[Need], grants: Mapping[tuple[str, str], Sequence[Grant]]) -> list[str]:
    """Return a sentence for each action that no role allows; ``grants`` are by subscription and identity.

    The identity is in lower case, "" for the worker. Of one that is not in ``grants`` nothing is known: of
    the worker's own, the list that nobody could read says so.
    """
    short, unknown = defaultdict[tuple[str, str, str], set[str]](set), defaultdict[str, set[str]](set)
    for need in needs:
        known = grants.get((need.subscription, need.identity.lower()))
        if known is None and need.identity:
            unknown[need.resource].add(need.cluster)
        elif known is not None and not any(grant.allows(need.action, need.resource) for grant in known):
            short[need.resource, need.action, need.identity].add(need.cluster)
    lacks = [
        f"permission: {f'{_shown(identity)}' if identity else 'the worker'} lacks {action} on"
        f" {_shown(resource)} ({_named(clusters)})"
        for (resource, action, identity), clusters in sorted(short.items())
    ]
    return lacks + [
        f"permission: whether an identity may use {_shown(resource)} is unknown ({_named(clusters)})"
        for resource, clusters in sorted(unknown.items())
    ]


def lacking_in_subscription(app: str, subscription: str, grants: Sequence[Grant]) -> tuple[str, ...]:
    """Return what an app needs in a whole subscription and none of its roles allows."""
    place = f"/subscriptions/{subscription}"
    return tuple(need for need in RIGHTS[app] if not any(grant.allows(need, place) for grant in grants))


def _shown(resource: str) -> str:
    """Return a resource without its subscription: virtualNetworks/hub of the resource group net."""
    parts = resource.split("/")
    named = "/".join(parts[7:])
    if len(parts) < 5:
        return resource
    return f"{named} of the resource group {parts[4]}" if named else f"the resource group {parts[4]}"


def unregistered(
    subscription: str,
    specs: Mapping[str, ClusterSpec],
    providers: Collection[str] | None,
    features: Mapping[str, Collection[str] | None],
) -> list[str]:
    """Return a sentence for each provider and feature that clusters of a subscription need and it lacks.

    ``features`` are those that are registered, by the namespaces that were asked for; None is unknown.
    """
    short = defaultdict[str, set[str]](set)
    for cluster, spec in specs.items():
        for name, needed in _PROVIDERS:
            if providers is not None and needed(spec) and name.lower() not in providers:
                short[f"resource provider {name}"].add(cluster)
        for name in features_of(spec):
            known = features.get(name.partition("/")[0])
            if known is not None and name.lower() not in known:
                short[f"feature {name}"].add(cluster)
    return [
        f"registration: the subscription {subscription} has not registered the {what} ({_named(clusters)})"
        for what, clusters in sorted(short.items())
    ]


def _named(clusters: Iterable[str]) -> str:
    return some_of(sorted({*clusters}), NAMED)
