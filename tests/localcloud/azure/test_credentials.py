"""The kubeconfigs of the local Azure: what they contain, and when there is none."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest
import yaml

from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.clock import ManualClock
from localcloud.common.control_plane import NullPlane
from shared.resource_ids import ClusterId

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
ONE = ClusterId(SUBSCRIPTION, "rg", "one")
ENTRA = {"aadProfile": {"managed": True, "enableAzureRBAC": True}}


def created(**properties: Any) -> AzureWorld:
    clock = ManualClock()
    world = AzureWorld(clock, plane=NullPlane())
    world.put_group(SUBSCRIPTION, "rg", {"location": "westeurope"})
    pools = [{"name": "system", "mode": "System", "count": 1}]
    own = {"dnsPrefix": "one", "agentPoolProfiles": pools, **properties}
    body = {"location": "westeurope", "identity": {"type": "SystemAssigned"}, "properties": own}
    world.put_cluster(ONE, body)
    clock.advance(10)
    return world


def user(world: AzureWorld, who: str) -> dict[str, Any]:
    """Return the user in the kubeconfig that somebody gets."""
    (given,) = world.get_kubeconfig(ONE, who)["kubeconfigs"]
    content: dict[str, Any] = yaml.safe_load(b64decode(given["value"]))
    assert content["clusters"][0]["cluster"]["server"].startswith("https://")
    (found,) = content["users"]
    return dict(found["user"])


def test_a_cluster_without_entra_id_gives_credentials_of_a_local_account() -> None:
    world = created()
    assert "exec" not in user(world, "user")
    assert "exec" not in user(world, "admin")


def test_a_user_of_a_cluster_with_entra_id_gets_a_plugin_and_an_admin_a_local_account() -> None:
    world = created(**ENTRA)
    plugin = user(world, "user")
    assert list(plugin) == ["exec"]
    assert plugin["exec"]["command"] == "kubelogin"
    assert "exec" not in user(world, "admin")


def test_without_local_accounts_no_admin_gets_credentials() -> None:
    world = created(disableLocalAccounts=True, **ENTRA)
    assert list(user(world, "user")) == ["exec"]
    with pytest.raises(ArmError, match="set to disable local accounts") as refused:
        world.get_kubeconfig(ONE, "admin")
    assert (refused.value.status, refused.value.code) == (400, "BadRequest")
