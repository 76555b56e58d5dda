"""The plan of a commit: what it does to each cluster, or why it does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, Protocol

from shared.azure.running_versions import RunningVersions
from shared.frozen import dataclass, field, replace
from shared.plan.differences import FieldChange
from shared.plan.holds import Hold, HoldKind


class Action(StrEnum):
    """What happens to a cluster."""

    CREATE = "create"
    ADOPT = "adopt"
    UPDATE = "update"
    REBUILD = "rebuild"
    """The cluster is deleted, and then created again from its manifest."""
    DELETE = "delete"
    RELEASE = "release"
    """The cluster outside Azure is no longer marked as this fleet's; nothing that runs there changes."""
    RETRY = "retry"
    UNCHANGED = "unchanged"
    ON_HOLD = "on-hold"
    REFUSED = "refused"
    INVALID = "invalid"


REMOVALS = (Action.DELETE, Action.RELEASE)
ASKING_AZURE = (Action.CREATE, Action.UPDATE)
"""Those that may ask something new of Azure: more nodes, another version, a cluster."""
_NOT_CARRIED_OUT = (Action.INVALID, Action.REFUSED, Action.ON_HOLD)


def _outcome(action: Action, needs_approval: bool) -> str:
    released = needs_approval and action in _NOT_CARRIED_OUT
    return "needs approval" if released else action.value.replace("-", " ")


@dataclass(frozen=True)
class Postponement:
    """What keeps a cluster beyond its end: until when, who asked for it and why.

    ``of`` is the end that git gave the cluster then.
    """

    until: datetime
    by: str
    reason: str
    of: datetime


class RecordedState(Protocol):
    """What the planner needs to know of a cluster's record."""

    @property
    def document(self) -> Mapping[str, Any]:
        """The stored form of the last accepted ``Desired``."""

    @property
    def digest(self) -> str:
        """Its digest."""

    @property
    def generation(self) -> int:
        """How many specs have been accepted so far."""

    @property
    def uid(self) -> str:
        """Distinguishes the cluster from earlier ones of the same name."""

    @property
    def deleting(self) -> bool:
        """Whether an accepted commit removed the cluster."""

    @property
    def restorable(self) -> bool:
        """Whether that removal can be taken back, because the delete has not started."""

    @property
    def rebuilt_for(self) -> str:
        """The time of the rebuild that its life was created for, "" for none."""

    @property
    def lifetime_hold(self) -> Postponement | None:
        """Until when somebody holds it, also once that is over; None for a cluster without a hold."""

    @property
    def retryable_failure(self) -> bool:
        """Whether its job failed for a reason that may be temporary, or is a failed delete."""

    @property
    def recovering(self) -> bool:
        """Whether the tables may not know what was written to it last."""

    @property
    def ready(self) -> bool:
        """Whether its generation was verified Ready, and is so."""

    @property
    def running(self) -> RunningVersions:
        """The versions that it ran when it was read last; empty if it never was."""


@dataclass(frozen=True, slots=True)
class Item:
    """A cluster's part of the plan; ``uid`` and ``generation`` are those after the plan is carried out.

    ``hold`` is the reason why the plan does not do what the manifest requests. ``retained`` are the systems
    that stay as they are although the commit takes namespaces from them; the rest is carried out.
    ``replacements`` are the clusters that must be Ready before this one is deleted. ``behind`` is how many
    commits of the branch follow the one that its Flux pulls at the time of the plan, None where it
    has no newer one for the cluster, or that is not known. ``lags``: Flux is to have other files than the
    commit has, because an earlier one goes through the stages before it.
    """

    cluster: str
    action: Action
    generation: int = 0
    uid: str = ""
    changes: tuple[FieldChange, ...] = ()
    hold: Hold | None = None
    retained: tuple[str, ...] = ()
    replacements: tuple[str, ...] = ()
    behind: int | None = field(default=None, compare=False)
    lags: bool = False

    @property
    def reason(self) -> str:
        """The hold as a sentence, "" for none."""
        return str(self.hold) if self.hold else ""

    @property
    def needs_approval(self) -> bool:
        """Whether the item has a delete, or a removal of namespaces, that needs an operator's approval."""
        return self.hold is not None and self.hold.needs_approval

    @property
    def outcome(self) -> str:
        """The action in plain language: an action on hold that an operator can approve needs approval."""
        return _outcome(self.action, self.needs_approval)

    @property
    def awaits_deletion(self) -> bool:
        """Whether the cluster will be created again as soon as its deletion has finished."""
        return self.hold is not None and self.hold.awaits_deletion

    @property
    def rebuilds(self) -> bool:
        """Whether the item is a rebuild, carried out or on hold."""
        return self.action is Action.REBUILD or (self.hold is not None and self.hold.is_of_rebuild)

    @property
    def releases(self) -> bool:
        """Whether the item releases a cluster outside Azure, carried out or on hold."""
        hold = self.hold
        held = hold is not None and hold.is_of_release and hold.kind is not HoldKind.RENAMED  # the new one
        return self.action is Action.RELEASE or held

    @property
    def removal(self) -> str:
        """What the item takes away, a cluster or what Flux has applied to it, as a noun."""
        if self.keeps_pin or (self.hold is not None and self.hold.kind is HoldKind.SYSTEM_REMOVAL):
            return "loss"
        return "release" if self.releases else "rebuild" if self.rebuilds else "delete"

    @property
    def waits_for_time(self) -> bool:
        """Whether a freeze or a change window holds the item, which starts by itself once it may."""
        return self.hold is not None and self.hold.is_of_time

    @property
    def awaits_replacement(self) -> bool:
        """Whether the delete waits until the clusters that replace this one are Ready."""
        return self.hold is not None and self.hold.awaits_replacement

    @property
    def is_new_and_invalid(self) -> bool:
        """Whether the manifest is invalid, and no cluster of an earlier valid one stays."""
        return self.hold is not None and self.hold.kind is HoldKind.INVALID_NEW_MANIFEST

    @property
    def keeps_pin(self) -> bool:
        """Whether Flux keeps the commit that it has, although the commit would change what it pulls."""
        return self.hold is not None and self.hold.keeps_pin

    @property
    def keeps_version(self) -> bool:
        """Whether a version stays that git has lowered below what runs; all else is carried out."""
        return self.hold is not None and self.hold.kind is HoldKind.VERSION_STAYS

    @property
    def not_carried_out(self) -> bool:
        """Whether the plan does not do what the commit requests."""
        return self.action in _NOT_CARRIED_OUT

    @property
    def needs_action(self) -> bool:
        """Whether something of the item is not carried out until an operator acts."""
        waits = self.awaits_deletion or self.waits_for_time or self.awaits_replacement
        kept = bool(self.retained) or self.keeps_pin or self.keeps_version
        return kept or (self.not_carried_out and not waits)

    @property
    def acts(self) -> bool:
        """Whether a job follows from the item."""
        return self.begins or self.action in (Action.UPDATE, Action.REBUILD, *REMOVALS, Action.RETRY)

    @property
    def begins(self) -> bool:
        """Whether the job is the cluster's first one, which creates or adopts it."""
        return self.action in (Action.CREATE, Action.ADOPT)


