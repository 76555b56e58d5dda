"""Flux of channels: one pull request for the first environment, which promotions carry on."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.adapters.registries import OciRegistries
from shared.app.api.views.versions import versions_view
from shared.app.outbox import send
from shared.cluster.failures.errors import Throttled, Unavailable
from shared.cluster.queues.messages import PromoteRequest
from shared.cluster.record_parts import Phase
from shared.frozen import replace
from shared.kubernetes.flux_instance import INSTANCE
from shared.ports.azure import ListExtensionVersions
from tests.support.azure_ports import StaticCredential
from tests.support.flux_channels import (
    ARTIFACT,
    BRANCH,
    begun,
    distribution,
    extension,
    proposed,
    release,
    stored,
    with_extension,
    with_operator,
)
from tests.support.pipeline_runs import phases, push
from tests.support.promotions import PROD, TEST, asked_again, decided, merge, pulls
from tests.support.replaced_ports import around, falls_silent, on_azure

pytestmark = pytest.mark.lives
FILE = "environments/development.versions.yaml"


def extensions(cloud: MemoryCloud, names: tuple[str, ...]) -> set[str]:
    """Return the versions that clusters run, as Azure shows them."""
    ids = [record.desired.id for record in cloud.state.clusters() if record.name in names]
    return {cloud.azure.get_extension(own, "flux")["properties"]["currentVersion"] for own in ids}


def installed(cloud: MemoryCloud, names: tuple[str, ...]) -> set[str]:
    """Return the Flux that the operator has installed."""
    found = set[str]()
    for record in cloud.state.clusters():
        if record.name in names:
            live = cloud.kubernetes.connect(record.desired.id).get(INSTANCE)
            assert live is not None
            found.add(live["status"]["lastAppliedRevision"].partition("@")[0])
    return found


def operated(*versions: str, version: str = "2.8.7") -> MemoryCloud:
    cloud = MemoryCloud(throttle=False)
    release(cloud, *versions)
    begun(with_operator(version), cloud)
    assert phases(cloud) == dict.fromkeys((*TEST, *PROD), Phase.READY)
    return cloud


# Microsoft's extension


def test_a_listed_extension_is_proposed_to_the_first_environment_and_promoted_to_the_next_one() -> None:
    cloud = begun(with_extension())
    assert phases(cloud) == dict.fromkeys((*TEST, *PROD), Phase.READY)
    (pull,) = proposed(cloud)
    assert pull.title == "Flux extension 1.23.0 for development"
    assert "| `flux.extension.version` | `1.22.1` | `1.23.0` |" in pull.body
    assert "Azure has it in every region of the environment" in pull.body
    assert "A merge upgrades the Flux of 2 clusters (`a1`, `a2`)" in pull.body
    assert "flux-gitops-release-notes" in pull.body
    before, after = (cloud.repository.files(cloud.repository.head(name)) for name in ("main", BRANCH))
    assert {path for path in after if after[path] != before.get(path)} == {FILE}
    assert after[FILE] == extension("development", "1.23.0")
    (shown,) = versions_view(cloud.ports)["channels"]
    assert (shown["what"], shown["channel"], shown["proposed"]) == ("components", "rapid", "1.23.0")
    assert extensions(cloud, (*TEST, *PROD)) == {"1.22.1"}
    merge(cloud, pull.number)
    assert (extensions(cloud, TEST), extensions(cloud, PROD)) == ({"1.23.0"}, {"1.22.1"})
    assert cloud.ports.git_host.tip(BRANCH) is None
    (promotion,) = pulls(cloud)
    merge(cloud, promotion.number)
    assert extensions(cloud, PROD) == {"1.23.0"}
    assert (proposed(cloud), pulls(cloud)) == ([], [])


def test_a_newer_extension_changes_the_open_pull_request_and_one_that_was_declined_is_not_opened_again() -> (
    None
):
    cloud = MemoryCloud()
    cloud.azure.withheld.add("1.23.0")
    begun(with_extension(), cloud)
    (pull,) = proposed(cloud)
    assert pull.title == "Flux extension 1.22.2 for development"
    cloud.azure.withheld.clear()
    asked_again(cloud)
    (same,) = proposed(cloud)
    assert (same.number, same.title) == (pull.number, "Flux extension 1.23.0 for development")
    cloud.ports.git_host.close_pull(pull.number)
    decided(cloud, pull.number, "closed")
    asked_again(cloud)
    assert proposed(cloud) == []
    assert "was closed without a merge" in stored(cloud).problem


def test_an_extension_that_a_commit_took_back_is_not_proposed_again() -> None:
    cloud = begun(with_extension())
    merge(cloud, proposed(cloud)[0].number)
    push(cloud, with_extension())
    cloud.run()
    asked_again(cloud)
    assert proposed(cloud) == []
    assert "a commit took it back" in stored(cloud).problem


def test_a_promotion_never_lowers_the_extension() -> None:
    cloud = begun(with_extension("1.22.2") | {FILE: extension("development", "1.22.1")})
    assert pulls(cloud) == []
    found = cloud.state.promotion("production")
    assert found is not None
    assert "no version is lowered, and b1, b2 of production has a newer one than 1.22.1" in found.problem


def test_an_extension_that_one_region_lacks_is_not_proposed() -> None:
    cloud, found = MemoryCloud(), with_extension()
    path = "clusters/a2/cluster.yaml"
    found[path] = found[path].replace(b"location: eastus", b"location: westeurope")
    azure = cloud.ports.azure

    def behind(call: ListExtensionVersions) -> Any:
        listed = azure.call(call)
        late = [document for document in listed if document["properties"]["version"] != "1.23.0"]
        return late if call.target.location == "westeurope" else listed

    on_azure(cloud, ListExtensionVersions, behind)
    begun(found, cloud)
    assert [pull.title for pull in proposed(cloud)] == ["Flux extension 1.22.2 for development"]


@pytest.mark.parametrize("error", [Unavailable("500"), Throttled("429", retry_after=60.0)])
def test_while_azure_says_nothing_the_pull_request_stays_and_the_reason_is_shown(error: Exception) -> None:
    cloud = begun(with_extension())
    (pull,) = proposed(cloud)
    azure = cloud.ports.azure
    falls_silent(cloud, ListExtensionVersions, error)
    asked_again(cloud)
    unread = "which versions of the extension of Flux eastus offers is unknown: Azure did not answer"
    assert unread in stored(cloud).problem
    assert [found.number for found in proposed(cloud)] == [pull.number]
    cloud.with_ports(lambda ports: replace(ports, azure=azure))
    asked_again(cloud)
    assert (stored(cloud).problem, len(proposed(cloud))) == ("", 1)


# The operator


def test_a_patch_of_the_artifact_is_proposed_and_installed_by_a_merge_and_its_promotion() -> None:
    cloud = operated("2.7.5", "2.8.7", "2.8.8", "2.9.4")
    (pull,) = proposed(cloud)
    assert pull.title == "Flux 2.8.8 for development"
    assert "| `flux.instance.distribution.version` | `2.8.7` | `2.8.8` |" in pull.body
    assert "every artifact of the operator has it" in pull.body
    assert "https://github.com/fluxcd/flux2/releases/tag/v2.8.8" in pull.body
    assert cloud.repository.files(cloud.repository.head(BRANCH))[FILE] == distribution("development", "2.8.8")
    assert installed(cloud, (*TEST, *PROD)) == {"v2.8.7"}
    merge(cloud, pull.number)
    assert (installed(cloud, TEST), installed(cloud, PROD)) == ({"v2.8.8"}, {"v2.8.7"})
    (promotion,) = pulls(cloud)
    merge(cloud, promotion.number)
    assert installed(cloud, PROD) == {"v2.8.8"}
    assert (proposed(cloud), pulls(cloud)) == ([], [])


def test_an_artifact_that_gets_a_patch_later_has_it_proposed_then() -> None:
    cloud = operated("2.8.7")
    assert (proposed(cloud), stored(cloud).problem) == ([], "")
    release(cloud, "2.8.7", "2.8.8")
    asked_again(cloud)
    assert [pull.title for pull in proposed(cloud)] == ["Flux 2.8.8 for development"]


def test_a_registry_that_the_app_may_not_ask_is_said_and_stops_nothing() -> None:
    cloud = MemoryCloud(throttle=False)
    cloud.with_ports(
        lambda ports: replace(
            ports, services=replace(ports.services, registries=OciRegistries({}, StaticCredential()))
        )
    )
    begun(with_operator(), cloud)
    assert phases(cloud) == dict.fromkeys((*TEST, *PROD), Phase.READY)
    unread = "the registry ghcr.io is not in REGISTRIES, a setting of the app"
    assert stored(cloud).problem == f"which versions of Flux {ARTIFACT} has is unknown: {unread}"


@pytest.mark.parametrize("what", ["silence", "no archive", "nothing"])
def test_an_artifact_that_cannot_be_read_leaves_the_pull_request_open(what: str) -> None:
    cloud = operated("2.8.7", "2.8.8")
    (pull,) = proposed(cloud)

    def layer(*_: str) -> bytes:
        if what == "silence":
            raise Unavailable("ghcr.io does not answer: Timeout")
        return b"odd"

    if what == "nothing":
        release(cloud)
    else:
        around(cloud, "registries", layer=layer)
    asked_again(cloud)
    said = {"silence": "ghcr.io does not answer", "no archive": "not compressed", "nothing": "no manifests"}
    for _ in range(2):
        assert said[what] in stored(cloud).problem
        assert [found.number for found in proposed(cloud)] == [pull.number]
        send(PromoteRequest(), cloud.ports)  # what was read a moment ago is not read again
        cloud.run()
