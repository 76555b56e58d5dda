"""The outputs of a cluster: as Azure shows it now, on the cluster, in the API and to whoever is notified."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.tree import outputs_view
from shared.app.outbox import request_whole_check, request_whole_sweep
from shared.cluster.findings.health import HealthCondition
from shared.cluster.record_parts import Phase
from shared.kubernetes.flux_objects import FACTS
from shared.language.model.notification_kinds import NotificationKind
from shared.notifications.digest import body_of
from shared.notifications.notification import Notification
from tests.support.bootstrap_secrets import patched
from tests.support.calls_inside import counted
from tests.support.checks import check, condition
from tests.support.notified import ALL, notified_fleet
from tests.support.one_cluster import ONE, api, live, ready, record
from tests.support.pipeline_runs import accepted, cloud_with, phases, push, step_until
from tests.support.sweeps import delete_by_hand, sweep

pytestmark = pytest.mark.lives

ADDON = "cluster_addon_azurepolicy_client_id"


def enable_addon(cloud: MemoryCloud, name: str = "azurepolicy") -> None:
    """Enable an add-on as the portal does, which creates an identity of its own."""
    found = cloud.azure.peek(ONE)
    assert found is not None
    addons = {**(found["properties"].get("addonProfiles") or {}), name: {"enabled": True}}
    properties = {**found["properties"], "addonProfiles": addons}
    cloud.azure.put_cluster(ONE, {**found, "properties": properties})
    cloud.clock.advance(600)
    cloud.azure.complete_due()


def outputs(cloud: MemoryCloud) -> dict[str, str]:
    view = outputs_view("one", cloud.ports)
    assert view is not None
    assert view["known"]
    return view["outputs"]


def told(cloud: MemoryCloud, route: str = "all") -> list[Notification]:
    messages = cloud.routes.delivered.get(route, [])
    groups = [group for message in messages for group in message.groups]
    told = [notification for group in groups for notification in group.notifications]
    return [notification for notification in told if notification.kind is NotificationKind.OUTPUTS]


def test_the_outputs_are_what_the_cluster_has_in_its_config_map() -> None:
    cloud = ready()
    assert outputs(cloud) == live(cloud, FACTS)["data"]
    assert outputs(cloud)["cluster_name"] == "one"


def test_before_a_job_has_read_the_cluster_its_outputs_are_not_known() -> None:
    cloud = MemoryCloud()
    push(cloud, notified_fleet("one"))
    step_until(cloud, lambda: phases(cloud) == {"one": Phase.PROVISIONING})
    view = outputs_view("one", cloud.ports)
    assert view is not None
    assert (view["known"], view["outputs"]) == (False, {})
    assert outputs_view("two", cloud.ports) is None


def test_what_changes_in_azure_is_an_output_after_a_sweep_and_on_the_cluster_without_a_job() -> None:
    cloud = ready()
    before = outputs(cloud)
    enable_addon(cloud)
    written = dict(accepted(cloud))
    sweep(cloud)
    now = outputs(cloud)
    assert {**before, ADDON: now[ADDON]} == now
    assert live(cloud, FACTS)["data"] == now, "the check that the sweep asks for has applied it"
    (event,) = (event for event in cloud.state.events("one", 50) if event.reason == "FactsRenewed")
    assert event.message == f"applied other facts of the cluster: {ADDON}"
    assert phases(cloud) == {"one": Phase.READY}
    assert dict(accepted(cloud)) == written, "nothing is written to Azure"
    with counted(cloud) as calls:
        check(cloud)
    assert calls.applied == []


def test_facts_that_somebody_changes_on_the_cluster_are_reported_and_left_to_a_job() -> None:
    cloud = ready()
    patched(cloud, {"data": {"cluster_fqdn": "elsewhere.example"}}, FACTS)
    enable_addon(cloud)
    sweep(cloud)
    check(cloud)
    found = condition(record(cloud), HealthCondition.FLUX)
    assert found.status is False
    assert found.message.startswith("the ConfigMap cluster-facts in flux-system: somebody changed")
    assert live(cloud, FACTS)["data"]["cluster_fqdn"] == "elsewhere.example"
    assert ADDON not in live(cloud, FACTS)["data"]


def test_a_config_map_that_somebody_deletes_is_reported() -> None:
    cloud = ready()
    api(cloud).delete(live(cloud, FACTS))
    check(cloud)
    found = condition(record(cloud), HealthCondition.FLUX)
    assert (found.status, found.reason) == (False, "ObjectMissing")


def test_a_missing_cluster_has_no_outputs_any_more() -> None:
    cloud = ready()
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    view = outputs_view("one", cloud.ports)
    assert view is not None
    assert not view["known"]


def test_a_route_gets_the_outputs_once_when_they_are_known_and_again_when_they_change() -> None:
    cloud = cloud_with(notified_fleet("one", routes=(ALL,)), throttle=False)
    (first,) = told(cloud)
    assert (first.subject, first.detail) == ("one", "its outputs are known")
    assert first.outputs == outputs(cloud)
    enable_addon(cloud)
    sweep(cloud)
    cloud.run(3600)
    _, second = told(cloud)
    assert second.detail == f"changed: {ADDON}"
    assert second.outputs == outputs(cloud)
    for _ in range(2):
        request_whole_sweep(cloud.ports)
        request_whole_check(cloud.ports)
        cloud.run(3600)
    assert len(told(cloud)) == 2


def test_a_change_of_the_outputs_has_the_time_of_its_sweep_also_where_no_check_can_apply_them() -> None:
    cloud = cloud_with(notified_fleet("one", routes=(ALL,)), throttle=False)
    patched(cloud, {"data": {"cluster_fqdn": "elsewhere.example"}}, FACTS)
    for number, addon in enumerate(("azurepolicy", "azureKeyvaultSecretsProvider"), start=1):
        cloud.clock.advance(86400)
        enable_addon(cloud, addon)
        began = cloud.clock()
        sweep(cloud)
        cloud.run(3600)
        _, *changed = told(cloud)
        assert len(changed) == number
        assert changed[-1].detail == f"changed: cluster_addon_{addon}_client_id"
        assert changed[-1].at >= began


def test_a_program_reads_the_outputs_in_the_body_of_a_webhook() -> None:
    cloud = cloud_with(notified_fleet("one", routes=(ALL.replace("severity: info", "events: [outputs]"),)))
    (message,) = cloud.routes.delivered["all"]
    (group,) = body_of(message)["groups"]
    assert (group["kind"], group["title"]) == ("outputs", "1 cluster with new outputs in eastus")
    assert group["notifications"][0]["clusters"] == ["one"]
    assert group["notifications"][0]["outputs"] == outputs(cloud)


def test_a_record_without_facts_gets_none_from_a_sweep_so_no_check_misses_them_on_the_cluster() -> None:
    cloud = ready()
    cloud.state.save(replace(record(cloud), observation=replace(record(cloud).observation, facts=None)))
    api(cloud).delete(live(cloud, FACTS))
    enable_addon(cloud)
    sweep(cloud)
    check(cloud)
    assert record(cloud).observation.facts is None
    assert condition(record(cloud), HealthCondition.FLUX).status is True
