"""What an environment has proven, what a promotion can give another one, and why it does not. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.summary import ClusterSummary, summary_of
from shared.frozen import dataclass
from shared.kubernetes_versions import needs_upgrade, numbers, runs_newer
from shared.language.desired import Desired
from shared.language.model.change_windows import span_of
from shared.language.model.cluster.flux_source import FOLLOWS_ROLLOUT
from shared.language.model.fleet_rules import PromotionRule
from shared.sentences import some_of

if TYPE_CHECKING:  # a start of the app resolves no manifest
    from shared.language.model.kinds import Environment


class Promotable(StrEnum):
    """What can be promoted."""

    VERSION = "version"
    IMAGES = "images"
    COMPONENTS = "components"
    PLATFORM = "platform"


@dataclass(frozen=True, order=True)
class Value:
    """A field below ``spec``, such as ``flux.tag``, with its value."""

    path: str
    value: str

    @property
    def steps(self) -> Sequence[str]:
        """The path as steps."""
        return self.path.split(".")


@dataclass(frozen=True)
class PromotionPath:
    """A rule of ``spec.promotions``."""

    source: str
    target: str
    what: tuple[Promotable, ...]
    soak: timedelta


@dataclass(frozen=True)
class ChannelRule:
    """An environment that gets something from a channel: its Kubernetes, its node images, or its Flux.

    ``onward`` are the environments that promotions carry it to, ``pace`` is the time to the last of them.
    ``artifacts`` are those from which its clusters with the Flux Operator take Flux.
    """

    environment: str
    channel: str
    what: Promotable = Promotable.VERSION
    pace: timedelta = timedelta(0)
    onward: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()


VERSION_PATH, IMAGE_PATH = "kubernetesVersion", "minNodeImageVersion"
POOL_VERSION = "orchestratorVersion"
EXTENSION_PATH, INSTANCE_PATH = "flux.extension.version", "flux.instance.distribution.version"
ARTIFACT_PATH = "flux.instance.distribution.artifact"
CHANNELED: Mapping[Promotable, Sequence[str]] = {
    Promotable.VERSION: (VERSION_PATH,),
    Promotable.IMAGES: (IMAGE_PATH,),
    Promotable.COMPONENTS: (EXTENSION_PATH, INSTANCE_PATH),
}
"""What an environment can get from a channel, and the fields of which one is that."""
_OF_INSTALL = {"extension": (EXTENSION_PATH,), "operator": (INSTANCE_PATH, "flux.components")}
"""What says which Flux a cluster has, by how Flux is installed: with the operator, its file otherwise."""
PLATFORM_PATHS = ("flux.tag", "flux.commit")
PATHS = (VERSION_PATH, IMAGE_PATH, "flux.components", EXTENSION_PATH, INSTANCE_PATH, *PLATFORM_PATHS)
"""Every field that a promotion writes."""


def rules_of(written: Iterable[PromotionRule]) -> tuple[PromotionPath, ...]:
    """Return the rules of fleet.yaml."""
    return tuple(
        PromotionPath(
            rule.from_, rule.to, tuple(map(Promotable, dict.fromkeys(rule.what))), span_of(rule.soak)
        )
        for rule in written
    )


def channels_of(
    environments: Mapping[str, Environment], rules: Iterable[PromotionPath]
) -> tuple[ChannelRule, ...]:
    """Return the environments that get something from a channel itself, in order.

    An environment to which a rule promotes what the same channel has gets it by that promotion.
    """
    known = [*rules]
    return tuple(rule for what in CHANNELED for rule in _channels_of(what, environments, known))


def _channels_of(
    what: Promotable, environments: Mapping[str, Environment], rules: Sequence[PromotionPath]
) -> Iterator[ChannelRule]:
    channels = {name: channel_of(environment, what) for name, environment in environments.items()}
    way = {rule.target: rule for rule in rules if what in rule.what and channels.get(rule.target)}
    way = {name: rule for name, rule in way.items() if channels.get(rule.source) == channels[name]}
    later = dict.fromkeys(channels, timedelta(0))
    onward: dict[str, tuple[str, ...]] = dict.fromkeys(channels, ())
    for name in reversed(channels):
        if name in way:
            source = way[name].source
            later[source] = max(later[source], later[name] + way[name].soak)
            onward[source] = (name, *onward[name], *onward[source])
    for name, channel in channels.items():
        if channel and name not in way:
            yield ChannelRule(name, channel, what, later[name], onward[name])


def channel_of(environment: Environment | None, what: Promotable) -> str:
    """Return the channel from which an environment has something, "" for none."""
    if environment is None or what not in CHANNELED:
        return ""
    spec = environment.spec
    followed = {
        Promotable.VERSION: spec.kubernetes,
        Promotable.IMAGES: spec.node_images,
        Promotable.COMPONENTS: spec.flux,
    }
    channel = followed[what]
    return channel.channel if channel else ""


def value_of(what: Promotable, spec: Mapping[str, Any]) -> Value | None:
    """Return what a cluster has; None where its spec names none, as where Flux follows a branch."""
    return next(filter(None, (value_at(path, spec) for path in _paths(what, spec))), None)


def values_in(spec: Mapping[str, Any]) -> frozenset[Value]:
    """Return every value of a spec, or of a part of one, that a promotion could have written."""
    return frozenset(filter(None, (value_at(path, spec) for path in PATHS)))


def _paths(what: Promotable, spec: Mapping[str, Any]) -> Sequence[str]:
    match what:
        case Promotable.VERSION | Promotable.IMAGES:
            return CHANNELED[what]
        case Promotable.PLATFORM:
            return () if (spec.get("flux") or {}).get("follow") == FOLLOWS_ROLLOUT else PLATFORM_PATHS
        case Promotable.COMPONENTS:
            return _OF_INSTALL.get((spec.get("flux") or {}).get("install", ""), ("flux.components",))


def value_at(path: str, spec: Mapping[str, Any]) -> Value | None:
    """Return what a spec has at a path, None for nothing; a range of versions of Flux is none."""
    found: Any = spec
    for step in path.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    if not isinstance(found, str) or not found or (path == INSTANCE_PATH and len(numbers(found)) != 3):
        return None
    return Value(path, found)


# Why something is not promoted.

NAMED = 5


class HoldReason(StrEnum):
    """Why something is not promoted; ``_TEXTS`` says each as a sentence."""

    EMPTY = "empty"
    NOT_READY = "not ready"
    PENDING = "pending"
    DIFFERENT = "different"
    NO_VALUE = "no value"
    NEWER = "newer"
    DRIFTED = "drifted"
    SAME = "same"
    OWN = "own"
    LOWER = "lower"
    INVALID = "invalid"
    SOAK = "soak"
    WITHDRAWN = "withdrawn"
    DECLINED = "declined"
    CHANNEL = "channel"


NOTHING_TO_DO = frozenset({HoldReason.SAME, HoldReason.NO_VALUE, HoldReason.OWN, HoldReason.CHANNEL})
"""The reasons that are no obstacle for another value."""
HOLDS = frozenset({HoldReason.WITHDRAWN, HoldReason.DECLINED})
"""The reasons that stop automation alone: a person can promote nevertheless."""


@dataclass(frozen=True)
class Obstacle:
    """Why something is not promoted: the clusters that it is about, and values or what is wrong."""

    reason: HoldReason
    environment: str
    clusters: tuple[str, ...] = ()
    detail: str = ""


_TEXTS: Mapping[HoldReason, str] = {
    HoldReason.EMPTY: "{environment} has no cluster that this is for",
    HoldReason.NOT_READY: "not every cluster of {environment} is Ready and healthy: {names}",
    HoldReason.PENDING: (
        "the newest commit gives {names} of {environment} another value, which is not Ready yet"
    ),
    HoldReason.DIFFERENT: "the clusters of {environment} have different values: {detail}",
    HoldReason.NO_VALUE: "{names} of {environment} names no value: {detail}",
    HoldReason.NEWER: "{names} of {environment} runs another version than git asks for: {detail}",
    HoldReason.DRIFTED: "in Azure, {names} of {environment} has another value than in git",
    HoldReason.SAME: "{environment} has {detail} already",
    HoldReason.OWN: "{environment} has its value for no cluster: {names} sets one in its own file",
    HoldReason.LOWER: "no version is lowered, and {names} of {environment} has a newer one than {detail}",
    HoldReason.CHANNEL: "{environment} has it from its own channel, {detail}",
    HoldReason.INVALID: "the files are invalid, or would be with it: {detail}",
    HoldReason.SOAK: "{environment} is watched until {detail}",
    HoldReason.WITHDRAWN: "{environment} had {detail}, and a commit took it back: no rule gives it again",
    HoldReason.DECLINED: "the pull request with {detail} was closed without a merge: no rule opens another",
}


def describe(what: str, obstacle: Obstacle) -> str:
    """Return why something is not promoted, as a sentence."""
    names = some_of(obstacle.clusters, NAMED)
    text = _TEXTS[obstacle.reason]
    return f"{what}: {text.format(environment=obstacle.environment, names=names, detail=obstacle.detail)}"


# What an environment had and withdrew: automation never gives it back.
#
# The planner notes with every commit which values the file of an environment and its clusters have. A value
# that a commit takes away is withdrawn, until a commit gives it again, or a person promotes it.

KEPT = 100
"""So many values that an environment withdrew are remembered, and so many that it has."""


@dataclass(frozen=True)
class Withdrawal:
    """A value that a commit took from an environment, and when that was planned."""

    value: Value
    at: datetime


@dataclass(frozen=True)
class EnvironmentValues:
    """What an environment has as of the last plan: in its file and in its clusters, and what it withdrew."""

    environment: str
    file: tuple[Value, ...] = ()
    clusters: tuple[Value, ...] = ()
    withdrawn: tuple[Withdrawal, ...] = ()

    def withdrew(self, value: Value, lifted: datetime | None) -> bool:
        """Return whether automation may not give a value; a person ``lifted`` that for what was before."""
        return any(
            withdrawal.value == value and (lifted is None or withdrawal.at > lifted)
            for withdrawal in self.withdrawn
        )


def planned(
    before: EnvironmentValues | None,
    environment: str,
    file: Collection[Value],
    clusters: Collection[Value],
    at: datetime,
    gone: Collection[Value] = (),
) -> EnvironmentValues:
    """Return what an environment has after a plan, and has withdrawn; ``gone`` only left with clusters."""
    now = EnvironmentValues(environment, _kept(file), _kept(clusters))
    if before is None:
        return now
    left = (set(before.file) - set(now.file)) | (set(before.clusters) - {*now.clusters, *gone})
    again = set(now.file) | (set(now.clusters) - set(before.clusters))
    known = [withdrawal for withdrawal in before.withdrawn if withdrawal.value not in left | again]
    added = [Withdrawal(value, at) for value in sorted(left - again)]
    return EnvironmentValues(environment, now.file, now.clusters, tuple((*known, *added)[-KEPT:]))


def _kept(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(sorted(set(values))[:KEPT])


# What is proven in an environment: each of its clusters is Ready now, with the value that git asks for.

FOLLOWS = "a branch, a range of versions or a tag that stages follow is none; set flux.tag or flux.commit"
NO_VERSION = "Azure chooses the version of the extension; set flux.extension.version"
_NAMELESS = {
    Promotable.VERSION: "set kubernetesVersion",
    Promotable.IMAGES: "set minNodeImageVersion",
    Promotable.COMPONENTS: NO_VERSION,
    Promotable.PLATFORM: FOLLOWS,
}


@dataclass(frozen=True)
class Proof:
    """A value that every cluster of an environment has, and since when the last one has been Ready."""

    what: Promotable
    value: Value
    clusters: tuple[str, ...]
    since: datetime | None


def of_environment(
    environment: str, desired: Mapping[str, Desired], records: Mapping[str, ClusterRecord]
) -> Sequence[str]:
    """Return the clusters of an environment: those of git, and those that are not deleted yet."""
    names = {name for name, cluster in desired.items() if cluster.environment == environment}
    kept = (record for record in records.values() if record.desired.environment == environment)
    return sorted(
        names | {record.name for record in kept if record.name not in desired and not record.deleting}
    )


def concerns(what: Promotable, cluster: Desired) -> bool:
    """Return whether a cluster can have such a value: one outside Roadstead's AKS has no version of git."""
    return what not in (Promotable.VERSION, Promotable.IMAGES) or not cluster.is_attached


