"""Which strategy a commit has, by its kinds of changes or its choice, and which clusters its rollout."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from shared.azure.changes.field_effects import Effect
from shared.cluster.failures.errors import ClusterMissing
from shared.cluster.forms import UnreadableRecord
from shared.cluster.record import ClusterRecord, recreates
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.summary import summary_of
from shared.frozen import dataclass, replace
from shared.json_tree import Json
from shared.language.cluster_systems import by_name, systems_in
from shared.language.desired import Desired
from shared.language.model.cluster.spec import OPERATION_FIELDS
from shared.language.model.rollout import Strategy
from shared.language.pin import UNKNOWN, Pin
from shared.masking import cut
from shared.plan.differences import FieldChange
from shared.plan.plan import Action, Item, Plan
from shared.rollouts.begin import Candidate
from shared.rollouts.rollout import Member, Rollout
from shared.rollouts.shut import place_of
from shared.rollouts.strategy import StrategyChoice
from shared.rollouts.waits import Seen

# Of which kinds the changes of a commit are, as strategies name them.

ANY = "any"
ROADSTEADS_OWN = tuple(f"spec.{name}" for name in OPERATION_FIELDS)
"""The fields of which Azure sees nothing: a change of them alone waits for nobody."""
_KINDS = (
    (
        "versions",
        r"spec\.(kubernetesVersion|minNodeImageVersion"
        r"|nodePools\[[^\]]*\]\.(orchestratorVersion|nodeImageVersion|rollback))(\..*)?",
    ),
    ("nodePools", r"spec\.nodePools.*"),
    ("platform", r"(systems|spec\.flux|spec\.bootstrapSecrets)(\W.*)?"),
)
"""The kinds with the paths of their fields; the first that matches counts."""


def kind_of(change: FieldChange) -> str:
    """Return the kind of a change, ``any`` for one that is of no other."""
    found = (kind for kind, path in _KINDS if re.fullmatch(path, change.path, re.DOTALL))
    return next(found, ANY)


def strategy_name(strategies: Sequence[Strategy], updates: Iterable[Item]) -> str:
    """Return the strategy of a commit: the first that names a kind of change; "" where there is none.

    Kinds that no strategy names are ``any``, and so is a commit without a change that Azure sees.
    """
    named = {kind for strategy in strategies for kind in strategy.changes}
    found = {kind if kind in named else ANY for kind in _kinds(updates)} or {ANY}
    return next((strategy.name for strategy in strategies if not found.isdisjoint(strategy.changes)), "")


def slowest_kind(updates: Iterable[Item]) -> str:
    """Return the kind of the changes of a commit that takes longest, "" without one that Azure sees."""
    found = _kinds(updates)
    return next((kind for kind in ("versions", "nodePools", ANY, "platform") if kind in found), "")


def _kinds(updates: Iterable[Item]) -> Collection[str]:
    changes = (change for item in updates for change in item.changes)
    return {kind_of(change) for change in changes if not change.path.startswith(ROADSTEADS_OWN)}


# Which strategy a commit has: the one that it selects, or that of its kinds of changes.
#
# A commit that names a strategy which it may not select has that of its changes, and nothing of it starts
# until a person lets it: somebody who mistyped the name of a careful strategy gets no quicker one by that.

TRAILER = "Rollout"
MOST_NAMED = 10
LONGEST = 100
"""How much is stored of what a commit names."""


@dataclass(frozen=True)
class CommitRequest:
    """What a commit says: the values of its trailers, and the labels of the pull request merged as it."""

    trailers: tuple[str, ...] = ()
    labels: frozenset[str] = frozenset()


NOTHING = CommitRequest()


def asks(strategies: Sequence[Strategy]) -> bool:
    """Return whether a fleet lets commits select a strategy."""
    return any(strategy.may_be_selected for strategy in strategies)


def asks_labels(strategies: Sequence[Strategy]) -> bool:
    """Return whether a label of a pull request selects a strategy of a fleet."""
    return any(strategy.pull_request_label for strategy in strategies)


def choose(
    strategies: Sequence[Strategy], asked: CommitRequest, updates: Sequence[Item]
) -> tuple[StrategyChoice, tuple[str, ...]]:
    """Return the strategy of a commit with these updates, and the names that it gives and may not.

    Several at once may not be given either.
    """
    default = StrategyChoice(strategy_name(strategies, updates), kind=slowest_kind(updates))
    if not asks(strategies):
        return default, ()
    labelled = [strategy.name for strategy in strategies if strategy.pull_request_label in asked.labels]
    named = tuple(dict.fromkeys((*asked.trailers, *labelled)))
    allowed = {*labelled, *(strategy.name for strategy in strategies if strategy.selectable)}
    if len(named) == 1 and named[0] in allowed:
        return replace(default, name=named[0], selected=True), ()
    return default, tuple(cut(name, LONGEST) for name in named[:MOST_NAMED])


_NAMED = re.compile(rf"{TRAILER}[ \t]*:(.*)", re.IGNORECASE)


def named_in(message: str) -> list[str]:
    """Return the strategies that a commit names: those of the lines ``Rollout: NAME`` of its last paragraph.

    These are the trailers that git reads (git-scm.com/docs/git-interpret-trailers), and those between which
    other lines stand: what nobody meant so is refused, and holds.
    """
    *above, last = re.split(r"\n\s*\n", message.strip())
    lines = map(_NAMED.fullmatch, last.split("\n") if above else ())
    return [" ".join(line[1].split()) for line in lines if line]


# The clusters of a plan that a rollout may have.

NO_UPGRADE = (Effect.RUNS_ALREADY, Effect.NEVER_LOWERED)
"""What a change of a version does that upgrades nothing."""


def upgrade_of(item: Item) -> str | None:
    """Return the version that a cluster is upgraded to, "" for images or pools alone, None for none."""
    changes = [change for change in item.changes if change.effect not in NO_UPGRADE]
    if not any(kind_of(change) == "versions" for change in changes):
        return None
    return next((change.new for change in changes if change.path == "spec.kubernetesVersion"), "").strip('"')


def own_versions_of(item: Item) -> Mapping[str, str]:
    """Return the versions of their own to which node pools are upgraded, "" for that of the control plane."""
    changes = [change for change in item.changes if change.effect not in NO_UPGRADE]
    pools = ((_OWN_VERSION.fullmatch(change.path), change.new) for change in changes)
    return {found[1]: version for found, version in pools if found}


_OWN_VERSION = re.compile(r"spec\.nodePools\[([^\]]*)\]\.orchestratorVersion")
Records = Mapping[str, ClusterRecord]


def seen_in(
    rollout: Rollout, records: Records, unreadable: Mapping[str, UnreadableRecord] = MappingProxyType({})
) -> Seen:
    """Return what is recorded of the clusters of a rollout."""
    names = (member.cluster for member in rollout.members)
    return {**{name: summary_of(records[name]) for name in names if name in records}, **unreadable}


def updates_of(plan: Plan) -> list[Item]:
    """Return the items of a plan that go through stages."""
    return [item for item in plan.items if item.action is Action.UPDATE]


def candidates_of(
    plan: Plan,
    desired: Mapping[str, Desired],
    records: Records,
    earlier: Rollout | None,
    earlier_plan: Plan | None,
    now: datetime,
    later: Collection[str] = (),
) -> Iterator[Candidate]:
    """Yield the clusters that the plan changes, and those that the earlier rollout changed before it.

    The pins of ``later`` ones move after that.
    """
    members = {member.cluster: member for member in earlier.members} if earlier else {}
    planned = {item.cluster: item for item in earlier_plan.items} if earlier_plan else {}
    changed = set[str]()
    for item in updates_of(plan):
        record, wanted = records.get(item.cluster), desired.get(item.cluster)
        member = members.get(item.cluster)
        if _is_handed_over(item, record, member):
            continue
        changed.add(item.cluster)
        if record is None or wanted is None:
            continue
        candidate = _candidate(record, wanted, item.generation, now)
        suspends, creates = _is_suspended_by(record, wanted, now), _is_created_again(record, wanted)
        started = _has_started(record, member)
        own = replace(
            candidate.member,
            at_once=record.deleting or is_own(item) or suspends or creates or record.recovering,
            earlier=None if item.keeps_pin else _moved(record, wanted),
            systems=_moved_systems(record.document, wanted),
            platform=moves_pin_alone(item),
            later=item.cluster in later,
        )
        adds = started or member is None or _adds(item, planned.get(item.cluster))
        touched, aside = started or record.failed, candidate.aside or suspends
        yield replace(candidate, member=own, touched=touched, aside=aside, adds=adds)
    for item in plan.items:
        member, record = members.get(item.cluster), records.get(item.cluster)
        if member is None or record is None or item.cluster in changed:
            continue
        wanted = desired.get(item.cluster)
        if wanted is not None and _has_started(record, member) and not record.deleting:
            candidate = _candidate(record, wanted, record.generation, now)
            own = replace(
                candidate.member,
                before=member.before,
                group=member.group,
                at_once=member.at_once,
                earlier=None if _is_at(record, member.earlier) else member.earlier,
                systems={n: pin for n, pin in member.systems.items() if not _system_is_at(record, n, pin)},
                platform=member.platform,
                stays=item.keeps_pin,
            )
            yield replace(candidate, member=own, left=True, touched=True, adds=False)


def _moved(record: ClusterRecord, wanted: Desired) -> Pin | None:
    """Return the pin that a commit moves, an unknown one where a cluster followed its source by itself."""
    before = Pin.of(record.document)
    if wanted.pin is None or (before is not None and before.pulls == wanted.pin.pulls):
        return None
    same = before is not None and before.source == wanted.pin.source
    return before if same else replace(UNKNOWN, source=wanted.pin.source)


def _moved_systems(document: Json, wanted: Desired) -> Mapping[str, Pin]:
    """Return the pins that systems have, where a commit moves them."""
    after = {system["name"]: Pin.of(system) for system in wanted.systems}
    found = dict[str, Pin]()
    for system in systems_in(document):
        before, pin = Pin.of(system), after.get(system["name"])
        if before and pin and before.source == pin.source and before.pulls != pin.pulls:
            found[system["name"]] = before
    return found


def _system_is_at(record: ClusterRecord, name: str, pin: Pin) -> bool:
    """Return whether a system has the state of a pin, or is not there any more."""
    system = by_name(systems_in(record.document)).get(name)
    now = Pin.of(system) if system else None
    return now is None or (now.commit, now.pulls) == (pin.commit, pin.pulls)


def _is_at(record: ClusterRecord, pin: Pin | None) -> bool:
    """Return whether a cluster has the state of a pin: an abort of its rollout has taken it back."""
    now = Pin.of(record.document)
    if now is None or pin is None:
        return False
    return now.commit == pin.commit or (pin.is_known and now.pulls == pin.pulls)


def _adds(item: Item, earlier: Item | None) -> bool:
    """Return whether an item has other changes than that of the earlier plan, None for an unknown one."""
    shown = [
        [(change.path, change.old, change.new) for change in version.changes]
        for version in (item, earlier)
        if version
    ]
    return earlier is None or shown[0] != shown[1]


def _is_handed_over(item: Item, record: ClusterRecord | None, member: Member | None) -> bool:
    """Return whether the earlier rollout is that of the same commit, and has started a cluster."""
    if record is None or member is None or not _has_started(record, member):
        return False
    return (item.uid, item.generation) == (member.uid, member.generation)


def not_held(
    candidates: Collection[Candidate],
    records: Records,
    earlier: Rollout | None,
    earlier_plan: Plan | None,
    commit: str,
) -> frozenset[str]:
    """Return the clusters that get nothing of what a paused rollout holds back.

    They have its change already, or it has none for them. What its plan could not carry out waits
    too, and so does everything that nobody knows of, because that plan is not stored any more.
    """
    if earlier is None:
        return frozenset()
    members = {member.cluster: member for member in earlier.members}
    known = {item.cluster: item for item in earlier_plan.items} if earlier_plan else {}

    def passes(candidate: Candidate) -> bool:
        member, record = members.get(candidate.cluster), records[candidate.cluster]
        ahead = member is not None and _passed(earlier, member)
        if candidate.member.generation == record.generation:  # the newer commit leaves it as it is
            return ahead
        if member is not None:
            return ahead or _has_started(record, member)
        item = known.get(candidate.cluster)
        carried_out = item is not None and not (item.not_carried_out or item.retained)
        return carried_out and earlier.commit != commit

    return frozenset(candidate.cluster for candidate in candidates if passes(candidate))


def _passed(earlier: Rollout, member: Member) -> bool:
    """Return whether a member was let past a pause already."""
    stage = earlier.stages[member.stage]
    return stage.back or stage.ahead


def _has_started(record: ClusterRecord, member: Member | None) -> bool:
    return member is not None and record.uid == member.uid and record.generation >= member.generation


def _candidate(record: ClusterRecord, desired: Desired, generation: int, now: datetime) -> Candidate:
    until, summary = _suspended_until(desired, now), summary_of(record)
    suspended = record.phase is Phase.SUSPENDED and until is not None
    aside = suspended or record.contested or summary.sweep.found or summary.stays_asleep(now)
    member = Member(record.name, record.uid, generation, 0, 0, record.digest, until)
    return Candidate(member, place_of(desired), desired.digest, aside=aside)


def _suspended_until(desired: Desired, now: datetime) -> datetime | None:
    suspension = desired.document()["spec"].get("suspend")
    until = datetime.fromisoformat(suspension["until"]) if suspension else None
    return until if until is not None and until > now else None


def _is_suspended_by(record: ClusterRecord, desired: Desired, now: datetime) -> bool:
    """Return whether the commit suspends a cluster, or changes its suspension: that takes effect at once."""
    before, after = record.document["spec"].get("suspend"), desired.document()["spec"].get("suspend")
    return before != after and _suspended_until(desired, now) is not None


def _is_created_again(record: ClusterRecord, desired: Desired) -> bool:
    """Return whether the commit has a cluster created again that is missing: that waits for no stage."""
    missing = record.finding == ClusterMissing.__name__ and not record.exemption
    return missing and recreates(desired)


def moves_pin_alone(item: Item) -> bool:
    """Return whether nothing changes but the commit that Flux pulls of the cluster's own source."""
    return [change.path for change in item.changes] == ["pin.commit"]


def is_own(item: Item) -> bool:
    """Return whether nothing of a change reaches Azure or the cluster."""
    return all(change.path.startswith(ROADSTEADS_OWN) for change in item.changes)
