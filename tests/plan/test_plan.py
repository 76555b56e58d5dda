"""The plan: which clusters are created, changed or deleted and which need an approval, for any two fleets."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.azure.changes.field_effects import Effect
from shared.azure.running_versions import PoolVersions, RunningVersions
from shared.language.desired import Desired
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.plan.differences import FieldChange, differences
from shared.plan.holds import HoldKind
from shared.plan.make_plan import make_plan
from shared.plan.plan import Action, Plan
from tests.support.desired_clusters import NOW, Row, changed, desired, fleet, record, with_field

COMMIT = "a" * 40


def actions(plan: Plan) -> dict[str, Action]:
    return {item.cluster: item.action for item in plan.items}


def test_a_new_folder_is_a_create_and_a_changed_one_an_update_with_its_fields() -> None:
    plan = make_plan(COMMIT, fleet(desired("a", count=3), desired("b")), record(desired("a")), now=NOW)
    assert actions(plan) == {"a": Action.UPDATE, "b": Action.CREATE}
    assert plan.items[0].changes == (FieldChange("spec.nodePools[system].count", "1", "3", Effect.IN_PLACE),)
    assert (plan.items[0].generation, plan.items[1].generation) == (2, 1)


def test_a_change_that_azure_cannot_make_is_refused_with_an_alternative() -> None:
    before, after = (with_field(desired("a"), "dnsPrefix", value) for value in ("one", "two"))
    plan = make_plan(COMMIT, fleet(after), record(before), now=NOW)
    assert actions(plan) == {"a": Action.REFUSED}
    assert "add a cluster under another name" in plan.items[0].reason
    assert plan.items[0].generation == 1


def test_a_fixed_field_of_a_pool_replaces_the_pool() -> None:
    small, large = (
        [{"name": "system", "mode": "System", "vmSize": size, "count": 1}]
        for size in ("Standard_D4s_v5", "Standard_D8s_v5")
    )
    before, after = (with_field(desired("a"), "nodePools", value) for value in (small, large))
    plan = make_plan(COMMIT, fleet(after), record(before), now=NOW)
    assert actions(plan) == {"a": Action.UPDATE}
    assert [change.effect for change in plan.items[0].changes] == ["node pool replacement"]


def test_a_change_that_reimages_nodes_is_no_destruction_and_a_refused_one_neither() -> None:
    before = desired("a")
    proxy = with_field(before, "httpProxyConfig", {"httpProxy": "http://proxy.example:3128"})
    prefix = with_field(before, "dnsPrefix", "one"), with_field(before, "dnsPrefix", "two")
    [reimaged] = make_plan(COMMIT, fleet(proxy), record(before), now=NOW).items[0].changes
    [refused] = make_plan(COMMIT, fleet(prefix[1]), record(prefix[0]), now=NOW).items[0].changes
    assert (reimaged.effect, reimaged.destroys) == ("in place, nodes are reimaged", False)
    assert (refused.effect, refused.destroys) == ("needs recreation", False)


def test_a_refused_change_says_what_azure_would_need_to_make_it() -> None:
    networks = ({"networkPlugin": "kubenet"}, {"networkPlugin": "azure"})
    before, after = (with_field(desired("a"), "networkProfile", value) for value in networks)
    plan = make_plan(COMMIT, fleet(after), record(before), now=NOW)
    assert actions(plan) == {"a": Action.REFUSED}
    assert "Azure changes it only together with networkPluginMode: overlay" in plan.items[0].reason
    overlay = {"networkPlugin": "azure", "networkPluginMode": "overlay"}
    plan = make_plan(COMMIT, fleet(with_field(before, "networkProfile", overlay)), record(before), now=NOW)
    assert actions(plan) == {"a": Action.UPDATE}
    assert {change.effect for change in plan.items[0].changes} == {Effect.REIMAGED}


def test_a_change_of_fips_replaces_a_windows_pool_and_reimages_a_linux_pool() -> None:
    def pools(**more: object) -> list[dict[str, object]]:
        system = {"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 1}
        return [system | more, {**system, "name": "win", "mode": "User", "osType": "Windows"} | more]

    before, after = (
        with_field(desired("a"), "nodePools", pools(enableFIPS=value)) for value in (False, True)
    )
    changes = make_plan(COMMIT, fleet(after), record(before), now=NOW).items[0].changes
    assert {change.path: change.effect for change in changes} == {
        "spec.nodePools[system].enableFIPS": Effect.REIMAGED,
        "spec.nodePools[win].enableFIPS": Effect.REPLACEMENT,
    }


@pytest.mark.parametrize(
    ("before", "runs", "after", "effect"),
    [
        ("1.37", "1.37.2", "1.36", Effect.NEVER_LOWERED),
        ("1.37.2", "1.37.2", "1.37.1", Effect.NEVER_LOWERED),
        ("1.37", "", "1.36", Effect.NEVER_LOWERED),  # a creation with 1.37 may have started
        ("1.37", "1.36.2", "1.36", Effect.NEVER_LOWERED),  # the upgrade to 1.37 may have started
        ("1.36", "1.38.1", "1.37", Effect.NEVER_LOWERED),  # AKS upgraded it by itself
        ("1.38", "1.36.2", "1.37", Effect.REIMAGED),  # an upgrade that never came is corrected
        ("1.36", "1.36.2", "1.37", Effect.REIMAGED),
    ],
)
def test_a_version_that_is_to_go_down_stays_and_the_plan_says_so(
    before: str, runs: str, after: str, effect: Effect
) -> None:
    old, new = (with_field(desired("a"), "kubernetesVersion", version) for version in (before, after))
    rows = {"a": replace(record(old)["a"], running=RunningVersions(runs))}
    (item,) = make_plan(COMMIT, fleet(new), rows, now=NOW).items
    assert [change.effect for change in item.changes] == [effect]


def test_a_version_below_the_one_that_runs_is_on_hold_and_the_rest_is_carried_out() -> None:
    old = with_field(desired("a"), "kubernetesVersion", "1.37")
    new = with_field(desired("a", protect=True), "kubernetesVersion", "1.36")
    rows = {
        "a": replace(
            record(old)["a"], running=RunningVersions("1.37.1", pools={"system": PoolVersions("1.37.1")})
        )
    }
    (item,) = make_plan(COMMIT, fleet(new), rows, now=NOW).items
    assert (item.action, item.needs_action, item.needs_approval) == (Action.UPDATE, True, False)
    assert item.reason == (
        "runs 1.37.1, git has 1.36: AKS never goes back; "
        "who owns the manifest sets spec.kubernetesVersion to the version that runs"
    )
    higher = with_field(desired("a"), "kubernetesVersion", "1.38")
    (item,) = make_plan(COMMIT, fleet(higher), rows, now=NOW).items
    assert (item.hold, [change.effect for change in item.changes]) == (None, [Effect.REIMAGED])


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        ("1.36", "1.35", Effect.NEVER_LOWERED),
        ("1.35", "1.36", Effect.REIMAGED),
        (None, "1.35", Effect.NEVER_LOWERED),  # it followed its control plane, which runs 1.36
    ],
)
def test_a_node_pool_whose_version_is_to_go_down_stays_too(
    before: str | None, after: str, effect: Effect
) -> None:
    def pools(version: str | None) -> list[dict[str, object]]:
        system = {"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 1}
        return [system | ({"orchestratorVersion": version} if version else {})]

    old, new = (with_field(desired("a"), "nodePools", pools(version)) for version in (before, after))
    (item,) = make_plan(COMMIT, fleet(new), record(old), now=NOW).items
    assert [change.effect for change in item.changes] == [effect]


def test_a_cluster_with_the_annotation_is_adopted_instead_of_created() -> None:
    plan = make_plan(COMMIT, fleet(changed(desired("a"), adopt="when-equal")), {}, now=NOW)
    assert actions(plan) == {"a": Action.ADOPT}
    assert plan.items[0].acts


def test_a_suspended_cluster_is_not_deleted_without_an_approval() -> None:
    suspend = {"owner": "team-a", "reason": "an audit", "until": "2026-01-02T00:00:00Z"}
    row = record(with_field(desired("a"), "suspend", suspend))
    held = make_plan(COMMIT, fleet(budget=9), row, now=NOW)
    assert actions(held) == {"a": Action.ON_HOLD}
    assert "suspended by team-a until 2026-01-02" in held.items[0].reason
    assert held.deletes_needing_approval == {"a"}
    approved = make_plan(COMMIT, fleet(budget=9), row, now=NOW, approved=frozenset({"a"}))
    assert actions(approved) == {"a": Action.DELETE}
    ended = make_plan(COMMIT, fleet(budget=9), row, now=NOW + timedelta(days=2))
    assert actions(ended) == {"a": Action.DELETE}


def test_a_cluster_does_not_move() -> None:
    plan = make_plan(COMMIT, fleet(desired("a", location="westus2")), record(desired("a")), now=NOW)
    assert actions(plan) == {"a": Action.ON_HOLD}
    assert "spec.location cannot change from eastus to westus2" in plan.items[0].reason


def test_protection_holds_a_delete_until_a_commit_switches_it_off() -> None:
    plan = make_plan(COMMIT, fleet(), record(desired("a", protect=True)), now=NOW)
    assert actions(plan) == {"a": Action.ON_HOLD}


def test_nothing_is_deleted_while_the_guards_are_not_known() -> None:
    unknown = replace(fleet(budget=100), guards=None)
    plan = make_plan(COMMIT, unknown, record(desired("a")), now=NOW)
    assert actions(plan) == {"a": Action.ON_HOLD}
    assert plan.items[0].reason == "nothing is deleted while fleet.yaml is invalid"


def test_a_cluster_added_again_waits_for_its_deletion_and_a_failed_deletion_is_retried() -> None:
    row = Row(desired("a").document(), deleting=True)
    for retryable_failure, action in ((False, Action.ON_HOLD), (True, Action.RETRY)):
        plan = make_plan(
            COMMIT, fleet(desired("a")), {"a": replace(row, retryable_failure=retryable_failure)}, now=NOW
        )
        assert actions(plan) == {"a": action}
        assert plan.items[0].awaits_deletion
    removed = make_plan(COMMIT, fleet(), {"a": replace(row, retryable_failure=True)}, now=NOW)
    assert actions(removed) == {"a": Action.RETRY}
    assert not removed.items[0].awaits_deletion


def test_a_job_with_a_retryable_failure_is_retried_without_a_new_generation() -> None:
    failed = replace(record(desired("a"))["a"], retryable_failure=True)
    plan = make_plan(COMMIT, fleet(desired("a")), {"a": failed}, now=NOW)
    assert (plan.items[0].action, plan.items[0].generation) == (Action.RETRY, 1)


def test_an_invalid_manifest_never_deletes() -> None:
    plan = make_plan(COMMIT, fleet(invalid=("a",), budget=100), record(desired("a")), now=NOW)
    assert actions(plan) == {"a": Action.INVALID}


def test_an_invalid_manifest_of_a_cluster_that_is_being_deleted_keeps_nothing() -> None:
    deleting = Row(desired("a").document(), deleting=True)
    (item,) = make_plan(COMMIT, fleet(invalid=("a",)), {"a": deleting}, now=NOW).items
    assert (item.action, item.is_new_and_invalid) == (Action.INVALID, True)
    assert "stays at its last valid spec" not in item.reason


def test_the_items_of_an_interrupted_attempt_are_reported_and_sent_again() -> None:
    plan = make_plan(COMMIT, fleet(desired("a"), desired("b")), {}, now=NOW)
    first = replace(plan, items=tuple(replace(item, uid="0badcafe") for item in plan.items))
    second = make_plan(COMMIT, fleet(desired("a"), desired("b")), record(desired("a")), now=NOW)
    assert actions(second.resume(replace(first, applied=True))) == actions(second.resume(first))
    assert actions(second.resume(first)) == {"a": Action.CREATE, "b": Action.CREATE}
    assert actions(second.resume(None)) == {"a": Action.UNCHANGED, "b": Action.CREATE}


def test_differences_pair_items_by_name_and_report_the_leaf() -> None:
    old = {"pools": [{"name": "a", "size": 1}, {"name": "b"}], "tags": {"x": "1"}}
    new = {"pools": [{"name": "a", "size": 2}, {"name": "c"}], "tags": {}}
    assert list(differences(old, new)) == [
        FieldChange("pools[a].size", "1", "2", Effect.IN_PLACE),
        FieldChange("pools[b]", "b", "", Effect.IN_PLACE),
        FieldChange("pools[c]", "", "c", Effect.IN_PLACE),
        FieldChange("tags.x", "1", "", Effect.IN_PLACE),
    ]


NAMES = st.sampled_from("abcdef")
CLUSTERS = st.builds(desired, NAMES, count=st.integers(1, 3), protect=st.booleans())
FLEETS = st.lists(CLUSTERS, unique_by=lambda cluster: cluster.name, max_size=6)


def applied(plan: Plan, wanted: DesiredFleet, rows: dict[str, Row]) -> dict[str, Row]:
    """Return the records after the plan was carried out."""
    after = dict(rows)
    for item in plan.items:
        if item.action in (Action.CREATE, Action.UPDATE):
            after[item.cluster] = Row(wanted.clusters[item.cluster].document(), item.generation)
        elif item.action is Action.DELETE:
            del after[item.cluster]
    return after


@given(FLEETS, FLEETS, st.integers(0, 6))
def test_a_plan_after_the_plan_was_applied_does_nothing(
    before: list[Desired], after: list[Desired], budget: int
) -> None:
    wanted, rows = fleet(*after, budget=budget), record(*before)
    plan = make_plan(COMMIT, wanted, rows, now=NOW)
    again = make_plan(COMMIT, wanted, applied(plan, wanted, rows), now=NOW)
    assert not [item for item in again.items if item.acts]


@given(FLEETS, FLEETS, st.integers(0, 6), st.sets(NAMES))
def test_a_plan_never_deletes_what_the_guards_forbid(
    before: list[Desired], after: list[Desired], budget: int, broken: set[str]
) -> None:
    good = [cluster for cluster in after if cluster.name not in broken]
    rows = record(*before)
    plan = make_plan(COMMIT, fleet(*good, budget=budget, invalid=tuple(broken)), rows, now=NOW)
    deleted = {item.cluster for item in plan.items if item.action is Action.DELETE}
    assert len(deleted) <= budget
    assert deleted <= set(rows) - broken - {cluster.name for cluster in good}
    assert not any(rows[name].document["spec"]["deletionProtection"] for name in deleted)
    assert {item.cluster for item in plan.items} == set(rows) | broken | {c.name for c in good}


def test_a_place_in_another_letter_case_is_the_same_place() -> None:
    cluster = desired("a", location="eastus")
    document = cluster.document()
    document["spec"] = {**document["spec"], "resourceGroup": "RG-A", "location": "EastUS"}
    plan = make_plan(COMMIT, fleet(desired("a", count=2)), {"a": Row(document)}, now=NOW)
    assert actions(plan) == {"a": Action.UPDATE}
    assert [change.path for change in plan.items[0].changes] == ["spec.nodePools[system].count"]


@pytest.mark.parametrize(
    ("names", "cause"), [("a", "the commit removes 1 cluster, "), ("ab", "the commit removes 2 clusters, ")]
)
def test_a_budget_counts_what_a_commit_removes(names: str, cause: str) -> None:
    plan = make_plan(COMMIT, fleet(budget=0), record(*map(desired, names)), now=NOW)
    assert plan.items[0].hold is not None
    assert plan.items[0].hold.cause == f"{cause}guards.deleteBudget in fleet.yaml allows 0"


@pytest.mark.parametrize("in_git", [True, False])
def test_a_cluster_whose_record_cannot_be_read_is_on_hold_whatever_git_says(in_git: bool) -> None:
    wanted = fleet(desired("a", count=3), *([desired("b")] if in_git else []))
    plan = make_plan(COMMIT, wanted, record(desired("a")), now=NOW, unreadable={"b": "no uid"})
    assert actions(plan) == {"a": Action.UPDATE, "b": Action.ON_HOLD}
    held = plan.items[1]
    assert held.hold is not None
    assert (held.hold.kind, held.uid, held.acts, held.needs_action) == (HoldKind.UNREADABLE, "", False, True)
    assert "no uid" in held.reason
    assert plan.unreadable == ("b",)
    assert plan.deletes_needing_approval == frozenset()


def test_a_cluster_whose_record_cannot_be_read_is_no_new_name_of_a_removed_one() -> None:
    plan = make_plan(COMMIT, fleet(desired("b")), record(desired("a")), now=NOW, unreadable={"b": "no uid"})
    assert actions(plan) == {"a": Action.DELETE, "b": Action.ON_HOLD}
