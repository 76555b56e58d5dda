"""The commits between what the clusters of an environment pull and the head of the branch.

They are those of the branch itself: of a pull request, its merge alone. Calls to git do not grow with
clusters: one for each distinct commit that clusters pull, and one for each commit that is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.app.api import schema
from shared.cluster.failures.errors import Dependency
from shared.masking import cut
from shared.ports import Ports
from shared.ports.git_host import BranchCommit

SHOWN = 50
"""So many commits are shown, with their files."""
AFTER = 250
"""So many commits after one that clusters pull are read."""
PULLED = 20
"""Of so many commits that clusters pull, those of most clusters, it is read how many follow."""
NAMED = 20
"""So many clusters, and so many files of a commit, are named."""
TITLE = 200


def log_view(environment: str, ports: Ports) -> schema.Log | None:
    """Return what lies between an environment and the head; None for one without a cluster."""
    names = [summary.name for summary in ports.state.summaries() if summary.place.environment == environment]
    if not names:
        return None
    pulled = dict[str, list[str]]()
    for record in ports.state.clusters_named(names):
        pulled.setdefault(_pulled(record.document), []).append(record.name)
    most = sorted(pulled, key=lambda commit: (-len(pulled[commit]), commit))
    head = ports.git_host.read_head(ports.config.branch).commit
    follow = {commit: _follow(commit, head, ports) for commit in filter(None, most[:PULLED])}
    longest = max((found for found in follow.values() if found), key=len, default=())
    return {
        "fleet": ports.config.fleet,
        "environment": environment,
        "branch": ports.config.branch,
        "head": head,
        "pulled": [_clusters(commit, sorted(pulled[commit]), follow.get(commit)) for commit in most],
        "commits": [_commit(change, ports) for change in longest[:SHOWN]],
        "more": len(longest[SHOWN:]),
    }


def _pulled(document: Mapping[str, Any]) -> str:
    """Return the commit that Flux pulls on a cluster, "" where it follows its source by itself."""
    pin = document.get("pin") or {}
    return str(pin.get("commit") or document["spec"]["flux"].get("commit") or "")


def _follow(commit: str, head: str, ports: Ports) -> Sequence[BranchCommit] | None:
    """Return the commits of the branch after one, newest first; None for too many, or another history."""
    try:
        found = ports.git_host.changes_since(head, commit, AFTER)
    except Dependency:
        return None
    known, line = {change.commit: change for change in found or ()}, list[BranchCommit]()
    while head in known:
        line.append(known[head])
        head = next(iter(line[-1].parents), "")
    return line if found is not None and head == commit else None


def _clusters(
    commit: str, names: Sequence[str], follow: Sequence[BranchCommit] | None
) -> schema.PulledCommit:
    return {
        "commit": commit,
        "behind": None if follow is None else len(follow),
        "clusterCount": len(names),
        "clusters": list(names[:NAMED]),
    }


def _commit(change: BranchCommit, ports: Ports) -> schema.LogCommit:
    files = ports.git_host.files_between(change.commit, change.parents[0])
    return {
        "commit": change.commit,
        "title": cut(change.message.strip().partition("\n")[0], TITLE),
        "author": change.author,
        "fileCount": len(files),
        "files": list(files[:NAMED]),
    }