def proven(
    what: Promotable, environment: str, desired: Mapping[str, Desired], records: Mapping[str, ClusterRecord]
) -> Proof | Obstacle:
    """Return what is proven in an environment; ``desired`` are the clusters of the newest commit."""
    names = [
        name
        for name in of_environment(environment, desired, records)
        if concerns(what, desired.get(name) or records[name].desired)
    ]
    if not names:
        return Obstacle(HoldReason.EMPTY, environment)
    own = [records[name] for name in names if name in records and not records[name].recovering]
    times = {record.name: seen.times.ready_since for record in own if is_ready(seen := summary_of(record))}
    if unready := tuple(name for name in names if name not in times):
        return Obstacle(HoldReason.NOT_READY, environment, unready)
    if pending := tuple(name for name in names if _is_pending(what, desired.get(name), records[name])):
        return Obstacle(HoldReason.PENDING, environment, pending)
    found: dict[Value, list[str]] = {}
    for record in own:
        value = value_of(what, record.document["spec"])
        if value is None:
            return Obstacle(HoldReason.NO_VALUE, environment, (record.name,), _NAMELESS[what])
        if wrong := _not_as_in_git(environment, value, record):
            return wrong
        found.setdefault(value, []).append(record.name)
    if len(found) > 1:
        shown = "; ".join(f"{value.value} in {', '.join(has[:3])}" for value, has in sorted(found.items()))
        return Obstacle(HoldReason.DIFFERENT, environment, tuple(names), shown)
    return Proof(what, next(iter(found)), tuple(names), max(filter(None, times.values()), default=None))


