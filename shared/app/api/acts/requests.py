"""A cluster by request: the pull request that adds its folder, within what ``selfService`` allows.

Nothing exists before somebody merges it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from shared.app.api import schema
from shared.app.api.access import INCLUDED, Principal
from shared.app.api.acts import Refusal, answers, operator, proposing
from shared.app.proposals.head import Head
from shared.app.proposals.own_pull import open_asked, pull_text
from shared.app.pull_requests.markdown import code, prose, table
from shared.cluster.lifetime import REQUESTED_BY, REQUESTS
from shared.frozen import dataclass
from shared.json_tree import digest_of
from shared.language.desired import Desired
from shared.language.model.change_windows import span_of
from shared.language.model.kinds import API_VERSION
from shared.language.model.self_service import SelfServiceRule
from shared.language.resolve.repository_layout import cluster_path
from shared.masking import cut
from shared.ports import Ports, PullText

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


@answers(201)
def request_cluster(
    asked: ClusterRequest, principal: Principal, ports: Ports
) -> schema.ClusterRequestReceipt:
    """Open the pull request that adds a cluster, or return the one that is open."""
    fleet = ports.state.fleet()
    pause = fleet.paused(ports.clock())
    if pause is not None:
        raise Refusal(409, f"no cluster is added by request now: {pause}")
    with proposing():
        head = Head(fleet, ports)
        rule, environment = _allowed(asked, principal, head.self_service())
        who, path = slug(principal), cluster_path(asked.name)
        manifest = _manifest(asked, environment, who)
        if asked.name in head.records or head.folder(asked.name):
            raise Refusal(409, f"there is a cluster {asked.name} already: choose another name")
        found = head.resolve(asked.name, manifest)
        if not isinstance(found, Desired):
            raise Refusal(409, f"the cluster would be invalid: {found}")
        branch = f"{_branches(who, ports)}{asked.name}-{digest_of(manifest)[:12]}"
        _check_others(asked.name, branch, who, rule, head, ports)
        text = _text(asked, environment, principal)
        pull = open_asked(branch, {path: manifest}, text, head, ports)
    return {
        "cluster": asked.name,
        "environment": environment,
        "lifetime": asked.lifetime,
        "file": path,
        "pullRequest": pull.url,
        "by": operator(principal.name),
    }


def slug(principal: Principal) -> str:
    """Return who asked, as the value of a label and a part of a branch: see git-check-ref-format(1)."""
    named = (re.sub(r"[^A-Za-z0-9_.-]", "-", own)[:63].strip("-_.") for own in (principal.name, principal.id))
    return re.sub(r"\.(?=\.|lock$)", "-", next(filter(None, named), "somebody"))


def _allowed(
    asked: ClusterRequest, principal: Principal, rules: Sequence[SelfServiceRule]
) -> tuple[SelfServiceRule, str]:
    """Return the rule that allows a request, and its environment; refuse what none allows."""
    why = "selfService in fleet.yaml has no rule: nobody may have a cluster by request"
    for rule in rules:
        environment = asked.environment or rule.environments[0]
        why = _problem(asked, environment, principal, rule)
        if not why:
            return rule, environment
    raise Refusal(
        403, f"no rule of selfService in fleet.yaml allows this; the last one says: {why}" if rules else why
    )


def _problem(asked: ClusterRequest, environment: str, principal: Principal, rule: SelfServiceRule) -> str:
    roles = {role for own in principal.roles_in([environment]) for role in INCLUDED[own]}
    if roles.isdisjoint(rule.roles):
        return f"it is for the roles {', '.join(rule.roles)}"
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


def _check_others(name: str, branch: str, who: str, rule: SelfServiceRule, head: Head, ports: Ports) -> None:
    """Refuse more clusters of a person than a rule allows at once, with those of open pull requests.

    Refuse also what an open pull request asks for otherwise. Where the host does not list all pull requests,
    every branch of the person counts as that of an open one.
    """
    prefix, host = _branches(who, ports), ports.git_host
    listed = host.open_pulls(ports.config.branch)
    opened = {pull.head for pull in listed}
    branches = {
        own: own.removeprefix(prefix).rpartition("-")[0]
        for own, tip in host.branches(prefix).items()
        if tip in opened or len(listed) >= LISTED
    }
    other = next((own for own, asked in branches.items() if asked == name and own != branch), None)
    if other is not None:
        raise Refusal(409, f"the open pull request of {other} has another manifest: close it, then ask again")
    wanted = head.desired.clusters.items()
    names = {own for own, cluster in wanted if cluster.labels.get(REQUESTED_BY) == who}
    others = sorted((names | {*branches.values()}) - {name})
    if len(others) >= rule.at_once:
        more = f"{who} has {', '.join(others)} by request, and may have {rule.at_once} at once"
        raise Refusal(409, f"{more}: remove one, or close its pull request and delete its branch")


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
