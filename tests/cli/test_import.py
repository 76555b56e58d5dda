"""``roadstead import``: a cluster that exists becomes a manifest, and by that manifest it is adopted."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from cli.commands.write.imported_file import text_of
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.language.yaml.parser import parse
from shared.ports.azure import GetCluster, PutCluster, PutGroup, PutMaintenance
from shared.resource_ids import ClusterId
from tests.support import fleet_files
from tests.support.pipeline_runs import accepted, phases, push
from tests.support.roadstead_command import roadstead, write

pytestmark = pytest.mark.lives

ONE = ClusterId("00000000-0000-0000-0000-000000000001", "rg-shop", "shop-aks")
POOL = {"vmSize": "Standard_D4s_v5", "type": "VirtualMachineScaleSets"}
THEIRS: dict[str, Any] = {
    "location": "westeurope",
    "sku": {"name": "Base", "tier": "Free"},
    "identity": {"type": "SystemAssigned"},
    "tags": {"team": "shop"},
    "properties": {
        "kubernetesVersion": "1.36.2",
        "dnsPrefix": "theirs",
        "networkProfile": {"networkPlugin": "azure", "networkPluginMode": "overlay"},
        "autoUpgradeProfile": {"nodeOSUpgradeChannel": "NodeImage"},
        "podIdentityProfile": {"enabled": True},
        "agentPoolProfiles": [
            {"name": "system", "mode": "System", "count": 3, **POOL},
            {"name": "apps", "mode": "User", "enableAutoScaling": True, "minCount": 1, "maxCount": 5, **POOL},
        ],
    },
}


@pytest.fixture
def cloud() -> MemoryCloud:
    """Return a cloud with a fleet, and a cluster that belongs to no fleet."""
    made = MemoryCloud()
    made.ports.azure.call(PutGroup(ONE.group, {"location": "westeurope", "tags": {}}))
    made.ports.azure.call(PutCluster(ONE, THEIRS, etag=None))
    made.ports.azure.call(
        PutMaintenance(
            ONE, "default", {"properties": {"timeInWeek": [{"day": "Sunday", "hourSlots": [1, 2]}]}}
        )
    )
    push(made, fleet_files.example())
    made.run()
    return made


def test_the_whole_manifest_is_printed_without_defaults(url: str) -> None:
    done = roadstead("import", ONE.resource, "--url", url)
    assert done.returncode == 0, done.stderr
    assert not done.stdout.startswith("#")
    assert yaml.safe_load(done.stdout) == {
        "apiVersion": "roadstead.dev/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "shop-aks", "annotations": {"roadstead.dev/adopt": "when-equal"}},
        "spec": {
            "subscriptionId": ONE.subscription,
            "resourceGroup": "rg-shop",
            "location": "westeurope",
            "sku": {"tier": "Free"},
            "tags": {"team": "shop"},
            "kubernetesVersion": "1.36.2",
            "dnsPrefix": "theirs",
            "networkProfile": {
                "networkPlugin": "azure",
                "networkPluginMode": "overlay",
                "podCidr": "10.244.0.0/16",
                "serviceCidr": "10.0.0.0/16",
                "dnsServiceIP": "10.0.0.10",
            },
            "autoUpgradeProfile": {"nodeOSUpgradeChannel": "NodeImage"},
            "nodePools": [
                pool("system", mode="System", count=3),
                pool("apps", minCount=1, maxCount=5),
            ],
            "maintenanceWindows": [
                {"name": "default", "timeInWeek": [{"day": "Sunday", "hourSlots": [1, 2]}]}
            ],
            "azure": {"properties": {"podIdentityProfile": {"enabled": True}}},
        },
    }


def pool(name: str, **more: Any) -> dict[str, Any]:
    shown = {
        "vmSize": "Standard_D4s_v5",
        "osDiskSizeGB": 128,
        "osDiskType": "Managed",
        "upgradeSettings": {"maxSurge": "10%"},
    }
    return {"name": name, **shown, "maxPods": 250, **more}


@pytest.mark.parametrize("chosen", [[], ["--class", "apps-fixed", "--environment", "production"]])
def test_a_manifest_that_uses_layers_adopts_the_cluster_by_its_tags_alone(
    tmp_path: Path, cloud: MemoryCloud, url: str, chosen: list[str]
) -> None:
    fleet = write(tmp_path, fleet_files.example())
    done = roadstead("import", ONE.resource, *chosen, str(fleet), ROADSTEAD_URL=url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Wrote clusters/shop-aks/cluster.yaml." in done.stdout
    assert roadstead("validate", cwd=fleet).returncode == 0
    text = (fleet / "clusters/shop-aks/cluster.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=../../.roadstead/schemas/cluster.json\n")
    assert "networkPlugin:" not in text  # the fleet's defaults say it
    before = accepted(cloud)
    push(cloud, {p.relative_to(fleet).as_posix(): p.read_bytes() for p in fleet.rglob("*") if p.is_file()})
    cloud.run()
    assert phases(cloud)["shop-aks"] is Phase.READY
    writes = accepted(cloud)
    writes.subtract(before)
    assert {kind: n for (kind, name), n in writes.items() if n and name == "shop-aks"} == {"update": 1}
    live = cloud.ports.azure.call(GetCluster(ONE))
    assert live is not None
    marks = {key: value for key, value in live["tags"].items() if not key.startswith("roadstead-")}
    assert (marks, live["sku"]["tier"]) == ({"team": "shop"}, "Free")
    again = roadstead("import", ONE.resource, str(fleet), ROADSTEAD_URL=url)
    assert (again.returncode, "there is a cluster shop-aks already" in again.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["/subscriptions/x"], 1, "resource must be the id of a managed cluster, such as /subscriptions/"),
        ([ONE.resource.replace("rg-shop", "..")], 1, "resource must be the id of a managed cluster, such as"),
        ([ONE.resource.replace("shop", "toy")], 1, "there is no managed cluster toy-aks in rg-toy"),
        ([ONE.resource, "--class", "apps"], 2, "give its PATH"),
        ([ONE.resource, "fleet", "--class", "apps-fixd"], 1, "did you mean apps-fixed?"),
        ([ONE.resource, "nowhere"], 2, "there is no folder nowhere"),
    ],
)
def test_what_cannot_be_imported_is_reported(
    tmp_path: Path, url: str, arguments: list[str], status: int, message: str
) -> None:
    shutil.copytree(fleet_files.EXAMPLE, tmp_path / "fleet")
    done = roadstead("import", *arguments, cwd=tmp_path, ROADSTEAD_URL=url)
    assert (done.returncode, done.stdout) == (status, "")
    assert message in done.stderr


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text()
    | st.from_regex(r"[-+.0-9eExo_:~]{1,6}")
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@example({"a": 10**18 + 1})
@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=3))
def test_yaml_is_read_back_as_it_was_written(document: dict[str, Any]) -> None:
    assert parse(text_of(document).encode(), "cluster.yaml").plain() == document
