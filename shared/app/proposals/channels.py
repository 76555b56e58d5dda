"""Proposes the versions of Kubernetes that channels have: one pull request for an environment at most.

What AKS offers is read for the regions of the environment's clusters. Promotions carry a version on from
there. A version that somebody declined, or took back, is proposed by nobody again. All messages are of the
session of proposals.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from shared.app.offers import versions_in
from shared.app.proposals.evaluation import with_version
from shared.app.proposals.given import GivenText, end, give, held_by, is_over, refreshed, seen
from shared.app.proposals.head import Head
from shared.app.proposals.own_pull import OwnBranch
from shared.app.proposals.texts import (
    NO_NEWER,
    ProposedVersion,
    channel_commit_text,
    channel_over_text,
    channel_text,
)
from shared.azure.availability.channels import Offered, Step, following, unknown
from shared.cluster.divergence.drift import VERSIONS
from shared.cluster.failures.errors import InvalidManifest, Terminal, Unreadable
from shared.cluster.findings.readiness import readiness_of
from shared.cluster.reporting.summary import ClusterSummary
from shared.json_tree import digest_of
from shared.language.resolve.repository_layout import environment_path, versions_path
from shared.language.yaml.nodes import plain_value
from shared.language.yaml.parser import YamlError, parse
from shared.ports import Ports
from shared.ports.state import Promotion
from shared.promotions import VERSION_PATH, ChannelRule, Obstacle, Value, describe
from shared.resource_ids import RegionId

log = logging.getLogger(__name__)


def follow_channels(number: int, summaries: Sequence[ClusterSummary], head: Head, ports: Ports) -> None:
    """Bring the pull requests of all channels up to date.

    ``number`` is a pull request that somebody closed or reopened, 0 for none.
    """
    rules = {rule.environment: rule for rule in head.fleet.rules.channels}
    left = (pull.target for pull in ports.state.channel_pulls() if pull.target not in rules)
    for environment in (*rules, *left):
        try:
            known = _stored(environment, ports)
            if known.number == number:
                refreshed(known, channel_over_text(NO_NEWER), _branch_to(environment, ports), ports)
                known = _stored(environment, ports)
            if environment in rules:
                places = {_place(found) for found in summaries if _is_of(environment, found)}
                _follow(rules[environment], known, sorted(places), head)
            else:
                _leave(known, head)
        except Terminal as error:  # of this environment alone
            log.warning("no version is proposed to %s: %s: %s", environment, error.kind, error)
            _note(replace(_stored(environment, ports), digest="", problem=f"{error.kind}: {error}"), ports)
        except Unreadable as error:
            log.warning("no version is proposed to %s: %s", environment, error)


def _follow(rule: ChannelRule, known: Promotion, places: Sequence[RegionId], head: Head) -> None:
    """Open, update or close the pull request of an environment, whose clusters are in these places.

    What Azure offers is all that is read where neither that nor git has changed since. While that is unknown,
    or files are invalid, the pull request stays as it is.
    """
    ports, fleet = head.ports, head.fleet
    today, offers = ports.clock().date(), _offers(places, ports)
    unsaid = unknown(rule.channel, offers)
    if unsaid:
        _note(replace(known, digest="", problem=unsaid), ports)
        return
    listed = [sorted(offer) for offer in offers.values()]
    digest = digest_of([repr(rule), fleet.commit, today.isoformat(), listed])
    if known.digest == digest:
        return
    pull_of, pull = seen(replace(known, source=rule.channel), ports)
    if head.commit != fleet.commit:  # what was taken back with it is not noted before its plan
        return
    present = present_version(rule.environment, head)
    step = following(rule.channel, present, offers.values(), today, rule.pace)
    branch, over, problem, stays = _branch_to(rule.environment, ports), NO_NEWER, "", False
    if step is not None:
        value = Value(VERSION_PATH, step.version)
        held, found = held_by(pull_of, fleet, value), with_version(step.version, rule.environment, head)
        if found.proofs and held is None:
            proposed = _proposed(rule, present, step, found.takers, found.keepers, head)
            text = GivenText(channel_commit_text(proposed), channel_text(proposed))
            pull_of = give(replace(pull_of, asked=ports.clock()), pull, found, text, head, branch)
            _note(replace(pull_of, digest=digest), ports)
            return
        obstacles = [*found.obstacles.values()]
        if held is not None:
            obstacles = [Obstacle(held, rule.environment, (), step.version)]
        over = problem = "; ".join(describe("version", obstacle) for obstacle in obstacles)
        stays = held is None and found.blocked and not is_over(pull)
    if not stays and (not is_over(pull) or pull_of.commits):
        pull_of = end(pull_of, pull, channel_over_text(over), branch)
    _note(replace(pull_of, digest=digest, problem=problem), ports)


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
        after = end(after, pull, over, _branch_to(known.target, head.ports))
    values = () if pull is None or pull.merged else after.values
    _note(replace(after, values=values, digest="", problem=""), head.ports)


def _is_of(environment: str, summary: ClusterSummary) -> bool:
    return summary.place.environment == environment and not summary.place.attached


def _place(summary: ClusterSummary) -> RegionId:
    return RegionId(summary.place.subscription.lower(), summary.place.location.lower())


def _offers(places: Sequence[RegionId], ports: Ports) -> Mapping[RegionId, Offered]:
    """Return what each of these regions offers, nothing where Azure did not say."""
    return {place: offered or {} for place, offered in sorted(versions_in(places, ports).items())}


def _stored(environment: str, ports: Ports) -> Promotion:
    return ports.state.channel_pull(environment) or Promotion(environment)


def present_version(environment: str, head: Head) -> str:
    """Return the version that git has for an environment with a channel; raise InvalidManifest."""
    path = versions_path(environment)
    try:
        spec = plain_value(parse((head.text(path) or "").encode(), path), str, {})["spec"]
        return str(spec[VERSION_PATH])
    except (YamlError, LookupError, TypeError):
        raise InvalidManifest(f"{path} has no spec.{VERSION_PATH}") from None


def _proposed(
    rule: ChannelRule, present: str, step: Step, takers: Sequence[str], keepers: Sequence[str], head: Head
) -> ProposedVersion:
    """Return what the pull request is about, with what is stored of the readiness of its clusters."""
    ports, records = head.ports, head.records
    known = ports.state.readiness([name for name in takers if name in records])
    ready: dict[str, str] = {}
    for name in sorted(known):
        record, last = records[name], known[name].of(records[name].uid)
        if last.seen is not None:
            found = readiness_of(record, last.seen, last.room, step.version, ports.clock())
            ready[name] = f"{found.state.value}{found.first and f': {found.first}'}"
    return ProposedVersion(
        rule.environment, rule.channel, present, step.version, step.why, (*takers,), (*keepers,), ready
    )


def _branch_to(environment: str, ports: Ports) -> OwnBranch[Promotion]:
    name = f"{VERSIONS}{ports.config.fleet}/{environment}"
    return OwnBranch(name, ports, ports.state.save_channel_pull)


def _note(pull: Promotion, ports: Ports) -> None:
    """Save what is known, if that is something new."""
    if pull != ports.state.channel_pull(pull.target):
        ports.state.save_channel_pull(pull)
