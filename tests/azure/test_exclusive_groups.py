"""What AKS refuses together is not sent together, whatever a cluster had before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shared.azure.changes.exclusive_groups import without_rivals
from tests.support.arm_bodies import OWNER, cluster_body, created, desired, pool

ADDRESS = (
    "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/net/providers"
    "/Microsoft.Network/publicIPAddresses/out"
)
PREFIX = ADDRESS.replace("publicIPAddresses", "publicIPPrefixes")
USER = (
    "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/ids/providers"
    "/Microsoft.ManagedIdentity/userAssignedIdentities/one"
)
SUBNET = (
    "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/net/providers"
    "/Microsoft.Network/virtualNetworks/one/subnets/nodes"
)
VAULT = "https://example.vault.azure.net/keys/etcd/0123456789abcdef0123456789abcdef"


def network(live: dict[str, Any], **profile: Any) -> dict[str, Any]:
    """Return a live cluster whose network profile shows these values too."""
    live["properties"]["networkProfile"] |= profile
    return live


def written(live: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the body of the PUT that brings a live cluster to a spec with these fields."""
    body = cluster_body(desired(**fields), OWNER, live)
    assert body is not None
    return body


@pytest.mark.parametrize(
    ("before", "wanted"),
    [
        ({"managedOutboundIPs": {"count": 1}}, {"outboundIPs": {"publicIPs": [{"id": ADDRESS}]}}),
        ({"outboundIPs": {"publicIPs": [{"id": ADDRESS}]}}, {"managedOutboundIPs": {"count": 2}}),
        (
            {"outboundIPs": {"publicIPs": [{"id": ADDRESS}]}},
            {"outboundIPPrefixes": {"publicIPPrefixes": [{"id": PREFIX}]}},
        ),
    ],
)
def test_another_kind_of_outbound_address_replaces_the_one_before(
    before: dict[str, Any], wanted: dict[str, Any]
) -> None:
    shown = {"backendPoolType": "nodeIPConfiguration", "idleTimeoutInMinutes": 30, **before}
    live = network(created(desired()), loadBalancerProfile=shown)
    body = written(live, networkProfile={"loadBalancerProfile": wanted})
    assert body["properties"]["networkProfile"]["loadBalancerProfile"] == {
        "backendPoolType": "nodeIPConfiguration",
        "idleTimeoutInMinutes": 30,
        **wanted,
    }


def test_a_nat_gateway_has_one_kind_of_address_in_a_request() -> None:
    shown = {"managedOutboundIPProfile": {"count": 1}, "idleTimeoutInMinutes": 4}
    live = network(created(desired()), outboundType="loadBalancer", natGatewayProfile=shown)
    wanted = {"outboundIPs": {"publicIPs": [ADDRESS]}}
    gateway = {"outboundType": "managedNATGateway", "natGatewayProfile": wanted}
    body = written(live, networkProfile=gateway)
    assert body["properties"]["networkProfile"]["natGatewayProfile"] == {"idleTimeoutInMinutes": 4, **wanted}


@pytest.mark.parametrize(
    ("outbound", "subnet"),
    [
        ("userDefinedRouting", {"vnetSubnetID": SUBNET}),
        ("userAssignedNATGateway", {"vnetSubnetID": SUBNET}),
        ("managedNATGateway", {}),
    ],
)
def test_a_cluster_that_leaves_the_load_balancer_sends_nothing_of_its_outbound_profile(
    outbound: str, subnet: dict[str, Any]
) -> None:
    pools = [pool(**subnet)]
    shown = {
        "backendPoolType": "nodeIPConfiguration",
        "managedOutboundIPs": {"count": 1},
        "allocatedOutboundPorts": 1024,
        "idleTimeoutInMinutes": 30,
        "effectiveOutboundIPs": [{"id": ADDRESS}],
    }
    live = network(created(desired(nodePools=pools)), loadBalancerProfile=shown)
    body = written(live, networkProfile={"outboundType": outbound}, nodePools=pools)
    profile = body["properties"]["networkProfile"]
    assert profile["outboundType"] == outbound
    assert "loadBalancerProfile" not in profile
    inbound = {"loadBalancerProfile": {"backendPoolType": "NodeIP"}}
    body = written(live, networkProfile={"outboundType": outbound, **inbound}, nodePools=pools)
    assert body["properties"]["networkProfile"]["loadBalancerProfile"] == inbound["loadBalancerProfile"]


def test_a_cluster_that_leaves_its_nat_gateway_does_not_send_the_gateway() -> None:
    shown = {"managedOutboundIPProfile": {"count": 1}, "idleTimeoutInMinutes": 4}
    live = network(created(desired()), outboundType="managedNATGateway", natGatewayProfile=shown)
    body = written(live, networkProfile={"outboundType": "loadBalancer"})
    assert "natGatewayProfile" not in body["properties"]["networkProfile"]


def test_a_cluster_that_gives_up_its_user_assigned_identity_does_not_name_it() -> None:
    live = created(desired(identity={"type": "UserAssigned", "userAssignedIdentity": USER}))
    assert list(live["identity"]["userAssignedIdentities"]) == [USER]
    body = written(live, identity={"type": "SystemAssigned"})
    assert body["identity"] == {"type": "SystemAssigned"}


def test_key_management_that_is_switched_off_names_no_key() -> None:
    live = created(desired())
    kms = {"enabled": True, "keyId": VAULT, "keyVaultNetworkAccess": "Public"}
    live["properties"]["securityProfile"] = {"azureKeyVaultKms": kms}
    body = written(live, securityProfile={"azureKeyVaultKms": {"enabled": False}})
    assert body["properties"]["securityProfile"]["azureKeyVaultKms"] == {"enabled": False}


