"""What a person may have by request: whom rules name, how many clusters, at which price, within the quotas.

A person is an account: the label ``requested-by-id`` and the branches of requests have its id, which no
rename changes. The label ``requested-by`` is for people to read.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

from shared.app.api.access import INCLUDED, Principal
from shared.app.api.acts import Refusal
from shared.app.proposals.head import Head
from shared.app.repository import read_blobs, read_files
from shared.cluster.failures.errors import Dependency
from shared.cluster.lifetime import REQUESTED_BY_ID, REQUESTS
from shared.frozen import dataclass
from shared.language.desired import Desired
from shared.language.model.change_windows import span_of
from shared.language.model.fleet_rules import PriceLimit, SelfServiceRule
from shared.language.resolve.repository_layout import cluster_path
from shared.plan.list_price import amount
from shared.ports import Ports
from shared.prices.monthly import Monthly, monthly
from shared.prices.price_file import Prices

log = logging.getLogger(__name__)

LISTED = 100
"""So many open pull requests a host lists at most."""


@dataclass(frozen=True)
class ClusterRequest:
    """What somebody asks for; ``environment`` and ``location`` are "" where they name none."""

    name: str
    cluster_class: str
    lifetime: str
    environment: str
    location: str
    reason: str


@dataclass(frozen=True)
class GitHubPerson:
    """Who opened an issue, by the login and the id of the account."""

    login: str
    id: int


@dataclass(frozen=True)
class Requester:
    """Who asks, as values of labels and parts of a branch: the id of the account, and its name of now."""

    account: str
    name: str


def requester(principal: Principal) -> Requester:
    """Return who asks: see git-check-ref-format(1)."""
    account = _as_label(principal.id) or "somebody"
    return Requester(account, _as_label(principal.name) or account)


def _as_label(text: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_.-]", "-", text)[:63].strip("-_.")
    return re.sub(r"\.(?=\.|lock$)", "-", plain)


def rules_for(principal: Principal, rules: Sequence[SelfServiceRule]) -> Sequence[SelfServiceRule]:
    """Return the rules by which somebody may ask, in one of their environments at least."""
    return [rule for rule in rules if any(not _of_roles(principal, name, rule) for name in rule.environments)]


def allowed(
    asked: ClusterRequest,
    principal: Principal,
    person: GitHubPerson | None,
    rules: Sequence[SelfServiceRule],
    ports: Ports,
) -> tuple[SelfServiceRule, str]:
    """Return the rule that allows a request, and its environment; refuse what none allows."""
    why = "selfService in fleet.yaml has no rule: nobody may have a cluster by request"
    for rule in rules:
        environment = asked.environment or rule.environments[0]
        why = _problem(asked, environment, rule)
        if person is None:
            why = _of_roles(principal, environment, rule) or why
        else:
            why = why or (
                "" if named([person], [rule], ports) else "its github names neither you nor your team"
            )
        if not why:
            return rule, environment
    raise Refusal(
        403, f"no rule of selfService in fleet.yaml allows this; the last one says: {why}" if rules else why
    )


def _of_roles(principal: Principal, environment: str, rule: SelfServiceRule) -> str:
    roles = {role for own in principal.roles_in([environment]) for role in INCLUDED[own]}
    return f"it is for the roles {', '.join(rule.roles)}" if roles.isdisjoint(rule.roles) else ""


def named(
    people: Sequence[GitHubPerson], rules: Sequence[SelfServiceRule], ports: Ports
) -> frozenset[GitHubPerson]:
    """Return whom a rule names, or a team of which they are members; one call a team where it matters."""
    names = {name.lower() for rule in rules for name in rule.github}
    found = {person for person in people if person.login.lower() in names}
    for team in sorted(name for name in names if "/" in name):
        others = {*people} - found
        members = _members(team, ports) if others else frozenset()
        found |= {person for person in others if person.id in members}
    return frozenset(found)


def _members(team: str, ports: Ports) -> frozenset[int]:
    """Return the members of a team; nobody is one of a team that no longer exists."""
    try:
        return ports.git_host.team_members(team) or frozenset()
    except Dependency as error:
        log.warning("nobody may ask for a cluster as a member of %s: %s", team, error)
        return frozenset()


def _problem(asked: ClusterRequest, environment: str, rule: SelfServiceRule) -> str:
    if asked.cluster_class not in rule.classes:
        return f"it is for the classes {', '.join(rule.classes)}"
    if environment not in rule.environments:
        return f"it is for the environments {', '.join(rule.environments)}"
    if asked.location and asked.location not in rule.locations:
        named = ", ".join(rule.locations)
        return f"it is for the regions {named}" if named else "a request names no location"
    if span_of(asked.lifetime) > span_of(rule.max_lifetime):
        return f"a cluster lasts {rule.max_lifetime} at most"
    return ""


def check_others(found: Desired, branch: str, who: Requester, rule: SelfServiceRule, head: Head) -> str:
    """Refuse more clusters of a person than a rule allows at once, with those of open pull requests.

    Refuse also what an open pull request asks for otherwise, and what is listed at too much. Return why the
    list price is not known, "" where it is, or has no limit. Where the host does not list all pull requests,
    every branch of the person counts as that of an open one. The newest commit of ``head`` is read last, so
    that what is merged in between counts.
    """
    name, prefix, host = found.name, branches_of(who, head.ports), head.ports.git_host
    listed = host.open_pulls(head.ports.config.branch)
    opened = {pull.head for pull in listed}
    tips = {own: tip for own, tip in host.branches(prefix).items() if tip in opened or len(listed) >= LISTED}
    asked = {own: own.rpartition("/")[2].rpartition("-")[0] for own in tips}
    other = next((own for own in asked if asked[own] == name and own != branch), None)
    if other is not None:
        raise Refusal(409, f"the open pull request of {other} has another manifest: close it, then ask again")
    wanted = head.desired.clusters.items()
    in_git = {own: cluster for own, cluster in wanted if cluster.labels.get(REQUESTED_BY_ID) == who.account}
    others = sorted(({*in_git, *asked.values()}) - {name})
    if len(others) >= rule.at_once:
        more = f"{who.name} has {', '.join(others)} by request, and may have {rule.at_once} at once"
        raise Refusal(409, f"{more}: remove one, or close its pull request and delete its branch")
    if rule.price_limit.person is None:
        return _check_price(found, {}, rule.price_limit, head)
    proposed = {asked[own]: _proposed(asked[own], tip, head) for own, tip in tips.items() if own != branch}
    return _check_price(found, {**proposed, **in_git}, rule.price_limit, head)


def _proposed(name: str, commit: str, head: Head) -> Desired | None:
    """Return the cluster of an open pull request, None for one that is not valid here."""
    blob = read_files(commit, head.ports).blobs.get(cluster_path(name))
    if blob is None:
        return None
    text = read_blobs(commit, {cluster_path(name): blob}, head.ports)[blob]
    found = head.resolve(name, text.decode(errors="replace"))
    return found if isinstance(found, Desired) else None


def _check_price(found: Desired, others: Mapping[str, Desired | None], limit: PriceLimit, head: Head) -> str:
    """Refuse a cluster that is listed at more than a limit; return why that is not known, "" where it is."""
    if limit.cluster is None and limit.person is None:
        return ""
    prices = head.prices()
    if isinstance(prices, str):
        return prices
    own = _listed(found, prices)
    counted = [own]
    if limit.cluster is not None and own.high > limit.cluster:
        at, most = (
            amount(float(value), prices.currency, signed=False) for value in (own.high, limit.cluster)
        )
        raise Refusal(403, f"{found.name} is listed at {at} a month, and one cluster may be at {most}")
    if limit.person is not None:
        unread = sorted(name for name, other in others.items() if other is None)
        if unread:
            return f"not known: the manifest of {unread[0]} is not valid"
        counted += [_listed(other, prices) for other in others.values() if other is not None]
        total = sum((price.high for price in counted), Decimal())
        if total > limit.person:
            at, most = (
                amount(float(value), prices.currency, signed=False) for value in (total, limit.person)
            )
            with_it = f"with {found.name} your clusters by request are listed at {at} a month"
            raise Refusal(409, f"{with_it}, and may be at {most}: remove one")
    gaps = [gap for price in counted for gap in (*price.missing, *price.left_out)]
    return f"not known whole: {gaps[0]}" if gaps else ""


def _listed(desired: Desired, prices: Prices) -> Monthly:
    """Return the list price of a cluster that is always awake: hours asleep make it no larger."""
    return monthly(desired.spec.model_copy(update={"sleep": None}), prices)


def check_quotas(found: Desired, head: Head) -> None:
    """Refuse what a plan would refuse of a new cluster: beyond a quota, or what another one has."""
    problem = head.refused(found)
    if problem:
        raise Refusal(409, problem)


def branches_of(who: Requester, ports: Ports) -> str:
    """Return how the names of the branches of somebody's requests begin."""
    return f"{REQUESTS}{ports.config.fleet}/{who.account}/"
