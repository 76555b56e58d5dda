"""Approvals by somebody else: who wrote the removal of a cluster, or its rebuild, does not approve it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import takewhile

from shared.fleet.resolve.repository_layout import CLUSTERS
from shared.jobs.failures.errors import ReconcileError
from shared.pipeline.http_result import HttpResult, rejected
from shared.ports import Ports

CHANGES = 20
"""As many of the newest changes of a manifest are searched for the author of a rebuild."""
MOST = 50
"""How many deletes one approval can have while their authors are read, each with a call to GitHub."""
GITHUB, HIDDEN = "noreply@github.com", "@users.noreply.github.com"
"""The committer of what GitHub's pages merge, and the end of an address that hides one (docs.github.com,
"Setting your commit email address")."""
BOTS = (f"[bot]{HIDDEN}", f"+copilot{HIDDEN}")
"""The ends of the addresses of GitHub Apps, which are nobody who approves: no login of a person has brackets.

That of Copilot has none either. It is a co-author, as 223556219+Copilot, of what its tools helped with, and
writes by itself as 198982749+Copilot; GitHub shows the login as one of the type Bot.
"""


def refused_by_authors(
    commit: str, deletes: Sequence[str], rebuilds: Collection[str], addresses: frozenset[str], ports: Ports
) -> HttpResult | None:
    """Return the refusal of an approval by somebody who removed one of the clusters, None for no refusal.

    ``rebuilds`` are the clusters of ``deletes`` that are created again, ``addresses`` those of the approver.
    """
    if len(deletes) > MOST:
        return rejected(409, f"with APPROVAL_BY_OTHERS an approval has at most {MOST} deletes; remove fewer")
    for name in deletes:
        try:
            authors = _authors(commit, name, ports, rebuilds=name in rebuilds)
        except ReconcileError as error:
            return rejected(502, f"the authors of the removal of {name} could not be read: {error}")
        problem = why_not(name, addresses, authors)
        if problem:
            return rejected(403, problem)
    return None


def _authors(commit: str, name: str, ports: Ports, *, rebuilds: bool) -> frozenset[str]:
    """Return who may have written the removal of a cluster; nobody where one of them is unknown.

    The newest change of its folder removes it. A rebuild can be of any change since the spec that runs.
    """
    changes = ports.repository.changes(commit, f"{CLUSTERS}/{name}", CHANGES if rebuilds else 1)
    if rebuilds:
        record = ports.state.cluster(name)
        runs = record.commit if record else ""
        changes = [*takewhile(lambda change: change.commit != runs, changes)] or changes
    if not all(change.people for change in changes):
        return frozenset()
    return frozenset().union(*(change.people for change in changes))


def why_not_author(commit: str, setting: str, addresses: frozenset[str], authors: frozenset[str]) -> str:
    """Return why a person may not approve a commit, "" if the person may; ``setting`` asks for that."""
    people = frozenset(each for each in authors if each != GITHUB and not each.endswith(BOTS))
    if not addresses:
        return f"{setting}: only a person with an address in Entra can approve"
    if addresses & people:
        return f"you are an author of {commit}; somebody else has to approve"
    if not people or any(address.endswith(HIDDEN) for address in people):
        return f"{commit} has no address of its author to compare with yours"
    return ""


def why_not(cluster: str, addresses: frozenset[str], authors: frozenset[str]) -> str:
    """Return why a person may not approve the delete of a cluster, "" if the person may.

    ``addresses`` are the person's according to Entra, ``authors`` those of the commits that may have removed
    the cluster. Who cannot be compared may not: an app or a key, and the approver of a hidden author.
    """
    return why_not_author(f"the commit that removes {cluster}", "APPROVAL_BY_OTHERS", addresses, authors)
