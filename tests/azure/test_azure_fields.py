"""The typed fields of Azure: valid combinations, refusals, and the ARM bodies."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from shared.azure.changes.writes import ImmutableChange
from shared.azure.cluster_body import cluster_write
from shared.azure.node_pools.body import (
    SIZES_OF_A_SCALE_SET,
    autoscaler_off_write,
    fixed_leaves,
    new_pool,
    pool_write,
    sizes_not_shown,
)
from shared.language.desired import Desired
from tests.support.arm_bodies import OWNER, bodies, cluster_body, created, desired, pool

GROUP = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/providers"
SUBNET, PODS = (f"{GROUP}/Microsoft.Network/virtualNetworks/v/subnets/{name}" for name in ("s", "p"))
PREFIX = f"{GROUP}/Microsoft.Network/publicIPPrefixes/p"
ADDRESS = f"{GROUP}/Microsoft.Network/publicIPAddresses/p"
ZONE = f"{GROUP}/Microsoft.Network/privateDnsZones/privatelink.eastus.azmk8s.io"
USER = f"{GROUP}/Microsoft.ManagedIdentity/userAssignedIdentities/kubelet"
ON = {"enabled": True}
SIZES = ("Standard_D4s_v5", "Standard_D8s_v5")
MANUAL = {"scale": {"manual": [{"size": size, "count": 2} for size in SIZES]}}
AUTOSCALE = {"scale": {"autoscale": [{"size": size, "minCount": 1, "maxCount": 5} for size in SIZES]}}


def user(**fields: Any) -> dict[str, Any]:
    """Return the pools of a cluster with one more pool."""
    return {"nodePools": [pool(), pool(name="more", mode="User") | fields]}


TOGETHER: list[dict[str, Any]] = [
    {
        "identity": {"type": "UserAssigned", "userAssignedIdentity": USER},
        "identityProfile": {"kubeletidentity": {"resourceId": USER}},
    },
    {"sku": {"tier": "Premium"}, "supportPlan": "AKSLongTermSupport"},
    user(scaleSetPriority="Spot", scaleSetEvictionPolicy="Delete", spotMaxPrice=-1),
    {
        "nodePools": [
            pool(vnetSubnetID=SUBNET, podSubnetID=PODS, enableNodePublicIP=True, nodePublicIPPrefixID=PREFIX)
        ]
    },
    {
        "networkProfile": {"staticEgressGatewayProfile": ON},
        **user(mode="Gateway", count=2, gatewayProfile={"publicIPPrefixSize": 30}),
    },
    {
        "networkProfile": {"outboundType": "managedNATGateway"},
        **user(osType="Windows", osSKU="Windows2022", windowsProfile={"disableOutboundNat": True}),
    },
    {
        "oidcIssuerProfile": ON,
        "securityProfile": {"workloadIdentity": ON, "imageCleaner": {"enabled": True, "intervalHours": 48}},
        "aadProfile": {"managed": True, "enableAzureRBAC": True},
        "disableLocalAccounts": True,
    },
    {"apiServerAccessProfile": {"authorizedIPRanges": ["192.0.2.7", "198.51.100.0/24"]}},
    {"httpProxyConfig": {"httpProxy": "http://proxy.example:3128", "noProxy": ["example.com"]}},
    {"addonProfiles": {"azurepolicy": ON}, "storageProfile": {"blobCSIDriver": ON}},
    {"networkProfile": {"podCidrs": ["10.9.0.0/16"], "networkPluginMode": "overlay"}},
    {
        "networkProfile": {
            "outboundType": "userDefinedRouting",
            "loadBalancerProfile": {"backendPoolType": "NodeIP"},
        },
        "nodePools": [pool(vnetSubnetID=SUBNET)],
    },
    {"autoScalerProfile": {"scan-interval": "20s", "scale-down-delay-after-delete": "2m"}},
    {"schedulerProfile": {"upstream": {"schedulerConfigMode": "ManagedByCRD"}}},
    {"sku": {"name": "Automatic"}, "nodePools": []},
    {
        "sku": {"name": "Automatic", "tier": "Standard"},
        "nodePools": [pool(), pool(name="apps", mode="User")],
    },
    user(type="VirtualMachines", vmSize=None, count=None, virtualMachinesProfile=MANUAL),
    user(type="VirtualMachines", vmSize=None, count=None, virtualMachinesProfile=AUTOSCALE),
    user(
        name="win",
        osType="Windows",
        kubeletConfig={"imageGcHighThreshold": 80, "imageGcLowThreshold": 70, "containerLogMaxFiles": 3},
    ),
    {"enableFIPS": True, "nodePools": [pool(enableFIPS=True)]},
    {"enableRBAC": False},
    {"extendedLocation": {"name": "losangeles", "type": "EdgeZone"}, "kind": "Base"},
    {
        "fqdnSubdomain": "one",
        "apiServerAccessProfile": {"enablePrivateCluster": True, "privateDNSZone": ZONE},
        "identity": {"type": "UserAssigned", "userAssignedIdentity": USER},
    },
]


@pytest.mark.parametrize("fields", TOGETHER, ids=lambda fields: next(iter(fields)))
def test_fields_that_need_each_other_are_created_and_need_no_further_write(fields: dict[str, Any]) -> None:
    cluster = desired(**fields)
    assert bodies(cluster, created(cluster)) == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"supportPlan": "AKSLongTermSupport"}, "needs sku.tier: Premium"),
        ({"nodePools": []}, "needs at least one pool with mode: System"),
        (
            {"sku": {"name": "Automatic"}, "hostedSystemProfile": {"enabled": False}, "nodePools": []},
            "needs at least one pool with mode: System",
        ),
        ({"disableLocalAccounts": True}, "needs aadProfile; without it nobody can sign in"),
        ({"securityProfile": {"workloadIdentity": ON}}, "needs oidcIssuerProfile.enabled: true"),
        ({"identityProfile": {"kubeletidentity": {"resourceId": USER}}}, "needs identity.type: UserAssigned"),
        (
            {"apiServerAccessProfile": {"enablePrivateCluster": True, "authorizedIPRanges": ["192.0.2.7"]}},
            "authorizedIPRanges is for a public API server",
        ),
        ({"apiServerAccessProfile": {"privateDNSZone": "system"}}, "needs enablePrivateCluster: true"),
        ({"apiServerAccessProfile": {"authorizedIPRanges": ["192.0.2.7/24"]}}, "without host bits"),
        (
            {"networkProfile": {"networkPolicy": "cilium", "networkDataplane": "azure"}},
            "needs networkDataplane",
        ),
        ({"networkProfile": {"natGatewayProfile": {}, "outboundType": "none"}}, "managedNATGateway"),
        ({"networkProfile": {"natGatewayProfile": {}}}, "managedNATGateway"),
        ({"networkProfile": {"networkPolicy": "cilium"}}, "networkDataplane: cilium"),
        ({"networkProfile": {"podCidr": "10.8.0.0/16", "podCidrs": ["10.9.0.0/16"]}}, "must be the first of"),
        ({"securityProfile": {"azureKeyVaultKms": ON}}, "enabled: true needs keyId"),
        (
            {"securityProfile": {"azureKeyVaultKms": {"enabled": False, "keyVaultNetworkAccess": "Public"}}},
            "enabled: false goes without keyVaultNetworkAccess",
        ),
        ({"addonProfiles": {"omsagent": ON}}, "needs config.logAnalyticsWorkspaceResourceID"),
        (
            {"bootstrapProfile": {"artifactSource": "Direct", "containerRegistryId": "x"}},
            "resource id of a reg",
        ),
        ({"windowsProfile": {"adminUsername": "azureuser", "adminPassword": "b"}}, "Extra inputs"),
        (
            {"securityProfile": {"customCATrustCertificates": ["Abc"]}},
            "a certificate in PEM, encoded once more",
        ),
        (user(messageOfTheDay="Abc"), "a string encoded in base64"),
        ({"autoScalerProfile": {"scan-interval": "ten"}}, 'must be seconds such as "10s"'),
        (
            {"maintenanceWindows": [{"name": "aksManagedAutoUpgradeSchedule", "timeInWeek": []}]},
            "needs a maintenanceWindow",
        ),
        (user(orchestratorVersion="1.37"), "orchestratorVersion 1.37 is newer than kubernetesVersion 1.36"),
        (user(orchestratorVersion="1.29"), "is more than 3 minors behind"),
        (user(spotMaxPrice=1), "go with scaleSetPriority: Spot"),
        (user(osType="Windows", name="windows"), "at most 6 characters, windows has 7"),
        (user(osSKU="Windows2022"), "osSKU: Windows2022 goes with osType: Windows"),
        (user(podSubnetID=SUBNET), "podSubnetID needs vnetSubnetID"),
        (user(nodeLabels={"kubernetes.azure.com/x": "y"}), "is reserved by AKS"),
        (user(nodeLabels={"kubernetes.io/role": "y"}), "kubernetes.io/role is reserved by Kubernetes"),
        (user(nodeLabels={"scheduling.k8s.io/x": "y"}), "is reserved by Kubernetes"),
        (user(nodeTaints=["key:NoSchedule"]), "with the = that AKS requires"),
        (
            user(upgradeSettings={"maxSurge": "200%"}),
            'must be a number or percentage in quotes, such as "33%"',
        ),
    ],
)
def test_fields_that_contradict_each_other_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        desired(**fields)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"networkProfile": {"podCidr": "10.9.0.0/16"}}, "write networkProfile.podCidr there"),
        ({"NetworkProfile": {"PodCIDR": "10.9.0.0/16"}}, "write networkProfile.podCidr there"),
        ({"agentPoolProfiles": []}, "agentPoolProfiles has a field of its own in the manifest: nodePools"),
        ({"provisioningState": "Succeeded"}, "only Azure writes provisioningState"),
        ({"servicePrincipalProfile": {"secret": "x"}}, "servicePrincipalProfile.secret looks like a secret"),
        ({"windowsProfile": {"adminPassword": "x"}}, "windowsProfile.adminPassword looks like a secret"),
    ],
)
def test_a_property_with_a_field_of_its_own_is_refused_below_azure_properties(
    properties: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError) as raised:
        desired(azure={"properties": properties})
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"enableAutoScaling": True}, "a field of its own in the manifest: minCount and maxCount"),
        ({"powerState": {"code": "Stopped"}}, "write powerState.code there"),
        (
            {"nodeImageVersion": "x"},
            "nodeImageVersion is a command, which a manifest cannot repeat: writing it rolls the pool back",
        ),
    ],
)
def test_an_untyped_property_of_a_pool_is_checked_alike(properties: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        desired(**user(azure={"properties": properties}))


def test_untyped_properties_are_compared_and_written_like_the_rest() -> None:
    live = created(desired(azure={"properties": {"podIdentityProfile": {"enabled": False}}}))
    write = cluster_write(
        desired(azure={"properties": {"podIdentityProfile": {"enabled": True}}}), OWNER, live
    )
    assert write is not None
    assert write.paths == ("podIdentityProfile.enabled",)
    assert write.body["properties"]["podIdentityProfile"] == {"enabled": True}


def test_a_new_cluster_of_aks_automatic_leaves_its_presets_to_azure() -> None:
    body = cluster_body(desired(sku={"name": "Automatic"}, nodePools=[]), OWNER, None)
    assert body is not None
    assert (body["sku"], body["properties"].keys() & {"agentPoolProfiles", "nodeProvisioningProfile"}) == (
        {"name": "Automatic", "tier": "Standard"},
        set(),
    )


def test_a_name_in_an_own_zone_takes_the_place_of_the_prefix() -> None:
    private = {"enablePrivateCluster": True, "privateDNSZone": ZONE}
    body = cluster_body(desired(fqdnSubdomain="one", apiServerAccessProfile=private), OWNER, None)
    assert body is not None
    assert (body["properties"]["fqdnSubdomain"], "dnsPrefix" in body["properties"]) == ("one", False)


def machines(profile: dict[str, Any], **fields: Any) -> Desired:
    """Return a cluster with a pool of single machines."""
    of_machines = {"type": "VirtualMachines", "vmSize": None, "count": None}
    return desired(**user(**of_machines, virtualMachinesProfile=profile, **fields))


def test_a_pool_of_machines_has_its_sizes_in_its_profile_only() -> None:
    live = created(machines(MANUAL))
    (profile,) = [
        document for document in live["properties"]["agentPoolProfiles"] if document["name"] == "more"
    ]
    assert (profile["type"], profile["count"]) == ("VirtualMachines", 4)
    cluster = machines(AUTOSCALE)
    write = pool_write(cluster.spec.node_pools[1], cluster, OWNER, profile)
    assert write is not None
    assert set(write.paths) == {f"virtualMachinesProfile.scale.{way}" for way in ("manual", "autoscale")}
    assert write.body["properties"]["virtualMachinesProfile"] == AUTOSCALE
    assert not set(SIZES_OF_A_SCALE_SET) & write.body["properties"].keys()


def test_one_size_in_place_of_several_is_a_new_pool() -> None:
    live = created(machines(MANUAL))
    (profile,) = [
        document for document in live["properties"]["agentPoolProfiles"] if document["name"] == "more"
    ]
    cluster = desired(**user())
    (leaf,) = fixed_leaves(cluster.spec.node_pools[1], cluster, OWNER, profile)
    assert (str(leaf), leaf.new) == ("type", "VirtualMachineScaleSets")


def test_before_a_drain_each_size_of_a_pool_of_machines_keeps_its_present_number() -> None:
    live = created(machines(AUTOSCALE))
    (profile,) = [
        document for document in live["properties"]["agentPoolProfiles"] if document["name"] == "more"
    ]
    status = [{"size": SIZES[0].upper(), "count": 3}, {"size": SIZES[1], "count": 0}]
    write = autoscaler_off_write({**profile, "virtualMachineNodesStatus": status})
    assert write is not None
    manual = [{"size": SIZES[0], "count": 3}, {"size": SIZES[1], "count": 0}]
    assert write.body["properties"]["virtualMachinesProfile"] == {"scale": {"manual": manual}}
    assert "virtualMachineNodesStatus" not in write.body["properties"]
    assert autoscaler_off_write({**profile, **write.body["properties"]}) is None


@pytest.mark.parametrize("status", [None, [], [{"size": SIZES[0], "count": 3}], [{"size": SIZES[1]}]])
def test_a_size_whose_number_of_nodes_azure_does_not_show_is_named_and_not_guessed(status: object) -> None:
    live = created(machines(AUTOSCALE))
    (profile,) = [
        document for document in live["properties"]["agentPoolProfiles"] if document["name"] == "more"
    ]
    assert SIZES[1] in sizes_not_shown({**profile, "virtualMachineNodesStatus": status})
    whole = [{"size": size, "count": 0} for size in SIZES]
    assert sizes_not_shown({**profile, "virtualMachineNodesStatus": whole}) == ()


def test_upgrades_with_a_second_set_of_nodes_are_sent_as_written() -> None:
    fields = {"upgradeStrategy": "BlueGreen", "upgradeSettingsBlueGreen": {"drainBatchSize": "50%"}}
    untyped = {**fields, "upgradeSettings": {"maxBlockedNodes": "2"}}
    (more,) = desired(**user(azure={"properties": untyped})).spec.node_pools[1:]
    sent = new_pool(more, OWNER)
    assert {key: sent[key] for key in untyped} == untyped


def test_a_write_has_no_field_that_the_manifest_omits() -> None:
    live = created(desired(sku={"tier": "Free"}, identity={"type": "SystemAssigned"}))
    assert cluster_body(desired(), OWNER, live) is None
    body = cluster_body(desired(), OWNER, None)
    assert body is not None
    assert sorted(body["properties"]) == [
        *("agentPoolProfiles", "dnsPrefix", "enableRBAC", "kubernetesVersion", "networkProfile"),
    ]


IN_SUBNET = {"nodePools": [pool(vnetSubnetID=SUBNET)]}


@pytest.mark.parametrize(
    ("fields", "before", "after", "paths"),
    [
        ({}, {"networkPolicy": "none"}, {"networkPolicy": "calico"}, ["networkProfile.networkPolicy"]),
        (
            *({}, {}, {"networkPluginMode": "overlay", "podCidr": "10.9.0.0/16"}),
            ["networkProfile.networkPluginMode", "networkProfile.podCidr"],
        ),
        (IN_SUBNET, {}, {"outboundType": "userDefinedRouting"}, ["networkProfile.outboundType"]),
        ({}, {}, {"outboundType": "managedNATGateway"}, ["networkProfile.outboundType"]),
    ],
)
def test_a_supported_migration_is_written(
    fields: dict[str, Any], before: dict[str, Any], after: dict[str, Any], paths: list[str]
) -> None:
    live = created(desired(networkProfile=before, **fields))
    write = cluster_write(desired(networkProfile=after, **fields), OWNER, live)
    assert write is not None
    assert sorted(write.paths) == paths


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ({}, {"networkPluginMode": "overlay"}, "from kubenet, or together with podCidr"),
        ({}, {"outboundType": "userDefinedRouting"}, "in a subnet of your own"),
        (
            {"networkPlugin": "azure", "networkPolicy": "calico"},
            {"networkPluginMode": "overlay", "podCidr": "10.9.0.0/16"},
            "with networkPolicy: none and no podSubnetID before",
        ),
        (
            {"networkPlugin": "azure", "networkPolicy": "azure"},
            {"networkPolicy": "calico"},
            "once an earlier commit has set it to none",
        ),
        (
            {
                "outboundType": "managedNATGateway",
                "natGatewayProfile": {"managedOutboundIPProfile": {"count": 1}},
            },
            {
                "outboundType": "managedNATGateway",
                "natGatewayProfile": {"outboundIPs": {"publicIPs": [ADDRESS]}},
            },
            "where the NAT gateway has had addresses of your own",
        ),
    ],
)
def test_a_migration_without_what_it_needs_is_refused_and_says_what(
    before: dict[str, Any], after: dict[str, Any], message: str
) -> None:
    live = created(desired(networkProfile=before))
    with pytest.raises(ImmutableChange, match=f"Azure changes it only .*{message}"):
        cluster_write(desired(networkProfile=after), OWNER, live)


def test_zones_in_another_order_request_the_same_cluster() -> None:
    one, other = (desired(nodePools=[pool(availabilityZones=zones)]) for zones in (["1", "2"], ["2", "1"]))
    assert one.digest == other.digest