def is_ready(summary: ClusterSummary) -> bool:
    """Return whether a cluster is verified at its newest generation, and nothing but its sleep came since."""
    worse = summary.lost or summary.tried or summary.times.unhealthy_since or not summary.times.ready_since
    return summary.settled and summary.observed_generation == summary.generation and not worse


def _is_pending(what: Promotable, wanted: Desired | None, record: ClusterRecord) -> bool:
    """Return whether git asks for another value than the cluster has, or no longer has the cluster."""
    if wanted is None:
        return True
    if value_of(what, wanted.document()["spec"]) != value_of(what, record.document["spec"]):
        return True
    return what is Promotable.COMPONENTS and wanted.components != record.document["components"]


def _not_as_in_git(environment: str, value: Value, record: ClusterRecord) -> Obstacle | None:
    """Return what Azure has instead of the value, as far as that is recorded; None for nothing."""
    running = record.running.kubernetes_version
    other = needs_upgrade(value.value, running) or runs_newer(value.value, running)
    if value.path == VERSION_PATH and running and other:
        return Obstacle(HoldReason.NEWER, environment, (record.name,), running)
    drift = record.divergence.drift
    if drift and any(_is_of(field.path, value.path, record) for field in drift.fields):
        return Obstacle(HoldReason.DRIFTED, environment, (record.name,))
    return None


def _is_of(field: str, path: str, record: ClusterRecord) -> bool:
    """Return whether a field that differs is of a value: images, and versions, are those of pools, too."""
    pool, _, name = field.rpartition("].")
    if path == VERSION_PATH and name == POOL_VERSION:
        pools = record.document["spec"]["nodePools"]
        return not any(own.get(POOL_VERSION) for own in pools if f"nodePools[{own['name']}" == pool)
    return name == path and (path == IMAGE_PATH or not pool)
