"""What an environment could get now, the file that gives it, and the pull request with that file.

Only the files of the target environment are changed: its values go over those of the fleet and of classes.
What it has from channels is in a file of its own. A cluster that sets such a value in its own file keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from shared.app.proposals.head import Head
from shared.app.proposals.own_pull import KEPT, File, OwnBranch, SomebodyPushed, declined_after
from shared.cluster.divergence.drift import CHANNELS, PROMOTIONS
from shared.cluster.failures.errors import InvalidManifest
from shared.cluster.record import ClusterRecord
from shared.frozen import dataclass, field, replace
from shared.kubernetes_versions import lower_image, numbers, stays_newer
from shared.language.desired import Desired
from shared.language.model.base import shown
from shared.language.resolve.repository_layout import environment_path, versions_path
from shared.language.yaml.editing import NotEditable, with_value, without
from shared.language.yaml.nodes import plain_value
from shared.language.yaml.parser import YamlError, parse
from shared.ports import FleetRecord, Ports, Pull, PullText
from shared.ports.state import Promotion
from shared.promotions import (
    CHANNELED,
    EXTENSION_PATH,
    HOLDS,
    IMAGE_PATH,
    INSTANCE_PATH,
    NOTHING_TO_DO,
    PLATFORM_PATHS,
    VERSION_PATH,
    HoldReason,
    Obstacle,
    Promotable,
    Proof,
    Value,
    channel_of,
    concerns,
    proven,
    value_at,
    value_of,
    values_in,
)

NO_FILE = "fleet.yaml or the environment's own file is invalid, or not there"
Held = Callable[[Value], HoldReason | None]
"""Returns why a value is not given without somebody asking, None where nothing holds it."""


@dataclass(frozen=True)
class Evaluation:
    """What a target gets, and the files that change with that; ``takers`` are the clusters that change.

    ``keepers`` set a value of their own and keep it. ``obstacles`` says why it does not get the rest.
    ``asked`` are the values that git asks for in the source.
    """

    proofs: tuple[Proof, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    takers: tuple[str, ...] = ()
    keepers: tuple[str, ...] = ()
    obstacles: Mapping[Promotable, Obstacle] = field(default_factory=dict)
    asked: frozenset[Value] = frozenset()

    @property
    def blocked(self) -> bool:
        """Whether something is in the way that is more than that there is nothing to do."""
        return any(obstacle.reason not in NOTHING_TO_DO | HOLDS for obstacle in self.obstacles.values())

    def took_back(self, values: Iterable[Value]) -> bool:
        """Return whether git asks for something else in the source in place of one of these values."""
        asked = {value.path for value in self.asked}
        return any(value.path in asked and value not in self.asked for value in values)


@dataclass(frozen=True)
class _Target:
    """The environment that is to get values: its file, and its clusters as the newest commit has them.

    ``channels`` has those that it follows, by the field that each gives.
    """

    name: str
    texts: Mapping[str, str]
    channels: Mapping[str, str]
    clusters: Mapping[str, Desired]
    records: Mapping[str, ClusterRecord]
    head: Head

    def place_of(self, value: Value) -> tuple[str, Sequence[str]]:
        """Return the file in which the environment has a value, and the path there."""
        if value.path in self.channels:
            return versions_path(self.name), ("spec", *value.steps)
        return environment_path(self.name), ("spec", "defaults", *value.steps)


def _target(name: str, head: Head) -> _Target | None:
    """Return an environment of the newest commit, None for one that does not exist or cannot be written."""
    desired = head.desired
    channels = {
        path: channel
        for what, fields in CHANNELED.items()
        for path in fields
        if (channel := channel_of(desired.environments.get(name), what))
    }
    paths = [environment_path(name), *([versions_path(name)] if channels else [])]
    texts = {path: text for path in paths if (text := head.text(path)) is not None}
    if name not in desired.environments or len(texts) != len(paths) or desired.guards is None:
        return None
    clusters = {own: cluster for own, cluster in desired.clusters.items() if cluster.environment == name}
    return _Target(name, texts, channels, clusters, head.records, head)


def channeled(what: Promotable, value: Value, environment: str, head: Head) -> Evaluation:
    """Return what an environment would get of a value of its channel."""
    target = _target(environment, head)
    if target is None:
        return Evaluation(obstacles={what: Obstacle(HoldReason.INVALID, environment, (), NO_FILE)})
    return _edited(target, [Proof(what, value, (), None)], {})


def evaluate(
    source: str, target: str, what: Sequence[Promotable], head: Head, held: Held = lambda _: None
) -> Evaluation:
    """Return what ``target`` would get of what is proven in ``source``; ``held`` are values to leave out."""
    records, desired, place = head.records, head.desired, _target(target, head)
    unknown = next((name for name in (source, target) if name not in desired.environments), None)
    if unknown is not None or place is None:
        detail = f"there is no environment {shown(unknown)}" if unknown else NO_FILE
        return Evaluation(obstacles=dict.fromkeys(what, Obstacle(HoldReason.INVALID, target, (), detail)))
    proofs, obstacles = list[Proof](), dict[Promotable, Obstacle]()
    for value in what:
        found = proven(value, source, desired.clusters, records)
        if isinstance(found, Proof):
            found = _wanted(found, place, held) or found
        channel = channel_of(desired.environments[target], value)
        if channel and channel != channel_of(desired.environments[source], value):
            found = Obstacle(HoldReason.CHANNEL, target, (), channel)
        elif channel and isinstance(found, Proof) and found.value != present_value(value, source, head):
            found = Obstacle(HoldReason.OWN, source, found.clusters)
        if isinstance(found, Proof):
            proofs.append(found)
        elif not (value is Promotable.IMAGES and found.reason is HoldReason.NO_VALUE and len(what) > 1):
            obstacles[value] = found  # who names no image asks for none
    own = (cluster for cluster in desired.clusters.values() if cluster.environment == source)
    asked = frozenset(value for desired in own for value in values_in(desired.document()["spec"]))
    return replace(_edited(place, proofs, obstacles), asked=asked)


def _wanted(proof: Proof, target: _Target, held: Held) -> Obstacle | None:
    """Return why a proven value is not given to the target, None if it may be."""
    those = {name: cluster for name, cluster in target.clusters.items() if concerns(proof.what, cluster)}
    own = {name: value_of(proof.what, desired.document()["spec"]) for name, desired in those.items()}
    if not own:
        return Obstacle(HoldReason.EMPTY, target.name)
    if all(value == proof.value for value in own.values()):
        return Obstacle(HoldReason.SAME, target.name, (), proof.value.value)
    reason = held(proof.value)
    return Obstacle(reason, target.name, (), proof.value.value) if reason else None


def present_value(what: Promotable, environment: str, head: Head) -> Value:
    """Return what git has for an environment with a channel; raise InvalidManifest."""
    path, fields = versions_path(environment), CHANNELED[what]
    try:
        spec = plain_value(parse((head.text(path) or "").encode(), path), str)["spec"]
        return next(value for field in fields if (value := value_at(field, spec)))
    except (YamlError, LookupError, TypeError, StopIteration):
        raise InvalidManifest(f"{path} has no spec.{' and no spec.'.join(fields)}") from None


def _edited(target: _Target, proofs: list[Proof], obstacles: dict[Promotable, Obstacle]) -> Evaluation:
    """Return the file with the proven values, without those that change no cluster or cannot be written."""
    while proofs:
        try:
            texts = _with_values(target, proofs)
        except NotEditable as error:
            texts, wrong = {}, dict.fromkeys((e.what for e in proofs), _invalid(target, str(error)))
        else:
            after = target.head.resolved_with(sorted(target.clusters), texts)
            wrong = _wrong(target, proofs, after)
        if not wrong:
            takers = [name for name in after if _takes(name, target, proofs, after)]
            keepers = [
                name for name, cluster in after.items() if any(not _has(cluster, proof) for proof in proofs)
            ]
            own = tuple(sorted(takers)), tuple(sorted(keepers))
            return Evaluation(tuple(proofs), texts, *own, obstacles=obstacles)
        obstacles |= wrong
        proofs = [proof for proof in proofs if proof.what not in wrong]
    return Evaluation(obstacles=obstacles)


def _with_values(target: _Target, proofs: Sequence[Proof]) -> dict[str, str]:
    """Return the texts of the files that change."""
    texts = dict[str, str]()
    for proof in proofs:
        path, steps = target.place_of(proof.value)
        text = texts.get(path, target.texts[path])
        others = [other for other in PLATFORM_PATHS if other != proof.value.path]
        for other in others if proof.value.path in PLATFORM_PATHS else ():
            try:
                text = without(text, ["spec", "defaults", *other.split(".")])
            except NotEditable:
                continue  # the file does not have it
        texts[path] = with_value(text, steps, proof.value.value)
    return texts


def _wrong(
    target: _Target, proofs: Sequence[Proof], after: Mapping[str, object]
) -> dict[Promotable, Obstacle]:
    """Return why values are not given: as invalid, as taken by no cluster, or as a version that goes down."""
    invalid = sorted(name for name, cluster in after.items() if not isinstance(cluster, Desired))
    if invalid:
        problems = after[invalid[0]]
        first = problems[0] if isinstance(problems, tuple) and problems else None
        detail = f"{invalid[0]}: {first.field}: {first.message}" if first else invalid[0]
        return dict.fromkeys((proof.what for proof in proofs), _invalid(target, detail))
    wrong = dict[Promotable, Obstacle]()
    for proof in proofs:
        takers = [name for name in sorted(after) if _takes(name, target, [proof], after)]
        lowered = tuple(name for name in takers if _lowers(proof, target, name))
        if lowered:
            wrong[proof.what] = Obstacle(HoldReason.LOWER, target.name, lowered, proof.value.value)
        elif not takers:
            own = tuple(name for name in sorted(after) if not _has(after[name], proof))
            wrong[proof.what] = Obstacle(HoldReason.OWN, target.name, own)
    return wrong


def _invalid(target: _Target, detail: str) -> Obstacle:
    return Obstacle(HoldReason.INVALID, target.name, (), detail)


def _has(cluster: object, proof: Proof) -> bool:
    if not isinstance(cluster, Desired):
        return False
    same = value_of(proof.what, cluster.document()["spec"]) == proof.value
    return same or not concerns(proof.what, cluster)


def _takes(name: str, target: _Target, proofs: Sequence[Proof], after: Mapping[str, object]) -> bool:
    """Return whether a cluster gets one of the values."""
    return any(not _has(target.clusters[name], proof) and _has(after[name], proof) for proof in proofs)


def _lowers(proof: Proof, target: _Target, name: str) -> bool:
    before, record = value_of(proof.what, target.clusters[name].document()["spec"]), target.records.get(name)
    if proof.value.path == IMAGE_PATH:
        return before is not None and lower_image(proof.value.value, before.value)
    if proof.value.path in (EXTENSION_PATH, INSTANCE_PATH):
        same = before is not None and before.path == proof.value.path
        return same and numbers(proof.value.value) < numbers(before.value if before else "")
    if proof.value.path != VERSION_PATH:
        return False
    runs = record.running.kubernetes_version if record else ""
    return stays_newer(proof.value.value, before.value if before else "", runs)


def stored(target: str, ports: Ports, what: Promotable | None = None) -> Promotion:
    """Return the pull request to an environment, or that of its channel; a new one where none is stored."""
    return ports.state.promotion(target, what) or Promotion(target, what=what)


def note(promotion: Promotion, ports: Ports) -> None:
    """Save what is known of a pull request, if that is something new."""
    if promotion != ports.state.promotion(promotion.target, promotion.what):
        ports.state.save_promotion(promotion)


def _branch_to(promotion: Promotion, ports: Ports) -> OwnBranch[Promotion]:
    """Return its branch; two fleets may have one repository."""
    begins = CHANNELS[promotion.what] if promotion.what else PROMOTIONS
    return OwnBranch(f"{begins}{ports.config.fleet}/{promotion.target}", ports, ports.state.save_promotion)


@dataclass(frozen=True)
class GivenText:
    """What the pull request says, and the message of its commits."""

    commit: str
    pull: PullText


def held_by(promotion: Promotion, fleet: FleetRecord, value: Value) -> HoldReason | None:
    """Return what keeps automation from giving a value: the target gave it up, or somebody declined it."""
    had = next((values for values in fleet.rules.had if values.environment == promotion.target), None)
    lifted = {hold.value: hold.at for hold in promotion.lifted}
    if value in promotion.merged or (had is not None and had.withdrew(value, lifted.get(value))):
        return HoldReason.WITHDRAWN
    return HoldReason.DECLINED if value in promotion.declined else None


def seen(promotion: Promotion, ports: Ports) -> tuple[Promotion, Pull | None]:
    """Return a promotion with what became of its pull request, and that."""
    pull = ports.git_host.pull(promotion.number) if promotion.number else None
    if pull is None:
        return replace(promotion, values=()), None
    values = promotion.values
    after = replace(promotion, declined=declined_after(promotion.declined, values, pull))
    if pull.merged:
        merged = tuple(value for value in promotion.merged if value not in values)
        return replace(after, merged=(*merged, *values)[-KEPT:]), pull
    return after, pull


def give(
    promotion: Promotion, pull: Pull | None, found: Evaluation, text: GivenText, head: Head
) -> Promotion:
    """Open the pull request with what was found, or bring it up to date; return what is saved.

    What else was merged into a file that it changes is in its branch, too: otherwise the two conflict.
    """
    values, branch = tuple(proof.value for proof in found.proofs), _branch_to(promotion, head.ports)
    same = pull is not None and pull.open and promotion.values == values
    if not (same and branch.has(found.files)):
        try:
            for path, content in sorted(found.files.items()):
                promotion = branch.commit(promotion, File(path, content, text.commit), head)
        except SomebodyPushed as error:
            return branch.save(replace(promotion, problem=str(error)))
        promotion = branch.show(promotion, pull, text.pull)
    return branch.save(replace(promotion, values=values, problem=""))


def end(promotion: Promotion, pull: Pull | None, comment: str, ports: Ports) -> Promotion:
    """Close the pull request of what is given no longer, and delete the branch if it is ours."""
    branch = _branch_to(promotion, ports)
    promotion = branch.close(promotion, pull, comment)
    declined = pull is not None and not (pull.open or pull.merged) and bool(promotion.values)
    return promotion if declined else branch.delete(promotion, branch.tip(promotion))


def is_over(pull: Pull | None) -> bool:
    """Return whether nothing is proposed now: the pull request was merged, closed, or is none."""
    return pull is None or not pull.open


def refreshed(promotion: Promotion, comment: str, ports: Ports) -> None:
    """Note what became of a pull request, and delete the branch of one that was merged."""
    if not (promotion.values or promotion.commits):
        return
    after, pull = seen(promotion, ports)
    if pull is not None and pull.merged:
        after = replace(end(after, pull, comment, ports), values=())
    if after != promotion:
        ports.state.save_promotion(replace(after, digest=""))
