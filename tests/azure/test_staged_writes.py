"""ARM bodies of a change that Azure takes in stages only: overlay first, and then Cilium."""

from __future__ import annotations

from typing import Any

import pytest

from shared.azure.changes.writes import ImmutableChange
from shared.azure.cluster_body import cluster_write
from tests.support.arm_bodies import OWNER, cluster_body, created, desired

OVERLAY_AND_CILIUM = {
    "networkPluginMode": "overlay",
    "podCidr": "192.168.0.0/16",
    "networkDataplane": "cilium",
    "networkPolicy": "cilium",
}
OVERLAY = {"networkPluginMode": "overlay", "podCidr": "192.168.0.0/16", "podCidrs": ["192.168.0.0/16"]}


def stages(live: dict[str, Any], **profile: Any) -> tuple[str, ...]:
    """Return the fields that the next write changes, once the network shows these values too."""
    live["properties"]["networkProfile"] |= profile
    wanted = desired(networkProfile=OVERLAY_AND_CILIUM, disableLocalAccounts=False, tags={"a": "b"})
    write = cluster_write(wanted, OWNER, live)
    return () if write is None else write.paths


def test_overlay_and_cilium_in_one_commit_are_two_writes() -> None:
    live = created(desired())
    first = stages(live)
    assert first == ("tags.a", "networkProfile.networkPluginMode", "networkProfile.podCidr")
    live["tags"] |= {"a": "b"}
    second = stages(live, **OVERLAY)
    assert second == ("networkProfile.networkPolicy", "networkProfile.networkDataplane")
    assert stages(live, networkDataplane="cilium", networkPolicy="cilium") == ()


def test_cilium_waits_until_a_failed_migration_to_overlay_has_succeeded() -> None:
    live = created(desired())
    live["tags"] |= {"a": "b"}
    live["properties"]["provisioningState"] = "Failed"
    assert stages(live, **OVERLAY) == ()
    wanted = desired(networkProfile=OVERLAY_AND_CILIUM, tags={"a": "b"})
    body = cluster_body(wanted, OWNER, live)
    assert body is not None
    assert body["properties"]["networkProfile"]["networkDataplane"] == "azure"
    live["properties"]["provisioningState"] = "Succeeded"
    assert "networkProfile.networkDataplane" in stages(live)


def test_a_change_that_azure_cannot_make_is_refused_before_the_first_stage() -> None:
    live = created(desired(networkProfile={"serviceCidr": "10.0.0.0/16"}))
    wanted = desired(networkProfile={**OVERLAY_AND_CILIUM, "serviceCidr": "10.9.0.0/16"})
    with pytest.raises(ImmutableChange, match="serviceCidr"):
        cluster_write(wanted, OWNER, live)