def test_another_kubelet_identity_does_not_have_the_ids_of_the_one_before() -> None:
    identity = {"identity": {"type": "UserAssigned", "userAssignedIdentity": USER}}
    live = created(desired(**identity))
    shown = {"resourceId": USER, "clientId": "an id", "objectId": "another id"}
    live["properties"]["identityProfile"] = {"kubeletidentity": shown}
    other = USER.replace("/one", "/two")
    body = written(live, **identity, identityProfile={"kubeletidentity": {"resourceId": other}})
    assert body["properties"]["identityProfile"] == {"kubeletidentity": {"resourceId": other}}


@pytest.mark.parametrize(
    ("profile", "shown", "wanted"),
    [
        (
            "bootstrapProfile",
            {"artifactSource": "Cache", "containerRegistryId": "a"},
            {"artifactSource": "Direct"},
        ),
        (
            "aadProfile",
            {"managed": False, "clientAppID": "a", "serverAppID": "b", "tenantID": "c"},
            {"managed": True},
        ),
        (
            "apiServerAccessProfile",
            {
                "enablePrivateCluster": False,
                "authorizedIPRanges": ["10.0.0.0/8"],
                "enableVnetIntegration": True,
            },
            {"enablePrivateCluster": True},
        ),
    ],
)
def test_what_goes_with_the_choice_before_is_left_out(
    profile: str, shown: dict[str, Any], wanted: dict[str, Any]
) -> None:
    body = without_rivals({"properties": {profile: shown | wanted}}, {"properties": {profile: wanted}})
    left: dict[str, Any] = {"tenantID": "c"} if profile == "aadProfile" else {}
    left |= {"enableVnetIntegration": True} if profile == "apiServerAccessProfile" else {}
    assert body == {"properties": {profile: left | wanted}}


def test_what_the_manifest_does_not_choose_is_sent_back_as_it_was_read() -> None:
    shown = {"backendPoolType": "nodeIP", "outboundIPs": {"publicIPs": [{"id": ADDRESS}]}}
    live = network(created(desired()), loadBalancerProfile=shown)
    body = written(live, tags={"a": "b"})
    assert body["properties"]["networkProfile"]["loadBalancerProfile"] == shown


def test_both_spellings_of_the_pods_range_say_the_same() -> None:
    before: dict[str, Any] = {"podCidr": "10.244.0.0/16", "podCidrs": ["10.244.0.0/16", "fd12::/64"]}
    body = {"properties": {"networkProfile": {**before, "podCidr": "10.240.0.0/14"}}}
    wanted: dict[str, Any] = {"properties": {"networkProfile": {"podCidr": "10.240.0.0/14"}}}
    after = without_rivals(body, wanted)["properties"]["networkProfile"]
    assert after == {"podCidr": "10.240.0.0/14", "podCidrs": ["10.240.0.0/14", "fd12::/64"]}
    body = {"properties": {"networkProfile": {**before, "podCidrs": ["10.240.0.0/14", "fd12::/64"]}}}
    wanted = {"properties": {"networkProfile": {"podCidrs": ["10.240.0.0/14", "fd12::/64"]}}}
    assert without_rivals(body, wanted)["properties"]["networkProfile"] == after


def test_the_body_that_was_read_is_not_changed() -> None:
    live = network(created(desired()), loadBalancerProfile={"managedOutboundIPs": {"count": 1}})
    written(live, networkProfile={"outboundType": "managedNATGateway"})
    assert live["properties"]["networkProfile"]["loadBalancerProfile"] == {"managedOutboundIPs": {"count": 1}}


def test_user_defined_routing_goes_with_what_the_load_balancer_does_for_inbound_traffic() -> None:
    profile = {"outboundType": "userDefinedRouting", "loadBalancerProfile": {"backendPoolType": "NodeIP"}}
    body = cluster_body(desired(networkProfile=profile), OWNER, None)
    assert body is not None
    assert body["properties"]["networkProfile"] == {"networkPlugin": "azure", **profile}
    outbound = {"loadBalancerProfile": {"allocatedOutboundPorts": 1024}}
    with pytest.raises(ValueError, match=r"loadBalancerProfile\.allocatedOutboundPorts does not go with"):
        desired(networkProfile=profile | outbound)


@pytest.mark.parametrize(
    ("profile", "shown", "wanted", "left"),
    [
        (
            "networkProfile",
            {"loadBalancerProfile": {"outboundIPs": {"publicIPs": [{"id": ADDRESS}]}}},
            {"loadBalancerProfile": {"managedOutboundIPs": {"count": 2}}},
            ["loadBalancerProfile.managedOutboundIPs.count"],
        ),
        (
            "apiServerAccessProfile",
            {"enablePrivateCluster": False, "authorizedIPRanges": ["10.0.0.0/8"]},
            {"enablePrivateCluster": True},
            ["enablePrivateCluster"],
        ),
        (
            "securityProfile",
            {"azureKeyVaultKms": {"enabled": True, "keyId": VAULT, "keyVaultNetworkAccess": "Public"}},
            {"azureKeyVaultKms": {"enabled": False}},
            ["azureKeyVaultKms.enabled"],
        ),
    ],
)
def test_a_choice_that_the_job_leaves_replaces_nothing(
    profile: str, shown: dict[str, Any], wanted: dict[str, Any], left: list[str]
) -> None:
    live = created(desired())
    live["properties"].setdefault(profile, {}).update(shown)
    asked = replace(
        desired(tags={"a": "b"}, **{profile: wanted}),
        left=frozenset(f"{profile}.{field}" for field in left),
    )
    body = cluster_body(asked, OWNER, live)
    assert body is not None
    assert body["tags"]["a"] == "b"
    assert shown.items() <= body["properties"][profile].items()
