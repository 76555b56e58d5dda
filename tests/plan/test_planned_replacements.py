"""Replacements in the plan: what the delete of the old cluster waits for, and what needs an approval."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.language.desired import Desired
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.rules.between_clusters import said_to_replace
from shared.plan.holds import HoldKind
from shared.plan.make_plan import make_plan
from shared.plan.plan import Action, Item
from shared.plan.replacements import Replacing, awaited, remembered, replaced_in
from tests.support.desired_clusters import NOW, Row, changed, desired, fleet, record
from tests.support.resolved_fleets import HEAD, with_files

COMMIT = "a" * 40
AWAITS, GONE, UNKNOWN = HoldKind.AWAITS_REPLACEMENT, HoldKind.REPLACEMENT_GONE, HoldKind.REPLACEMENT_UNKNOWN


def new(name: str = "new", old: str = "old", **fields: Any) -> Desired:
    return changed(desired(name, **fields), replaces=old)


def old(**fields: Any) -> dict[str, Row]:
    return record(desired("old", **fields))


def planned(
    wanted: DesiredFleet, records: dict[str, Row], approved: str = "", before: Replacing | None = None
) -> dict[str, Item]:
    chosen = frozenset(approved.split())
    plan = make_plan(COMMIT, wanted, records, now=NOW, approved=chosen, replacing=before or {})
    return {item.cluster: item for item in plan.items}


def held(item: Item) -> tuple[HoldKind | None, bool]:
    return item.hold.kind if item.hold else None, item.needs_approval


def test_a_delete_waits_for_what_replaces_the_cluster_which_is_created_without_looking_like_a_rename() -> (
    None
):
    items = planned(fleet(new()), old())
    assert items["new"].action is Action.CREATE
    assert (items["old"].action, held(items["old"])) == (Action.ON_HOLD, (AWAITS, False))
    assert (items["old"].replacements, items["old"].needs_action) == (("new",), False)
    assert items["old"].reason == (
        "its delete waits until new, which replaces it, is Ready; it starts by itself then, with the guards "
        "of any delete; `roadstead why new` says how far that is; to keep the cluster, restore its folder"
    )


def test_once_that_is_ready_the_delete_is_carried_out() -> None:
    wanted = fleet(new())
    assert planned(wanted, old() | record(new()))["old"].action is Action.DELETE


@pytest.mark.parametrize(
    ("wanted", "row"),
    [
        (new(), {"ready": False}),
        (new(), {"ready": False, "retryable_failure": True}),
        (new(count=2), {}),
        (new(location="westus2"), {}),
        (replace(new(), rebuild="2026-01-01T09:00:00+00:00"), {}),
    ],
    ids=["not verified", "failed", "changed", "refused", "rebuilt"],
)
def test_what_is_not_verified_as_its_manifest_has_it_is_not_ready(wanted: Desired, row: Any) -> None:
    records = old() | {"new": replace(record(new())["new"], **row)}
    assert held(planned(fleet(wanted), records)["old"]) == (AWAITS, False)


def test_the_guards_of_a_delete_hold_it_afterwards_and_no_approval_ends_the_wait() -> None:
    wanted, before = fleet(new()), old(protect=True)
    assert held(planned(wanted, before, "old")["old"]) == (AWAITS, False)
    after = before | record(new())
    assert held(planned(wanted, after)["old"]) == (HoldKind.DELETION_PROTECTION, True)
    assert planned(wanted, after, "old")["old"].action is Action.DELETE
    assert held(planned(fleet(new(), budget=0), old() | record(new()))["old"])[0] is HoldKind.DELETE_BUDGET
    unreadable = replace(wanted, guards=None)
    assert held(planned(unreadable, after)["old"]) == (HoldKind.INVALID_FLEET_FILE, False)


def test_a_delete_waits_for_all_that_replace_the_cluster() -> None:
    wanted = fleet(new("one"), new("two"))
    assert planned(wanted, old() | record(new("one")))["old"].replacements == ("two",)
    assert planned(wanted, old() | record(new("one"), new("two")))["old"].action is Action.DELETE


def test_a_cluster_that_git_still_has_is_not_touched() -> None:
    items = planned(fleet(new(), desired("old")), old())
    assert {name: item.action for name, item in items.items()} == {
        "new": Action.CREATE,
        "old": Action.UNCHANGED,
    }


def test_clusters_that_replace_each_other_are_not_touched() -> None:
    one, two = new("one", "two"), new("two", "one")
    items = planned(fleet(one, two), record(one, two))
    assert {item.action for item in items.values()} == {Action.UNCHANGED}


def test_an_invalid_manifest_holds_the_delete_of_what_its_text_says_that_it_replaces() -> None:
    wanted = replace(fleet(invalid=("new",)), may_replace={"new": frozenset({"old"})})
    assert held(planned(wanted, old())["old"]) == (AWAITS, False)
    assert held(planned(fleet(invalid=("new",)), old())["old"]) == (HoldKind.UNREAD, True)


@pytest.mark.parametrize(
    "text", [b"{roadstead.dev/replaces: old, x", b'"roadstead.dev/replaces" : "old"\n\t']
)
def test_the_text_of_a_manifest_says_it_also_where_it_is_no_yaml(text: bytes) -> None:
    assert said_to_replace("new", text) == frozenset({"old"})


@pytest.mark.parametrize(
    "written", ["old-{environment}-{class}-{name}", ">-\n      old-dev-web-new", "&a old-dev-web-new"]
)
def test_an_invalid_manifest_says_it_also_with_placeholders_and_in_any_form_of_yaml(written: str) -> None:
    chosen = "spec: {class: web, environment: dev, location: westeurope, no such field: 1}\n"
    annotations = f"  annotations:\n    roadstead.dev/replaces: {written}\n"
    wanted = with_files(clusters__new__cluster=f"{HEAD.format('Cluster', 'new')}{annotations}{chosen}")
    records = record(desired("old-dev-web-new"))
    assert list(wanted.invalid) == ["new"]
    assert held(planned(wanted, records)["old-dev-web-new"]) == (AWAITS, False)


@pytest.mark.parametrize("going", [False, True], ids=["without a record", "being deleted"])
def test_where_what_was_to_replace_it_is_gone_a_delete_needs_an_approval(going: bool) -> None:
    records = old() | ({"new": replace(record(new())["new"], deleting=True)} if going else {})
    before = {} if going else {"old": ("new",)}
    item = planned(fleet(), records, before=before)["old"]
    assert (item.action, held(item)) == (Action.ON_HOLD, (GONE, True))
    assert "new was to replace it, and does not any more" in item.reason
    assert planned(fleet(), records, "old", before)["old"].action is Action.DELETE


def test_the_same_holds_where_it_no_longer_says_that_it_replaces_the_cluster() -> None:
    records = old() | record(desired("new"))
    item = planned(fleet(desired("new")), records, before={"old": ("new",)})["old"]
    assert held(item) == (GONE, True)


def test_another_cluster_can_be_named_instead() -> None:
    item = planned(fleet(new("other")), old(), before={"old": ("new",)})["old"]
    assert (held(item), item.replacements) == ((AWAITS, False), ("other",))


def test_a_new_cluster_that_names_nobody_holds_the_deletes_of_its_commit() -> None:
    wanted = fleet(new(old="odl"))
    items = planned(wanted, old())
    assert (items["new"].action, held(items["old"])) == (Action.CREATE, (UNKNOWN, True))
    assert "new says that it replaces odl, and the fleet has no such cluster: old may be meant" in str(
        items["old"].hold
    )
    later = old() | record(new(old="odl"))
    assert held(planned(wanted, later, before={"old": ("new",)})["old"]) == (UNKNOWN, True)
    corrected = planned(fleet(new()), later, before={"old": ("new",)})
    assert (corrected["new"].action, held(corrected["old"])) == (Action.UPDATE, (AWAITS, False))


def test_an_annotation_of_a_replacement_that_is_over_holds_no_later_delete() -> None:
    there = new(old="long-gone")
    assert planned(fleet(there), old() | record(there))["old"].action is Action.DELETE


def test_no_review_of_a_removal_releases_a_delete_of_which_nobody_knows_whether_it_is_meant() -> None:
    plan = make_plan(
        COMMIT, fleet(), old(), now=NOW, replacing={"old": ("new",)}, reviewers=["acme/platform"]
    )
    assert "review" not in plan.items[0].reason


def test_a_delete_that_has_begun_goes_on_whatever_becomes_of_the_other_cluster() -> None:
    deleting = {"old": replace(old()["old"], deleting=True)}
    for wanted in (fleet(new()), fleet()):
        item = planned(wanted, deleting, before={"old": ("new",)})["old"]
        assert (item.action, held(item)) == (Action.UNCHANGED, (HoldKind.BEING_DELETED, False))


def test_only_what_may_become_ready_by_itself_is_awaited() -> None:
    def known(wanted: DesiredFleet, records: dict[str, Row]) -> object:
        return dict(awaited(planned(wanted, records).values()))

    assert known(fleet(new()), old()) == {"new": 1}
    assert known(fleet(new(count=2)), old() | record(new())) == {"new": 2}
    assert known(fleet(new(location="westus2")), old() | record(new())) == {}
    assert known(fleet(new()), old() | record(new())) == {}


CHOICES = st.sampled_from(["absent", "plain", "naming", "misspelt", "invalid", "invalid, naming"])


@given(
    now=CHOICES,
    known=st.sampled_from(["absent", "ready", "not ready", "deleting"]),
    remembers=st.booleans(),
    protected=st.booleans(),
    approved=st.booleans(),
    budget=st.integers(0, 2),
)
def test_a_delete_is_carried_out_beside_a_ready_cluster_or_where_nothing_was_to_replace_it_or_by_approval(
    now: str, known: str, remembers: bool, protected: bool, approved: bool, budget: int
) -> None:
    wanted = fleet(budget=budget)
    files = {"plain": desired("new"), "naming": new(), "misspelt": new(old="odl")}
    if now in files:
        wanted = fleet(files[now], budget=budget)
    elif now != "absent":
        wanted = fleet(invalid=("new",), budget=budget)
    if now == "invalid, naming":
        wanted = replace(wanted, may_replace={"new": frozenset({"old"})})
    records = old(protect=protected)
    if known != "absent":
        row = record(new())["new"]
        records["new"] = replace(row, ready=known == "ready", deleting=known == "deleting")
    before = {"old": ("new",)} if remembers else {}
    item = planned(wanted, records, "old" if approved else "", before)["old"]
    names_it = now in ("naming", "invalid, naming")
    is_ready = now == "naming" and known == "ready"
    if item.action is Action.DELETE:
        assert is_ready or (not names_it and (approved or not remembers))
    if names_it and not is_ready:
        assert held(item) == (AWAITS, False)
    assert item.action in (Action.DELETE, Action.ON_HOLD)
    kept = remembered(replaced_in(wanted, records, before), [item])
    assert ("old" in kept) >= (item.action is Action.ON_HOLD and (names_it or remembers))
