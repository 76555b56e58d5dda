"""Maintenance windows that somebody changes: a check reads them, and a sweep reports or corrects them."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import replay
from shared.cluster.failures.errors import Unavailable
from shared.cluster.health import HealthCondition
from shared.cluster.record import Phase
from shared.cluster.stored_record import from_json, to_json
from shared.json_tree import Json
from shared.ports.azure import ListMaintenance
from tests.support.checks import check
from tests.support.one_cluster import ONE, WINDOW, files, ready, record
from tests.support.pipeline_runs import phases, push
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import drifted, sweep, tag_by_hand

NAME = "aksManagedAutoUpgradeSchedule"
HOURS = f"maintenanceWindows[{NAME}].maintenanceWindow.durationHours"
CORRECT = "  drift: {action: correct}\n"


def window(cloud: MemoryCloud) -> dict[str, Any]:
    """Return the window as Azure shows it."""
    found = cloud.ports.azure.call(ListMaintenance(ONE))[NAME]
    return dict(found["properties"]["maintenanceWindow"])


def change_by_hand(cloud: MemoryCloud, **change: Any) -> None:
    """Change the window as the portal does."""
    body: Json = {"properties": {"maintenanceWindow": {**window(cloud), **change}}}
    cloud.azure.put_maintenance(ONE, NAME, body)


def reads(cloud: MemoryCloud, *, refuse: bool = False) -> list[ListMaintenance]:
    """Return the list to which each read of windows is added; ``refuse``: none is answered."""
    azure, found = cloud.ports.azure, list[ListMaintenance]()

    def read(operation: Any) -> Any:
        found.append(operation)
        if refuse:
            raise Unavailable("Azure did not answer")
        return azure.call(operation)

    on_azure(cloud, ListMaintenance, read)
    return found


def test_a_window_that_somebody_changes_is_reported_until_it_is_put_back() -> None:
    cloud = ready(WINDOW)
    change_by_hand(cloud, durationHours=8)
    sweep(cloud)
    assert drifted(record(cloud)) == {}, "no list has it"
    check(cloud)
    assert drifted(record(cloud)) == {HOURS: ("4", "8")}
    (field,) = record(cloud).drift.fields  # type: ignore[union-attr]
    assert field.source.startswith("clusters/one/cluster.yaml:")
    assert phases(cloud) == {"one": Phase.READY}
    sweep(cloud)
    assert drifted(record(cloud)) == {HOURS: ("4", "8")}
    assert from_json(to_json(record(cloud)), "v1") == record(cloud)
    change_by_hand(cloud, durationHours=4)
    check(cloud)
    assert drifted(record(cloud)) == {}
    condition = record(cloud).condition("InSync")
    assert condition is not None
    assert condition.status


def test_a_window_has_who_changed_it_also_before_the_last_sweep() -> None:
    cloud = ready(WINDOW)
    with cloud.azure.called_by("ann@example.com"):
        change_by_hand(cloud, durationHours=8)
    with cloud.azure.called_by("bob@example.com"):
        tag_by_hand(cloud, ONE, own="x")
    sweep(cloud)
    check(cloud)
    by = {each.path: each.by for each in record(cloud).drift.fields}  # type: ignore[union-attr]
    assert by[HOURS] == "ann@example.com"


def test_a_window_is_corrected_where_the_policy_says_so() -> None:
    cloud = ready(WINDOW + CORRECT)
    change_by_hand(cloud, durationHours=8)
    check(cloud)
    cloud.run()
    assert (window(cloud)["durationHours"], drifted(record(cloud))) == (4, {})
    check(cloud)
    assert drifted(record(cloud)) == {}


@pytest.mark.parametrize("field", ["maintenanceWindows", f'"maintenanceWindows[{NAME}]"'])
def test_a_window_that_is_exempt_is_left_alone_by_the_correction_of_a_tag(field: str) -> None:
    rule = f"{{name: a, fields: [{field}], action: ignore, owner: a, reason: b, expires: '2030-01-01'}}"
    cloud = ready(WINDOW + f"  tags: {{cost: a}}\n  drift: {{action: correct, rules: [{rule}]}}\n")
    change_by_hand(cloud, durationHours=8)
    check(cloud)
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    live = cloud.azure.peek(ONE)
    assert live is not None
    assert (live["tags"]["cost"], window(cloud)["durationHours"]) == ("a", 8)
    assert drifted(record(cloud)) == {}


def test_a_window_that_is_only_reported_outlives_the_correction_of_a_tag() -> None:
    rule = "{name: a, fields: [maintenanceWindows], action: report}"
    cloud = ready(WINDOW + f"  tags: {{cost: a}}\n  drift: {{action: correct, rules: [{rule}]}}\n")
    change_by_hand(cloud, durationHours=8)
    check(cloud)
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    sweep(cloud)
    assert (window(cloud)["durationHours"], drifted(record(cloud))) == (8, {HOURS: ("4", "8")})
    assert replay("one", "ann", cloud.ports).status == 202
    cloud.run()
    assert (window(cloud)["durationHours"], drifted(record(cloud)), record(cloud).windows) == (4, {}, ())


def test_no_pull_request_proposes_a_window_and_the_report_says_why() -> None:
    cloud = ready(WINDOW + "  drift: {action: propose}\n")
    change_by_hand(cloud, durationHours=8)
    check(cloud)
    (field,) = record(cloud).drift.fields  # type: ignore[union-attr]
    assert (field.path, field.action) == (HOURS, "report")
    assert field.note == "no pull request: a maintenance window is taken into the manifest by hand"


def test_a_window_that_is_gone_is_missing_as_a_whole() -> None:
    cloud = ready(WINDOW)
    on_azure(cloud, ListMaintenance, lambda _: {})
    check(cloud)
    ((path, (git, live)),) = drifted(record(cloud)).items()
    assert (path, live) == (f"maintenanceWindows[{NAME}]", "")
    assert '"durationHours": 4' in git


def test_a_check_costs_one_call_for_a_cluster_with_windows_and_a_sweep_none() -> None:
    cloud = ready(WINDOW)
    found = reads(cloud)
    sweep(cloud)
    assert found == []
    check(cloud)
    assert len(found) == 1
    push(cloud, files())
    cloud.run()
    found.clear()
    check(cloud)
    assert found == []


def test_windows_that_cannot_be_read_stay_as_they_were_and_the_check_goes_on() -> None:
    cloud = ready(WINDOW)
    change_by_hand(cloud, durationHours=8)
    check(cloud)
    before = record(cloud)
    assert reads(cloud, refuse=True) == []
    check(cloud)
    assert (record(cloud).windows, drifted(record(cloud))) == (before.windows, {HOURS: ("4", "8")})
    healthy = record(cloud).condition("FluxHealthy")
    assert healthy is not None
    assert healthy.status


def test_a_commit_that_changes_the_window_ends_the_difference() -> None:
    cloud = ready(WINDOW)
    change_by_hand(cloud, durationHours=8)
    check(cloud)
    push(cloud, files(WINDOW.replace("durationHours: 4", "durationHours: 8")))
    cloud.run()
    sweep(cloud)
    assert drifted(record(cloud)) == {}


def test_windows_that_are_not_understood_keep_no_cluster_from_its_check() -> None:
    cloud = MemoryCloud(throttle=False)
    fleet = files(WINDOW)
    manifest = fleet["clusters/one/cluster.yaml"]
    push(cloud, fleet | {"clusters/two/cluster.yaml": manifest.replace(b"name: one", b"name: two")})
    cloud.run()

    def strange(operation: ListMaintenance) -> Any:
        raise ValueError(operation)

    on_azure(cloud, ListMaintenance, strange)
    check(cloud)
    healthy = [each.condition(HealthCondition.FLUX) for each in cloud.state.clusters()]
    assert [each is not None and each.status for each in healthy] == [True, True]
    assert [each.windows for each in cloud.state.clusters()] == [(), ()]
