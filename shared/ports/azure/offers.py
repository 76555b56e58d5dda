"""The lists of what Azure has for a subscription: regions, sizes, limits, networks, rights and registrations.

Sources, in github.com/Azure/azure-rest-api-specs: specification/resources (locations, providers, features),
specification/compute (skus of 2021-07-01, usages), specification/network (usages, virtualNetworks),
specification/authorization (roleAssignments with a filter, roleDefinitions) and
specification/kubernetesconfiguration (extensionTypes). They annotate a plan, or say what a channel has:
nobody waits for them, and each takes a few seconds at most.
"""

from __future__ import annotations

from collections.abc import Sequence

from shared.azure.rate_limits import ARM_READ
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.ports.azure.calls import AzureCall, PageCall, Request
from shared.resource_ids import GroupId, RegionId, SubscriptionId

_SUBSCRIPTION = "/subscriptions/{target.subscription}"
_REGION = "locations/{target.location}"
_CONFIGURATION = f"{_SUBSCRIPTION}/providers/Microsoft.KubernetesConfiguration"
_SECONDS = 4.0


@dataclass(frozen=True)
class ListLocations(AzureCall[Sequence[Json]]):
    """Return the regions that a subscription has, each with its ``name``."""

    request, limits = Request("LIST", f"{_SUBSCRIPTION}/locations", "2022-12-01"), (ARM_READ,)
    needs, read_seconds = ("name",), _SECONDS
    target: SubscriptionId


@dataclass(frozen=True)
class ListSizes(AzureCall[Sequence[Json]]):
    """Return what can be created in a region: sizes of machines, among disks and others.

    One has ``resourceType``, ``name``, ``family``, ``locationInfo`` with zones, ``capabilities`` such as
    {"name": "vCPUs", "value": "4"}, and ``restrictions``.
    """

    request = Request(
        "LIST",
        f"{_SUBSCRIPTION}/providers/Microsoft.Compute/skus",
        "2021-07-01",
        {"$filter": "location eq '{target.location}'"},  # the one that Azure takes
    )
    limits, needs, read_seconds = (ARM_READ,), ("name", "resourceType"), _SECONDS
    target: RegionId


@dataclass(frozen=True)
class ListExtensionVersions(AzureCall[Sequence[Json]]):
    """Return the versions of Microsoft's extension of Flux that a region has, of the stable release train.

    One has ``properties.version`` ("1.19.5") and ``supportedClusterTypes`` (["managedClusters"]).
    """

    request = Request(
        "LIST",
        f"{_CONFIGURATION}/{_REGION}/extensionTypes/microsoft.flux/versions",
        "2024-11-01-preview",
        {"releaseTrain": "stable"},
    )
    limits, needs, read_seconds = (ARM_READ,), ("properties.version",), _SECONDS
    target: RegionId


@dataclass(frozen=True)
class ListComputeUsages(AzureCall[Sequence[Json]]):
    """Return the limits of cores in a region: ``name.value``, ``currentValue`` and ``limit``."""

    request = Request("LIST", f"{_SUBSCRIPTION}/providers/Microsoft.Compute/{_REGION}/usages", "2024-07-01")
    limits, needs, read_seconds = (ARM_READ,), ("name", "limit"), _SECONDS
    target: RegionId


@dataclass(frozen=True)
class ListNetworkUsages(AzureCall[Sequence[Json]]):
    """Return the limits of networks in a region, as those of cores; public addresses are among them."""

    request = Request("LIST", f"{_SUBSCRIPTION}/providers/Microsoft.Network/{_REGION}/usages", "2024-05-01")
    limits, needs, read_seconds = (ARM_READ,), ("name", "limit"), _SECONDS
    target: RegionId


@dataclass(frozen=True)
class ListClusterUsages(AzureCall[Sequence[Json]]):
    """Return the limit of managed clusters in a region, as those of cores.

    No specification has it. Source: github.com/Azure/telescope, steps/setup-tests.yml and
    modules/python/tests/test_managed_cluster_quota_preflight.py, which read it before they create clusters.
    """

    request = Request(
        "LIST", f"{_SUBSCRIPTION}/providers/Microsoft.ContainerService/{_REGION}/usages", "2024-01-01"
    )
    limits, needs, read_seconds = (ARM_READ,), ("name", "limit"), _SECONDS
    target: RegionId


