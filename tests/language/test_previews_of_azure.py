"""What AKS has in preview, or does by itself: how a manifest says it, and that it is no drift."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from pydantic import ValidationError

from shared.azure.differences import beyond_git, drift_of
from tests.support.arm_bodies import OWNER, created, desired, pool


def test_zones_that_aks_chooses_are_written_alone() -> None:
    assert desired(nodePools=[pool(availabilityZones=["auto"])]).spec.node_pools[0].availability_zones == (
        "auto",
    )
    with pytest.raises(ValidationError, match="write it alone"):
        desired(nodePools=[pool(availabilityZones=["1", "auto"])])


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("osSKU", "AzureLinuxOSGuard", "ends on 2026-12-10 .* write AzureContainerLinux"),
        ("osSKU", "Flatcar", "is retired by Azure; this preview ended on 2026-06-08"),
        ("osSKU", "WindowsAnnual", "write Windows2025"),
        ("type", "AvailabilitySet", "ended them on 2025-09-30"),
    ],
)
def test_a_value_that_azure_retired_says_since_when_and_what_to_write(
    field: str, value: str, message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        desired(nodePools=[pool(**{field: value})])


def test_previews_without_a_field_go_through_untyped_properties() -> None:
    profile = {"nodeDisruptionProfile": {"nodeDisruptionPolicy": "AllowOnly"}}
    assert desired(azure={"properties": profile}).spec.azure is not None
    nat: dict[str, Any] = {"outboundType": "managedNATGateway", "natGatewayProfile": {"sku": "StandardV2"}}
    gateway = desired(networkProfile=nat).spec.network_profile.nat_gateway_profile
    assert gateway is not None
    assert gateway.sku == "StandardV2"


def test_a_local_dns_that_aks_turns_on_with_a_version_is_no_drift() -> None:
    cluster = desired(nodePools=[pool()])
    before = created(cluster)
    live = copy.deepcopy(before)
    for profile in live["properties"]["agentPoolProfiles"]:
        profile["localDNSProfile"] = {"mode": "Preferred", "state": "Enabled"}
    assert drift_of(cluster, OWNER, live, beyond_git(cluster, OWNER, before)) == []
    chosen = desired(nodePools=[pool(localDNSProfile={"mode": "Disabled"})])
    found = drift_of(chosen, OWNER, live, beyond_git(chosen, OWNER, before))
    assert [difference.path for difference in found] == ["nodePools[system].localDNSProfile.mode"]
