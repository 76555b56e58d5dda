"""What a region and a subscription have for clusters, in both implementations of Azure."""

from __future__ import annotations

import pytest

from localcloud.azure.world.access.role_assignments import ROLES
from shared.azure.availability.channels import of_aks
from shared.azure.availability.offered import Subnet, quotas_of, sizes_of, subnets_of
from shared.azure.availability.offers import ADDRESSES, CLUSTERS, TOTAL
from shared.azure.availability.permissions import (
    assigned,
    grants_of,
    principals_of,
    registered_features,
    registered_providers,
    roles_of,
)
from shared.cluster.failures.errors import InvalidManifest, QuotaExceeded
from shared.ports.azure import (
    ListClusterUsages,
    ListComputeUsages,
    ListExtensionVersions,
    ListFeatures,
    ListGrants,
    ListIdentities,
    ListLocations,
    ListNetworks,
    ListNetworkUsages,
    ListProviders,
    ListRoleDefinitions,
    ListSizes,
    ListVersions,
    PutCluster,
    PutGroup,
    PutRoleAssignment,
)
from shared.resource_ids import RegionId, SubscriptionId
from tests.support.azure_ports import CLUSTER, SUBSCRIPTION, Azure, body


def test_a_region_offers_versions_with_their_patches_and_ways_on(azure: Azure) -> None:
    values = {
        value["version"]: value
        for value in azure.call(ListVersions(RegionId(SUBSCRIPTION, "West Europe")))["values"]
    }
    assert list(values) == ["1.33", "1.34", "1.35", "1.36", "1.37"]
    assert [name for name, value in values.items() if value.get("isDefault")] == ["1.36"]
    assert values["1.35"]["patchVersions"] == {
        "1.35.6": {"upgrades": ["1.35.7", "1.36.2", "1.36.3"]},
        "1.35.7": {"upgrades": ["1.36.2", "1.36.3"]},
    }
    with pytest.raises(InvalidManifest, match="atlantis"):
        azure.call(ListVersions(RegionId(SUBSCRIPTION, "atlantis")))


def test_a_region_lists_the_versions_of_the_extension_of_flux_for_aks(azure: Azure) -> None:
    azure.world.withheld.add("1.23.0")
    listed = azure.call(ListExtensionVersions(RegionId(SUBSCRIPTION, "westeurope")))
    assert sorted(of_aks(listed)) == ["1.19.5", "1.20.4", "1.21.0", "1.21.1", "1.22.1", "1.22.2"]
    with pytest.raises(InvalidManifest, match="atlantis"):
        azure.call(ListExtensionVersions(RegionId(SUBSCRIPTION, "atlantis")))


def test_a_version_that_only_long_term_support_has_needs_its_plan(azure: Azure) -> None:
    azure.call(PutGroup(CLUSTER.group, {"location": "westeurope"}))
    with pytest.raises(InvalidManifest, match="is only available for Long-Term Support") as refused:
        azure.call(PutCluster(CLUSTER, body(kubernetesVersion="1.33"), etag=None))
    assert refused.value.code == "K8sVersionNotSupported"
    values = azure.call(ListVersions(RegionId(SUBSCRIPTION, "westeurope")))["values"]
    plans = {value["version"]: value["capabilities"]["supportPlan"] for value in values}
    assert (plans["1.33"], plans["1.36"]) == (
        ["AKSLongTermSupport"],
        ["KubernetesOfficial", "AKSLongTermSupport"],
    )


def test_the_lists_of_what_a_region_has_say_what_is_used_and_what_is_left(azure: Azure) -> None:
    here, region = SubscriptionId(SUBSCRIPTION), RegionId(SUBSCRIPTION, "westeurope")
    before = quotas_of(azure.call(ListComputeUsages(region)))[TOTAL].used
    azure.with_cluster()
    azure.world.engine.quotas.limit(SUBSCRIPTION, "westeurope", TOTAL, 100)
    network = (
        f"/subscriptions/{SUBSCRIPTION}/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/hub"
    )
    azure.world.offers.create_network(network, "westeurope", {"aks": ("10.0.0.0/24", 3)})
    cores = quotas_of(azure.call(ListComputeUsages(region)))[TOTAL]
    assert (cores.limit, cores.used > before) == (100, True)
    assert quotas_of(azure.call(ListNetworkUsages(region)))[ADDRESSES].used == 1
    assert quotas_of(azure.call(ListClusterUsages(region)))[CLUSTERS].used == 1
    assert "westeurope" in {location["name"] for location in azure.call(ListLocations(here))}
    assert sizes_of(azure.call(ListSizes(region)))["standard_d4s_v5"].cores == 4
    known = Subnet(251, 3, ("10.0.0.0/24",), "westeurope")
    assert subnets_of(azure.call(ListNetworks(here))) == {f"{network}/subnets/aks".lower(): known}


def test_a_cluster_beyond_the_quota_of_the_region_is_refused_with_the_numbers(azure: Azure) -> None:
    azure.world.engine.quotas.limit(SUBSCRIPTION, "westeurope", CLUSTERS, 0)
    azure.call(PutGroup(CLUSTER.group, {"location": "westeurope"}))
    with pytest.raises(QuotaExceeded, match="Maximum allowed: 0, Current usage: 0") as refused:
        azure.call(PutCluster(CLUSTER, body(), etag=None))
    assert refused.value.entry == "compute/ManagedClusterQuotaByText"


def test_rights_and_registrations_are_what_the_subscription_has(azure: Azure) -> None:
    azure.with_cluster()
    here, principal = SubscriptionId(SUBSCRIPTION), "00000000-0000-0000-0000-0000000000aa"
    role = (
        f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{ROLES['Reader']}"
    )
    body = {"properties": {"principalId": principal, "roleDefinitionId": role}}
    azure.call(PutRoleAssignment(here, CLUSTER.resource, "00000000-0000-0000-0000-0000000000bb", body))
    roles = roles_of(azure.call(ListRoleDefinitions(here)))
    (grant,) = grants_of(assigned(azure.call(ListGrants(here, principal))), roles)
    assert (grant.scope, grant.actions) == (CLUSTER.resource, ("*/read",))
    assert roles[ROLES["Contributor"]][1], "what it leaves out"
    azure.world.identities.put_identity(
        CLUSTER.subscription, CLUSTER.group.name, "shop", {"location": "westeurope"}
    )
    named = principals_of(azure.call(ListIdentities(here)))
    shown = azure.world.identities.get_identity(CLUSTER.subscription, CLUSTER.group.name, "shop")
    assert named == {shown["id"].lower(): shown["properties"]["principalId"]}
    assert azure.call(ListGrants(here, "00000000-0000-0000-0000-0000000000ab")) == []
    for name in ("Microsoft.PolicyInsights", "Microsoft.Compute/EncryptionAtHost"):
        azure.world.offers.unregister(name)
    providers = registered_providers(azure.call(ListProviders(here)))
    assert ("microsoft.compute" in providers, "microsoft.policyinsights" in providers) == (True, False)
    features = registered_features(azure.call(ListFeatures(here, "Microsoft.Compute")))
    assert features == {"microsoft.compute/vmssautomaticzoneplacement"}