@dataclass(frozen=True)
class ListNetworks(AzureCall[Sequence[Json]]):
    """Return the virtual networks of a subscription with their subnets.

    A subnet has ``properties.addressPrefix`` or ``addressPrefixes``, and ``ipConfigurations``: one for each
    address in use.
    """

    request = Request("LIST", f"{_SUBSCRIPTION}/providers/Microsoft.Network/virtualNetworks", "2024-05-01")
    limits, needs, read_seconds = (ARM_READ,), ("id", "properties"), _SECONDS
    target: SubscriptionId


@dataclass(frozen=True)
class ListGrants(AzureCall[Sequence[Json]]):
    """Return the role assignments of an identity and its groups in a subscription, and above and below it.

    ``principal`` is its object id. Source of the filter: learn.microsoft.com/azure/role-based-access-control,
    role-assignments-list-rest.
    """

    request = Request(
        "LIST",
        f"{_SUBSCRIPTION}/providers/Microsoft.Authorization/roleAssignments",
        "2022-04-01",
        {"$filter": "assignedTo('{principal}')"},
    )
    limits, read_seconds = (ARM_READ,), _SECONDS
    needs = ("properties.scope", "properties.roleDefinitionId")
    target: SubscriptionId
    principal: str


@dataclass(frozen=True)
class ListIdentities(AzureCall[Sequence[Json]]):
    """Return the user-assigned identities of a subscription with their ``id`` and ``properties.principalId``.

    Source: ManagedIdentity.json 2023-01-31, userAssignedIdentities, list by subscription.
    """

    request = Request(
        "LIST", f"{_SUBSCRIPTION}/providers/Microsoft.ManagedIdentity/userAssignedIdentities", "2023-01-31"
    )
    limits, needs, read_seconds = (ARM_READ,), ("id", "properties.principalId"), _SECONDS
    target: SubscriptionId


@dataclass(frozen=True)
class ListRoleDefinitions(AzureCall[Sequence[Json]]):
    """Return every role that can be assigned in a subscription: ``name`` is its GUID.

    ``properties.permissions`` has its ``actions`` and ``notActions``.
    """

    request = Request(
        "LIST", f"{_SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions", "2022-04-01"
    )
    limits, needs, read_seconds = (ARM_READ,), ("name", "properties"), _SECONDS
    target: SubscriptionId


@dataclass(frozen=True)
class ListProviders(AzureCall[Sequence[Json]]):
    """Return the resource providers with their ``namespace`` and ``registrationState``."""

    request = Request("LIST", f"{_SUBSCRIPTION}/providers", "2021-04-01")
    limits, needs, read_seconds = (ARM_READ,), ("namespace",), _SECONDS
    target: SubscriptionId


@dataclass(frozen=True)
class ListFeatures(AzureCall[Sequence[Json]]):
    """Return the features of a resource provider with their ``name`` and ``properties.state``."""

    request = Request(
        "LIST", f"{_SUBSCRIPTION}/providers/Microsoft.Features/providers/{{namespace}}/features", "2021-07-01"
    )
    limits, needs, read_seconds = (ARM_READ,), ("name", "properties"), _SECONDS
    target: SubscriptionId
    namespace: str


@dataclass(frozen=True)
class ListAlertRules(AzureCall[Sequence[Json]]):
    """Return the rules of a resource group that query logs, with their ``name`` and ``properties.enabled``.

    Source: specification/monitor, ScheduledQueryRules_ListByResourceGroup of 2021-08-01.
    """

    request = Request(
        "LIST",
        "/subscriptions/{target.subscription}/resourceGroups/{target.name}"
        "/providers/Microsoft.Insights/scheduledQueryRules",
        "2021-08-01",
    )
    limits, needs, read_seconds = (ARM_READ,), ("name", "properties.enabled"), _SECONDS
    target: GroupId


@dataclass(frozen=True)
class ListAlerts(PageCall):
    """Return a page of the alerts of the last thirty days that fire: of a resource group, or with "" of all.

    One has ``name`` and ``properties.essentials`` with ``severity`` (Sev0 is the worst), ``alertState``,
    ``monitorCondition``, ``alertRule`` and ``targetResource``. Source: specification/alertsmanagement,
    Alerts_GetAll of 2019-05-05-preview; without ``timeRange`` it has those of one day.
    """

    request = Request(
        "LIST",
        f"{_SUBSCRIPTION}/providers/Microsoft.AlertsManagement/alerts",
        "2019-05-05-preview",
        {
            **{"monitorCondition": "Fired", "timeRange": "30d", "pageCount": "250"},
            "targetResourceGroup": "{group}",
        },
    )
    limits, read_seconds = (ARM_READ,), _SECONDS
    needs = ("properties.essentials.severity", "properties.essentials.monitorCondition")
    target: SubscriptionId
    group: str