@dataclass(frozen=True)
class Plan:
    """What a commit does; ``applied`` once every item's job has been handed over.

    ``problems`` are those of the manifests as text; ``fleet_file_problem`` is the first one of
    fleet.yaml, on which every cluster depends, "" for none.
    """

    commit: str
    items: tuple[Item, ...] = ()
    problems: tuple[str, ...] = ()
    fleet_file_problem: str = ""
    applied: bool = False

    @cached_property
    def deletes_needing_approval(self) -> frozenset[str]:
        """The clusters whose deletes, or removals of namespaces, need approval: exactly this set."""
        return frozenset(item.cluster for item in self.items if item.needs_approval)

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The clusters for which nothing is planned, because their records could not be read."""
        return tuple(i.cluster for i in self.items if i.hold and i.hold.kind is HoldKind.UNREADABLE)

    @cached_property
    def releases(self) -> frozenset[str]:
        """The clusters outside Azure that leave the fleet, now or once it is approved."""
        return frozenset(item.cluster for item in self.items if item.releases)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many clusters each action has."""
        return Counter(item.action.value for item in self.items)

    @cached_property
    def summary(self) -> str:
        """The counts as text: "2 create, 5 unchanged, 1 needs approval"."""
        order = {action: place for place, action in enumerate(Action)}
        kinds = Counter((item.action, item.needs_approval) for item in self.items)
        counts = Counter[str]()
        for action, approval in sorted(kinds, key=lambda kind: (order[kind[0]], not kind[1])):
            counts[_outcome(action, approval)] += kinds[action, approval]
        return ", ".join(f"{number} {outcome}" for outcome, number in counts.items()) or "no clusters"

    def resume(self, earlier: Plan | None) -> Plan:
        """Return the plan with the items that an earlier, interrupted attempt at this commit had handed over.

        An item that was accepted then appears unchanged now, but the plan must still report it and send its
        job again. Planning a finished commit again likewise still reports what the commit did.
        """
        if earlier is None or earlier.commit != self.commit:
            return self
        before = {item.cluster: item for item in earlier.items if item.acts}
        now = {item.cluster for item in self.items}

        def accepted(item: Item, then: Item | None) -> Item:
            known = then or item
            same = (item.uid, item.generation) == (known.uid, known.generation)
            stays = item.action is Action.UNCHANGED or (item.retained and item.retained == known.retained)
            return known if same and stays else item

        items = [accepted(item, before.get(item.cluster)) for item in self.items]
        # A cluster whose accepted delete has finished since no longer has a record.
        items += [item for name, item in before.items() if name not in now]
        return replace(self, items=tuple(items))


# Since when the items of a plan are on hold: since the first of consecutive plans that had them so.


def held_since(
    plan: Plan, earlier: Plan | None, since: Mapping[str, datetime], now: datetime
) -> Mapping[str, datetime]:
    """Return since when each cluster's item is on hold."""
    before = {item.cluster: item.hold.kind for item in earlier.items if item.hold} if earlier else {}
    return {
        item.cluster: min(since.get(item.cluster, now), now)
        if before.get(item.cluster) is item.hold.kind
        else now
        for item in plan.items
        if item.hold
    }


def with_since(item: Item, since: Mapping[str, datetime]) -> Item:
    """Return an item whose hold says since when it lasts; a freeze and a window say that themselves."""
    at = since.get(item.cluster)
    if item.hold is None or at is None or item.hold.is_of_time:
        return item
    return replace(item, hold=item.hold.lasting_since(at))
