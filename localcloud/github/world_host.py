"""The port of a git host in memory or on disk, as GitHub has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from localcloud.git.world.git_repository import GitRepository
from localcloud.git.world.memory_repository import MemoryRepository
from localcloud.git.world.people import OPERATOR, PEOPLE, account_behind, account_of, addressee
from localcloud.git.world.pull_requests import PullRecord
from localcloud.git.world.reviews import ReviewRecord
from localcloud.git.world.text_limits import MAX_ANNOTATIONS
from localcloud.github.rulesets import guards
from shared.cluster.failures.errors import Conflict, Dependency, InvalidManifest, Unauthorized
from shared.ports.git_host import Capability, CommitStatus, HookDelivery, Issue, co_authors
from shared.ports.pull_requests import (
    Annotation,
    AutoMerge,
    Check,
    Comment,
    MergedPull,
    NewCommit,
    Pull,
    PullAuthors,
    PullText,
    Review,
    ReviewState,
)

APP_AUTHOR = "roadstead[bot]"


_WRITTEN = ("contents", "statuses", "pull_requests", "checks", "issues")


class WorldHost:
    """Acts as the one user of the world, or as a GitHub App, which alone may write check runs."""

    name, credential = "GitHub", "GITHUB_TOKEN"
    to_read_another = "add the repository to the installation of the GitHub App, or to the token"

    def __init__(
        self,
        git: GitRepository | MemoryRepository,
        *,
        app: bool = False,
        others: Mapping[str, MemoryRepository] | None = None,
    ) -> None:
        self._git, self._pulls, self.is_app = git, git.pulls, app
        self._others = {} if others is None else others
        self.read_head, self.is_descendant = git.read_head, git.is_descendant
        self.changes, self.changes_since = git.changes, git.changes_since
        self.files_between = git.files_between
        self.tree, self.blob, self.archive = git.tree, git.blob, git.archive
        self.addressee = addressee
        self.lacks = frozenset[Capability]()
        self.granted = {"metadata": "read", **dict.fromkeys(_WRITTEN, "write"), "members": "read"}
        self.delivered: list[HookDelivery] = []
        self.stopped = ""
        """Why it delivers nothing any more, "" while it does."""

    def permissions(self) -> Mapping[str, str] | None:
        """Return what the App may; GitHub does not say it of a token."""
        return dict(self.granted) if self.is_app else None

    def deliveries(self) -> Sequence[HookDelivery] | None:
        """Return the deliveries, newest first; a token may not see them."""
        if self.stopped:
            raise Dependency(self.stopped)
        return list(reversed(self.delivered)) if self.is_app else None

    def other(self, repository: str) -> WorldHost:
        """Return another repository; the app may see none that is not there."""
        found = self._others.get(repository)
        return WorldHost(found if found is not None else MemoryRepository(), app=self.is_app)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Everything, as GitHub has it, but what this one ``lacks``."""
        return frozenset(Capability) - self.lacks - (set() if self.is_app else {Capability.WRITTEN_CHECKS})

    def set_status(self, commit: str, status: CommitStatus) -> None:
        """Write a status, after which GitHub merges what waited for it."""
        self._git.set_status(commit, status)
        self._pulls.merged_by_itself()

    def pushed_at(self, branch: str, commit: str) -> datetime | None:  # noqa: ARG002 - as the adapter
        """Return None: GitHub's webhook has the time."""
        return None

    def _require(self, capability: Capability) -> None:
        if capability not in self.capabilities:
            raise Unauthorized(f"there are no {capability}")

    def open_pulls(self, base: str) -> Sequence[Pull]:
        """Return the open ones into a branch, newest first."""
        return [pull_of(record) for record in self._pulls.listed(base=base)[:100]]

    def pull(self, number: int) -> Pull | None:
        """Return a pull request with its merge result."""
        record = self._pulls.get(number)
        if record is None:
            return None
        mergeable, merge = self._pulls.merge(record)
        return pull_of(record, None if mergeable is None else merge or "")

    def comment(self, number: int, marker: str) -> Comment | None:
        """Return our oldest comment with the marker."""
        issue = self._pulls.issues.get(number)
        if issue is not None:
            own = (
                pair[0]
                for pair in zip(issue.comments, issue.commenters, strict=True)
                if pair[1] == self._author
            )
            return next((Comment(0, body) for body in own if body.startswith(marker)), None)
        mine = (c for c in self._pulls.comments(number) if c.author == self._author)
        return next((Comment(c.id, c.body) for c in mine if c.body.startswith(marker)), None)

    def write_comment(self, number: int, body: str, *, over: Comment | None) -> None:
        """Write a comment."""
        if over is None:
            self._pulls.write_comment(number, self._author, body)
        else:
            self._pulls.edit_comment(over.id, body)

    def conclusions(self, commit: str, check: str) -> Sequence[str]:
        """Return what the newest check run says of each app that has one of a name of a commit."""
        self._require(Capability.CHECKS)
        found = {run.app: run for run in reversed(self._pulls.checks(commit)) if run.name == check}
        return [run.conclusion or "" for run in found.values()]

    def write_check(self, commit: str, check: Check) -> None:
        """Write a check run, its annotations in as many calls as GitHub wants."""
        self._require(Capability.WRITTEN_CHECKS)
        output = {"title": check.title, "summary": check.summary}
        body: dict[str, Any] = {"name": check.name, "conclusion": check.conclusion, "output": output}
        body |= {"details_url": check.target_url} if check.target_url else {}
        record = self._pulls.write_check(commit, body)
        found = [_annotation(a) for a in check.annotations]
        for start in range(0, len(found), MAX_ANNOTATIONS):
            part = found[start : start + MAX_ANNOTATIONS]
            self._pulls.edit_check(record.id, {"output": {**output, "annotations": part}})
        self._pulls.merged_by_itself()

    def merged_as(self, commit: str) -> Sequence[MergedPull]:
        """Return the merged pull requests that brought a commit."""
        found = self._pulls.with_commit(commit)
        return [_merged(p, self._pulls.repository, p.merged_at) for p in found if p.merged_at]

    def reviews(self, number: int) -> Sequence[Review] | None:
        """Return the reviews of a pull request, oldest first."""
        self._require(Capability.REVIEWS)
        return [_review(review) for review in self._pulls.reviews.of(number)]

    def removed_files(self, number: int) -> frozenset[str] | None:
        """Return the paths that a pull request removes or renames."""
        gone = (
            file for file in self._pulls.files(self._record(number)) if file.status in ("removed", "renamed")
        )
        return frozenset(file.previous or file.path for file in gone)

    def pull_authors(self, number: int) -> PullAuthors:
        """Return the accounts of the authors and committers of a pull request's commits."""
        commits = self._pulls.commits_of(self._record(number))
        people = [account_of(address) for commit in commits for address in (commit.author, commit.committer)]
        known = [person.id if person else None for person in people]
        known += [account_behind(address) for commit in commits for address in co_authors(commit.message)]
        accounts = frozenset(account for account in known if account is not None)
        return PullAuthors(accounts, complete=None not in known and bool(known))

    def team_members(self, team: str) -> frozenset[int] | None:
        """Return the members of a team."""
        found = self._pulls.teams.of(team)
        if found is None:
            raise Dependency(f"no team {team}")
        return frozenset(person.id for person in found)

    def tip(self, branch: str) -> str | None:
        """Return the commit that a branch points to, or None."""
        self._require(Capability.PROPOSALS)
        try:
            return self._git.head(branch)
        except Dependency:
            return None

    def branches(self, prefix: str) -> Mapping[str, str]:
        """Return the branches with a prefix."""
        self._require(Capability.PROPOSALS)
        return {name: sha for name, sha in self._git.heads().items() if name.startswith(prefix)}

    def is_guarded(self, branch: str) -> bool:
        """Return whether a rule of the repository is about a branch of this name."""
        return guards(self._git.guarded, branch)

    def add_commit(self, commit: NewCommit) -> str:
        """Create a commit."""
        return self._git.add(commit.files, commit.message, commit.parents)

    def move_branch(self, branch: str, tip: str | None, commit: str) -> None:
        """Create a branch, once, or move it to a descendant of its tip."""
        found = self.tip(branch)
        if tip is None and found is not None:
            raise Conflict("Reference already exists")
        if tip is not None and (found is None or not self._git.is_descendant(commit, found)):
            raise Conflict("Update is not a fast forward")
        self._git.reset(commit, branch)

    def delete_branch(self, branch: str) -> None:
        """Delete a branch, which closes its pull requests."""
        if self.tip(branch) is not None:
            self._git.delete(branch)
            self._pulls.branch_deleted(branch)

    def open_pull(self, branch: str, base: str, text: PullText) -> Pull:
        """Open a pull request, or return the one that is open."""
        found = self._pulls.listed(head=branch, base=base)
        if found:
            return pull_of(found[0])
        return pull_of(self._pulls.open(text.title, branch, base, author=OPERATOR.login, body=text.body))

    def enable_auto_merge(self, number: int, head: str) -> AutoMerge:
        """Enable auto-merge, with the first method that the repository allows."""
        self._require(Capability.AUTO_MERGE)
        record = self._record(number)
        if record.merged or record.state != "open":
            return AutoMerge.MERGED if record.merged else AutoMerge.CLOSED
        if record.sha != head:
            return AutoMerge.MOVED
        if not self._pulls.allows_auto_merge:
            return AutoMerge.NOT_ALLOWED
        try:
            self._pulls.enable_auto_merge(number, record.auto_merge or self._pulls.methods[0], head)
        except InvalidManifest:
            return AutoMerge.NO_RULES
        return AutoMerge.ENABLED

    def edit_pull(self, number: int, text: PullText) -> None:
        """Replace what a pull request says."""
        self._pulls.change(number, title=text.title, body=text.body)

    def close_pull(self, number: int) -> None:
        """Close a pull request."""
        self._pulls.change(number, state="closed")

    def newest_issues(self) -> Sequence[Issue]:
        """Return what people have opened, of the newest hundred open issues."""
        self._require(Capability.FORMS)
        people = (issue for issue in self._pulls.issues.listed()[:100] if issue.author)
        return [
            Issue(
                issue.number,
                issue.author,
                PEOPLE.get(issue.author, OPERATOR).id,
                issue.body,
                issue.created_at,
                issue.edited_at is not None,
            )
            for issue in people
            if not issue.author.endswith("[bot]")
        ]

    def find_issue(self, marker: str) -> int | None:
        """Return our newest open issue with the marker."""
        self._require(Capability.ISSUES)
        own = (issue for issue in self._pulls.issues.listed() if issue.author == OPERATOR.login)
        return next((issue.number for issue in own if issue.body.startswith(marker)), None)

    def open_issue(self, title: str, body: str) -> int:
        """Create an issue."""
        return self._pulls.issues.create(title, body, OPERATOR.login).number

    def comment_issue(self, number: int, body: str) -> None:
        """Write a comment."""
        self._pulls.issues.comment(number, body, self._author)

    def close_issue(self, number: int) -> None:
        """Close an issue."""
        self._pulls.issues.change(number, state="closed", state_reason="completed")

    def _record(self, number: int) -> PullRecord:
        record = self._pulls.get(number)
        if record is None:
            raise Dependency(f"no pull request {number}")
        return record

    @property
    def _author(self) -> str:
        return APP_AUTHOR if self.is_app else OPERATOR.login


def _annotation(found: Annotation) -> dict[str, object]:
    lines = {"start_line": found.line, "end_line": found.line}
    return {"path": found.path, **lines, "annotation_level": "failure", "message": found.message}


def pull_of(record: PullRecord, merge: str | None = None, html: str = "https://github.example") -> Pull:
    """Return a pull request as the port has it."""
    return Pull(
        record.number,
        record.sha,
        record.base,
        merge=merge,
        fork=record.fork,
        open=record.state == "open",
        merged=record.merged,
        url=f"{html}/pull/{record.number}",
        labels=frozenset(record.labels),
    )


def _review(record: ReviewRecord) -> Review:
    url = f"https://github.example/pull/{record.pull}#pullrequestreview-{record.id}"
    state, at = ReviewState(record.state), record.at.replace(microsecond=0)
    return Review(
        record.id, record.author.id, record.author.login, state, record.commit, at, url, record.body
    )


def _merged(record: PullRecord, repository: int, at: datetime) -> MergedPull:
    return MergedPull(
        number=record.number,
        head=record.sha,
        base=record.base,
        repository=repository,
        merge_commit=record.merge_commit,
        author=PEOPLE[record.author].id,
        at=at.replace(microsecond=0),
        labels=frozenset(record.labels),
    )
