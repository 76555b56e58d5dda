"""Proposes what channels have, of Kubernetes, node images and Flux: a pull request for each at most.

What Azure offers is read for the regions of the environment's clusters, and what the Flux Operator has from
its artifact. Promotions carry a version on from there. A version that somebody declined, or took back, is
proposed by nobody again. All messages are of the session of proposals.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date

from shared.app.offers import extensions_in, flux_in, newest_images, versions_in
from shared.app.proposals.evaluation import (
    Evaluation,
    GivenText,
    channeled,
    end,
    give,
    held_by,
    is_over,
    note,
    present_value,
    refreshed,
    seen,
    stored,
)
from shared.app.proposals.head import Head
from shared.app.proposals.texts import (
    NO_NEWER,
    ProposedVersion,
    channel_commit_text,
    channel_over_text,
    channel_text,
)
from shared.azure.availability.channels import (
    EXTENSION,
    Known,
    VersionStep,
    fixed,
    following,
    following_extension,
    following_image,
    following_patch,
    release_of_image,
    release_of_kubernetes,
    supported,
    unknown,
)
from shared.cluster.failures.errors import ReconcileError, Terminal, Unreadable
from shared.cluster.findings.readiness import readiness_of
from shared.cluster.reporting.summary import ClusterSummary
from shared.frozen import dataclass, replace
from shared.json_tree import digest_of
from shared.kubernetes_versions import image_version
from shared.language.resolve.repository_layout import environment_path
from shared.ports import Ports
from shared.ports.azure import GetPoolUpgradeProfile
from shared.ports.state import Promotion
from shared.promotions import ChannelRule, Obstacle, Promotable, Value, describe
from shared.resource_ids import RegionId

log = logging.getLogger(__name__)

KINDS = 5
"""Of so many kinds of images the vulnerabilities are asked."""


@dataclass(frozen=True)
class _Offer:
    """What there is for an environment: ``listed`` as values, and ``silence`` why that is unknown."""

    silence: str
    listed: Sequence[object]
    step: Callable[[str, date], VersionStep | None]
    releases: Callable[[str], Mapping[str, str]]
    """The releases of a version in the vulnerability data of AKS, by what they are of."""


def follow_channels(number: int, summaries: Sequence[ClusterSummary], head: Head, ports: Ports) -> None:
    """Bring the pull requests of all channels up to date.

    ``number`` is a pull request that somebody closed or reopened, 0 for none.
    """
    rules = {(rule.environment, rule.what): rule for rule in head.fleet.rules.channels}
    known = ((pull.target, pull.what) for pull in ports.state.promotions())
    left = [(target, what) for target, what in known if what is not None and (target, what) not in rules]
    if any(what is Promotable.IMAGES for _, what in rules):
        summaries = ports.state.summaries(details=True)
    for environment, what in (*rules, *left):
        try:
            pull = stored(environment, ports, what)
            if pull.number == number:
                refreshed(pull, channel_over_text(NO_NEWER), ports)
                pull = stored(environment, ports, what)
            rule = rules.get((environment, what))
            if rule is None:
                _leave(pull, head)
            else:
                _follow(rule, pull, _offer(rule, summaries, ports), head)
        except Terminal as error:  # of this environment alone
            log.warning("nothing is proposed to %s: %s: %s", environment, error.kind, error)
            problem = f"{error.kind}: {error}"
            note(replace(stored(environment, ports, what), digest="", problem=problem), ports)
        except Unreadable as error:
            log.warning("nothing is proposed to %s: %s", environment, error)


def _follow(rule: ChannelRule, known: Promotion, offer: _Offer, head: Head) -> None:
    """Open, update or close the pull request of an environment.

    What Azure offers is all that is read where neither that nor git has changed since. While that is unknown,
    or files are invalid, the pull request stays as it is.
    """
    ports, fleet = head.ports, head.fleet
    if offer.silence:
        note(replace(known, digest="", problem=offer.silence), ports)
        return
    today = ports.clock().date()
    digest = digest_of([repr(rule), fleet.commit, today.isoformat(), *offer.listed])
    if known.digest == digest:
        return
    pull_of, pull = seen(replace(known, source=rule.channel), ports)
    if head.commit != fleet.commit:  # what was taken back with it is not noted before its plan
        return
    present = present_value(rule.what, rule.environment, head)
    step = offer.step(present.value, today)
    over, problem, stays = NO_NEWER, "", False
    if step is not None:
        value = Value(present.path, step.version)
        held, found = held_by(pull_of, fleet, value), channeled(rule.what, value, rule.environment, head)
        if found.proofs and held is None:
            proposed = _proposed(rule, present, step, found, head)
            proposed = replace(proposed, fixes=_fixes(offer, present.value, step.version, ports))
            text = GivenText(channel_commit_text(proposed), channel_text(proposed))
            pull_of = give(replace(pull_of, asked=ports.clock()), pull, found, text, head)
            note(replace(pull_of, digest=digest), ports)
            return
        obstacles = [*found.obstacles.values()]
        if held is not None:
            obstacles = [Obstacle(held, rule.environment, (), step.version)]
        over = problem = "; ".join(describe(rule.what.value, obstacle) for obstacle in obstacles)
        stays = held is None and found.blocked and not is_over(pull)
    if not stays and (not is_over(pull) or pull_of.commits):
        pull_of = end(pull_of, pull, channel_over_text(over), ports)
    note(replace(pull_of, digest=digest, problem=problem), ports)


def _leave(known: Promotion, head: Head) -> None:
    """End the pull request of an environment without a channel of its own; hold while its file is invalid."""
    if not (known.values or known.commits) or head.commit != head.fleet.commit:
        return
    invalid = known.target not in head.desired.environments
    if invalid and head.text(environment_path(known.target)) is not None:
        return
    after, pull = seen(known, head.ports)
    if not is_over(pull) or after.commits:
        over = channel_over_text("the environment follows no channel itself")
        after = end(after, pull, over, head.ports)
    values = () if pull is None or pull.merged else after.values
    note(replace(after, values=values, digest="", problem=""), head.ports)


def _offer(rule: ChannelRule, summaries: Sequence[ClusterSummary], ports: Ports) -> _Offer:
    """Return what counts for a rule: for its environment, and of images also for those onward."""
    if rule.what is Promotable.IMAGES:
        return _images(rule, summaries, ports)
    if rule.artifacts:
        return _distributions(rule, ports)
    places, channel = (
        sorted({_place(own) for own in summaries if _is_of((rule.environment,), own)}),
        rule.channel,
    )
    if rule.what is Promotable.COMPONENTS:
        found = extensions_in(places, ports)
        return _Offer(
            unknown(EXTENSION, channel, found),
            [sorted(listed) for listed in found.values()],
            lambda present, _: following_extension(channel, present, found.values()),
            lambda _: {},
        )
    offers = {place: supported(channel, offer or {}) for place, offer in versions_in(places, ports).items()}
    return _Offer(
        unknown("Kubernetes", channel, offers),
        [sorted(offer) for offer in offers.values()],
        lambda present, today: following(channel, present, offers.values(), today, rule.pace),
        lambda version: {"Kubernetes": release_of_kubernetes(version)},
    )


def _distributions(rule: ChannelRule, ports: Ports) -> _Offer:
    found = [flux_in(artifact, ports) for artifact in rule.artifacts]
    silence = "; ".join(unread for unread in found if isinstance(unread, str))
    lists = [listed for listed in found if not isinstance(listed, str)]
    listed = [sorted(versions) for versions in lists]
    return _Offer(silence, listed, lambda present, _: following_patch(present, lists), lambda _: {})


def _images(rule: ChannelRule, summaries: Iterable[ClusterSummary], ports: Ports) -> _Offer:
    among = (rule.environment, *rule.onward)
    pools = _pools([found for found in summaries if _is_of(among, found)], ports)
    newest = newest_images([*pools.values()], ports)
    silent = sorted({place.location for (place, _), pool in pools.items() if newest[pool] is None})
    silence = f"Azure does not say which node image is the newest in {', '.join(silent)}" if silent else ""
    if not pools:
        silence = "no cluster of the environment is known to have a node image of Linux"
    images = sorted({image for image in newest.values() if image is not None})
    kinds = sorted({kind for _, kind in pools})[:KINDS]
    return _Offer(
        silence,
        images,
        lambda present, _: following_image(present, images),
        lambda version: {kind: release_of_image(kind, version) for kind in kinds},
    )


def _pools(
    summaries: Iterable[ClusterSummary], ports: Ports
) -> Mapping[tuple[RegionId, str], GetPoolUpgradeProfile]:
    """Return a node pool to ask about each kind of image of a region: AKSUbuntu-2204gen2containerd."""
    examples = dict[tuple[RegionId, str], str]()
    for summary in summaries:
        for image in summary.details.images:
            if image_version(image):
                examples.setdefault((_place(summary), image.rpartition("-")[0]), summary.name)
    records = {record.name: record for record in ports.state.clusters_named(sorted({*examples.values()}))}
    found = dict[tuple[RegionId, str], GetPoolUpgradeProfile]()
    for (place, kind), name in examples.items():
        record = records.get(name)
        running = record.observation.running if record else None
        if record is None or running is None:
            continue
        in_azure = {pool: name for name, pool in running.renamed.items()}
        for pool, versions in sorted(running.pools.items()):
            if versions.image.startswith(f"{kind}-"):
                call = GetPoolUpgradeProfile(record.desired.id, in_azure.get(pool, pool))
                found.setdefault((place, kind), call)
    return found


def _is_of(environments: Collection[str], summary: ClusterSummary) -> bool:
    return summary.place.environment in environments and not summary.place.attached


def _place(summary: ClusterSummary) -> RegionId:
    return RegionId(summary.place.subscription.lower(), summary.place.location.lower())


def _proposed(
    rule: ChannelRule, present: Value, step: VersionStep, found: Evaluation, head: Head
) -> ProposedVersion:
    """Return what the pull request is about, with what is stored of the readiness of its clusters."""
    ports, records, takers = head.ports, head.records, found.takers
    known = ports.state.readiness([name for name in takers if name in records])
    goal = step.version if rule.what is Promotable.VERSION else ""
    ready: dict[str, str] = {}
    for name in sorted(known):
        record, last = records[name], known[name].of(records[name].uid)
        if last.seen is not None:
            read = readiness_of(record, last.seen, last.room, goal, ports.clock())
            ready[name] = f"{read.state.value}{read.first and f': {read.first}'}"
    return ProposedVersion(rule, present, step, (*takers,), (*found.keepers,), ready)


def _fixes(offer: _Offer, present: str, wanted: str, ports: Ports) -> Mapping[str, str]:
    """Return what a version fixes of another one, by what it is of; it decides nothing."""
    before, after = offer.releases(present), offer.releases(wanted)
    names = sorted({*before.values(), *after.values()} - {""})
    known = dict(zip(names, ports.together(lambda name: _active(name, ports), names), strict=True))
    unlisted = "AKS publishes nothing of it"
    return {of: fixed(known.get(before[of], unlisted), known.get(after[of], unlisted)) for of in after}


def _active(release: str, ports: Ports) -> Known:
    try:
        found = ports.services.vulnerabilities.active(release)
    except ReconcileError as error:
        log.warning("the vulnerabilities of %s are not known: %s: %s", release, error.kind, error)
        return f"{error.kind}: {error}"
    return f"AKS publishes nothing of {release}" if found is None else found
