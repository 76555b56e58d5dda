"""A change of a commit is accepted by Azure, which then shows what was asked for."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from localcloud.azure.world.azure_ports import WorldAzure
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.clock import ManualClock
from localcloud.common.control_plane import NullPlane
from shared.azure.changes.writes import ImmutableChange
from shared.cluster.failures.errors import InvalidManifest
from tests.support.arm_bodies import created, desired, pool
from tests.support.azure_ports import SUBSCRIPTION, Azure
from tests.support.azure_writes import put
from tests.support.hypothesis_settings import GENERATED

pytestmark = pytest.mark.lives

GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/net/providers"
ADDRESS = f"{GROUP}/Microsoft.Network/publicIPAddresses/out"
PREFIX = f"{GROUP}/Microsoft.Network/publicIPPrefixes/out"
SUBNET = f"{GROUP}/Microsoft.Network/virtualNetworks/one/subnets/nodes"
USER = f"{GROUP}/Microsoft.ManagedIdentity/userAssignedIdentities/one"
MANAGED = {"managedOutboundIPs": {"count": 1}}
OWN = {"outboundIPs": {"publicIPs": [{"id": ADDRESS}]}}
OWN_PREFIX = {"outboundIPPrefixes": {"publicIPPrefixes": [{"id": PREFIX}]}}
KUBENET = {"networkPlugin": "kubenet", "podCidr": "10.244.0.0/16"}
CILIUM = {
    "networkPlugin": "azure",
    "networkPluginMode": "overlay",
    "podCidr": "10.244.0.0/16",
    "networkDataplane": "cilium",
    "networkPolicy": "cilium",
}
VAULT = "https://example.vault.azure.net/keys/etcd/0123456789abcdef0123456789abcdef"
KMS = {"enabled": True, "keyId": VAULT, "keyVaultNetworkAccess": "Public"}


OWN_IDENTITY = {"identity": {"type": "UserAssigned", "userAssignedIdentity": USER}}


def balancer(profile: dict[str, Any]) -> dict[str, Any]:
    return {"networkProfile": {"outboundType": "loadBalancer", "loadBalancerProfile": profile}}


def outbound(kind: str, **gateway: Any) -> dict[str, Any]:
    profile = {"natGatewayProfile": gateway} if gateway else {}
    return {"networkProfile": {"outboundType": kind, **profile}}


@pytest.mark.parametrize(
    ("before", "after", "writes"),
    [
        (balancer(MANAGED), balancer(OWN), 1),
        (balancer(OWN), balancer(OWN_PREFIX), 1),
        (balancer(OWN_PREFIX), balancer(MANAGED), 1),
        (balancer(OWN), outbound("managedNATGateway", idleTimeoutInMinutes=10), 1),
        (outbound("managedNATGateway", idleTimeoutInMinutes=10), outbound("loadBalancer"), 1),
        (
            {**balancer(OWN), "nodePools": [pool(vnetSubnetID=SUBNET)]},
            {**outbound("userDefinedRouting"), "nodePools": [pool(vnetSubnetID=SUBNET)]},
            1,
        ),
        (OWN_IDENTITY, {"identity": None}, 0),
        (OWN_IDENTITY, {"identity": {"type": "SystemAssigned"}}, 1),
        (
            {"securityProfile": {"azureKeyVaultKms": KMS}, **OWN_IDENTITY},
            {"securityProfile": {"azureKeyVaultKms": {"enabled": False}}, **OWN_IDENTITY},
            1,
        ),
        ({"networkProfile": KUBENET}, {"networkProfile": CILIUM}, 2),
        (
            {"oidcIssuerProfile": {"enabled": True}},
            {"oidcIssuerProfile": {"enabled": True}, "tags": {"a": "b"}},
            1,
        ),
    ],
)
def test_a_change_is_accepted_and_shown(
    azure: Azure, before: dict[str, Any], after: dict[str, Any], writes: int
) -> None:
    put(azure, desired(**before))
    assert len(put(azure, desired(**after))) == writes


SECURE = pool(name="secure", mode="User", securityProfile={"sshAccess": "Disabled"})


@pytest.mark.parametrize(
    ("pools", "writes"),
    [
        ([pool(), SECURE], 2),
        ([pool(securityProfile={"sshAccess": "Disabled"})], 2),
        ([pool(), pool(name="apps", mode="User")], 1),
    ],
)
def test_a_new_cluster_is_accepted_whatever_its_pools_need(
    azure: Azure, pools: list[dict[str, Any]], writes: int
) -> None:
    assert len(put(azure, desired(nodePools=pools))) == writes


NETWORKS = [
    balancer({}),
    balancer(MANAGED),
    balancer({**OWN, "allocatedOutboundPorts": 1024}),
    balancer({**OWN_PREFIX, "backendPoolType": "NodeIP"}),
    outbound("managedNATGateway", idleTimeoutInMinutes=10),
    outbound("managedNATGateway", managedOutboundIPProfile={"count": 2}),
    outbound("userDefinedRouting"),
    {
        "networkProfile": {
            "outboundType": "userDefinedRouting",
            "loadBalancerProfile": {"backendPoolType": "NodeIP"},
        }
    },
    outbound("userAssignedNATGateway"),
    {"networkProfile": KUBENET},
    {"networkProfile": CILIUM},
]
USERS = [{"type": "UserAssigned", "userAssignedIdentity": identity} for identity in (USER, f"{USER}s")]
CHOICES = st.builds(
    lambda *parts: {key: value for part in parts for key, value in part.items()},
    st.sampled_from(NETWORKS),
    st.sampled_from([{}, {"identity": {"type": "SystemAssigned"}}, *({"identity": user} for user in USERS)]),
    st.sampled_from([{}, {"securityProfile": {"azureKeyVaultKms": {"enabled": False}}}])
    | st.just({"securityProfile": {"azureKeyVaultKms": KMS}}),
    st.sampled_from([{}, {"tags": {"a": "b"}}, {"oidcIssuerProfile": {"enabled": True}}]),
    st.sampled_from([{}, {"nodePools": [pool(vnetSubnetID=SUBNET)]}]),
)


@GENERATED
@given(st.lists(CHOICES, min_size=2, max_size=4))
def test_azure_takes_every_change_of_choices_that_roadstead_does_not_refuse_before(
    choices: list[dict[str, Any]],
) -> None:
    world = AzureWorld(clock := ManualClock(), plane=(plane := NullPlane()))
    azure = Azure(WorldAzure(world), world, plane, clock)
    try:
        put(azure, desired(**choices[0]))
        for choice in choices[1:]:
            created(desired(**choice))
    except InvalidManifest:
        reject()
    for choice in choices[1:]:
        with suppress(ImmutableChange):
            put(azure, desired(**choice))
