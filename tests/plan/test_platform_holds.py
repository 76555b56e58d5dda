"""Why a plan keeps pins, where stages are to have an earlier commit than the head."""

from __future__ import annotations

from shared.plan.holds import HoldKind
from shared.plan.platform_plan import EarlierPins, PlatformPlan
from shared.platform.changes.effects import Fate
from shared.platform.changes.guards import Guard, GuardKind, Hint, PlatformChange
from shared.platform.inventory import ObjectId

OWNER = ObjectId("kustomize.toolkit.fluxcd.io", "Kustomization", "flux-system", "flux-system")
OLD, OLDER, HEAD = "1" * 40, "2" * 40, "3" * 40
EARLIER = {"a": OLD, "b": OLD, "c": OLDER}


def refused(kind: GuardKind, effect: Fate) -> PlatformChange:
    """Return a change that no approval releases."""
    named = ObjectId("apps", "Deployment", "default", "shop")
    return PlatformChange(guards=(Guard(kind, OWNER, named, effect, Hint.REPAIR, detail="spec.selector"),))


def planned(of_a: PlatformChange) -> PlatformPlan:
    """Return a plan in which three clusters are to have earlier commits, and another one the head."""
    changes = {"a": of_a, "b": PlatformChange(), "c": PlatformChange()}
    return PlatformPlan({"d": PlatformChange()}, earlier=EarlierPins(EARLIER, newest=HEAD, changes=changes))


def test_what_is_wrong_in_an_earlier_commit_keeps_the_pins_of_all_that_are_to_have_it() -> None:
    for kind, effect in (
        (GuardKind.STUCK, Fate.STUCK),
        (GuardKind.BROKEN, Fate.BROKEN),
        (GuardKind.EMPTIED, Fate.EMPTIED),
    ):
        holds = planned(refused(kind, effect)).holds()
        assert holds.keys() == {"a", "b"}, kind
        assert {hold.kind for hold in holds.values()} == {HoldKind.PLATFORM_REFUSED}
        assert "Deployment default/shop" in holds["b"].cause


def test_no_approval_ends_that() -> None:
    plan = planned(refused(GuardKind.STUCK, Fate.STUCK))
    assert plan.holds({"a", "b"}).keys() == {"a", "b"}


def test_the_head_is_released_whatever_is_wrong_in_an_earlier_commit() -> None:
    assert not planned(refused(GuardKind.BROKEN, Fate.BROKEN)).is_refused
    assert not planned(PlatformChange()).holds()
