"""The Proposing port on the branches and the pull requests of a repository."""

from __future__ import annotations

from localcloud.github.world.branches import Branches
from localcloud.github.world.pull_requests import Pulls
from localcloud.github.world.pull_requests_port import pull_of
from shared.cluster.failures.errors import Conflict, Dependency
from shared.ports import NewCommit, Pull, PullText


class WorldProposing:
    """Acts as a user with a login, who may write to the repository."""

    def __init__(self, branches: Branches, pulls: Pulls, login: str) -> None:
        self._branches, self._pulls, self._login = branches, pulls, login

    def tip(self, branch: str) -> str | None:
        """Return the commit that a branch points to, or None."""
        try:
            return self._branches.head(branch)
        except Dependency:
            return None

    def add_commit(self, commit: NewCommit) -> str:
        """Create a commit."""
        return self._branches.add(commit.path, commit.content, commit.message, commit.parents)

    def create_branch(self, branch: str, commit: str) -> None:
        """Create a branch, once."""
        if self.tip(branch) is not None:
            raise Conflict("Reference already exists")
        self._branches.reset(commit, branch)

    def advance_branch(self, branch: str, commit: str) -> None:
        """Move a branch to a descendant of its tip."""
        tip = self.tip(branch)
        if tip is None or not self._branches.is_descendant(commit, tip):
            raise Conflict("Update is not a fast forward")
        self._branches.reset(commit, branch)

    def delete_branch(self, branch: str) -> None:
        """Delete a branch, which closes its pull requests."""
        if self.tip(branch) is not None:
            self._branches.delete(branch)
            self._pulls.branch_deleted(branch)

    def open_pull(self, branch: str, base: str, text: PullText) -> Pull:
        """Open a pull request, or return the one that is open."""
        found = self._pulls.listed(head=branch, base=base)
        if found:
            return pull_of(found[0])
        return pull_of(self._pulls.open(text.title, branch, base, author=self._login, body=text.body))

    def edit_pull(self, number: int, text: PullText) -> None:
        """Replace what a pull request says."""
        self._pulls.change(number, title=text.title, body=text.body)

    def close_pull(self, number: int) -> None:
        """Close a pull request."""
        self._pulls.change(number, state="closed")
