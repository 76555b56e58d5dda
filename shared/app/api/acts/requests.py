"""A cluster by request: the pull request that adds its folder, within what ``selfService`` allows.

Nothing exists before somebody merges it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

from shared.app.api import schema
from shared.app.api.access import INCLUDED, Principal
from shared.app.api.acts import Refusal, answers, operator, proposing
from shared.app.proposals.head import Head
from shared.app.proposals.own_pull import merged_by_host, open_asked, pull_text
from shared.app.pull_requests.markdown import code, prose, table
from shared.app.repository import read_blobs, read_files
from shared.cluster.failures.errors import Dependency
from shared.cluster.lifetime import REQUESTED_BY, REQUESTS
from shared.frozen import dataclass, replace
from shared.json_tree import digest_of
from shared.language.desired import Desired
from shared.language.model.change_windows import span_of
from shared.language.model.kinds import API_VERSION
from shared.language.model.self_service import PriceLimit, SelfServiceRule
from shared.language.resolve.repository_layout import cluster_path
from shared.masking import cut
from shared.plan.list_price import amount
from shared.ports import Ports, Pull, PullText
from shared.ports.pull_requests import AutoMerge
from shared.prices.monthly import Monthly, monthly
from shared.prices.price_file import Prices

log = logging.getLogger(__name__)

MAX_REASON = 500
LISTED = 100
"""So many open pull requests a host lists at most."""
WITHOUT_REASON = "say why in reason: whoever merges the pull request reads it"
WRONG = (
    'the body must be {"name": NAME, "class": CLASS, "lifetime": "8h", "reason": TEXT}, and may have '
    '"environment" and "location"'
)


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


@answers(201)
def request_cluster(
    asked: ClusterRequest, principal: Principal, ports: Ports, person: GitHubPerson | None = None
) -> schema.ClusterRequestReceipt:
    """Open the pull request that adds a cluster, or return the one that is open.

    A ``person`` asks by an issue, and has what rules say of GitHub. What a person may have is counted again
    once the pull request is open, with what was merged meanwhile: of two requests at the same moment, each
    that sees too many takes its own back. No pull request is merged by itself before that.
    """
    fleet = ports.state.fleet()
    pause = fleet.paused(ports.clock())
    if pause is not None:
        raise Refusal(409, f"no cluster is added by request now: {pause}")
    with proposing():
        head = Head(fleet, ports)
        who, path = slug(principal), cluster_path(asked.name)
        rule, environment = _allowed(asked, principal, person, head.self_service(), ports)
        manifest = _manifest(asked, environment, who)
        if asked.name in head.records or head.folder(asked.name):
            raise Refusal(409, f"there is a cluster {asked.name} already: choose another name")
        found = head.resolve(asked.name, manifest)
        if not isinstance(found, Desired):
            raise Refusal(409, f"the cluster would be invalid: {found}")
        branch = f"{_branches(who, ports)}{asked.name}-{digest_of(manifest)[:12]}"
        _check_others(found, branch, who, rule, head)
        text = _text(asked, environment, principal)
        pull = open_asked(branch, {path: manifest}, text, head, ports)
        try:
            unknown = _check_others(found, branch, who, rule, Head(fleet, ports))
        except Refusal as refusal:
            ports.git_host.close_pull(pull.number)
            ports.git_host.delete_branch(branch)
            raise Refusal(409, f"another request came at the same moment: {refusal}") from refusal
        merge, automatic = _merging(rule, unknown, pull, ports)
        ports.git_host.edit_pull(
            pull.number, replace(text, body=f"{text.body}\n\nWho merges it: {prose(merge)}.")
        )
    return {
        "cluster": asked.name,
        "environment": environment,
        "lifetime": asked.lifetime,
        "file": path,
        "pullRequest": pull.url,
        "autoMerge": automatic,
        "merge": merge,
        "by": operator(principal.name),
    }


@dataclass(frozen=True)
class OpenRequest:
    """A request whose pull request is open: its cluster, by whom it is, and the address."""

    cluster: str
    by: str
    url: str


def open_requests(ports: Ports) -> Sequence[OpenRequest]:
    """Return the requests of everybody that wait for a merge, of the newest open pull requests; two calls."""
    prefix = f"{REQUESTS}{ports.config.fleet}/"
    branches = {tip: own for own, tip in ports.git_host.branches(prefix).items()}
    pulls = [pull for pull in ports.git_host.open_pulls(ports.config.branch) if pull.head in branches]
    parts = [(branches[pull.head].removeprefix(prefix).partition("/"), pull.url) for pull in pulls]
    return [OpenRequest(name.rpartition("-")[0], by, url) for (by, _, name), url in parts]


def rules_for(principal: Principal, rules: Sequence[SelfServiceRule]) -> Sequence[SelfServiceRule]:
    """Return the rules by which somebody may ask, in one of their environments at least."""
    return [rule for rule in rules if any(not _of_roles(principal, name, rule) for name in rule.environments)]


def _merging(rule: SelfServiceRule, unknown: str, pull: Pull, ports: Ports) -> tuple[str, bool]:
    """Return who merges a pull request, and whether that is the host by itself."""
    if rule.merge == "person":
        return "a person, as selfService in fleet.yaml says", False
    if unknown:
        return f"a person, because its list price is {unknown}", False
    found = merged_by_host(pull, ports)
    return found.value, found in (AutoMerge.ENABLED, AutoMerge.MERGED)


def slug(principal: Principal) -> str:
    """Return who asked, as the value of a label and a part of a branch: see git-check-ref-format(1)."""
    named = (re.sub(r"[^A-Za-z0-9_.-]", "-", own)[:63].strip("-_.") for own in (principal.name, principal.id))
    return re.sub(r"\.(?=\.|lock$)", "-", next(filter(None, named), "somebody"))


def _allowed(
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
                "" if is_named(person, rule, ports) else "its github names neither you nor your team"
            )
        if not why:
            return rule, environment
    raise Refusal(
        403, f"no rule of selfService in fleet.yaml allows this; the last one says: {why}" if rules else why
    )


def _of_roles(principal: Principal, environment: str, rule: SelfServiceRule) -> str:
    roles = {role for own in principal.roles_in([environment]) for role in INCLUDED[own]}
    return f"it is for the roles {', '.join(rule.roles)}" if roles.isdisjoint(rule.roles) else ""


def is_named(person: GitHubPerson, rule: SelfServiceRule, ports: Ports) -> bool:
    """Return whether a rule names somebody, or a team of which somebody is a member; one call a team."""
    if person.login.lower() in {name.lower() for name in rule.github}:
        return True
    return any(_is_member(person, name, ports) for name in rule.github if "/" in name)


def _is_member(person: GitHubPerson, team: str, ports: Ports) -> bool:
    """Return whether somebody is a member of a team; nobody is of one that no longer exists."""
    try:
        members = ports.git_host.team_members(team)
    except Dependency as error:
        log.warning("nobody may ask for a cluster as a member of %s: %s", team, error)
        return False
    return members is not None and person.id in members


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


def _check_others(found: Desired, branch: str, who: str, rule: SelfServiceRule, head: Head) -> str:
    """Refuse more clusters of a person than a rule allows at once, with those of open pull requests.

    Refuse also what an open pull request asks for otherwise, and what is listed at too much. Return why the
    list price is not known, "" where it is, or has no limit. Where the host does not list all pull requests,
    every branch of the person counts as that of an open one. The newest commit of ``head`` is read last, so
    that what is merged in between counts.
    """
    name, prefix, host = found.name, _branches(who, head.ports), head.ports.git_host
    listed = host.open_pulls(head.ports.config.branch)
    opened = {pull.head for pull in listed}
    tips = {own: tip for own, tip in host.branches(prefix).items() if tip in opened or len(listed) >= LISTED}
    asked = {own: own.removeprefix(prefix).rpartition("-")[0] for own in tips}
    other = next((own for own in asked if asked[own] == name and own != branch), None)
    if other is not None:
        raise Refusal(409, f"the open pull request of {other} has another manifest: close it, then ask again")
    wanted = head.desired.clusters.items()
    in_git = {own: cluster for own, cluster in wanted if cluster.labels.get(REQUESTED_BY) == who}
    others = sorted(({*in_git, *asked.values()}) - {name})
    if len(others) >= rule.at_once:
        more = f"{who} has {', '.join(others)} by request, and may have {rule.at_once} at once"
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


def _branches(who: str, ports: Ports) -> str:
    return f"{REQUESTS}{ports.config.fleet}/{who}/"


def _manifest(asked: ClusterRequest, environment: str, who: str) -> str:
    """Return the file; in quotes, a name such as 123 or null is a text."""
    place = f'  location: "{asked.location}"\n' if asked.location else ""
    return f"""\
apiVersion: {API_VERSION}
kind: Cluster
metadata:
  name: "{asked.name}"
  labels: {{{REQUESTED_BY}: "{who}"}}
spec:
  class: "{asked.cluster_class}"
  environment: "{environment}"
{place}  lifetime: {asked.lifetime}
"""


def _text(asked: ClusterRequest, environment: str, principal: Principal) -> PullText:
    rows = [
        (code("class"), code(asked.cluster_class)),
        (code("environment"), code(environment)),
        (code("lifetime"), code(asked.lifetime)),
        *([(code("location"), code(asked.location))] if asked.location else []),
    ]
    reason = prose(cut(asked.reason, MAX_REASON))
    parts = [
        f"{prose(principal.name)} asks for the cluster {code(asked.name)}: {reason}",
        table(("what", "value"), rows),
        f"It adds {code(cluster_path(asked.name))} and nothing else, within {code('selfService')} of "
        f"{code('fleet.yaml')}. The comment of Roadstead has its plan.",
        "- **Merge** this to create the cluster. At its end another pull request removes it.\n"
        "- **Close** it to decline.",
    ]
    return pull_text(f"Add {asked.name}", parts)
