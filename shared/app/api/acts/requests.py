"""A cluster by request: the pull request that adds its folder, within what ``selfService`` allows.

Nothing exists before somebody merges it.
"""

from __future__ import annotations

from collections.abc import Sequence

from shared.app.api import schema
from shared.app.api.access import Principal
from shared.app.api.acts import Refusal, answers, proposing
from shared.app.api.acts.request_limits import (
    ClusterRequest,
    GitHubPerson,
    Requester,
    allowed,
    branches_of,
    check_others,
    check_quotas,
    requester,
)
from shared.app.proposals.head import Head
from shared.app.proposals.own_pull import merged_by_host, open_asked, pull_text
from shared.app.pull_requests.markdown import code, prose, table
from shared.cluster.lifetime import REQUESTED_BY, REQUESTED_BY_ID, REQUESTS
from shared.frozen import dataclass, replace
from shared.json_tree import digest_of
from shared.language.desired import Desired
from shared.language.model.fleet_rules import SelfServiceRule
from shared.language.model.kinds import API_VERSION
from shared.language.resolve.repository_layout import cluster_path
from shared.ports import Ports, Pull, PullText
from shared.ports.pull_requests import AutoMerge


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
        who, path = requester(principal), cluster_path(asked.name)
        rule, environment = allowed(asked, principal, person, head.self_service(), ports)
        manifest = _manifest(asked, environment, who)
        if asked.name in head.records or head.folder(asked.name):
            raise Refusal(409, f"there is a cluster {asked.name} already: choose another name")
        found = head.resolve(asked.name, manifest)
        if not isinstance(found, Desired):
            unnamed = bool(rule.locations) and not asked.location
            hint = f"; a request may name the location: {', '.join(rule.locations)}" if unnamed else ""
            raise Refusal(409, f"the cluster would be invalid: {found}{hint}")
        branch = f"{branches_of(who, ports)}{who.name}/{asked.name}-{digest_of(manifest)[:12]}"
        check_others(found, branch, who, rule, head)
        check_quotas(found, head)
        text = _text(asked, environment, principal)
        pull = open_asked(branch, {path: manifest}, text, head, ports)
        try:
            unknown = check_others(found, branch, who, rule, Head(fleet, ports))
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
        "by": principal.name,
    }


@dataclass(frozen=True)
class OpenRequest:
    """A request whose pull request is open: its cluster, by whom it is, and the address."""

    cluster: str
    by: Requester
    url: str


def open_requests(ports: Ports) -> Sequence[OpenRequest]:
    """Return the requests of everybody that wait for a merge, of the newest open pull requests; two calls."""
    prefix = f"{REQUESTS}{ports.config.fleet}/"
    branches = {tip: own for own, tip in ports.git_host.branches(prefix).items()}
    pulls = [pull for pull in ports.git_host.open_pulls(ports.config.branch) if pull.head in branches]
    parts = [(branches[pull.head].removeprefix(prefix).split("/"), pull.url) for pull in pulls]
    return [
        OpenRequest(own[2].rpartition("-")[0], Requester(own[0], own[1]), url)
        for own, url in parts
        if len(own) == 3
    ]


def _merging(rule: SelfServiceRule, unknown: str, pull: Pull, ports: Ports) -> tuple[str, bool]:
    """Return who merges a pull request, and whether that is the host by itself."""
    if rule.merge == "person":
        return "a person, as selfService in fleet.yaml says", False
    if unknown:
        return f"a person, because its list price is {unknown}", False
    found = merged_by_host(pull, ports)
    return found.value, found in (AutoMerge.ENABLED, AutoMerge.MERGED)


def _manifest(asked: ClusterRequest, environment: str, who: Requester) -> str:
    """Return the file; in quotes, a name such as 123 or null is a text."""
    place = f'  location: "{asked.location}"\n' if asked.location else ""
    return f"""\
apiVersion: {API_VERSION}
kind: Cluster
metadata:
  name: "{asked.name}"
  labels: {{{REQUESTED_BY}: "{who.name}", {REQUESTED_BY_ID}: "{who.account}"}}
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
    reason = prose(asked.reason)
    parts = [
        f"{prose(principal.name)} asks for the cluster {code(asked.name)}: {reason}",
        table(("what", "value"), rows),
        f"It adds {code(cluster_path(asked.name))} and nothing else, within {code('selfService')} of "
        f"{code('fleet.yaml')}. The comment of Roadstead has its plan.",
        "- **Merge** this to create the cluster. At its end another pull request removes it.\n"
        "- **Close** it to decline.",
    ]
    return pull_text(f"Add {asked.name}", parts)
