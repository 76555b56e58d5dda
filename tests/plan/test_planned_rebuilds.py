"""Rebuilds in the plan: what asks for one, what holds it, and what asks for nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.azure.ownership import created_for, new_life
from shared.language.desired import Desired
from shared.language.model.fleet_rules import Guards
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.plan.holds import HoldKind
from shared.plan.make_plan import make_plan
from shared.plan.plan import Action, Item
from tests.support.desired_clusters import NOW, Row, desired, fleet, record, with_field

COMMIT = "a" * 40
EARLIER, ASKED, LATER = (f"2026-01-01T{hour}:00:00+00:00" for hour in ("08", "09", "10"))


def rebuilt(name: str = "a", asked: str = ASKED) -> Desired:
    return replace(desired(name), rebuild=asked)


def planned(
    wanted: DesiredFleet, records: dict[str, Row], approved: frozenset[str] = frozenset()
) -> dict[str, Item]:
    plan = make_plan(COMMIT, wanted, records, now=NOW, approved=approved)
    return {item.cluster: item for item in plan.items}


def created(asked: str, **fields: object) -> dict[str, Row]:
    return {"a": replace(record(desired("a"))["a"], rebuilt_for=asked, **fields)}  # type: ignore[arg-type]


def test_a_time_that_the_cluster_was_not_created_for_is_a_rebuild_of_its_life() -> None:
    item = planned(fleet(rebuilt()), created(""))["a"]
    assert (item.action, item.generation, item.uid, item.changes) == (Action.REBUILD, 2, "0badcafe", ())
    assert item.acts
    assert not item.begins


@pytest.mark.parametrize("created_for_it", [ASKED, LATER])
def test_the_same_time_and_an_earlier_one_ask_for_nothing(created_for_it: str) -> None:
    assert planned(fleet(rebuilt()), created(created_for_it))["a"].action is Action.UNCHANGED


def test_an_annotation_that_is_taken_back_after_the_rebuild_asks_for_nothing_however_often() -> None:
    for asked in ("", EARLIER, ASKED, "", ASKED):
        assert planned(fleet(rebuilt(asked=asked)), created(ASKED))["a"].action is Action.UNCHANGED
    assert planned(fleet(rebuilt(asked=LATER)), created(ASKED))["a"].action is Action.REBUILD


def test_a_new_cluster_with_an_annotation_is_only_created() -> None:
    assert planned(fleet(rebuilt()), {})["a"].action is Action.CREATE


def test_a_rebuild_carries_out_what_azure_cannot_change_in_place() -> None:
    before, after = (with_field(desired("a"), "dnsPrefix", value) for value in ("one", "two"))
    records = record(before)
    assert planned(fleet(after), records)["a"].action is Action.REFUSED
    assert "roadstead rebuild" in planned(fleet(after), records)["a"].reason
    item = planned(fleet(replace(after, rebuild=ASKED)), records)["a"]
    assert (item.action, [change.path for change in item.changes]) == (Action.REBUILD, ["spec.dnsPrefix"])


@pytest.mark.parametrize("place", ["location", "resourceGroup"])
def test_a_rebuild_moves_a_cluster(place: str) -> None:
    moved = with_field(desired("a"), place, "westeurope")
    assert planned(fleet(moved), record(desired("a")))["a"].action is Action.ON_HOLD
    item = planned(fleet(replace(moved, rebuild=ASKED)), record(desired("a")))["a"]
    assert (item.action, [change.path for change in item.changes]) == (Action.REBUILD, [f"spec.{place}"])


def test_no_rebuild_is_advised_where_git_has_the_cluster_outside_azure() -> None:
    """The command and the resolver refuse it there: what the cluster is, Roadstead did not create."""
    kubeconfig = {"provider": "existing", "existing": {"kubeconfig": {"vault": "keys", "secret": "harbour"}}}
    flux = desired("a").stored["spec"]["flux"]
    outside = [
        Desired(
            {
                **desired("a").stored,
                "spec": {**desired("a").stored["spec"], **kubeconfig, "flux": {**flux, **own}},
            }
        )
        for own in ({"install": "operator"}, {"install": "extension"})
    ]
    moved = planned(fleet(outside[0]), record(desired("a")))["a"]
    fixed = planned(fleet(outside[1]), record(outside[0]))["a"]
    assert (moved.action, fixed.action) == (Action.ON_HOLD, Action.REFUSED)
    assert [item.reason for item in (moved, fixed) if "rebuild" in item.reason] == []


def test_deletion_protection_holds_a_rebuild_until_it_is_approved_whatever_the_same_commit_says() -> None:
    records = record(desired("a", protect=True))
    item = planned(fleet(rebuilt()), records)["a"]
    assert (item.action, item.needs_approval, item.rebuilds) == (Action.ON_HOLD, True, True)
    assert (item.generation, item.reason) == (
        1,
        "the rebuild is on hold: deletionProtection is on; roadstead approve releases the rebuild, which "
        "deletes the cluster first; or take the annotation back",
    )
    assert planned(fleet(rebuilt()), records, frozenset({"a"}))["a"].action is Action.REBUILD


def test_deletes_and_rebuilds_share_one_budget() -> None:
    records = record(desired("a"), desired("b"))
    items = planned(fleet(rebuilt("a")), records)
    assert {name: item.action for name, item in items.items()} == dict.fromkeys("ab", Action.ON_HOLD)
    assert [item.hold.kind for item in items.values() if item.hold] == [HoldKind.DELETE_BUDGET] * 2
    assert "deletes 2 clusters, for good or to rebuild them" in items["a"].reason
    items = planned(fleet(rebuilt("a")), records, frozenset({"b"}))
    assert [item.action for item in items.values()] == [Action.REBUILD, Action.DELETE]


@pytest.mark.parametrize("suspends", ["before", "after"])
def test_a_suspension_of_the_old_cluster_or_of_the_new_one_holds_a_rebuild(suspends: str) -> None:
    suspension = {"owner": "a", "reason": "b", "until": "2026-01-02T00:00:00Z"}
    suspended = with_field(desired("a"), "suspend", suspension)
    before, after = (suspended, desired("a")) if suspends == "before" else (desired("a"), suspended)
    item = planned(fleet(replace(after, rebuild=ASKED)), record(before))["a"]
    assert item.hold is not None
    assert (item.action, item.hold.kind, item.needs_approval) == (
        Action.ON_HOLD,
        HoldKind.SUSPENSION,
        True,
    )


def test_no_approval_releases_a_rebuild_while_the_file_of_the_fleet_is_invalid() -> None:
    wanted = replace(fleet(rebuilt()), guards=None)
    item = planned(wanted, created(""), frozenset({"a"}))["a"]
    assert item.hold is not None
    assert (item.action, item.hold.kind, item.needs_approval) == (
        Action.ON_HOLD,
        HoldKind.INVALID_FLEET_FILE,
        False,
    )


def test_no_review_releases_a_rebuild() -> None:
    records = record(desired("a", protect=True))
    plan = make_plan(COMMIT, fleet(rebuilt()), records, now=NOW, reviewers=["acme/platform"])
    assert "review" not in plan.items[0].reason


@pytest.mark.parametrize("restorable", [False, True])
def test_a_cluster_that_is_being_deleted_already_is_created_again_afterwards(restorable: bool) -> None:
    item = planned(fleet(rebuilt()), created("", deleting=True, restorable=restorable))["a"]
    assert (item.action, item.awaits_deletion) == (Action.ON_HOLD, True)


def test_a_record_that_is_recovering_is_never_rebuilt() -> None:
    assert planned(fleet(rebuilt()), created("", recovering=True))["a"].action is not Action.REBUILD


def test_an_invalid_manifest_asks_for_nothing() -> None:
    assert planned(fleet(invalid=("a",)), created(""))["a"].action is Action.INVALID


@given(
    asked=st.sampled_from(["", EARLIER, ASKED, LATER]),
    created_for_it=st.sampled_from(["", EARLIER, ASKED, LATER]),
    budget=st.integers(0, 2),
    protected=st.booleans(),
)
def test_a_cluster_is_rebuilt_for_a_later_time_within_the_guards_and_for_nothing_else(
    asked: str, created_for_it: str, budget: int, protected: bool
) -> None:
    records = {"a": replace(record(desired("a", protect=protected))["a"], rebuilt_for=created_for_it)}
    wanted = replace(fleet(replace(desired("a", protect=protected), rebuild=asked)))
    wanted = replace(wanted, guards=Guards.model_validate({"deleteBudget": {"count": budget}}))
    item = planned(wanted, records)["a"]
    assert item.rebuilds == (asked > created_for_it)
    assert (item.action is Action.REBUILD) == (asked > created_for_it and budget > 0 and not protected)
    assert item.action is not Action.DELETE


@pytest.mark.parametrize("asked", ["", ASKED])
def test_a_life_says_for_which_rebuild_it_was_created(asked: str) -> None:
    assert created_for(new_life("0badcafe", asked)) == asked


@pytest.mark.parametrize("life", ["", "0badcafe", "0badcafe-20261399T000000Z", "a-20260101T090000Z-b"])
def test_a_life_of_another_form_was_created_for_none(life: str) -> None:
    assert created_for(life) == ""
