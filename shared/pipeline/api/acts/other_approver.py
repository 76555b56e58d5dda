"""Approvals by somebody else: who wrote the removal of a cluster does not approve its delete."""

from __future__ import annotations

from collections.abc import Sequence

from shared.fleet.resolve.repository_layout import CLUSTERS
from shared.jobs.failures.errors import ReconcileError
from shared.pipeline.http_result import HttpResult, rejected
from shared.ports import Ports

MOST = 50
"""How many deletes one approval can have while their authors are read, each with a call to GitHub."""
GITHUB, HIDDEN = "noreply@github.com", "@users.noreply.github.com"
"""The committer of what GitHub's pages merge, and the end of an address that hides one (docs.github.com,
"Setting your commit email address")."""


def refused_by_authors(
    commit: str, deletes: Sequence[str], addresses: frozenset[str], ports: Ports
) -> HttpResult | None:
    """Return the refusal of an approval by somebody who removed one of the clusters, None for no refusal.

    ``addresses`` are those of the approver.
    """
    if len(deletes) > MOST:
        return rejected(409, f"with APPROVAL_BY_OTHERS an approval has at most {MOST} deletes; remove fewer")
    for name in deletes:
        try:
            changes = ports.repository.changes(commit, f"{CLUSTERS}/{name}", 1)
        except ReconcileError as error:
            return rejected(502, f"the authors of the removal of {name} could not be read: {error}")
        problem = why_not(name, addresses, changes[0].people if changes else frozenset())
        if problem:
            return rejected(403, problem)
    return None


def why_not_author(commit: str, setting: str, addresses: frozenset[str], authors: frozenset[str]) -> str:
    """Return why a person may not approve a commit, "" if the person may; ``setting`` asks for that."""
    people = authors - {GITHUB}
    if not addresses:
        return f"{setting}: only a person with an address in Entra can approve"
    if addresses & people:
        return f"you are an author of {commit}; somebody else has to approve"
    if not people or any(address.endswith(HIDDEN) for address in people):
        return f"{commit} has no address of its author to compare with yours"
    return ""


def why_not(cluster: str, addresses: frozenset[str], authors: frozenset[str]) -> str:
    """Return why a person may not approve the delete of a cluster, "" if the person may.

    ``addresses`` are the person's according to Entra, ``authors`` those of the commit that removed the
    cluster. Who cannot be compared may not: an app or a key, and the approver of a hidden author.
    """
    return why_not_author(f"the commit that removes {cluster}", "APPROVAL_BY_OTHERS", addresses, authors)
