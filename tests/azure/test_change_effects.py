"""The effects of changes: the data names real fields, and the local cloud agrees."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import pytest
from pydantic import BaseModel

from localcloud.azure.world.refusals import fixed
from localcloud.azure.world.refusals.egress_rules import OUTBOUND_PATHS
from shared.azure.changes.conditions import ChangeSurroundings
from shared.azure.changes.field_effects import FIELD_EFFECTS, Effect
from shared.azure.changes.writes import effect_of, missing_conditions, planned_effect
from shared.language.model.arm_types import OWNED_BY_AZURE
from shared.language.model.base import models_in
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.node_pool import NodePool

NOT_TYPED = {"networkProfile.podLinkLocalAccess", "nodePools[].nodeInitializationTaints"}
FIXED = (Effect.RECREATION, Effect.REPLACEMENT)


def paths(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, info in model.model_fields.items():
        path = prefix + (info.alias or name)
        yield path
        for below in models_in(info.annotation):
            yield from paths(below, f"{path}.")


def typed() -> set[str]:
    return {*paths(ClusterSpec), *paths(NodePool, "nodePools[].")}


def test_every_entry_names_a_field() -> None:
    asked = {entry.pattern for entry in FIELD_EFFECTS if entry.effect is not Effect.AZURE}
    assert asked - typed() == NOT_TYPED


def test_no_typed_field_is_azures_own() -> None:
    own = {entry.pattern for entry in FIELD_EFFECTS if entry.effect is Effect.AZURE}
    assert own & typed() == set()
    assert "provisioningState" in OWNED_BY_AZURE["cluster"]
    assert "currentOrchestratorVersion" in OWNED_BY_AZURE["pool"]


def test_every_entry_names_its_source() -> None:
    assert [entry.pattern for entry in FIELD_EFFECTS if len(entry.source) < 3] == []


NETWORK, CHANNEL = "networkProfile", "autoUpgradeProfile.nodeOSUpgradeChannel"
BALANCED = f"{NETWORK}.loadBalancerProfile"
ADVANCED, BACKEND = f"{NETWORK}.advancedNetworking", f"{NETWORK}.loadBalancerProfile.backendPoolType"
OVERLAY = {"networkProfile": {"networkPlugin": "azure", "networkPluginMode": "overlay"}}
NODE_SUBNET = {"networkProfile": {"networkPlugin": "azure"}}
KUBENET = {"networkProfile": {"networkPlugin": "kubenet"}}
INTEGRATED = {"apiServerAccessProfile": {"enableVnetIntegration": True}}
DUAL = {"networkProfile": {"ipFamilies": ["IPv4", "IPv6"]}}
IN_SUBNET = {"nodePools": [{"name": "a", "vnetSubnetID": "/subscriptions/x"}]}
MANAGED = {"nodePools": [{"name": "a"}]}
IN_POD_SUBNET = {**NODE_SUBNET, "nodePools": [{"name": "a", "podSubnetID": "/subscriptions/x"}]}
CALICO = {"networkProfile": {**NODE_SUBNET["networkProfile"], "networkPolicy": "calico"}}
PROVISIONING = {**NODE_SUBNET, "nodeProvisioningProfile": {"mode": "Auto"}}
GATEWAY = {"outboundType": "managedNATGateway"}
NAT_MANAGED = {"networkProfile": {**GATEWAY, "natGatewayProfile": {"managedOutboundIPProfile": {"count": 1}}}}
NAT_OWN = {
    "networkProfile": {**GATEWAY, "natGatewayProfile": {"outboundIPs": {"publicIPs": ["/subscriptions/x"]}}}
}
BALANCER = {"networkProfile": {"outboundType": "loadBalancer"}}
KEY = "https://{}.vault.azure.net/keys/etcd/1"


def encrypted(access: str = "", vault: str = "one", *, enabled: bool = True) -> dict[str, Any]:
    kms = {"enabled": enabled, "keyId": KEY.format(vault), "keyVaultNetworkAccess": access}
    return {"securityProfile": {"azureKeyVaultKms": kms}}


GATEWAYS = "ingressProfile.webAppRouting.gatewayAPIImplementations.appRoutingIstio"
ROUTED: dict[str, Any] = {
    "ingressProfile": {
        "webAppRouting": {"gatewayAPIImplementations": {"appRoutingIstio": {"mode": "Enabled"}}}
    }
}
MESH, REVISIONS = {"serviceMeshProfile": {"mode": "Istio"}}, "serviceMeshProfile.istio.revisions"
LINUX, WINDOWS = {"osType": "Linux"}, {"osType": "Windows"}


def overlay(**network: Any) -> dict[str, Any]:
    return {"networkProfile": {**OVERLAY["networkProfile"], **network}}


@pytest.mark.parametrize(
    ("path", "old", "new", "effect"),
    [
        ("spec.tags.cost", "a", "b", Effect.IN_PLACE),
        ("spec.networkProfile.podCidr", "10.1.0.0/16", "10.2.0.0/16", Effect.RECREATION),
        ("networkProfile.networkPolicy", "calico", "cilium", Effect.REIMAGED),
        ("networkProfile.networkPolicy", "cilium", "calico", Effect.RECREATION),
        ("spec.fqdnSubdomain", "a", "b", Effect.RECREATION),
        ("sku.name", "Base", "Automatic", Effect.RECREATION),
        ("extendedLocation.name", "losangeles", "miami", Effect.RECREATION),
        ("spec.nodePools[apps].vmSize", "Standard_D2s_v5", "Standard_D4s_v5", Effect.REPLACEMENT),
        ("nodePools[].kubeletConfig.podMaxPids", 1, 2, Effect.REPLACEMENT),
        ("spec.nodePools[apps].osSKU", "Ubuntu", "AzureLinux", Effect.REIMAGED),
        ("spec.nodePools[apps].osSKU", "Windows2022", "Windows2025", Effect.REPLACEMENT),
        ("spec.nodePools[apps].azure.properties.provisioningState", "", "x", Effect.AZURE),
        ("oidcIssuerProfile.enabled", False, True, Effect.INTERRUPTED),
        ("oidcIssuerProfile.enabled", True, False, Effect.RECREATION),
        ("apiServerAccessProfile.subnetId", None, "/subscriptions/x", Effect.IN_PLACE),
        ("apiServerAccessProfile.enableVnetIntegration", None, True, Effect.REIMAGED),
        ("apiServerAccessProfile.privateDNSZone", "system", "none", Effect.REIMAGED),
        ("apiServerAccessProfile.privateDNSZone", "none", "system", Effect.RECREATION),
        ("networkProfile.loadBalancerSku", "basic", "standard", Effect.IN_PLACE),
        ("networkProfile.loadBalancerSku", "standard", "basic", Effect.RECREATION),
        ("networkProfile.ipFamilies", ["IPv4"], ["IPv4", "IPv6"], Effect.IN_PLACE),
        ("networkProfile.ipFamilies", ["IPv4", "IPv6"], ["IPv4"], Effect.RECREATION),
        ("networkProfile.natGatewayProfile.sku", "Standard", "StandardV2", Effect.IN_PLACE),
        ("networkProfile.natGatewayProfile.sku", "StandardV2", "Standard", Effect.RECREATION),
        ("nodePools[].virtualMachinesProfile.scale.manual", [{"count": 1}], [{"count": 2}], Effect.IN_PLACE),
        ("kubernetesVersion", "1.33", "1.34", Effect.REIMAGED),
        ("nodePools[a].orchestratorVersion", "1.33", "1.34", Effect.REIMAGED),
        ("httpProxyConfig.noProxy", ["a"], ["b"], Effect.REIMAGED),
        ("identityProfile.kubeletidentity.resourceId", "a", "b", Effect.REIMAGED),
        ("nodePools[a].localDNSProfile.mode", "Preferred", "Required", Effect.REIMAGED),
        ("nodePools[a].powerState.code", "Running", "Stopped", Effect.NODES_STOPPED),
        ("nodePools[a].powerState.code", "", "Stopped", Effect.NODES_STOPPED),
        ("nodePools[a].powerState.code", "Stopped", "Running", Effect.IN_PLACE),
        (CHANNEL, "NodeImage", "Unmanaged", Effect.REIMAGED),
        (CHANNEL, None, "Unmanaged", Effect.REIMAGED),
        (CHANNEL, "Unmanaged", "None", Effect.REIMAGED),
        (CHANNEL, "Unmanaged", "NodeImage", Effect.IN_PLACE),
        (CHANNEL, "NodeImage", "None", Effect.IN_PLACE),
        ("securityProfile.customCATrustCertificates", ["a"], ["b"], Effect.REIMAGED),
        (f"{ADVANCED}.performance.accelerationMode", "None", "BpfVeth", Effect.REIMAGED),
        (f"{ADVANCED}.performance.accelerationMode", "BpfVeth", "None", Effect.IN_PLACE),
        (f"{ADVANCED}.security.transitEncryption.type", "None", "WireGuard", Effect.INTERRUPTED),
        (BACKEND, "nodeIPConfiguration", "nodeIP", Effect.INTERRUPTED),
        ("linuxProfile.ssh.publicKeys", [{"keyData": "a"}], [{"keyData": "b"}], Effect.LATER_NODES),
        ("bootstrapProfile.artifactSource", "Direct", "Cache", Effect.LATER_NODES),
        ("nodePools[a].nodeInitializationTaints", None, ["a=b:NoSchedule"], Effect.LATER_NODES),
        ("nodeProvisioningProfile.defaultNodePools", "Auto", "None", Effect.NODES_DELETED),
        ("nodeProvisioningProfile.defaultNodePools", "None", "Auto", Effect.IN_PLACE),
    ],
)
def test_the_effect_of_a_change(path: str, old: Any, new: Any, effect: Effect) -> None:
    assert effect_of(path, old, new) is effect


def test_the_effect_of_a_sleep_is_that_of_its_scope() -> None:
    in_pools = ChangeSurroundings(after={"sleep": {"scope": "pools"}})
    assert effect_of("sleep.scope", None, "pools", in_pools) is Effect.POOLS_SLEEP
    assert effect_of("sleep.schedules", None, [{"stop": "0 19 * * *"}], in_pools) is Effect.POOLS_SLEEP
    assert effect_of("sleep.scope", "pools", "cluster", ChangeSurroundings()) is Effect.SLEEPS
    assert effect_of("sleep.scope", "pools", None, in_pools) is Effect.IN_PLACE


NAT = f"{NETWORK}.natGatewayProfile"
VAULT_ACCESS = "securityProfile.azureKeyVaultKms.keyVaultNetworkAccess"


@pytest.mark.parametrize(
    ("path", "old", "new", "around", "effect"),
    [
        (f"{NETWORK}.networkPlugin", "kubenet", "azure", (KUBENET, OVERLAY), Effect.REIMAGED),
        (f"{NETWORK}.networkPlugin", "kubenet", "azure", (KUBENET, NODE_SUBNET), Effect.RECREATION),
        (f"{NETWORK}.networkPluginMode", None, "overlay", (KUBENET, OVERLAY), Effect.REIMAGED),
        (f"{NETWORK}.networkPluginMode", None, "overlay", (NODE_SUBNET, OVERLAY), Effect.RECREATION),
        (
            *(f"{NETWORK}.networkPluginMode", None, "overlay"),
            *((NODE_SUBNET, overlay(podCidr="10.9.0.0/16")), Effect.REIMAGED),
        ),
        (f"{NETWORK}.networkDataplane", "azure", "cilium", (NODE_SUBNET, NODE_SUBNET), Effect.REIMAGED),
        (f"{NETWORK}.networkDataplane", "azure", "cilium", (KUBENET, KUBENET), Effect.RECREATION),
        (f"{NETWORK}.networkDataplane", "azure", "cilium", (PROVISIONING, PROVISIONING), Effect.RECREATION),
        (f"{NETWORK}.networkDataplane", "azure", "cilium", (PROVISIONING, NODE_SUBNET), Effect.RECREATION),
        (f"{NETWORK}.networkDataplane", "azure", "cilium", (NODE_SUBNET, PROVISIONING), Effect.REIMAGED),
        *(
            (
                *(f"{NETWORK}.networkPluginMode", None, "overlay"),
                *((before, overlay(podCidr="10.9.0.0/16")), Effect.RECREATION),
            )
            for before in (CALICO, IN_POD_SUBNET)
        ),
        (f"{NAT}.outboundIPs.publicIPs", None, ["a"], (NAT_MANAGED, NAT_OWN), Effect.RECREATION),
        (f"{NAT}.outboundIPs.publicIPs", None, ["a"], ({"networkProfile": GATEWAY},), Effect.RECREATION),
        (f"{NAT}.outboundIPPrefixes.publicIPPrefixes", None, ["a"], (NAT_MANAGED,), Effect.RECREATION),
        (f"{NAT}.managedOutboundIPProfile.count", None, 1, (NAT_OWN, NAT_MANAGED), Effect.RECREATION),
        (f"{NAT}.managedOutboundIPProfile.count", 1, 2, (NAT_MANAGED, NAT_MANAGED), Effect.IN_PLACE),
        (f"{NAT}.managedOutboundIPProfile.count", 2, 1, (NAT_MANAGED, NAT_MANAGED), Effect.EGRESS),
        (f"{NAT}.outboundIPs.publicIPs", ["a"], ["b"], (NAT_OWN, NAT_OWN), Effect.EGRESS),
        (f"{NAT}.outboundIPs.publicIPs", ["a"], ["b", "A"], (NAT_OWN, NAT_OWN), Effect.IN_PLACE),
        (f"{BALANCED}.outboundIPs.publicIPs", [{"id": "a"}], [{"id": "b"}], (), Effect.EGRESS),
        (f"{BALANCED}.outboundIPs.publicIPs", [{"id": "a"}], [{"id": "b"}, {"id": "a"}], (), Effect.IN_PLACE),
        (f"{BALANCED}.outboundIPs.publicIPs", None, [{"id": "a"}], (), Effect.EGRESS),
        (f"{BALANCED}.outboundIPPrefixes.publicIPPrefixes", [{"id": "a"}], None, (), Effect.EGRESS),
        (f"{BALANCED}.managedOutboundIPs.count", None, 2, (), Effect.IN_PLACE),
        (f"{BALANCED}.managedOutboundIPs.count", 2, 3, (), Effect.IN_PLACE),
        (f"{BALANCED}.managedOutboundIPs.count", 3, 2, (), Effect.EGRESS),
        (f"{BALANCED}.managedOutboundIPs.count", 2, None, (), Effect.EGRESS),
        (f"{NAT}.outboundIPs.publicIPs", None, ["a"], (BALANCER, NAT_OWN), Effect.EGRESS),
        (VAULT_ACCESS, "Public", "Private", (encrypted("Public"), encrypted("Private")), Effect.RECREATION),
        (VAULT_ACCESS, "Private", "Public", (encrypted("Private"), encrypted("Public")), Effect.RECREATION),
        (
            *(VAULT_ACCESS, "Public", "Private"),
            *((encrypted("Public"), encrypted("Private", "other")), Effect.IN_PLACE),
        ),
        (
            *(VAULT_ACCESS, "Public", "Private"),
            *((encrypted("Public", enabled=False), encrypted("Private")), Effect.IN_PLACE),
        ),
        (VAULT_ACCESS, None, "Private", ({}, encrypted("Private")), Effect.IN_PLACE),
        (VAULT_ACCESS, None, "Public", (encrypted(), encrypted("Public")), Effect.IN_PLACE),
        (f"{NETWORK}.networkDataplane", "cilium", "azure", (OVERLAY, OVERLAY), Effect.RECREATION),
        (f"{NETWORK}.podCidr", None, "10.9.0.0/16", (NODE_SUBNET, OVERLAY), Effect.REIMAGED),
        (f"{NETWORK}.podCidr", "10.9.0.0/18", "10.9.0.0/16", (OVERLAY, OVERLAY), Effect.IN_PLACE),
        (f"{NETWORK}.podCidr", "10.9.0.0/16", "10.9.0.0/18", (OVERLAY, OVERLAY), Effect.RECREATION),
        (f"{NETWORK}.podCidr", "10.9.0.0/18", "10.8.0.0/16", (OVERLAY, OVERLAY), Effect.RECREATION),
        (f"{NETWORK}.podCidr", "10.9.0.0/18", "10.9.0.0/16", (KUBENET, KUBENET), Effect.RECREATION),
        (f"{NETWORK}.podCidr", "fd00::/64", "fd00::/48", (OVERLAY, OVERLAY), Effect.RECREATION),
        (
            *(f"{NETWORK}.podCidrs", ["10.9.0.0/16"], ["10.9.0.0/16", "fd00::/64"]),
            *((OVERLAY, DUAL), Effect.IN_PLACE),
        ),
        (
            *(f"{NETWORK}.podCidrs", ["10.8.0.0/16"], ["10.9.0.0/16", "fd00::/64"]),
            *((OVERLAY, DUAL), Effect.RECREATION),
        ),
        (
            *(f"{NETWORK}.serviceCidrs", ["10.9.0.0/16", "fd00::/108"], ["10.9.0.0/16"]),
            *((DUAL, OVERLAY), Effect.RECREATION),
        ),
        (f"{NETWORK}.outboundType", "loadBalancer", "userDefinedRouting", (IN_SUBNET,), Effect.EGRESS),
        (f"{NETWORK}.outboundType", "loadBalancer", "userDefinedRouting", (MANAGED,), Effect.RECREATION),
        (f"{NETWORK}.outboundType", "loadBalancer", "managedNATGateway", (MANAGED,), Effect.EGRESS),
        (f"{NETWORK}.outboundType", "loadBalancer", "managedNATGateway", (IN_SUBNET,), Effect.RECREATION),
        (f"{NETWORK}.outboundType", "managedNATGateway", "userDefinedRouting", (MANAGED,), Effect.RECREATION),
        (f"{NETWORK}.outboundType", "userAssignedNATGateway", "loadBalancer", (MANAGED,), Effect.RECREATION),
        (
            *(f"{NETWORK}.outboundType", "loadBalancer", "userDefinedRouting"),
            *(({**IN_SUBNET, "nodeProvisioningProfile": {"mode": "Auto"}},), Effect.RECREATION),
        ),
        (
            *(f"{NETWORK}.outboundType", "loadBalancer", "userDefinedRouting"),
            *((IN_SUBNET, {**IN_SUBNET, "kubernetesVersion": "1.37"}), Effect.REIMAGED),
        ),
        (
            *("apiServerAccessProfile.enablePrivateCluster", False, True),
            *((INTEGRATED, INTEGRATED), Effect.IN_PLACE),
        ),
        ("apiServerAccessProfile.enablePrivateCluster", False, True, (), Effect.RECREATION),
        ("nodePools[].enableFIPS", False, True, ({}, {}, LINUX), Effect.REIMAGED),
        ("nodePools[].enableFIPS", False, True, ({}, {}, WINDOWS), Effect.REPLACEMENT),
        ("nodePools[].gpuProfile.driver", "Install", "None", ({}, {}, LINUX), Effect.REPLACEMENT),
        (
            *("nodePools[].gpuProfile.driver", "Install", "None"),
            *(({}, {}, {"tags": {"SkipGPUDriverInstall": "true"}}), Effect.IN_PLACE),
        ),
        (f"{NETWORK}.networkPolicy", "azure", "calico", (CALICO, CALICO), Effect.RECREATION),
        (REVISIONS, ["asm-1-29"], ["asm-1-29", "asm-1-30"], (MESH, MESH), Effect.IN_PLACE),
        (REVISIONS, ["asm-1-29", "asm-1-30"], ["asm-1-29"], (MESH, MESH), Effect.IN_PLACE),
        (REVISIONS, ["asm-1-29", "asm-1-30"], ["asm-1-30"], (MESH, MESH), Effect.IN_PLACE),
        (REVISIONS, ["asm-1-9"], ["asm-1-10"], (MESH, MESH), Effect.IN_PLACE),
        (REVISIONS, None, ["asm-1-30"], ({}, MESH), Effect.IN_PLACE),
        (REVISIONS, ["asm-1-30"], ["asm-1-29"], (MESH, MESH), Effect.RECREATION),
        (REVISIONS, ["asm-1-30"], ["asm-1-29", "asm-1-30"], (MESH, MESH), Effect.RECREATION),
        (f"{GATEWAYS}.mode", "Disabled", "Enabled", (MESH, {}), Effect.RECREATION),
        (f"{GATEWAYS}.mode", "Disabled", "Enabled", ({}, {}), Effect.IN_PLACE),
        (f"{GATEWAYS}.mode", "Enabled", "Disabled", ({}, MESH), Effect.IN_PLACE),
        ("serviceMeshProfile.mode", "Disabled", "Istio", ({}, MESH), Effect.IN_PLACE),
        ("serviceMeshProfile.mode", "Istio", "Disabled", (MESH, {}), Effect.IN_PLACE),
        ("serviceMeshProfile.mode", "Disabled", "Istio", (ROUTED, MESH), Effect.RECREATION),
        (f"{NETWORK}.networkPolicy", "none", "calico", (NODE_SUBNET, CALICO), Effect.REIMAGED),
        ("nodePools[].securityProfile.enableVTPM", False, True, ({}, {}, LINUX), Effect.REIMAGED),
        ("nodePools[].securityProfile.enableSecureBoot", True, False, ({}, {}, LINUX), Effect.REIMAGED),
        ("nodePools[].securityProfile.enableVTPM", None, False, ({}, {}, LINUX), Effect.IN_PLACE),
        ("nodePools[].securityProfile.sshAccess", "LocalUser", "Disabled", (), Effect.LATER_NODES),
        (
            *("nodePools[].securityProfile.sshAccess", "LocalUser", "Disabled"),
            *(({}, {"kubernetesVersion": "1.37"}), Effect.REIMAGED),
        ),
        (
            *("nodePools[].securityProfile.sshAccess", "LocalUser", "Disabled"),
            *(
                ({}, {"kubernetesVersion": "1.37"}, {"orchestratorVersion": "1.36.2"}),
                Effect.LATER_NODES,
            ),
        ),
        (
            *("azure.properties.networkProfile.podLinkLocalAccess", "None", "IMDS"),
            *(({}, {"kubernetesVersion": "1.37.1"}), Effect.REIMAGED),
        ),
    ],
)
def test_the_effect_of_a_change_depends_on_what_surrounds_it(
    path: str, old: Any, new: Any, around: tuple[dict[str, Any], ...], effect: Effect
) -> None:
    assert effect_of(path, old, new, ChangeSurroundings(*around)) is effect


@pytest.mark.parametrize(
    ("path", "old", "new", "effect"),
    [
        ("spec.networkProfile.podCidr", "10.1.0.0/16", "", Effect.UNMANAGED),
        ("spec.networkProfile.podCidr", "", "10.1.0.0/16", Effect.CHECKED),
        ("spec.networkProfile.podCidr", "10.1.0.0/16", "10.2.0.0/16", Effect.RECREATION),
        ("spec.nodePools[apps].maxPods", "", "30", Effect.MAY_REPLACE),
        ("spec.nodePools[apps].nodeLabels.a", "b", "", Effect.IN_PLACE),
        ("spec.nodePools[apps]", "apps", "", Effect.IN_PLACE),
        ("spec.nodePools[apps]", "", "apps", Effect.IN_PLACE),
        ("spec.nodePools[apps].maxCount", "3", "", Effect.IN_PLACE),
        ("spec.nodePools[apps].count", "3", "", Effect.UNMANAGED),
        ("spec.tags.cost", "a", "", Effect.UNMANAGED),
        ("spec.flux.kustomizations[apps]", "apps", "", Effect.IN_PLACE),
        ("spec.flux.sources[team].secretRef", "key", "", Effect.IN_PLACE),
        ("spec.flux.extension.version", "1.19.5", "", Effect.IN_PLACE),
        ("spec.flux.extension.configurationSettings.a", "b", "", Effect.UNMANAGED),
        ("spec.bootstrapSecrets[sops]", "sops", "", Effect.IN_PLACE),
        ("spec.suspend.reason", "repairs", "", Effect.IN_PLACE),
        ("spec.drift.rules[tags]", "tags", "", Effect.IN_PLACE),
        ("spec.nodePools[apps].availabilityZones", "['1']", "[]", Effect.UNMANAGED),
        ("spec.nodePools[apps].availabilityZones", "[]", "['1']", Effect.MAY_REPLACE),
        ("spec.nodePools[apps].availabilityZones", "1,2", "auto", Effect.REIMAGED),
        ("spec.nodePools[apps].availabilityZones", "auto", "1", Effect.REPLACEMENT),
        ("spec.nodePools[apps].vmSize", "Standard_d4s_v5", "Standard_D4s_v5", Effect.IN_PLACE),
    ],
)
def test_the_effect_of_a_change_between_two_manifests(path: str, old: str, new: str, effect: Effect) -> None:
    assert planned_effect(path, old, new) is effect


@pytest.mark.parametrize("own", [False, True])
def test_the_plan_has_the_ways_of_outbound_types_that_the_local_cloud_takes(own: bool) -> None:
    pools = ChangeSurroundings(*(IN_SUBNET if own else MANAGED for _ in range(2)))
    types = ("loadBalancer", "managedNATGateway", "userAssignedNATGateway", "userDefinedRouting", "none")
    changed = {
        way
        for way in permutations(types, 2)
        if effect_of(f"{NETWORK}.outboundType", *way, pools) is Effect.EGRESS
    }
    assert changed == OUTBOUND_PATHS[own]


def test_the_local_cloud_refuses_fixed_fields_and_accepts_the_allowed_changes() -> None:
    paths = [*fixed.CLUSTER, *(f"nodePools[].{name}" for name in fixed.POOL)]
    assert fixed.CLUSTER
    assert fixed.POOL
    assert fixed.WAYS
    assert [path for path in paths if effect_of(path, "one", "other") not in FIXED] == []
    around = ChangeSurroundings(NODE_SUBNET, overlay(podCidr="10.9.0.0/16"))
    assert [way for way in fixed.WAYS if effect_of(*way, around) in FIXED] == []


def test_a_circumstance_that_only_makes_a_change_harmless_is_none_that_is_missing() -> None:
    missing = missing_conditions(f"{NAT}.outboundIPs.publicIPs", ["a"], ["b"])
    assert missing == "where the NAT gateway has had addresses of your own from its start"
