"""A pull request of the app's own: of a branch of one file, which only moves forward.

What is saved always names the commits of the branch that are ours, before the branch points to them. So a
crash at any line, or a second app, never makes a commit of ours look like one of somebody else, nor the other
way. See docs/decisions/0024-a-proposal-is-a-branch-that-only-moves-forward.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Generic, TypeVar

from shared.app.proposals.head import Head
from shared.app.pull_requests.markdown import fit
from shared.app.repository import read_files
from shared.cluster.failures.errors import Conflict
from shared.frozen import dataclass, replace
from shared.language.resolve.repository_layout import blob_id
from shared.ports import Capability, NewCommit, Ports, Pull, PullText
from shared.ports.pull_requests import AutoMerge
from shared.ports.state import Promotion, Proposal

Own = TypeVar("Own", Proposal, Promotion)
V = TypeVar("V")

COMMITS = 5
KEPT = 100
"""So many declined values are remembered."""
BODY_LIMIT = 65_000
"""Characters; GitHub takes 65,536."""


class SomebodyPushed(Exception):
    """The branch points to a commit that is not ours; the message says what is left alone."""


@dataclass(frozen=True)
class File:
    """The file that a commit of ours changes, and the message of that commit."""

    path: str
    content: str
    message: str


@dataclass(frozen=True)
class OwnBranch(Generic[Own]):
    """The branch of what is stored as ``Own``; ``save`` stores that, and returns it as saved."""

    name: str
    ports: Ports
    save: Callable[[Own], Own]

    def commit(self, own: Own, file: File, head: Head) -> Own:
        """Let the branch point to a new commit with the file; raise SomebodyPushed, or Conflict."""
        tip = self.ports.git_host.tip(self.name)
        if tip is not None and tip not in own.commits:
            raise SomebodyPushed(
                f"somebody else has pushed to the branch {self.name}: it is left as it is, and so is its "
                "pull request"
            )
        parents = parents_of(tip, head.commit, self.ports)
        new = NewCommit({file.path: file.content.encode()}, file.message, parents)
        commit = self.ports.git_host.add_commit(new)
        own = self.save(replace(own, commits=(*own.commits, commit)[-COMMITS:]))
        self.ports.git_host.move_branch(self.name, tip, commit)
        return own

    def show(self, own: Own, pull: Pull | None, text: PullText) -> Own:
        """Give the open pull request this text, or open one; return what is to be saved."""
        if pull is not None and pull.open:
            self.ports.git_host.edit_pull(pull.number, text)
        else:
            pull = self.ports.git_host.open_pull(self.name, self.ports.config.branch, text)
        return replace(own, number=pull.number, url=pull.url)

    def close(self, own: Own, pull: Pull | None, comment: str) -> Own:
        """Close the pull request if it is open, with one comment, which begins with its marker.

        That nothing is proposed is saved before: what the app closes by itself, nobody declines.
        """
        if pull is None or not pull.open:
            return own
        again = not own.values
        own = self.save(replace(own, values=()))
        marker = comment.partition("\n")[0]
        if not (again and self.ports.git_host.comment(pull.number, marker)):
            self.ports.git_host.write_comment(pull.number, comment, over=None)
        self.ports.git_host.close_pull(pull.number)
        return own

    def has(self, files: Mapping[str, str]) -> bool:
        """Return whether the branch has these files."""
        tip = self.ports.git_host.tip(self.name)
        blobs = read_files(tip, self.ports).blobs if tip else {}
        return all(blobs.get(path) == blob_id(content.encode()) for path, content in files.items())

    def tip(self, own: Own) -> str | None:
        """Return the commit that the branch points to, None where it was never ours or does not exist."""
        return self.ports.git_host.tip(self.name) if own.commits else None

    def delete(self, own: Own, tip: str | None) -> Own:
        """Delete the branch if its tip is a commit of ours; return what is to be saved."""
        if tip not in own.commits:
            return own
        self.ports.git_host.delete_branch(self.name)
        return replace(own, commits=())


def open_asked(
    branch: str, files: Mapping[str, str | None], text: PullText, head: Head, ports: Ports
) -> Pull:
    """Open the pull request that a person or a timer asked for, of one commit, or return the open one.

    ``files`` has the content of each file, None for one that is removed. They and the name of the branch
    follow from what was asked and from git alone. So whoever asks twice, or again after a crash at any line,
    gets the pull request that is there. The commit has the title as its message, and is the head of what is
    returned. Raise Conflict for a branch with other files: it is left alone.
    """
    host = ports.git_host
    wanted = {path: None if content is None else content.encode() for path, content in files.items()}
    commit = host.tip(branch)
    if commit is None or host.is_descendant(head.commit, commit):  # none, or merged
        before, commit = commit, host.add_commit(NewCommit(wanted, text.title, [head.commit]))
        host.move_branch(branch, before, commit)
    else:
        blobs = read_files(commit, ports).blobs
        wrong = any(
            blobs.get(path) != (None if own is None else blob_id(own)) for path, own in wanted.items()
        )
        if wrong or not _is_only(commit, wanted, head, ports):
            raise Conflict(
                f"the branch {branch} has other files: somebody has pushed to it, or git has changed them "
                "since. Merge or close its pull request and delete the branch, then ask again"
            )
    return replace(host.open_pull(branch, ports.config.branch, text), head=commit)


def _is_only(commit: str, paths: Collection[str], head: Head, ports: Ports) -> bool:
    """Return whether a branch adds one commit to the head, and that changes no file but these.

    Whoever may push branches can create one of this name before the app does, with more in it.
    """
    added = ports.git_host.changes_since(commit, head.commit, 1)
    if not added or len(added[0].parents) != 1:
        return False
    return set(ports.git_host.files_between(commit, added[0].parents[0])) <= set(paths)


def merged_by_host(pull: Pull, ports: Ports) -> AutoMerge:
    """Have the host merge a pull request by its own rules, while its head is the commit that we created."""
    if Capability.AUTO_MERGE not in ports.git_host.capabilities:
        return AutoMerge.LACKING
    return ports.git_host.enable_auto_merge(pull.number, pull.head)


def parents_of(tip: str | None, head: str, ports: Ports) -> list[str]:
    """Return the parents of a branch's next commit: its tip, and the newest commit, whose files it has."""
    if tip is None:
        return [head]
    return [tip] if ports.git_host.is_descendant(tip, head) else [tip, head]


def declined_after(declined: tuple[V, ...], values: tuple[V, ...], pull: Pull) -> tuple[V, ...]:
    """Return what is declined once the host shows a pull request as it is.

    Somebody who closes it declines its values; somebody who reopens or merges it takes that back.
    """
    others = tuple(value for value in declined if value not in values)
    return others if pull.open or pull.merged else (*others, *values)[-KEPT:]


def pull_text(title: str, parts: Sequence[str]) -> PullText:
    """Return what a pull request says, within the limit."""
    return PullText(title, fit(parts, BODY_LIMIT, "**Shortened: a longer text is not accepted.**"))
