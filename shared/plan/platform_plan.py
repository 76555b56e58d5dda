"""What a commit does to what Flux applies, and which pins it therefore moves, as a plan needs it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from shared.frozen import dataclass, field, replace
from shared.language.pin import Pin
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.problems import Problem, number_of
from shared.plan.holds import Hold, HoldKind
from shared.plan.plan import Action, Item, RecordedState
from shared.plan.retained import RetainedSystems, retained_systems
from shared.platform.changes.counts import Counts, total
from shared.platform.changes.guards import Guard, PlatformChange
from shared.platform.changes.objects import is_definition
from shared.platform.changes.report import ReportSection, sections_of
from shared.sentences import many

SHOWN = 3
"""How many of the guards of a cluster its hold names."""


@dataclass(frozen=True)
class EarlierPins:
    """The clusters that do not get the pin of the plan's commit, because stages are to have an earlier one.

    ``commits`` are those that they are to have; ``newest`` has the same platform as the plan's commit, and is
    judged with that. ``changes`` are what that does to what Flux applies, and
    ``approved`` the clusters for which somebody approved that. ``lagging`` ones have other files than the
    plan's commit then. ``later`` ones do not get even the earlier pin yet, because all else comes first; what
    changes Flux itself of the ``waiting`` ones waits with it.
    """

    commits: Mapping[str, str] = field(default_factory=dict)
    newest: str = ""
    changes: Mapping[str, PlatformChange] = field(default_factory=dict)
    approved: frozenset[str] = frozenset()
    lagging: frozenset[str] = frozenset()
    later: frozenset[str] = frozenset()
    waiting: frozenset[str] = frozenset()


NONE_EARLIER = EarlierPins()


@dataclass(frozen=True)
class PlatformPlan:
    """The changes of the clusters whose pins the commit would move, by their names.

    ``problems`` are what is wrong with what Flux would apply, and ``notes`` what may be, or is right for
    some. ``note`` says what built it, and what was not built. ``held`` are the clusters of sources that the
    plan takes nothing new of, and ``systems`` those with systems that stay as they are. ``counts`` is what
    clusters have counted of the kinds whose definitions go.
    """

    changes: Mapping[str, PlatformChange] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    note: str = ""
    notes: tuple[Problem, ...] = ()
    held: Mapping[str, Hold] = field(default_factory=dict)
    systems: Mapping[str, RetainedSystems] = field(default_factory=dict)
    earlier: EarlierPins = NONE_EARLIER
    counts: Counts = field(default_factory=dict)

    def holds(self, approved: Iterable[str] = ()) -> Mapping[str, Hold]:
        """Return why pins stay where they are, by cluster; an operator ``approved`` some of the removals.

        What is wrong on one cluster keeps the pins of all that get the commit: it is released as a whole, or
        not at all.
        """
        refused, given = self._refusal(), {*approved, *self.earlier.approved}
        newest, commits = self.earlier.newest, self.earlier.commits
        own = {name: change for name, change in self.changes.items() if commits.get(name, newest) == newest}
        holds = dict.fromkeys(own, refused) if refused else _removals(own, given, self.counts)
        holds |= _removals(self.earlier.changes, given, self.counts)
        return {**holds, **self._refused_earlier(), **self.held}

    @property
    def is_refused(self) -> bool:
        """Whether what the commit gives Flux is wrong somewhere, also where no pin moves to it yet."""
        return self._refusal() is not None

    def retained(self, approved: Iterable[str] = ()) -> Mapping[str, RetainedSystems]:
        """Return the systems that stay, by cluster, with what an operator did not approve."""
        given = {*approved}
        return {
            name: systems
            for name, systems in self.systems.items()
            if not (systems.hold.needs_approval and name in given)
        }

    def staying(
        self, desired: DesiredFleet, recorded: Mapping[str, RecordedState], approved: frozenset[str]
    ) -> Mapping[str, RetainedSystems]:
        """Return the systems that stay for any reason, by recorded cluster."""
        found = {name: systems for name, systems in self.retained(approved).items() if name in recorded}
        for name, systems in retained_systems(desired, recorded, approved).items():
            found[name] = systems.with_names(found.get(name))
        return found

    def _refusal(self) -> Hold | None:
        return _refused(self.changes.values(), self.problems)

    def _refused_earlier(self) -> Mapping[str, Hold]:
        """Return why the pins stay of clusters whose stages are to have an earlier commit that is wrong."""
        by_commit = defaultdict[str, dict[str, PlatformChange]](dict)
        for name, change in self.earlier.changes.items():
            by_commit[self.earlier.commits[name]][name] = change
        found = ((some, _refused(some.values())) for some in by_commit.values())
        return {name: hold for some, hold in found if hold is not None for name in some}

    def sections(self, environments: Mapping[str, str], order: tuple[str, ...]) -> tuple[ReportSection, ...]:
        """Return the changes by what clusters have in common; ``order`` is that of the environments."""
        return sections_of(self.changes, environments, order, self.counts)


NO_PLATFORM_CHANGE = PlatformPlan()


def _refused(changes: Iterable[PlatformChange], problems: Sequence[Problem] = ()) -> Hold | None:
    guards = dict.fromkeys(_refusing(changes))
    texts = [*map(str, problems), *(f"{guard.cause}; {guard.remedy}" for guard in guards)]
    if not texts:
        return None
    more = number_of(problems) + len(guards) - 1
    rest = f" (and {many(more, 'more problem')})" if more else ""
    return Hold(HoldKind.PLATFORM_REFUSED, {"problem": f"{texts[0]}{rest}"})


def _refusing(changes: Iterable[PlatformChange]) -> Iterator[Guard]:
    """Yield the guards that no approval ends."""
    for change in changes:
        yield from (guard for guard in change.guards if not guard.needs_approval)


def _removals(
    changes: Mapping[str, PlatformChange], approved: Container[str], counts: Counts
) -> dict[str, Hold]:
    return {
        name: _removal([guard for guard in change.guards if guard.needs_approval], name, counts)
        for name, change in changes.items()
        if change.needs_approval and name not in approved
    }


def _removal(guards: list[Guard], cluster: str, counts: Counts) -> Hold:
    causes = [_counted(guard, cluster, counts) for guard in guards]
    return Hold(HoldKind.PLATFORM_REMOVAL, _lost(causes, guards[0]))


def _lost(causes: list[str], first: Guard) -> dict[str, str]:
    return {"removed objects": "; ".join(_some(causes)), "way": first.remedy}


def retained_by(guards: Mapping[str, Sequence[Guard]]) -> RetainedSystems | None:
    """Return the systems of a cluster that stay because of guards, by their names; None for none."""
    found = [guard for some in guards.values() for guard in some]
    if not found:
        return None
    names = tuple(sorted(name for name, some in guards.items() if some))
    refused = [guard for guard in found if not guard.needs_approval]
    if refused:
        details = {"problem": refused[0].cause, "remedy": refused[0].remedy}
        kind = HoldKind.SYSTEM_SOURCE_HELD
    else:
        details, kind = _lost([guard.cause for guard in found], found[0]), HoldKind.SYSTEM_REMOVAL
    return RetainedSystems(names, Hold(kind, {"systems": ", ".join(names), **details}))


def _counted(guard: Guard, cluster: str, counts: Counts) -> str:
    """Return what a guard is about, with how many objects go with definitions, where that is known."""
    lost = sorted(found.name for found in guard.destroyed if is_definition(found))
    found = [f"{name}: {total(name, [cluster], counts)}" for name in lost if name in counts.get(cluster, {})]
    return f"{guard.cause} ({'; '.join(found)})" if found else guard.cause


def _some(texts: list[str]) -> Iterator[str]:
    yield from texts[:SHOWN]
    if len(texts) > SHOWN:
        yield many(len(texts) - SHOWN, "more removal")


def changes_flux(
    desired: DesiredFleet, recorded: Mapping[str, RecordedState], held: Iterable[str]
) -> frozenset[str]:
    """Return the clusters whose manifests say themselves what a hold of their pins keeps from Flux."""
    clusters = desired.clusters
    return frozenset(
        name
        for name in held
        if name in clusters
        and name in recorded
        and clusters[name].flux_as_stored != recorded[name].document["spec"]["flux"]
    )


def with_kept_pins(
    desired: DesiredFleet, recorded: Mapping[str, RecordedState], held: Iterable[str]
) -> DesiredFleet:
    """Return the fleet with the pins that clusters have, where something holds those that they would get."""
    kept = {
        name: desired.clusters[name].with_pin(Pin.of(recorded[name].document))
        for name in held
        if name in recorded and name in desired.clusters
    }
    return replace(desired, clusters={**desired.clusters, **kept}) if kept else desired


def with_kept_pin(item: Item, hold: Hold | None) -> Item:
    """Return the item of a cluster whose pin stays; what else the commit changes is carried out."""
    other = item.hold is not None and not item.keeps_version
    if hold is None or other or item.action is Action.REBUILD:
        return item
    refused = Action.ON_HOLD if hold.needs_approval else Action.REFUSED
    return replace(item, action=refused if item.action is Action.UNCHANGED else item.action, hold=hold)
