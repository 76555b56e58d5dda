"""The pull request of a rollback: a branch for each upgrade that is undone, with one commit.

The name of the branch and its content follow from the manifest and from Azure alone. So whoever asks twice,
or again after a crash at any line, gets the pull request that is there. Another content is left alone.
"""

from __future__ import annotations

from shared.app.proposals.head import Head
from shared.app.proposals.own_pull import File, new_commit, pull_text
from shared.app.pull_requests.markdown import code, prose, table
from shared.app.repository import read_files
from shared.azure.node_pools.rollback import WITHIN, Versions
from shared.azure.ownership import rollback_tag
from shared.cluster.divergence.drift import ROLLBACKS
from shared.cluster.failures.errors import Conflict
from shared.frozen import dataclass
from shared.language.resolve.repository_layout import blob_id, cluster_path
from shared.ports import Ports, Pull, PullText


@dataclass(frozen=True)
class RollbackAsked:
    """A rollback that may be proposed: ``before`` is what the pool runs, ``content`` the new manifest."""

    cluster: str
    pool: str
    before: Versions
    target: Versions
    content: str
    by: str
    reason: str = ""

    @property
    def title(self) -> str:
        """The first line of the commit and of the pull request."""
        return f"Roll back {self.cluster}/{self.pool} to Kubernetes {self.target.kubernetes}"


def open_rollback(asked: RollbackAsked, head: Head, ports: Ports) -> Pull:
    """Open the pull request, or return the one that is open; raise Conflict for a branch of somebody else.

    A branch that was merged, and reverted since, has no commit for another pull request: it gets one.
    """
    of_upgrade = f"{asked.cluster}/{asked.pool}-{rollback_tag(asked.target.last_used)}"
    branch, path = f"{ROLLBACKS}{ports.config.fleet}/{of_upgrade}", cluster_path(asked.cluster)
    tip = ports.git_host.tip(branch)
    merged = tip is not None and ports.git_host.is_descendant(head.commit, tip)
    if tip is None or merged:
        versions = f"- Kubernetes {asked.target.kubernetes}\n- {asked.target.image}\n"
        message = f"{asked.title}\n\nThe pool ran these until {asked.target.moment}:\n\n{versions}"
        commit = new_commit(File(path, asked.content, message), [head.commit], ports)
        ports.git_host.move_branch(branch, tip, commit)
    elif read_files(tip, ports).blobs.get(path) != blob_id(asked.content.encode()):
        raise Conflict(f"the branch {branch} has another manifest: delete it, then ask again")
    return ports.git_host.open_pull(branch, ports.config.branch, _text(asked))


def _text(asked: RollbackAsked) -> PullText:
    before, target = asked.before, asked.target
    rows = [
        (code("Kubernetes"), code(before.kubernetes), code(target.kubernetes)),
        (code("node image"), code(before.image), code(target.image)),
    ]
    why = f" Reason: {prose(asked.reason)}" if asked.reason else ""
    pool = code(f"{asked.cluster}/{asked.pool}")
    until = f"{target.last_used + WITHIN:%Y-%m-%d %H:%M} UTC"
    parts = [
        f"{prose(asked.by)} asked to roll the node pool {pool} back to what it ran before its upgrade.{why}",
        table(("what", "runs", "rolls back to"), rows),
        f"- **Merge** this before {until}: Azure rolls back within seven days. The worker reads the "
        "conditions again right before it starts, and holds if one is not met any more.\n"
        "- AKS replaces every node of the pool, and takes the security patches of the newer versions away. "
        "Correct the cause, then upgrade again: raise orchestratorVersion and remove rollback.\n"
        "- **Close** it to change nothing.",
    ]
    return pull_text(asked.title, parts)
