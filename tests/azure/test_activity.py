"""Who changed a field, by the events of the activity log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.azure.drift.activity import CALLER_LIMIT, NAMED, Activity, changed_by, writes_in

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CLUSTER = "/subscriptions/s/resourceGroups/rg-one/providers/Microsoft.ContainerService/managedClusters/one"
POOL = f"{CLUSTER}/agentPools/apps".lower()
COUNT = "nodePools[apps].count"


def event(operation: str = "write", status: str = "Succeeded", **changes: Any) -> dict[str, Any]:
    return {
        "caller": "ann@example.com",
        "resourceId": CLUSTER.upper(),
        "eventTimestamp": "2026-01-01T11:00:00.1234567Z",
        "operationName": {"value": f"Microsoft.ContainerService/managedClusters/{operation}"},
        "status": {"value": status},
        **changes,
    }


def test_a_write_has_its_caller_its_resource_in_one_spelling_and_its_time() -> None:
    (found,) = writes_in([event()])
    assert (found.resource, found.caller) == (CLUSTER.lower(), "ann@example.com")
    assert found.at == datetime(2026, 1, 1, 11, 0, 0, 123456, tzinfo=UTC)


@pytest.mark.parametrize(
    "other",
    [
        event(status="Failed"),
        event(status="Canceled"),
        event("read"),
        event("listClusterUserCredential/action"),
        event("accessProfiles/listCredential/action"),
        event("runCommand/action"),
        event(caller=None),
        event(resourceId=""),
        event(eventTimestamp=None),
        {},
    ],
)
def test_what_is_no_write_of_somebody_is_left_out(other: dict[str, Any]) -> None:
    assert writes_in([other]) == []


def by_policy(effect: str) -> dict[str, Any]:
    return event(operationName={"value": f"Microsoft.Authorization/policies/{effect}/action"})


@pytest.mark.parametrize("effect", ["audit", "auditIfNotExists", "deployIfNotExists", "deny"])
def test_what_azure_policy_only_looks_at_accuses_nobody(effect: str) -> None:
    assert writes_in([by_policy(effect)]) == []


@pytest.mark.parametrize("effect", ["modify", "append"])
def test_what_azure_policy_changes_names_it_and_not_whoever_made_the_request(effect: str) -> None:
    (found,) = writes_in([by_policy(effect)])
    assert (found.caller, found.resource) == ("Azure Policy", CLUSTER.lower())


def test_what_somebody_calls_themselves_is_cut() -> None:
    (found,) = writes_in([event(caller="a" * 1000)])
    assert len(found.caller) == CALLER_LIMIT


def wrote(caller: str, minutes: int, resource: str = CLUSTER.lower()) -> Activity:
    return Activity(resource, caller, NOW - timedelta(minutes=minutes))


def by(
    path: str, *writes: Activity, after: datetime = NOW - timedelta(hours=1), pools: Sequence[str] = ()
) -> str:
    change = changed_by(writes, CLUSTER, path, {"apps": pools} if pools else {}, after, NOW)
    return change.by if change else ""


def test_a_pool_is_changed_by_who_wrote_to_it_or_to_its_cluster() -> None:
    assert by(COUNT, wrote("ann", 5, POOL)) == "ann"
    assert by(COUNT, wrote("ann", 5)) == "ann"
    assert by("tags.cost", wrote("ann", 5, POOL)) == ""
    assert by("nodePools[other].count", wrote("ann", 5, POOL)) == ""


def test_a_pool_that_has_another_name_in_azure_is_changed_by_who_wrote_to_that_one() -> None:
    assert by(COUNT, wrote("ann", 5, f"{POOL}b"), pools=["appsb"]) == "ann"
    assert by(COUNT, wrote("ann", 5, POOL), pools=["appsb"]) == ""


def test_who_wrote_before_the_cluster_was_last_seen_as_git_has_it_did_not_change_it() -> None:
    assert by("tags.cost", wrote("ann", 61)) == ""
    assert by("tags.cost", wrote("ann", 59)) == "ann"


def test_who_wrote_after_the_value_was_seen_did_not_change_it() -> None:
    assert by("tags.cost", wrote("ann", -1)) == ""
    assert by("tags.cost", wrote("ann", 0)) == "ann"


def test_everybody_who_may_have_changed_it_is_named_the_last_one_first() -> None:
    assert by("tags.cost", wrote("ann", 9), wrote("bob", 5), wrote("ann", 7)) == "bob or ann"
    many = [wrote(f"p{number}", number) for number in range(1, NAMED + 3)]
    assert by("tags.cost", *many) == "p1 or p2 or p3 or 2 more"


def test_a_maintenance_window_is_written_by_itself_alone() -> None:
    name = "aksManagedAutoUpgradeSchedule"
    own = f"{CLUSTER}/maintenanceConfigurations/{name}".lower()
    path = f"maintenanceWindows[{name}].maintenanceWindow.durationHours"
    assert by(path, wrote("ann", 5, own), wrote("bob", 6)) == "ann"
    assert by("tags.cost", wrote("ann", 5, own)) == ""


def test_a_managed_namespace_is_written_by_itself_alone() -> None:
    own = f"{CLUSTER}/managedNamespaces/team-a".lower()
    path = "managedNamespaces[team-a].labels"
    assert by(path, wrote("ann", 5, own), wrote("bob", 6)) == "ann"
    assert by(path, wrote("bob", 6)) == ""
