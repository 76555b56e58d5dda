"""What of Azure blocks an upgrade: cores and addresses of a surge, features, and what is not well."""

from __future__ import annotations

from typing import Any

import pytest

from shared.azure.availability.offered import AzureQuota, Offer, Size, Subnet
from shared.azure.availability.offers import TOTAL
from shared.azure.availability.upgrade_room import (
    UpgradeRoom,
    blockers_in_azure,
    failed_parts,
    notes_of,
    room_of,
)
from shared.kubernetes.readiness.blockers import Remover
from shared.language.model.cluster.spec import ClusterSpec

FAMILY = "standardDSv5Family"
SIZES = {"standard_d4s_v5": Size(FAMILY, 4), "standard_d8s_v5": Size(FAMILY, 8)}
NETWORK = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/net/providers/Microsoft.Network"
SUBNET = f"{NETWORK}/virtualNetworks/hub/subnets/aks"
OFFERED = ["1.35.7", "1.36.3", "1.37.1", "1.38.0"]


def spec(*pools: dict[str, Any], version: str = "1.34", **more: Any) -> ClusterSpec:
    system = {"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 10}
    return ClusterSpec.model_validate(
        {
            "subscriptionId": "00000000-0000-0000-0000-000000000001",
            "location": "eastus",
            "resourceGroup": "rg",
            "kubernetesVersion": version,
            "nodePools": [system | pool for pool in pools or ({},)],
            "flux": {"repository": "https://github.com/example/fleet", "path": "./platform"},
            **more,
        }
    )


def room(used: int = 0, **more: Any) -> UpgradeRoom:
    return UpgradeRoom(
        Offer(None, OFFERED, SIZES, {FAMILY: AzureQuota(used, 100), TOTAL: AzureQuota(0, 1000)}, **more)
    )


def blocked(wanted: ClusterSpec, had: UpgradeRoom, to: str = "1.35", runs: str = "1.34.2") -> list[str]:
    return [str(blocker) for blocker in blockers_in_azure(wanted, had, to, runs)]


def test_what_has_room_for_its_surge_is_not_blocked() -> None:
    assert blocked(spec(), room(used=96)) == []


def test_a_surge_needs_cores_for_the_largest_pool_as_pools_are_upgraded_one_after_the_other() -> None:
    half = {"upgradeSettings": {"maxSurge": "50%"}}
    pools = ({**half}, {"name": "apps", "vmSize": "Standard_D8s_v5", "count": 4, **half})
    assert blocked(spec(*pools), room(used=80)) == []
    assert blocked(spec(*pools), room(used=81)) == [
        f"the limit of cores of {FAMILY} in eastus leaves 19 of 100, and the surge of a pool needs 20"
    ]


def test_from_1_35_on_a_surge_goes_on_with_one_node() -> None:
    wide = {"upgradeSettings": {"maxSurge": "50%"}}
    assert blocked(spec(wide, version="1.35"), room(used=96), "1.36", "1.35.7") == []
    assert len(blocked(spec(wide, version="1.35"), room(used=97), "1.36", "1.35.7")) == 1


def test_a_surge_without_overlay_needs_addresses_for_its_pods_too() -> None:
    flat = spec(
        {"vnetSubnetID": SUBNET, "maxPods": 20},
        networkProfile={"networkPlugin": "azure"},
    )
    assert blocked(flat, room(subnets={SUBNET.lower(): Subnet(251, 230)})) == []
    (found,) = blockers_in_azure(flat, room(subnets={SUBNET.lower(): Subnet(251, 231)}), "1.35", "1.34.2")
    assert str(found) == "subnet hub/aks has 20 of 251 addresses left, and the surge of a pool needs 21"
    assert found.who is Remover.NETWORK


def test_new_images_alone_need_the_surge_and_nothing_of_a_version() -> None:
    assert blocked(spec(), room(used=97), "") == [
        f"the limit of cores of {FAMILY} in eastus leaves 3 of 100, and the surge of a pool needs 4"
    ]


def test_a_version_that_runs_needs_nothing() -> None:
    assert blocked(spec(), room(used=100), "1.34") == []


def test_a_version_that_the_region_does_not_offer_on_the_way_is_a_note() -> None:
    (note,) = notes_of(spec(), room(), "1.40", "1.38.0")
    assert note.startswith("in eastus, Azure does not offer Kubernetes 1.39 here; it offers 1.35.7")
    assert [*notes_of(spec(), UpgradeRoom(), "1.40", "1.38.0")] == [], "Azure did not say"


@pytest.mark.parametrize(
    ("more", "to", "runs", "expected"),
    [
        ({"osSKU": "Ubuntu2204"}, "1.37", "1.36.3", "osSKU does not go with Kubernetes 1.37"),
        ({"osSKU": "Ubuntu2204"}, "1.36", "1.35.7", ""),
        ({"osSKU": "Ubuntu"}, "1.38", "1.36.3", ""),
    ],
)
def test_an_image_that_the_version_does_not_have_is_named(
    more: dict[str, Any], to: str, runs: str, expected: str
) -> None:
    found = blocked(spec(more, version="1.36"), room(), to, runs)
    assert [expected in sentence for sentence in found] == ([True] if expected else [])


def test_a_revision_of_istio_that_is_too_old_for_the_version_is_named() -> None:
    mesh = {"mode": "Istio", "istio": {"revisions": ["asm-1-28", "asm-1-30"]}}
    wanted = spec(serviceMeshProfile=mesh)
    assert blocked(wanted, room(), "1.35") == []
    (found,) = blocked(wanted, room(), "1.36")
    assert found.startswith(
        "spec.serviceMeshProfile.istio.revisions does not go with Kubernetes 1.36: asm-1-28 is for"
    )


def test_what_is_not_well_in_azure_is_named() -> None:
    live = {
        "properties": {
            "provisioningState": "Failed",
            "powerState": {"code": "Running"},
            "agentPoolProfiles": [
                {"name": "apps", "provisioningState": "Succeeded"},
                {"name": "more", "provisioningState": "Canceled"},
            ],
        }
    }
    failed = tuple(failed_parts(live, {"properties": {"provisioningState": "Failed"}}))
    assert blocked(spec(), UpgradeRoom(failed=failed)) == [
        "the cluster is Failed in Azure",
        "the node pool more is Canceled in Azure",
        "the extension flux is Failed in Azure",
    ]
    stopped = {"properties": {"provisioningState": "Succeeded", "powerState": {"code": "Stopped"}}}
    assert [*failed_parts(stopped, None)] == [("the cluster", "Stopped")]


def test_of_a_region_no_more_is_stored_than_the_pools_need() -> None:
    more = {f"standard_d{number}s_v4": Size("other", number) for number in range(500)}
    whole = Offer(
        frozenset({"eastus"}), OFFERED, SIZES | more, {FAMILY: AzureQuota(0, 1), "other": AzureQuota(0, 1)}
    )
    kept = room_of(spec(), whole, (), ()).offer
    assert [*(kept.sizes or ())] == ["standard_d4s_v5"]
    assert ([*kept.quotas], kept.regions) == ([FAMILY], None)


def test_a_window_for_upgrades_of_aks_holds_no_other_and_a_note_says_so() -> None:
    window = {
        "name": "aksManagedAutoUpgradeSchedule",
        "maintenanceWindow": {
            "schedule": {"weekly": {"intervalWeeks": 1, "dayOfWeek": "Sunday"}},
            "durationHours": 4,
            "startTime": "01:00",
        },
    }
    (note,) = notes_of(spec(maintenanceWindows=[window]), room(), "1.35", "1.34.2")
    assert note.startswith("the maintenance window aksManagedAutoUpgradeSchedule")
    assert [*notes_of(spec(), room(), "1.35", "1.34.2")] == []
