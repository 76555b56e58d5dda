"""Node images of channels: one pull request for the first environment, which promotions carry on."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.azure.world.catalog import NODE_IMAGES
from localcloud.git.world.pull_requests import PullRecord
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.versions import versions_view
from shared.cluster.failures.errors import Unavailable
from shared.frozen import replace
from shared.ports.azure import GetPoolUpgradeProfile
from shared.ports.state import Promotion
from shared.promotions import Promotable
from tests.support.channels import IMAGES, fleet, image
from tests.support.pipeline_runs import push
from tests.support.promotions import PROD, TEST, asked_again, decided, merge, pulls
from tests.support.replaced_ports import falls_silent, on_azure

pytestmark = pytest.mark.lives
BRANCH = "roadstead/images/example/development"


OLD, NEW = "202510.19.1", "202511.01.0"


def tree(version: str = OLD) -> dict[str, bytes]:
    found = fleet("development", "production", channel=IMAGES)
    return found | {
        f"environments/{name}.versions.yaml": image(name, version) for name in ("development", "production")
    }


def begun(cloud: MemoryCloud | None = None) -> MemoryCloud:
    """Return a fleet that follows node images; all its nodes have an old one."""
    cloud = cloud or MemoryCloud()
    push(cloud, tree())
    cloud.run()
    for record in cloud.state.clusters():
        cloud.azure.interventions.set_node_image(record.desired.id, "system", NODE_IMAGES[0])
    return cloud


def proposed(cloud: MemoryCloud, state: str = "open") -> list[PullRecord]:
    return [pull for pull in cloud.repository.pulls.listed(state=state) if pull.head == BRANCH]


def stored(cloud: MemoryCloud) -> Promotion:
    found = cloud.state.promotion("development", Promotable.IMAGES)
    assert found is not None
    return found


def running(cloud: MemoryCloud, names: tuple[str, ...]) -> set[str]:
    ids = [record.desired.id for record in cloud.state.clusters() if record.name in names]
    return {cloud.azure.get_pool(own, "system")["properties"]["nodeImageVersion"] for own in ids}


def test_a_newer_image_is_proposed_to_the_first_environment_and_promoted_to_the_next_one() -> None:
    cloud = begun()
    (pull,) = proposed(cloud)
    assert pull.title == f"Node image {NEW} for development"
    assert f"| `minNodeImageVersion` | `{OLD}` | `{NEW}` |" in pull.body
    assert "every region has it, or a newer one" in pull.body
    assert "https://cve-api.prod-aks.azure.com/viewer/index.html" in pull.body
    assert "- `AKSUbuntu-2204gen2containerd`: known vulnerabilities: 3 fixed (CVE-2025-13836, " in pull.body
    assert "CVE-2021-46848), 2 left.\n" in pull.body
    (shown,) = versions_view(cloud.ports)["channels"]
    assert (shown["what"], shown["channel"], shown["proposed"]) == ("images", "NodeImage", NEW)
    assert running(cloud, (*TEST, *PROD)) == {NODE_IMAGES[0]}
    merge(cloud, pull.number)
    assert (running(cloud, TEST), running(cloud, PROD)) == ({NODE_IMAGES[1]}, {NODE_IMAGES[0]})
    assert cloud.ports.git_host.tip(BRANCH) is None
    (promotion,) = pulls(cloud)
    assert f"`{NEW}`" in promotion.body
    merge(cloud, promotion.number)
    assert running(cloud, PROD) == {NODE_IMAGES[1]}
    assert (proposed(cloud), pulls(cloud)) == ([], [])


def test_an_image_of_which_nobody_says_what_it_fixes_is_proposed_without_that() -> None:
    cloud = MemoryCloud()
    cloud.vulnerabilities.away = Unavailable("the vulnerability data of AKS does not answer: Timeout")
    (pull,) = proposed(begun(cloud))
    said = "`AKSUbuntu-2204gen2containerd`: what is fixed is not known: Unavailable: the vulnerability data "
    assert said in pull.body
    assert stored(cloud).problem == ""


def test_an_image_that_somebody_declined_is_not_proposed_again() -> None:
    cloud = begun()
    (pull,) = proposed(cloud)
    cloud.ports.git_host.close_pull(pull.number)
    decided(cloud, pull.number, "closed")
    asked_again(cloud)
    assert proposed(cloud) == []
    assert "was closed without a merge" in stored(cloud).problem


def test_a_promotion_never_lowers_the_oldest_image_of_an_environment() -> None:
    cloud = begun()
    push(cloud, tree() | {"environments/production.versions.yaml": image("production", NEW)})
    cloud.run()
    assert running(cloud, PROD) == {NODE_IMAGES[1]}
    assert pulls(cloud) == []


def test_a_region_that_does_not_answer_holds_the_pull_request_and_says_so() -> None:
    cloud = begun()
    (pull,) = proposed(cloud)

    azure = cloud.ports.azure
    falls_silent(cloud, GetPoolUpgradeProfile)
    asked_again(cloud)
    assert "Azure does not say which node image is the newest in eastus" in stored(cloud).problem
    assert [found.number for found in proposed(cloud)] == [pull.number]
    cloud.with_ports(lambda ports: replace(ports, azure=azure))
    asked_again(cloud)
    assert (stored(cloud).problem, len(proposed(cloud))) == ("", 1)


def test_one_kind_of_image_of_a_region_is_asked_about_once_for_all_clusters() -> None:
    cloud, asked = begun(), list[GetPoolUpgradeProfile]()
    azure = cloud.ports.azure

    def counted(call: GetPoolUpgradeProfile) -> Any:
        asked.append(call)
        return azure.call(call)

    on_azure(cloud, GetPoolUpgradeProfile, counted)
    asked_again(cloud)
    assert len(asked) == 1


def test_a_node_pool_that_was_replaced_is_asked_about_by_its_name_in_azure() -> None:
    cloud, larger = begun(), b"vmSize: Standard_D8s_v5"
    found = {path: text.replace(b"vmSize: Standard_D4s_v5", larger) for path, text in tree().items()}
    assert found != tree()
    push(cloud, found)
    cloud.run()
    asked_again(cloud)
    assert (stored(cloud).problem, len(proposed(cloud))) == ("", 1)
