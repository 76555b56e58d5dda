"""What Azure shows of the extension late or wrong: no job ends on it, and nothing is written twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from shared.cluster.record_parts import Phase
from shared.ports.azure import AzureCall, GetExtension, ListFluxConfigurations
from tests.support.extension_clusters import (
    APPS,
    BASE,
    FLUX,
    FOLDERS,
    PRIVATE,
    TWO,
    applied,
    without_a_way,
    written,
)
from tests.support.one_cluster import files, record
from tests.support.pipeline_runs import phases, push
from tests.support.replaced_ports import on_azure

pytestmark = pytest.mark.lives


class Shown:
    """Azure, which shows the configurations otherwise than they are."""

    def __init__(self, inner: Any, change: Callable[[dict[str, Any]], None]) -> None:
        self._inner, self._change = inner, change

    def call(self, operation: AzureCall[Any]) -> Any:
        result = self._inner.call(operation)
        if operation.name == "list_flux_configurations":
            self._change(result)
        return result


def reported_long_ago(found: dict[str, Any]) -> None:
    for document in found.values():
        document["properties"]["statusUpdatedAt"] = "2020-01-01T00:00:00Z"


def applied_another_commit(found: dict[str, Any]) -> None:
    for document in found.values():
        for status in document["properties"]["statuses"]:
            for condition in status["statusConditions"] if status["kind"] == "Kustomization" else ():
                condition["message"] = f"Applied revision: main@sha1:{'0' * 40}"


@pytest.mark.parametrize(
    ("change_of", "reason"),
    [
        (reported_long_ago, "the agents of the extension have not reported it yet"),
        (applied_another_commit, f"it applied main@sha1:{'0' * 40}, the source is at roadstead/pin/example/"),
    ],
)
def test_what_azure_shows_of_an_earlier_time_or_commit_ends_no_job(
    change_of: Callable[[dict[str, Any]], None], reason: str
) -> None:
    cloud = without_a_way()
    cloud.with_ports(lambda ports: replace(ports, azure=Shown(ports.azure, change_of)))
    push(cloud, files(PRIVATE + FLUX))
    cloud.run(seconds=600, until=lambda: False)
    assert phases(cloud) == {"one": Phase.PROVISIONING}
    assert reason in record(cloud).job.reason


def test_what_the_source_fetched_is_not_said_to_be_applied_where_azure_does_not_show_that() -> None:
    def unnamed(found: dict[str, Any]) -> None:
        for entry in (status for document in found.values() for status in document["properties"]["statuses"]):
            for condition in entry["statusConditions"]:
                condition["message"] = "all is well"

    cloud = without_a_way()
    cloud.with_ports(lambda ports: replace(ports, azure=Shown(ports.azure, unnamed)))
    push(cloud, files(PRIVATE + FLUX))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert applied(cloud) == ""
    assert "Azure shows no revision that Flux applied" in [
        condition.message for condition in record(cloud).conditions
    ]


def test_a_configuration_that_is_changed_back_while_others_are_written_is_written_once() -> None:
    def changed_back(found: dict[str, Any]) -> None:
        if "team" in found:
            found["flux-system"]["properties"]["gitRepository"]["url"] = "https://github.com/example/else"

    cloud = without_a_way()
    cloud.with_ports(lambda ports: replace(ports, azure=Shown(ports.azure, changed_back)))
    push(cloud, files(PRIVATE + TWO) | BASE)
    cloud.run(seconds=600, until=lambda: False)
    assert written(cloud) == {
        ("put-extension", "flux"): 1,
        ("put-configuration", "flux-system"): 1,
        ("put-configuration", "team"): 1,
    }


@pytest.mark.parametrize("kind", [GetExtension, ListFluxConfigurations], ids=lambda kind: str(kind.name))
@pytest.mark.parametrize(("times", "writes"), [(1, 1), (2, 2), (99, 2)])
def test_what_azure_shows_late_is_read_once_more_and_what_vanishes_is_written_twice(
    kind: type[AzureCall[Any]], times: int, writes: int
) -> None:
    cloud = without_a_way()
    azure, hidden = cloud.ports.azure, list[AzureCall[Any]]()
    put, name = {
        GetExtension: ("put-extension", "flux"),
        ListFluxConfigurations: ("put-configuration", "flux-system"),
    }[kind]

    def late(read: AzureCall[Any]) -> Any:
        found = azure.call(read)
        if (put, name) not in written(cloud) or len(hidden) == times:
            return found
        hidden.append(read)
        return None if found is None or "id" in found else {}

    on_azure(cloud, kind, late)
    push(cloud, files(PRIVATE + APPS) | FOLDERS)
    cloud.run()
    assert written(cloud)[put, name] == writes
    assert phases(cloud) == {"one": Phase.FAILED if times == 99 else Phase.READY}
    if times == 99:
        assert record(cloud).job.reason.startswith("Aborted: Azure accepted the creation of the ")
