"""Pull requests, their comments, and check runs in GitHub, for any repository with branches.

GitHub's rules hold: one open pull request for a head and a base, a comment of at most 65,536 characters, 50
annotations in one call, a summary of at most 65,535 characters. A pull request from a fork reports another
repository for its branch, which is in this one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from itertools import count
from typing import Any

from localcloud.git.world.branches import Branches, ChangedFile
from localcloud.git.world.commit_statuses import StatusRecord
from localcloud.git.world.issues import IssueStore
from localcloud.git.world.people import OPERATOR, Teams
from localcloud.git.world.ref_changes import ZERO, RefChange
from localcloud.git.world.reviews import ReviewList
from localcloud.git.world.text_limits import check_comment, check_output, check_text
from shared.cluster.failures.errors import Conflict, Dependency, InvalidManifest
from shared.ports import Clock
from shared.ports.git_host import BranchCommit


@dataclass(frozen=True)
class PullRecord:
    """A pull request; ``head`` and ``base`` are branches, ``sha`` the newest commit of the head seen.

    ``onto`` is the commit of the base that it was merged onto, ``merge_commit`` what the base then was.
    """

    number: int
    title: str
    head: str
    base: str
    sha: str
    created_at: datetime
    fork: bool = False
    state: str = "open"
    author: str = OPERATOR.login
    onto: str = ""
    merge_commit: str = ""
    merged_at: datetime | None = None
    body: str = ""
    labels: tuple[str, ...] = ()
    auto_merge: str = ""
    """The method with which the host is to merge it, "" for not by itself."""

    @property
    def merged(self) -> bool:
        """Whether it was merged."""
        return self.merged_at is not None


@dataclass(frozen=True)
class CommentRecord:
    """A comment on a pull request."""

    id: int
    pull: int
    author: str
    body: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class CheckRecord:
    """A check run; ``output`` has title and summary, the annotations of all calls are separate.

    ``suite`` is its check suite: that of its app for the commit, or with GitHub Actions that of a run of a
    workflow (docs.github.com/rest/guides/using-the-rest-api-to-interact-with-checks, "About check suites").
    """

    id: int
    sha: str
    name: str
    status: str
    conclusion: str | None
    details_url: str | None
    created_at: datetime
    app: int = 1
    suite: int = 1
    output: dict[str, str] = field(default_factory=dict)
    annotations: tuple[dict[str, Any], ...] = ()


PASSED = ("success", "neutral", "skipped")
"""Conclusions that a required check may have: docs.github.com, "About protected branches"."""


class PushEffect(Enum):
    """What a push did to a pull request: its branch went, it has a new commit, or it reached its base."""

    CLOSED, RENEWED, MERGED = range(3)


class Pulls:
    """The pull requests of one repository. ``slow_merges``: how many more reads get no merge result yet.

    ``allows_auto_merge`` is the setting of the repository, which GitHub has off by default, and
    ``required_checks`` are the statuses and checks that the rules of every base require; ``methods`` are
    the methods of a merge that the repository allows.
    """

    check_text, check_comment = staticmethod(check_text), staticmethod(check_comment)
    takes_empty = False
    """Whether a branch without commits of its own may have one."""
    merged_by_push = True
    """Whether one whose head a push brings into its base counts as merged."""

    def __init__(self, branches: Branches, clock: Clock) -> None:
        self._branches, self._clock = branches, clock
        self._lock = threading.RLock()
        self._numbers, self._ids = count(1), count(1)
        self._pulls: dict[int, PullRecord] = {}
        self._comments: dict[int, CommentRecord] = {}
        self._checks: dict[int, CheckRecord] = {}
        self.slow_merges = 0
        self.allows_auto_merge = False
        self.methods: tuple[str, ...] = ("merge", "squash")
        self.required_checks: tuple[str, ...] = ()
        self.reviews, self.teams = ReviewList(clock), Teams()
        self.issues = IssueStore(self._numbers, clock)

    def open(
        self,
        title: str,
        head: str,
        base: str,
        *,
        fork: bool = False,
        author: str = OPERATOR.login,
        body: str = "",
    ) -> PullRecord:
        """Open a pull request; raise InvalidManifest for what GitHub answers 422."""
        self.check_text(title, body)
        for name, branch in (("head", head), ("base", base)):
            if self._sha(branch) is None:
                raise InvalidManifest(f"{name} is invalid")
        with self._lock:
            if any((p.head, p.base) == (head, base) for p in self.listed(base=base)):
                raise InvalidManifest(f"A pull request already exists for {head}.")
            # GitHub compares the commits: a branch that was merged has none, whatever a revert did since
            # (github.com/piceaTech/node-gitlab-2-github/issues/91).
            empty = self._branches.is_descendant(self._branches.head(base), self._branches.head(head))
            if empty and not self.takes_empty:
                raise InvalidManifest(f"No commits between {base} and {head}")
            sha, now = self._branches.head(head), self._clock()
            record = PullRecord(next(self._numbers), title, head, base, sha, now, fork=fork, author=author)
            record = replace(record, body=body)
            self._pulls[record.number] = record
            return record

    def get(self, number: int) -> PullRecord | None:
        """Return a pull request with its newest commit, or None."""
        with self._lock:
            found = self._pulls.get(number)
            if found is not None and found.state == "open":
                found = replace(found, sha=self._sha(found.head) or found.sha)
                self._pulls[number] = found
            return found

    def listed(self, *, state: str = "open", base: str = "", head: str = "") -> Sequence[PullRecord]:
        """Return pull requests, newest first; "" is any."""
        with self._lock:
            every = [self.get(number) for number in sorted(self._pulls, reverse=True)]
        return [
            pull
            for pull in every
            if pull and state in (pull.state, "all") and base in ("", pull.base) and head in ("", pull.head)
        ]

    def change(self, number: int, **changes: Any) -> PullRecord:
        """Change the title, text, base or state of one; raise Dependency when there is none.

        One that is merged, or whose branch no longer exists, is never open again.
        """
        self.check_text(changes.get("title", "-"), changes.get("body") or "")
        with self._lock:
            found = self.get(number)
            if found is None:
                raise Dependency(f"no pull request {number}")
            reopens = (found.state, changes.get("state")) == ("closed", "open")
            if reopens and (found.merged or self._sha(found.head) is None):
                raise InvalidManifest("state cannot be changed.")
            self._pulls[number] = replace(found, **changes)
            return self._pulls[number]

    def branch_deleted(self, branch: str) -> Sequence[PullRecord]:
        """Close the open pull requests of a branch that somebody deleted, and return them."""
        return [self.change(pull.number, state="closed") for pull in self.listed(head=branch)]

    def pushed(self, change: RefChange) -> Iterator[tuple[PushEffect, PullRecord]]:
        """Do to pull requests what a push of a branch does, and yield each as it is then."""
        branch = change.ref.removeprefix("refs/heads/")
        if change.ref == branch:
            return  # a tag
        if change.after == ZERO:
            for closed in self.branch_deleted(branch):
                yield PushEffect.CLOSED, closed
            return
        for renewed in self.listed(head=branch):
            yield PushEffect.RENEWED, renewed
        for reached in self.listed(base=branch) if self.merged_by_push else ():
            if self._branches.is_descendant(change.after, reached.sha):
                merged = self.close_as_merged(reached.number, onto=change.before, commit=change.after)
                yield PushEffect.MERGED, merged

    def merged_into_base(self, number: int, *, squash: bool = False, message: str = "") -> PullRecord:
        """Merge an open pull request into its base, as GitHub's button does; raise Conflict or Dependency.

        ``message`` is that of the commit, by default the title with the number.
        """
        with self._lock:
            found = self.get(number)
            if found is None:
                raise Dependency(f"no pull request {number}")
            onto = self._branches.head(found.base)
            text = message or f"{found.title} (#{number})"
            is_open = found.state == "open"
            commit = self._branches.land(onto, found.sha, text, squash=squash) if is_open else None
            if commit is None:
                raise Conflict("Pull Request is not mergeable")
            self._branches.reset(commit, found.base)
            return self.close_as_merged(number, onto=onto, commit=commit)

    def enable_auto_merge(self, number: int, method: str, head: str = "") -> PullRecord:
        """Have one merged once each required check has passed; raise InvalidManifest, or Dependency for none.

        Source: docs.github.com/graphql/reference/mutations, enablePullRequestAutoMerge, and "Automatically
        merging a pull request". What it says is as the issues have it that the adapter names.
        """
        with self._lock:
            found = self.get(number)
            if found is None:
                raise Dependency(f"no pull request {number}")
            refusals = {
                "Pull request is closed": found.state != "open",
                "Auto merge is not allowed for this repository": not self.allows_auto_merge,
                "Protected branch rules not configured for this branch": not self.required_checks,
                f"Merge method {method} merging is not allowed on this repository": method
                not in self.methods,
                "Head branch was modified. Review and try the merge again.": head not in ("", found.sha),
                "Pull request is in clean status": self._passed(found),
            }
            refused = next((why for why, holds in refusals.items() if holds), "")
            if refused:
                raise InvalidManifest(f"Pull request {refused}")
            return self.change(number, auto_merge=method)

    def merged_by_itself(self) -> Sequence[PullRecord]:
        """Merge what was to be merged and whose required checks have passed; return what was merged."""
        with self._lock:
            due = [pull for pull in self.listed() if pull.auto_merge and self._passed(pull)]
            landed = []
            for pull in due:
                base = self._sha(pull.base)
                if base and self._branches.merge(base, pull.sha) is not None:
                    landed.append(self.merged_into_base(pull.number, squash=pull.auto_merge == "squash"))
            return landed

    def _passed(self, pull: PullRecord) -> bool:
        """Return whether each required check, or status, of the newest commit has passed."""
        states = {found.status.context: found.status.state for found in self._statuses_of(pull.sha)}
        states |= {run.name: run.conclusion or "" for run in reversed(self.checks(pull.sha))}
        return all(states.get(name) in PASSED for name in self.required_checks)

    def _statuses_of(self, sha: str) -> Sequence[StatusRecord]:
        return self._branches.statuses.latest(sha)

    def close_as_merged(self, number: int, *, onto: str, commit: str) -> PullRecord:
        """Close one whose head reached its base, also by a push, as ``commit``."""
        at = self._clock()
        return self.change(number, state="closed", onto=onto, merge_commit=commit, merged_at=at)

    def with_commit(self, commit: str) -> Sequence[PullRecord]:
        """Return the merged pull requests that brought a commit, or else the open ones that have it."""
        merged = [p for p in self.listed(state="closed") if p.merged and self._brought(p, commit)]
        return merged or [p for p in self.listed() if self._branches.has(commit, *self.span(p))]

    def _brought(self, pull: PullRecord, commit: str) -> bool:
        return commit == pull.merge_commit or self._branches.has(commit, *self.span(pull))

    def span(self, pull: PullRecord) -> tuple[str, str]:
        """Return the commit of the base that a pull request is compared with, and its newest commit."""
        return pull.onto or self._sha(pull.base) or pull.sha, pull.sha

    def files(self, pull: PullRecord) -> Sequence[ChangedFile]:
        """Return the files that a pull request changes."""
        return self._branches.changed_files(*self.span(pull))

    def commits_of(self, pull: PullRecord) -> Sequence[BranchCommit]:
        """Return its commits."""
        return self._branches.commits_of(*self.span(pull))

    @property
    def repository(self) -> int:
        """GitHub's number of the repository."""
        return self._branches.id

    def merge(self, pull: PullRecord) -> tuple[bool | None, str | None]:
        """Return (mergeable, test merge commit) as GitHub does: (None, None) while it has not tried."""
        with self._lock:
            if self.slow_merges > 0:
                self.slow_merges -= 1
                return None, None
            base = self._sha(pull.base)
            merged = self._branches.merge(base, pull.sha) if base else None
            return merged is not None, merged

    def comments(self, number: int) -> Sequence[CommentRecord]:
        """Return the comments of a pull request, oldest first."""
        with self._lock:
            return [c for c in self._comments.values() if c.pull == number]

    def write_comment(self, number: int, author: str, body: str) -> CommentRecord:
        """Write a comment; raise InvalidManifest or Dependency."""
        self.check_comment(body)
        if self.get(number) is None:
            raise Dependency(f"no pull request {number}")
        with self._lock:
            now = self._clock()
            record = CommentRecord(next(self._ids), number, author, body, now, now)
            self._comments[record.id] = record
            return record

    def edit_comment(self, number: int, body: str) -> CommentRecord:
        """Write over a comment by its id; raise InvalidManifest or Dependency."""
        self.check_comment(body)
        with self._lock:
            found = self._comments.get(number)
            if found is None:
                raise Dependency(f"no comment {number}")
            self._comments[number] = replace(found, body=body, updated_at=self._clock())
            return self._comments[number]

    def checks(self, sha: str) -> Sequence[CheckRecord]:
        """Return the check runs of a commit, newest first."""
        with self._lock:
            return [c for c in reversed(self._checks.values()) if c.sha == sha]

    def get_check(self, number: int) -> CheckRecord | None:
        """Return a check run, or None."""
        with self._lock:
            return self._checks.get(number)

    def write_check(self, sha: str, body: dict[str, Any], *, app: int = 1, suite: int = 1) -> CheckRecord:
        """Make a check run of an app, in one of its suites, from the JSON of its call."""
        with self._lock:
            name, now = str(body.get("name") or ""), self._clock()
            blank = CheckRecord(next(self._ids), sha, name, "queued", None, None, now, app, suite)
            if not blank.name:
                raise InvalidManifest("name is missing")
            return self._keep(blank, body)

    def edit_check(self, number: int, body: dict[str, Any]) -> CheckRecord:
        """Change a check run; its annotations are added to those it has."""
        with self._lock:
            found = self._checks.get(number)
            if found is None:
                raise Dependency(f"no check run {number}")
            return self._keep(found, body)

    def _keep(self, check: CheckRecord, body: dict[str, Any]) -> CheckRecord:
        output = body.get("output") or {}
        annotations = tuple(output.get("annotations") or ())
        check_output(body, output, annotations)
        conclusion = body.get("conclusion", check.conclusion)
        stored = replace(
            check,
            status="completed" if conclusion else body.get("status", check.status),
            conclusion=conclusion,
            details_url=body.get("details_url", check.details_url),
            output={**check.output, **{k: v for k, v in output.items() if k in ("title", "summary", "text")}},
            annotations=check.annotations + annotations,
        )
        self._checks[stored.id] = stored
        return stored

    def _sha(self, branch: str) -> str | None:
        try:
            return self._branches.head(branch)
        except Dependency:
            return None
