"""``roadstead import --subscription``: twenty clusters of many shapes become a fleet that changes nothing."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.language.yaml.parser import parse
from shared.ports.azure import PutMaintenance
from shared.resource_ids import ClusterId
from tests.support import fleet_files
from tests.support.found_clusters import SHAPES, SUBSCRIPTION, WEB, create, place
from tests.support.pipeline_runs import accepted, cloud_with, phases, push
from tests.support.roadstead_command import roadstead, write

pytestmark = pytest.mark.lives


@pytest.fixture
def cloud() -> MemoryCloud:
    """Return a cloud with the example fleet, and twenty clusters that belong to no fleet."""
    made = cloud_with(fleet_files.example())
    for number, (name, properties) in enumerate(SHAPES.items()):
        create(made, name, properties, location=("westeurope", "eastus")[number % 2])
    slot = {"properties": {"timeInWeek": [{"day": "Sunday", "hourSlots": [1, 2]}]}}
    made.ports.azure.call(PutMaintenance(place("web-2"), "default", slot))
    made.clock.advance(600)
    return made


def test_twenty_clusters_of_many_shapes_show_no_difference_and_get_their_tags_alone(
    tmp_path: Path, cloud: MemoryCloud, url: str
) -> None:
    fleet = write(tmp_path, fleet_files.example())
    done = roadstead("import", "--subscription", SUBSCRIPTION, str(fleet), ROADSTEAD_URL=url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Wrote 20 manifests in clusters/." in done.stdout
    assert "Not imported: 3 clusters that the fleet example manages." in done.stdout
    classes = {path.stem: path.read_text() for path in (fleet / "classes").glob("imported*.yaml")}
    assert classes.keys() == {"imported", "imported-2", "imported-3"}
    assert "# What most of 10 imported clusters have." in classes["imported"]
    assert roadstead("validate", str(fleet)).returncode == 0
    plan = json.loads(roadstead("plan", "-o", "json", str(fleet), ROADSTEAD_URL=url).stdout)
    actions = {item["cluster"]: item for item in plan["items"] if item["cluster"] in SHAPES}
    assert {item["action"] for item in actions.values()} == {"adopt"}, actions
    assert actions.keys() == SHAPES.keys()
    before = accepted(cloud)
    push(cloud, {p.relative_to(fleet).as_posix(): p.read_bytes() for p in fleet.rglob("*") if p.is_file()})
    cloud.run()
    assert {name: phase for name, phase in phases(cloud).items() if name in SHAPES} == dict.fromkeys(
        SHAPES, Phase.READY
    )
    writes = accepted(cloud)
    writes.subtract(before)
    made = {(kind, name): n for (kind, name), n in writes.items() if n and name in SHAPES}
    assert made == {("update", name): 1 for name in SHAPES}
    assert json.loads(roadstead("drift", "-o", "json", ROADSTEAD_URL=url).stdout)["clusters"] == []


def test_a_given_class_and_environment_are_those_of_all(tmp_path: Path, cloud: MemoryCloud, url: str) -> None:
    fleet = write(tmp_path, fleet_files.example())
    given = ("--class", "apps", "--environment", "production")
    done = roadstead("import", "--subscription", SUBSCRIPTION, *given, str(fleet), ROADSTEAD_URL=url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list((fleet / "classes").glob("imported*"))
    spec = parse((fleet / "clusters/web-1/cluster.yaml").read_bytes(), "cluster.yaml").plain()["spec"]
    assert (spec["class"], spec["environment"]) == ("apps", "production")
    plan = json.loads(roadstead("plan", "-o", "json", str(fleet), ROADSTEAD_URL=url).stdout)
    assert {item["action"] for item in plan["items"] if item["cluster"] in SHAPES} == {"adopt"}


def test_what_cannot_be_imported_is_named_and_the_rest_is_written(
    tmp_path: Path, cloud: MemoryCloud, url: str
) -> None:
    fleet = write(tmp_path, fleet_files.example())
    (fleet / "clusters/web-1").mkdir()
    (fleet / "clusters/web-1/cluster.yaml").write_bytes(fleet_files.cluster("web-1"))
    create(cloud, "web-2", WEB, at=ClusterId(SUBSCRIPTION, "rg-other", "web-2"))
    done = roadstead("import", "--subscription", SUBSCRIPTION, str(fleet), ROADSTEAD_URL=url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Wrote 19 manifests" in done.stdout
    for name in ("web-1", "web-2"):
        assert f"/{name}: there is another cluster {name}, and a name is that of one cluster" in done.stdout
    again = roadstead("import", "--subscription", SUBSCRIPTION, str(fleet), ROADSTEAD_URL=url)
    assert (again.returncode, "there is no cluster to import" in again.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "give the RESOURCE_ID of a cluster, or --subscription or --from-terraform for many"),
        (["--subscription", "production", "fleet"], 2, "--subscription"),
        (["--subscription", SUBSCRIPTION.replace("1", "9"), "fleet"], 1, "could not be found."),
        (["--subscription", SUBSCRIPTION, "nowhere"], 2, "there is no folder nowhere"),
        (["--subscription", SUBSCRIPTION, "x", "fleet"], 2, "give PATH alone"),
        (["--subscription", SUBSCRIPTION, "--class", "aps", "fleet"], 1, "did you mean apps?"),
        (["--from-terraform", "none.json", "fleet"], 2, "none.json cannot be read: No such file"),
    ],
)
def test_a_wrong_call_writes_nothing_and_says_why(
    tmp_path: Path, url: str, arguments: list[str], status: int, message: str
) -> None:
    write(tmp_path / "fleet", fleet_files.example())
    done = roadstead("import", *arguments, cwd=tmp_path, ROADSTEAD_URL=url)
    assert (done.returncode, message in done.stderr) == (status, True), done.stderr
    files = {path.relative_to(tmp_path / "fleet").as_posix() for path in (tmp_path / "fleet").rglob("*.*")}
    assert not any("imported" in path or "web" in path for path in files)


def resource(address: str, *instances: Mapping[str, Any], mode: str = "managed") -> dict[str, Any]:
    """Return a resource of a state as Terraform 1.9 writes it."""
    *module, kind, name = address.rsplit(".", 2)
    return {
        **({"module": module[0]} if module else {}),
        "mode": mode,
        "type": kind,
        "name": name,
        "provider": 'provider["registry.terraform.io/hashicorp/azurerm"]',
        "instances": [{"schema_version": 2, "sensitive_attributes": [], **found} for found in instances],
    }


def instance(place: str, key: str | int | None = None, **attributes: Any) -> dict[str, Any]:
    kept = {"index_key": key} if key is not None else {}
    return {**kept, "attributes": {"id": place, **attributes}}


def lower_groups(cluster: ClusterId) -> str:
    """Return an id as older versions of the provider have it."""
    return cluster.resource.replace("resourceGroups", "resourcegroups")


SECRET = "kubeconfig-of-an-administrator"
STATE: dict[str, Any] = {
    "version": 4,
    "terraform_version": "1.9.8",
    "serial": 41,
    "lineage": "2c1d6f1e-5a5f-4b53-a7a0-4a8f43ac8d3e",
    "outputs": {},
    "resources": [
        resource(
            "azurerm_resource_group.web", instance(f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-web-1")
        ),
        resource(
            "module.web.azurerm_kubernetes_cluster.this",
            instance(place("web-1").resource, "one", kube_config_raw=SECRET),
            instance(lower_groups(place("web-2")), "two's", kube_config_raw=SECRET),
        ),
        resource(
            "module.web.azurerm_kubernetes_cluster_node_pool.apps",
            instance(
                f"{place('web-1').resource}/agentPools/apps", 0, kubernetes_cluster_id=place("web-1").resource
            ),
        ),
        resource(
            "azapi_resource.batch", instance(place("batch-1").resource, type="Microsoft.ContainerService/x")
        ),
        resource(
            "azurerm_role_assignment.pull",
            instance("/subscriptions/x/providers/y/z", scope=place("web-1").resource),
        ),
        resource(
            "azurerm_monitor_diagnostic_setting.audit",
            instance(f"{place('batch-1').resource}|audit", target_resource_id=place("batch-1").resource),
        ),
        resource("azurerm_kubernetes_cluster.gone", instance(place("gone").resource)),
        resource("azurerm_kubernetes_cluster.read", instance(place("web-9").resource), mode="data"),
    ],
    "check_results": None,
}


def test_a_state_of_terraform_names_which_clusters_are_imported_and_what_leaves_it(
    tmp_path: Path, cloud: MemoryCloud, url: str
) -> None:
    fleet = write(tmp_path / "fleet", fleet_files.example())
    (tmp_path / "state.json").write_text(json.dumps(STATE))
    done = roadstead("import", "--from-terraform", "state.json", "fleet", cwd=tmp_path, ROADSTEAD_URL=url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Wrote 3 manifests" in done.stdout
    written = {path.parent.name for path in (fleet / "clusters").glob("*/cluster.yaml")}
    assert written - {"atlantic-aks", "pacific-aks", "sargasso-aks"} == {"web-1", "web-2", "batch-1"}
    assert "/gone: the state has it, and Azure does not" in " ".join(done.stdout.split())
    command = done.stdout.partition("terraform state rm")[2].partition("These name")[0]
    assert shlex.split(command.replace("\\\n", " ")) == [
        "azapi_resource.batch",
        'module.web.azurerm_kubernetes_cluster.this["one"]',
        "module.web.azurerm_kubernetes_cluster_node_pool.apps[0]",
        'module.web.azurerm_kubernetes_cluster.this["two\'s"]',
    ]
    stays = done.stdout.partition("stay in Terraform:")[2].split()
    assert stays == ["azurerm_monitor_diagnostic_setting.audit", "azurerm_role_assignment.pull"]
    everything = done.stdout + done.stderr + "".join(p.read_text() for p in fleet.rglob("*") if p.is_file())
    assert SECRET not in everything


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("{", "is not JSON; write it with `terraform state pull > state.json`"),
        ("[]", "is no state of Terraform of version 4"),
        (json.dumps({"version": 3, "modules": []}), "is no state of Terraform of version 4"),
        (json.dumps({"format_version": "1.0", "values": {}}), "is no state of Terraform of version 4"),
        (json.dumps({"version": 4}), "is no state of Terraform: resources has another form"),
        (json.dumps({"version": 4, "resources": [{"mode": SECRET}]}), "resources.0.type has another form"),
        (json.dumps({"version": 4, "resources": []}), "has no AKS cluster"),
    ],
)
def test_what_is_no_state_is_refused_without_its_content(
    tmp_path: Path, url: str, state: str, message: str
) -> None:
    write(tmp_path / "fleet", fleet_files.example())
    (tmp_path / "state.json").write_text(state)
    done = roadstead("import", "--from-terraform", "state.json", "fleet", cwd=tmp_path, ROADSTEAD_URL=url)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert SECRET not in done.stderr
