"""The commits between what the clusters of an environment have and the head of the branch.

They are those of the branch itself: of a pull request, its merge alone. A pin moves only where what Flux
pulls has changed. So a cluster of which the newest plan changes nothing, or nothing more, has all that was
planned. Calls to git do not grow with clusters: one for each distinct commit that clusters have, and one for
each commit that is shown.
"""

from __future__ import annotations

from shared.app.api import schema
from shared.app.api.parts import items_of
from shared.app.planner.pins.distances import commits_after
from shared.cluster.record import ClusterRecord
from shared.language.pin import Pin
from shared.masking import cut
from shared.plan.plan import Item
from shared.ports import Ports
from shared.ports.git_host import BranchCommit

SHOWN = 50
"""So many commits are shown, with their files."""
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
    pulled, newest = dict[str, list[str]](), ports.state.fleet().commit
    items = items_of(ports.state.plan(newest))
    unverified = set[str]()
    for record in ports.state.clusters_named(names):
        pulled.setdefault(_pulled(record, items.get(record.name), newest), []).append(record.name)
        unverified |= {record.name} if record.observed_generation < record.generation else set()
    most = sorted(pulled, key=lambda commit: (-len(pulled[commit]), commit))
    head = ports.git_host.read_head(ports.config.branch).commit
    follow = {commit: commits_after(commit, head, ports.git_host) for commit in filter(None, most[:PULLED])}
    longest = max((found for found in follow.values() if found), key=len, default=())
    return {
        "fleet": ports.config.fleet,
        "environment": environment,
        "branch": ports.config.branch,
        "head": head,
        "pulled": [
            {
                "commit": commit,
                "behind": None if (after := follow.get(commit)) is None else len(after),
                "clusterCount": len(pulled[commit]),
                "unverifiedCount": len(unverified.intersection(pulled[commit])),
                "clusters": sorted(pulled[commit])[:NAMED],
            }
            for commit in most
        ],
        "commits": [_commit(change, ports) for change in longest[:SHOWN]],
        "more": len(longest[SHOWN:]),
    }


def _pulled(record: ClusterRecord, item: Item | None, newest: str) -> str:
    """Return the commit that a cluster has, "" where Flux follows its source by itself, or another one.

    ``item`` is what the newest plan, of the commit ``newest``, does to it.
    """
    pin = Pin.of(record.document)
    if pin is None:
        return record.document["spec"]["flux"].get("commit") or ""
    if pin.source:
        return ""
    accepted = item is not None and item.uid == record.uid and item.generation <= record.generation
    moves = item is not None and (item.hold is None or item.keeps_version)
    return newest if accepted and moves else pin.commit


def _commit(change: BranchCommit, ports: Ports) -> schema.LogCommit:
    files = ports.git_host.files_between(change.commit, change.parents[0])
    return {
        "commit": change.commit,
        "title": cut(change.message.strip().partition("\n")[0], TITLE),
        "author": change.author,
        "fileCount": len(files),
        "files": list(files[:NAMED]),
    }
